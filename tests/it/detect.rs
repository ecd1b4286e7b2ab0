//! `detect` as a user runs it: over a fake driver library, a stub `nvidia-smi`, and reports of a fleet.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::{Sandbox, project};

/// A sandbox whose driver library plays `machine`.
fn driver(machine: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let folder = sandbox.root().join("driver");
    fs_err::create_dir_all(&folder).unwrap();
    let compiled = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(folder.join("libnvidia-ml.so.1"))
        .arg(project("tests/it/support/fake_nvml.c"))
        .status()
        .unwrap();
    assert!(compiled.success());
    sandbox.var("LD_LIBRARY_PATH", folder.as_str()).var("FAKE_NVML", machine)
}

/// A sandbox whose `nvidia-smi` is this shell script.
fn smi(script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let folder = sandbox.root().join("bin");
    fs_err::create_dir_all(&folder).unwrap();
    fs_err::write(folder.join("nvidia-smi"), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs_err::set_permissions(folder.join("nvidia-smi"), std::fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.var("PATH", &format!("{folder}:/usr/bin:/bin"))
}

fn json(sandbox: &Sandbox, args: &[&str], code: i32) -> Value {
    let args: Vec<&str> = ["detect", "--json"].into_iter().chain(args.iter().copied()).collect();
    serde_json::from_str(&sandbox.run(&args).assert_code(code).stdout).unwrap()
}

#[test]
fn eight_mixed_gpus_unite_and_agree_with_their_names() {
    let sandbox = driver("eight");
    let all = json(&sandbox, &[], 0);
    assert_eq!(all["archs"], "6.1;7.0;7.5;8.0;8.6;8.9;9.0;12.0");
    assert_eq!(all["native"], "6.1;7.0;7.5;8.0;8.6;8.9;9.0;12.0+PTX");
    assert_eq!((all["driver"].as_str(), all["cuda"].as_str()), (Some("550.54.14"), Some("12.4")));
    assert_eq!(all["devices"][7]["source"], "nvml");
    let names = json(&sandbox, &["--method", "name"], 0);
    assert_eq!(names["archs"], all["archs"]);
    assert_eq!(names["devices"][0]["confidence"], "low");
}

#[test]
fn mig_instances_are_listed_and_selectable() {
    let sandbox = driver("mig");
    let all = json(&sandbox, &[], 0);
    assert_eq!(all["archs"], "7.5;8.0");
    assert_eq!(all["devices"][0]["mig"].as_array().unwrap().len(), 2);
    let one = driver("mig").var("CUDA_VISIBLE_DEVICES", "MIG-00000003-0000-0000-0000-000000000000");
    let one = json(&one, &[], 0);
    assert_eq!((one["archs"].as_str(), one["devices"][1]["visible"].as_bool()), (Some("8.0"), Some(false)));
    let unknown = json(&driver("mig").var("CUDA_VISIBLE_DEVICES", "MIG-deadbeef"), &[], 11);
    assert_eq!(unknown["error"]["code"], "cuwright::detect::none_visible");
}

#[test]
fn a_gpu_that_does_not_answer_costs_only_itself() {
    for (machine, missing) in [("lost", "7.5"), ("removed", "8.9")] {
        let report = json(&driver(machine), &[], 0);
        assert_eq!(report["devices"].as_array().unwrap().len(), 7, "{machine}");
        assert!(!report["archs"].as_str().unwrap().split(';').any(|arch| arch == missing), "{machine}");
        assert!(report["notes"].to_string().contains("does not answer"), "{machine}");
    }
}

#[test]
fn a_driver_without_compute_capabilities_falls_back_to_names() {
    let report = json(&driver("old"), &[], 0);
    assert_eq!(report["archs"], "6.1;7.0;7.5;8.0;8.6;8.9;9.0;12.0");
    assert_eq!(report["devices"][0]["source"], "name");
}

#[test]
fn broken_drivers_have_their_own_errors() {
    for (machine, code) in [
        ("mismatch", "driver_library_mismatch"),
        ("permission", "no_permission"),
        ("not-loaded", "driver_not_loaded"),
        ("none", "no_devices"),
    ] {
        let report = json(&driver(machine), &["--method", "nvml"], 11);
        assert_eq!(report["error"]["code"], format!("cuwright::detect::{code}"), "{machine}");
        assert_eq!(report["archs"], "");
    }
}

const MISMATCH: &str = "echo 'Failed to initialize NVML: Driver/library version mismatch'
echo 'NVML library version: 535.183'
exit 18";

#[test]
fn a_mismatch_is_an_error_without_archs_and_no_hindrance_with() {
    let sandbox = smi(MISMATCH);
    let said = sandbox.run(&["detect", "--method", "nvidia-smi"]).assert_code(11);
    assert!(said.stderr.contains("driver-library-mismatch") && said.stderr.contains("535.183"), "{}", said.stderr);
    assert!(said.stderr.contains("reboot"), "{}", said.stderr);
    assert_eq!(said.stdout, "");
    assert_eq!(sandbox.run(&["arch", "8.6"]).assert_code(0).stdout, "8.6\n");
}

#[test]
fn mixed_cards_build_ptx_of_the_highest() {
    let cards = "echo '0, GPU-0a0a0a0a-0000-0000-0000-000000000001, NVIDIA GeForce RTX 3090, 8.6'
echo '1, GPU-0a0a0a0a-0000-0000-0000-000000000002, NVIDIA GeForce GTX 1070 Ti, 6.1'
echo '2, GPU-0a0a0a0a-0000-0000-0000-000000000003, NVIDIA GeForce RTX 3090, 8.6'";
    let report = json(&smi(cards), &["--method", "nvidia-smi"], 0);
    assert_eq!((report["archs"].as_str(), report["native"].as_str()), (Some("6.1;8.6"), Some("6.1;8.6+PTX")));
}

#[test]
fn a_fleet_s_reports_merge_in_any_order() {
    let sandbox = Sandbox::new();
    sandbox.file("a.json", r#"{"schema":1,"archs":"8.6;7.5"}"#).file("b.json", r#"{"schema":1,"archs":"12.0;8.6"}"#);
    for files in [["a.json", "b.json"], ["b.json", "a.json"]] {
        let args = ["detect", "--merge", files[0], files[1]];
        assert_eq!(sandbox.run(&args).assert_code(0).stdout, "7.5;8.6;12.0\n");
    }
    sandbox.file("c.json", "Failed to initialize NVML");
    let said = sandbox.run(&["detect", "--merge", "a.json", "c.json"]).assert_code(2);
    assert!(said.stderr.contains("c.json"), "{}", said.stderr);
    let merged = json(&sandbox, &["--merge", "a.json", "b.json"], 0);
    assert_eq!(merged["native"], "7.5;8.6;12.0+PTX");
}
