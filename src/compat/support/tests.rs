//! Refusals of toolkits and torches, with the mends they offer.

use super::*;

fn check(set: &str, cuda: &str) -> Vec<Problem> {
    against_compiler(&set.parse().unwrap(), Compiler::release(cuda.parse().unwrap()))
}

#[test]
fn an_inherited_list_with_one_arch_too_many_moves_the_ptx() {
    let problems = check("5.2 6.0 6.1 7.0 7.5 8.0 8.6 9.0+PTX", "11.7");
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].message(), "nvcc 11.7 cannot compile for 9.0");
    assert_eq!(problems[0].evidence(), ["CUDA 11.7 ends at 8.7", "9.0 needs CUDA 11.8 or newer"]);
    let last = "or build `5.2;6.0;6.1;7.0;7.5;8.0;8.6+PTX`";
    assert_eq!(problems[0].mends(), ["build with CUDA 11.8 or newer (`--cuda 11.8`)", last]);
    assert_eq!(problems[0].exit(), Exit::Toolchain);
}

#[test]
fn dropped_archs_come_in_one_message_with_the_other_remedy() {
    let list = "5.2;5.3;6.0;6.1;6.2;7.0+PTX;7.2+PTX;7.5+PTX;8.0+PTX;8.6+PTX";
    assert!(check(list, "11.2").is_empty());
    let problems = check(list, "13.0");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message().ends_with("5.2, 5.3, 6.0, 6.1, 6.2, 7.0 and 7.2"));
    let problems = check("6.0;7.0;8.0;9.0", "13.0");
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].mends()[0], "remove them and build `8.0;9.0`");
    assert!(problems[0].mends()[1].contains("CUDA 12.9 or older"));
}

#[test]
fn one_arch_beyond_the_toolkit_offers_jit_as_second_best() {
    let problems = check("8.6", "10.2");
    assert!(problems[0].mends()[0].contains("11.1") && problems[0].mends()[1].contains("7.5+PTX"));
}

#[test]
fn an_arch_that_does_not_exist_is_met_with_its_neighbours() {
    for (wrong, cuda, near, ptx) in [
        ("9.9", "13.0", "9.0 or 10.0", "9.0+PTX"),
        ("9.9", "11.8", "9.0", "9.0+PTX"),
        ("29.9", "12.9", "12.1", "12.1+PTX"),
    ] {
        let problems = check(wrong, cuda);
        assert_eq!(problems.len(), 1, "{wrong}");
        let mends = problems[0].mends();
        assert_eq!(mends[0], format!("say what is meant: nearest to {wrong} is {near}"));
        assert!(mends[1].contains(&format!("`{ptx}`")) && mends.len() == 2, "{mends:?}");
    }
    assert_eq!(check("9.9", "13.0")[0].evidence(), ["no toolkit in the table knows 9.9"]);
    // Nothing below it: PTX of a later arch would not start there.
    assert_eq!(check("3.1", "13.0")[0].mends(), ["say what is meant: nearest to 3.1 is 7.5"]);
    assert_eq!(check("8.6;9.9", "13.0")[0].mends()[1], "or build `8.6`");
}

#[test]
fn thor_goes_by_two_names() {
    assert!(check("10.1", "12.8").is_empty() && check("11.0", "13.0").is_empty());
    let early = check("11.0", "12.9");
    assert_eq!(early[0].evidence(), ["Thor is 10.1 before CUDA 13.0"]);
    let late = check("10.1", "13.0");
    assert_eq!(late[0].evidence(), ["10.1 was renamed to 11.0 in CUDA 13.0"]);
    let set: ArchSet = "10.1".parse().unwrap();
    assert!(against_torch(&set, "2.8", None).is_empty());
    let torch = against_torch(&set, "2.9", None);
    assert!(torch[0].mends().iter().any(|help| help.contains("11.0")), "{:?}", torch[0].mends());
    assert!(torch[0].mends().iter().any(|help| help.contains("torch 2.7 to 2.8")), "{:?}", torch[0].mends());
    assert!(torch[0].mends().iter().any(|help| help.contains("-gencode")));
    assert!(against_torch(&"11.0".parse().unwrap(), "2.9", None).is_empty());
}

#[test]
fn a_cuda_version_typed_as_arch_is_recognised() {
    let compiler = Compiler::release(CudaVersion::new(10, 1));
    let set = "10.1".parse().unwrap();
    let problems = against_compiler_here(&set, compiler, &[Capability::new(6, 1)], None);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].message(), "10.1 is the version of this CUDA toolkit, not a compute capability");
    assert_eq!(problems[0].evidence(), ["nvcc 10.1 ends at 7.5"]);
    assert_eq!(problems[0].mends(), ["the GPU here is 6.1: say `6.1` instead"]);
    assert!(check("10.1", "10.1")[0].mends()[0].contains("cuwright detect"));
}

#[test]
fn nvcc_s_clash_of_plain_and_family_code_is_known() {
    let problems = check("10.3;10.3f", "13.0");
    assert_eq!(problems[0].message(), "nvcc cannot build 10.3 and 10.3f into one file");
    for fine in ["10.3;10.3a", "compute_103;10.3f", "10.0;10.3f", "10.3a;10.3f"] {
        assert!(check(fine, "13.0").is_empty(), "{fine}");
    }
}

#[test]
fn the_toolkit_at_hand_knows_better_than_the_table() {
    let codes: Vec<String> = ["sm_75", "sm_90", "sm_140"].map(str::to_owned).to_vec();
    let compiler = Compiler { version: CudaVersion::new(14, 2), gpu_codes: Some(&codes) };
    let problems = against_compiler(&"7.5;8.0;14.0;9.0a".parse().unwrap(), compiler);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message().ends_with("8.0"));
    assert_eq!(check("14.0", "14.2"), Vec::new());
    assert_eq!(unknown(&"8.6;14.0".parse().unwrap()).len(), 1);
}
