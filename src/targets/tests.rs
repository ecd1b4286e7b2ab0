//! Selection: which source wins, and what each word becomes.

use super::*;

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}

fn machine(capabilities: &[&str]) -> Detected {
    let gpus = capabilities.iter().map(|c| (c.parse().unwrap(), format!("a {c} card, from NVML"))).collect();
    Detected { gpus, ..Detected::default() }
}

fn compiler(version: &str) -> Facts<'static> {
    Facts { compiler: Some(Compiler::release(version.parse().unwrap())), ..Facts::default() }
}

fn arch(list: &str, facts: Facts<'_>) -> Result<Selected, Problems> {
    select(&Request { arch: &words(&[list]), ..Request::default() }, facts, || machine(&["8.6", "6.1", "8.6"]))
}

fn set(list: &str, facts: Facts<'_>) -> String {
    arch(list, facts).unwrap_or_else(|p| panic!("{list}: {p:?}")).set.to_string()
}

#[test]
fn the_order_of_sources_holds() {
    let (archs, gpus) = (words(&["9.0"]), words(&["RTX 4090"]));
    let (profile_archs, recipe_archs) = (words(&["8.0"]), words(&["7.5"]));
    let profile = Listed { name: "profile prod", arch: &profile_archs, gpus: &[] };
    let recipe = Listed { name: "cuwright.toml", arch: &recipe_archs, gpus: &[] };
    let mut request = Request {
        arch: &archs,
        arch_name: None,
        gpus: &gpus,
        profile: Some(profile),
        recipe: Some(recipe),
        inherited: Some(("TORCH_CUDA_ARCH_LIST", "6.1")),
    };
    let pick = |request: &Request<'_>| select(request, Facts::default(), || machine(&["8.6"])).unwrap();
    let first = pick(&request);
    assert_eq!((first.set.to_string().as_str(), first.warnings.len()), ("9.0", 2));
    request.arch = &[];
    assert_eq!(pick(&request).set.to_string(), "8.9");
    request.gpus = &[];
    assert_eq!(pick(&request).set.to_string(), "8.0");
    request.profile = None;
    assert_eq!(pick(&request).set.to_string(), "7.5");
    request.recipe = None;
    let inherited = pick(&request);
    assert_eq!(inherited.set.to_string(), "6.1");
    assert!(inherited.warnings[0].contains("TORCH_CUDA_ARCH_LIST"));
    request.inherited = None;
    assert_eq!(pick(&request).set.to_string(), "8.6+PTX");
}

#[test]
fn the_machine_is_not_looked_at_unless_it_matters() {
    let request = Request { arch: &words(&["8.6"]), ..Request::default() };
    select(&request, Facts::default(), || panic!("must not detect")).unwrap();
}

#[test]
fn mixed_cards_merge_and_the_highest_by_number_gets_ptx() {
    assert_eq!(set("native", Facts::default()), "6.1;8.6+PTX");
    let request = Request::default();
    let found = select(&request, Facts::default(), || machine(&["12.0", "8.6"])).unwrap();
    assert_eq!(found.set.to_string(), "8.6;12.0+PTX");
    assert_eq!(set("native;9.0", Facts::default()), "6.1;8.6;9.0");
}

#[test]
fn no_gpu_and_no_list_prints_the_three_ways() {
    for request in [Request::default(), Request { arch: &words(&["native"]), ..Request::default() }] {
        let problems = select(&request, Facts::default(), Detected::default).unwrap_err();
        assert_eq!(problems.exit(), Exit::NoTarget);
        let mends = problems.iter().next().unwrap().mends().join("\n");
        for way in ["--arch", "--gpu", "[targets]"] {
            assert!(mends.contains(way), "{mends}");
        }
    }
}

#[test]
fn words_become_numbers() {
    for (list, facts, want) in [
        ("Ampere", Facts::default(), "8.0;8.6+PTX"),
        ("Turing 8.6", Facts::default(), "7.5+PTX;8.6"),
        ("Blackwell+Tegra", compiler("12.8"), "10.1"),
        ("Maxwell+Tegra+PTX", Facts::default(), "5.3+PTX"),
        ("rtx-4090;h100,orin", Facts::default(), "8.7;8.9;9.0"),
        ("'RTX 4090' \"Tesla T4\"", Facts::default(), "7.5;8.9"),
        ("all-major", compiler("13.5"), "7.5;8.0;9.0;10.0;11.0;12.0+PTX"),
        ("all-major", compiler("12.8"), "5.0;6.0;7.0;8.0;9.0;10.0;12.0+PTX"),
        ("all", compiler("11.0"), "3.5;3.7;5.0;5.2;5.3;6.0;6.1;6.2;7.0;7.2;7.5;8.0+PTX"),
    ] {
        assert_eq!(set(list, facts), want, "{list}");
    }
    let codes = words(&["sm_90", "sm_120", "sm_121"]);
    let facts = Facts {
        compiler: Some(Compiler { version: "13.9".parse().unwrap(), gpu_codes: Some(&codes) }),
        ..Facts::default()
    };
    assert_eq!(set("all", facts), "9.0;12.0+PTX;12.1");
}

#[test]
fn all_without_a_toolkit_is_a_question() {
    let problems = arch("all", Facts::default()).unwrap_err();
    assert_eq!(problems.iter().next().unwrap().code(), "cuwright::target::all_needs_toolkit");
}

#[test]
fn every_wrong_item_is_reported_at_once() {
    let problems = arch("8.6 rtx-4091 'RTX 6000'", Facts::default()).unwrap_err();
    let codes: Vec<&str> = problems.iter().map(Problem::code).collect();
    assert_eq!(codes, ["cuwright::target::unknown_gpu", "cuwright::target::ambiguous_gpu"]);
    assert_eq!(problems.exit(), Exit::Usage);
    assert!(problems.iter().all(|problem| problem.snippet().is_some()));
    let ambiguous = problems.iter().nth(1).unwrap();
    assert!(ambiguous.evidence().iter().any(|line| line == "Quadro RTX 6000 is 7.5"), "{:?}", ambiguous.evidence());
}

#[test]
fn an_unknown_arch_works_with_a_warning() {
    let selected = arch("13.0", Facts::default()).unwrap();
    assert_eq!(selected.set.to_string(), "13.0");
    assert_eq!(selected.warnings.len(), 1);
}

#[test]
fn a_detection_fault_is_the_error_shown() {
    let fault = Problem::new("cuwright::detect::driver_library_mismatch", Exit::NoTarget, "the driver is half updated");
    let detected = Detected { problem: Some(fault), ..Detected::default() };
    let problems = select(&Request::default(), Facts::default(), || detected.clone()).unwrap_err();
    assert_eq!(problems.iter().next().unwrap().code(), "cuwright::detect::driver_library_mismatch");
}

#[test]
fn an_empty_list_is_a_mistake_of_its_origin() {
    let problems = arch(" ; ", Facts::default()).unwrap_err();
    assert_eq!((problems.exit(), problems.iter().next().unwrap().code()), (Exit::Usage, EMPTY));
}

#[test]
fn all_leaves_out_what_the_chosen_torch_refuses_and_says_so() {
    let facts = Facts { torch: Some("2.11.0+cu130"), ..compiler("13.0") };
    let selected = arch("all", facts).unwrap();
    assert_eq!(selected.warnings, ["8.8 left out: torch 2.11.0+cu130 does not accept it"]);
    assert!(selected.why.contains(&selected.warnings[0]) && !selected.set.to_string().contains("8.8"));
    assert!(support::against_torch(&selected.set, "2.11", None).is_empty());
    let own = ["7.5", "9.0"].map(str::to_owned);
    let facts = Facts { torch_accepts: Some(&own), ..facts };
    assert_eq!(set("all", facts), "7.5;9.0+PTX");
    assert_eq!(set("all-major", facts), "7.5;9.0+PTX");
    // What is written out is meant, and judged later.
    assert_eq!(set("8.8", facts), "8.8");
    assert_eq!(set("all", compiler("13.0")).matches("8.8").count(), 1);
}

#[test]
fn a_list_that_holds_nothing_is_a_mistake_where_it_was_made() {
    let problem = |request: &Request<'_>| {
        let problems = select(request, Facts::default(), || panic!("must not detect")).unwrap_err();
        problems.iter().next().unwrap().clone()
    };
    let blank = words(&[" ;"]);
    let argument = problem(&Request { arch: &blank, arch_name: Some("LIST"), ..Request::default() });
    assert_eq!((argument.code(), argument.exit()), (EMPTY, Exit::Usage));
    assert_eq!(argument.message(), "LIST is given and names no target");
    let listed = Listed { name: "cuwright.toml", arch: &blank, gpus: &[] };
    assert_eq!(problem(&Request { recipe: Some(listed), ..Request::default() }).exit(), Exit::Recipe);
    // A recipe or an argument that holds no list has no part in it.
    let silent = Listed { name: "cuwright.toml", arch: &[], gpus: &[] };
    for recipe in [None, Some(silent)] {
        let inherited = Some(("TORCH_CUDA_ARCH_LIST", ";;"));
        let inherited = problem(&Request { recipe, inherited, ..Request::default() });
        assert_eq!((inherited.code(), inherited.exit()), (EMPTY, Exit::Usage));
        assert!(inherited.message().starts_with("TORCH_CUDA_ARCH_LIST"));
        assert!(inherited.mends()[0].starts_with("unset TORCH_CUDA_ARCH_LIST"));
    }
}

#[test]
fn an_expectation_does_not_look_at_the_machine() {
    let problems = literal("--expect", "native").unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!(problem.code(), MACHINE_WORD);
    assert!(problem.message().contains("--expect") && problem.mends().iter().all(|mend| !mend.contains("recipe")));
    let wrong = literal("--expect", "8.60").unwrap_err();
    assert_eq!(wrong.iter().next().unwrap().snippet().unwrap().origin, "--expect");
}

#[test]
fn help_never_begins_with_or() {
    for list in ["Radeon-7900", "rtx-4091", "RTX-5O90", "99.9", ""] {
        let problems = arch(list, compiler("12.8"));
        let refused = problems.map(|s| support::against_compiler(&s.set, Compiler::release("12.8".parse().unwrap())));
        let problems = refused.unwrap_or_else(|problems| problems.iter().cloned().collect());
        for problem in problems {
            assert!(!problem.mends()[0].starts_with("or "), "{list}: {problem:?}");
        }
    }
}
