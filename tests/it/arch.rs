//! `arch` as a user runs it: every spelling, every mistake, every consumer, every product of the table.

use crate::support::{Sandbox, project};

fn answer(args: &[&str]) -> String {
    let args: Vec<&str> = ["arch"].into_iter().chain(args.iter().copied()).collect();
    Sandbox::new().run(&args).assert_code(0).stdout.trim_end().to_owned()
}

fn refusal(args: &[&str], code: i32) -> String {
    let args: Vec<&str> = ["arch"].into_iter().chain(args.iter().copied()).collect();
    let said = Sandbox::new().run(&args).assert_code(code);
    assert_eq!(said.stdout, "", "{args:?}");
    said.stderr
}

#[test]
fn what_people_write_becomes_one_canonical_list() {
    for (list, canonical) in [
        ("8.6, 7.5;;8.6+PTX  7.5", "7.5;8.6+PTX"),
        ("75", "7.5"),
        ("7.5", "7.5"),
        ("86", "8.6"),
        ("120", "12.0"),
        ("12.0", "12.0"),
        ("90a", "9.0a"),
        ("sm_86", "8.6"),
        ("compute_80", "compute_80"),
        ("Ampere", "8.0;8.6+PTX"),
        ("h100,orin", "8.7;9.0"),
        ("13.0", "13.0"),
    ] {
        assert_eq!(answer(&[list]), canonical, "{list}");
    }
}

#[test]
fn a_lost_zero_is_asked_about() {
    for (list, meant) in [("8", "8.0"), ("10", "10.0"), ("12", "12.0")] {
        let said = refusal(&[list], 2);
        assert!(said.contains(&format!("did you mean `{meant}`")) && said.contains("quote it"), "{said}");
    }
    assert!(refusal(&["8.60"], 2).contains("`8.6`"));
}

#[test]
fn mistakes_are_shown_together_with_their_place() {
    insta::assert_snapshot!(refusal(&["8.0, 8.60; rtx-4090 12 RTX 4090"], 2));
}

#[test]
fn consumers_read_their_own_spelling() {
    for (to, value) in [
        ("torch", "7.5;8.6+PTX"),
        ("cmake", "75-real;86-real;86-virtual"),
        ("bazel", "sm_75,compute_86"),
        ("caffe", "'-DCUDA_ARCH_NAME=Manual' '-DCUDA_ARCH_BIN=75 86' '-DCUDA_ARCH_PTX=86'"),
        (
            "nvcc",
            "-gencode=arch=compute_75,code=sm_75 -gencode=arch=compute_86,code=sm_86 \
             -gencode=arch=compute_86,code=compute_86",
        ),
    ] {
        assert_eq!(answer(&["75;86;compute_86", "--to", to]), value, "{to}");
    }
    assert_eq!(answer(&["86", "--to", "tiny-cuda-nn"]), "86");
    assert!(refusal(&["10.0f", "--to", "torch"], 12).contains("no torch release reads an `f` suffix"));
}

#[test]
fn the_tables_judge_with_nothing_installed() {
    for (cuda, torch) in [("cu128", "v2.8"), ("v12.8.1", "2.8.0+cu128")] {
        assert_eq!(answer(&["10.1", "--cuda", cuda, "--torch", torch]), "10.1");
    }
    for (flag, text) in [("--cuda", "12"), ("--cuda", ">=12"), ("--torch", "2"), ("--torch", "new"), ("--driver", "x")]
    {
        let refused = refusal(&["8.6", flag, text], 2);
        assert!(refused.contains("error[cuwright::usage::version_range]") && refused.contains(text), "{refused}");
    }
    assert_eq!(answer(&["10.1", "--cuda", "12.8", "--torch", "2.8"]), "10.1");
    assert_eq!(answer(&["11.0", "--cuda", "13.0", "--torch", "2.9"]), "11.0");
    assert!(refusal(&["11.0", "--cuda", "12.9"], 12).contains("Thor is 10.1 before CUDA 13"));
    assert!(refusal(&["10.1", "--cuda", "13.0"], 12).contains("10.1 was renamed to 11.0 in CUDA 13"));
    let torch = refusal(&["10.1", "--cuda", "12.8", "--torch", "2.9"], 12);
    assert!(torch.contains("torch 2.9 does not accept 10.1") && torch.contains("-gencode"), "{torch}");
    assert_eq!(answer(&["10.1", "--cuda", "12.8", "--to", "cmake"]), "101-real");
    let dropped = refusal(&["60;70;80;90", "--cuda", "13.0"], 12);
    assert!(dropped.contains("6.0 and 7.0") && dropped.contains("12.9"), "{dropped}");
    let swapped = refusal(&["10.1", "--cuda", "10.1"], 12);
    assert!(swapped.contains("is the version of this CUDA toolkit") && !swapped.contains("12.8"), "{swapped}");
    assert_eq!(answer(&["all-major", "--cuda", "13.5"]), "7.5;8.0;9.0;10.0;11.0;12.0+PTX");
}

#[test]
fn an_inherited_list_is_used_and_named() {
    let sandbox = Sandbox::new().var("TORCH_CUDA_ARCH_LIST", "5.2 6.0 6.1 7.0 7.5 8.0 8.6 9.0+PTX");
    let said = sandbox.run(&["arch", "--cuda", "11.7"]).assert_code(12);
    for part in ["cannot compile for 9.0", "TORCH_CUDA_ARCH_LIST", "11.8", "`5.2;6.0;6.1;7.0;7.5;8.0;8.6+PTX`"] {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    assert_eq!(sandbox.run(&["arch", "8.6"]).assert_code(0).stdout, "8.6\n");
}

#[test]
fn explain_tells_what_runs_where() {
    insta::assert_snapshot!(answer(&["7.5;8.0;8.6+PTX", "--explain"]));
    let judged = answer(&["8.0+PTX", "--gpu", "H100", "--cuda", "12.8", "--driver", "12.2"]);
    assert!(judged.contains("PTX 8.7 of CUDA 12.8 is newer than the driver"), "{judged}");
}

#[test]
fn every_product_of_the_table_resolves_through_the_command_line() {
    let table = fs_err::read_to_string(project("src/compat/tables/gpus.tsv")).unwrap();
    let rows: Vec<(&str, &str)> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, rest)| (name, rest.split('\t').next().unwrap()))
        .collect();
    let sandbox = Sandbox::new();
    let shapes: [fn(&str) -> String; 4] =
        [str::to_owned, str::to_lowercase, |name| format!("NVIDIA {name}"), |name| name.replace(' ', "-")];
    for shape in shapes {
        let names: Vec<String> = rows.iter().map(|(name, _)| shape(name)).collect();
        sandbox.file("names.txt", &names.join("\n"));
        let said = sandbox.run(&["arch", "--gpu-file", "names.txt"]).assert_code(2);
        let answers: Vec<&str> = said.stdout.lines().collect();
        assert_eq!(answers.len(), rows.len());
        for ((name, capability), answer) in rows.iter().zip(answers) {
            let want =
                if capability.contains('|') { format!("ambiguous {capability}") } else { (*capability).to_owned() };
            assert_eq!(answer, want, "{name}");
        }
    }
}

#[test]
fn an_ambiguous_product_lists_what_it_could_be() {
    let said = refusal(&["--gpu", "RTX 6000"], 2);
    for part in ["Quadro RTX 6000 is 7.5", "RTX 6000 Ada is 8.9", "12.0"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(answer(&["--gpu", "RTX 6000 Ada", "--gpu", "A100 80GB"]), "8.0;8.9");
}

#[test]
fn json_carries_every_form() {
    let text = answer(&["8.6+PTX;9.0a", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["archs"], "8.6+PTX;9.0a");
    assert_eq!(json["members"][1]["first-cuda"], "12.0");
    assert_eq!(json["spellings"]["cmake"], "86-real;86-virtual;90a-real");
    assert_eq!(json["spellings"].get("caffe"), None, "a consumer that cannot hold the list is left out");
    assert!(json["gpus"].as_array().unwrap().len() > 10);
}

const TABLES: &str = "[[gpu]]\nname = \"GeForce RTX 7090\"\ncapability = \"14.0\"\n\
                      [[arch]]\narch = \"14.0\"\nfirst-cuda = \"13.5\"\n";

#[test]
fn a_file_of_one_s_own_adds_gpus_and_archs() {
    let sandbox = Sandbox::new();
    assert!(sandbox.run(&["arch", "rtx-7090"]).assert_code(2).stderr.contains("rtx-7090"));
    assert!(sandbox.run(&["arch", "14.0"]).assert_code(0).stderr.contains("in no table"));
    sandbox.file("mine.toml", TABLES).file("../home/.config/cuwright/gpus.toml", TABLES);
    let by_home = sandbox.run(&["arch", "rtx-7090", "-v"]).assert_code(0);
    assert_eq!(by_home.stdout, "14.0\n");
    assert!(by_home.stderr.contains("by the user file") && by_home.stderr.contains(".config/cuwright/gpus.toml"));
    let by_flag = sandbox.run(&["arch", "rtx-7090", "--tables", "mine.toml", "-v"]).assert_code(0);
    assert!(by_flag.stderr.contains("mine.toml") && !by_flag.stderr.contains("in no table"), "{}", by_flag.stderr);
    let too_old = sandbox.run(&["arch", "14.0", "--cuda", "13.0"]).assert_code(12);
    assert!(too_old.stderr.contains("14.0 needs CUDA 13.5"), "{}", too_old.stderr);
    assert_eq!(sandbox.run(&["arch", "14.0", "--cuda", "13.5"]).assert_code(0).stdout, "14.0\n");
    let by_variable = Sandbox::new().var("CUWRIGHT_TABLES", sandbox.work().join("mine.toml").as_str());
    assert_eq!(by_variable.run(&["arch", "--gpu", "RTX 7090"]).assert_code(0).stdout, "14.0\n");
}

#[test]
fn a_mistake_in_such_a_file_is_shown_in_its_place() {
    let sandbox = Sandbox::new();
    sandbox.file("mine.toml", "[[gpu]]\nname = \"RTX 7090\"\ncapability = \"sm_140\"\n");
    insta::assert_snapshot!(sandbox.run(&["arch", "8.6", "--tables", "mine.toml"]).assert_code(2).shown(&sandbox));
    assert!(sandbox.run(&["arch", "8.6", "--tables", "none.toml"]).assert_code(2).stderr.contains("none.toml"));
}

#[test]
fn a_list_is_called_by_its_own_name() {
    for list in ["", ";", "8.60", "Radeon"] {
        let said = refusal(&[list], 2);
        assert!(said.contains("LIST") && !said.contains("--arch"), "{said}");
    }
    assert!(refusal(&["RTX-5O90"], 2).contains("did you mean GeForce RTX 5090"));
}

#[test]
fn all_leaves_out_what_torch_refuses() {
    let said = Sandbox::new().run(&["arch", "all", "--cuda", "13.0", "--torch", "2.11"]).assert_code(0);
    assert!(said.stderr.contains("8.8 left out: torch 2.11 does not accept it"), "{}", said.stderr);
    assert!(refusal(&["8.8", "--cuda", "13.0", "--torch", "2.11"], 12).contains("does not accept 8.8"));
}
