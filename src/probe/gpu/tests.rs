//! Detection over made-up machines: a stub `nvidia-smi`, a sysfs tree, a device tree.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A machine made of files.
struct Machine {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Machine {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn pci(self, address: &str, device: &str, class: &str) -> Self {
        let folder = format!("sys/bus/pci/devices/{address}");
        self.file(&format!("{folder}/vendor"), "0x10de\n")
            .file(&format!("{folder}/device"), &format!("{device}\n"))
            .file(&format!("{folder}/class"), &format!("{class}\n"))
    }

    fn smi(self, script: &str) -> Self {
        let machine = self.file("bin/nvidia-smi", &format!("#!/bin/sh\n{script}\n"));
        let path = machine.root().join("bin/nvidia-smi");
        fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        machine
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn detect(&self, only: Option<Method>) -> Detection {
        let path = format!("{}/bin:/usr/bin:/bin", self.root());
        let variables = self.variables.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        let env = Env::of("/", variables.chain([("PATH", path.as_str())]));
        let roots = Roots {
            sysfs: self.root().join("sys"),
            proc: self.root().join("proc"),
            nvml: vec![self.root().join("libnvidia-ml.so.1").into_string()],
            smi: Vec::new(),
            os: "linux",
        };
        detect_with(&env, &roots, only)
    }

    fn archs(&self) -> String {
        self.detect(None).archs().to_string()
    }
}

const QUERY: &str = "--query-gpu=index,uuid,name,compute_cap --format=csv,noheader";

/// Two cards, the first with or without MIG.
fn two_cards(mig: bool) -> Machine {
    let instances = if mig {
        "echo '  MIG 1g.5gb      Device  0: (UUID: MIG-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee)'
         echo '  MIG 2g.10gb     Device  1: (UUID: MIG-99999999-8888-7777-6666-555555555555)'"
    } else {
        ""
    };
    Machine::new().smi(&format!(
        "case \"$*\" in
         '-L') echo 'GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-11111111-2222-3333-4444-555555555555)'
         {instances}
         echo 'GPU 1: Tesla T4 (UUID: GPU-66666666-7777-8888-9999-aaaaaaaaaaaa)' ;;
         '{QUERY}') echo '0, GPU-11111111-2222-3333-4444-555555555555, NVIDIA A100-SXM4-40GB, 8.0'
         echo '1, GPU-66666666-7777-8888-9999-aaaaaaaaaaaa, Tesla T4, 7.5' ;;
         '') echo '| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: 12.4 |' ;;
         esac"
    ))
}

#[test]
fn only_visible_devices_count() {
    let archs = |mig: bool, value: Option<&str>| {
        let machine = two_cards(mig);
        value.into_iter().fold(machine, |machine, value| machine.set("CUDA_VISIBLE_DEVICES", value)).archs()
    };
    assert_eq!(archs(true, Some("MIG-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")), "8.0");
    assert_eq!(archs(true, Some("MIG-GPU-11111111-2222-3333-4444-555555555555/1/0")), "8.0");
    assert_eq!(archs(false, Some("1")), "7.5");
    assert_eq!(archs(false, Some("GPU-6666")), "7.5");
    assert_eq!(archs(false, Some("")), "");
    assert_eq!(archs(false, None), "7.5;8.0");
    assert_eq!(archs(false, Some("0,-1,1")), "8.0");
    assert_eq!(archs(true, Some("MIG-deadbeef-0000-0000-0000-000000000000")), "");
    assert_eq!(archs(false, Some("1,0")), "7.5;8.0");
    assert_eq!(archs(false, Some("GPU-")), "");
}

#[test]
fn hiding_every_gpu_names_the_variable() {
    for value in ["", "MIG-deadbeef", "7", "-1"] {
        let problem = two_cards(false).set("CUDA_VISIBLE_DEVICES", value).detect(None).problem().unwrap();
        assert!(problem.message().contains("CUDA_VISIBLE_DEVICES"), "{value}: {problem}");
        assert_eq!(problem.code(), "cuwright::detect::none_visible");
    }
}

#[test]
fn what_the_variable_hides_is_told() {
    let detection = two_cards(false).set("CUDA_VISIBLE_DEVICES", "0,-1,1").detect(None);
    assert!(detection.notes.iter().any(|note| note.contains("stops at `-1`")), "{:?}", detection.notes);
    assert!(detection.notes.iter().any(|note| note.contains("hides 1 of 2")), "{:?}", detection.notes);
    let ordered = two_cards(false).set("CUDA_VISIBLE_DEVICES", "1").set("CUDA_DEVICE_ORDER", "PCI_BUS_ID").detect(None);
    assert!(!ordered.notes.iter().any(|note| note.contains("fastest")), "{:?}", ordered.notes);
}

#[test]
fn the_summary_gives_driver_and_cuda() {
    let detection = two_cards(false).detect(None);
    assert_eq!(detection.driver.unwrap().to_string(), "550.54.14");
    assert_eq!(detection.cuda_driver, Some(CudaVersion::new(12, 4)));
    assert_eq!(detection.steps.iter().map(|s| s.method).collect::<Vec<_>>(), [Method::Nvml, Method::NvidiaSmi]);
}

#[test]
fn three_cards_of_two_archs_unite() {
    let machine = Machine::new().smi(
        "echo '0, GPU-0a0a0a0a-0000-0000-0000-000000000001, NVIDIA GeForce RTX 3090, 8.6'
         echo '1, GPU-0a0a0a0a-0000-0000-0000-000000000002, NVIDIA GeForce GTX 1070 Ti, 6.1'
         echo '2, GPU-0a0a0a0a-0000-0000-0000-000000000003, NVIDIA GeForce RTX 3090, 8.6'",
    );
    let detection = machine.detect(None);
    assert_eq!(detection.archs().to_string(), "6.1;8.6");
    assert_eq!(crate::targets::of_detected(&Detected::from(&detection)).to_string(), "6.1;8.6+PTX");
    assert_eq!(machine.detect(Some(Method::Name)).archs().to_string(), "6.1;8.6");
}

#[test]
fn a_half_updated_driver_is_named_and_no_arch_comes_of_its_text() {
    let machine = Machine::new()
        .smi("echo 'Failed to initialize NVML: Driver/library version mismatch'; echo 'NVML library version: 535.183'; exit 18")
        .file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Tue Mar  5 2024\n");
    let detection = machine.detect(None);
    assert!(detection.archs().is_empty());
    let problem = detection.problem().unwrap();
    assert_eq!(problem.code(), "cuwright::detect::driver_library_mismatch");
    assert_eq!(problem.evidence(), ["kernel module 535.161.08, library 535.183"]);
    assert!(problem.mends()[0].contains("reboot"));
    // The same machine with a PCI bus still knows its GPU.
    let machine = machine.pci("0000:01:00.0", "0x2204", "0x030000");
    let detection = machine.detect(None);
    assert_eq!(detection.archs().to_string(), "8.6");
    assert!(detection.notes.iter().any(|note| note.contains("half updated")), "{:?}", detection.notes);
}

#[test]
fn known_failures_have_their_own_codes() {
    for (text, code) in [
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "driver_not_loaded"),
        ("Failed to initialize NVML: Insufficient Permissions", "no_permission"),
        ("No devices were found", "no_devices"),
        ("Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.", "gpu_lost"),
        ("Segmentation fault", "driver_error"),
    ] {
        let problem = Machine::new().smi(&format!("echo \"{text}\"; exit 9")).detect(None).problem().unwrap();
        assert_eq!(problem.code(), format!("cuwright::detect::{code}"), "{text}");
        assert!(problem.mends().iter().any(|mend| mend.contains("--arch")));
    }
}

#[test]
fn an_old_driver_s_names_are_looked_up() {
    let machine = Machine::new().smi(
        "case \"$*\" in *compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2 ;;
         *query*) echo '0, GPU-1, Tesla V100-SXM2-16GB' ;; esac",
    );
    let detection = machine.detect(None);
    assert_eq!(detection.archs().to_string(), "7.0");
    assert_eq!(detection.devices[0].confidence, Confidence::Low);
    assert!(detection.notes.iter().any(|note| note.contains("too old")));
}

#[test]
fn pci_ids_work_without_a_driver() {
    let machine = Machine::new()
        .pci("0000:41:00.0", "0x2330", "0x030200")
        .pci("0000:01:00.0", "0x2204", "0x030000")
        .pci("0000:01:00.1", "0x1aef", "0x040300")
        .pci("0000:09:00.0", "0xfffe", "0x030000")
        .file("sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
    let detection = machine.detect(None);
    assert_eq!(detection.archs().to_string(), "8.6;9.0");
    assert_eq!(detection.devices.len(), 3);
    assert!(detection.notes.iter().any(|note| note.contains("10de:fffe")));
    assert_eq!(detection.devices[0].confidence, Confidence::Medium);
    // Without a driver there are no ids to compare, and nothing is made up.
    assert!(machine.set("CUDA_VISIBLE_DEVICES", "GPU-1").detect(None).archs().is_empty());
}

#[test]
fn a_jetson_is_known_by_its_device_tree() {
    let machine = Machine::new()
        .file("proc/device-tree/compatible", "nvidia,p3737-0000+p3701-0000\0nvidia,tegra234\0")
        .file("proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0");
    let detection = machine.detect(None);
    assert_eq!(detection.archs().to_string(), "8.7");
    assert_eq!(detection.devices[0].name.as_deref(), Some("NVIDIA Jetson AGX Orin Developer Kit"));
}

#[test]
fn nothing_at_all_is_no_target() {
    let detection = Machine::new().detect(None);
    let problem = detection.problem().unwrap();
    assert_eq!(problem.code(), crate::targets::NO_TARGET);
    assert_eq!(problem.evidence().len(), 4, "every step leaves a record: {:?}", problem.evidence());
}

#[test]
fn wsl_and_macos_get_their_own_words() {
    let wsl = Machine::new().file("proc/version", "Linux version 5.15.0-microsoft-standard-WSL2\n").detect(None);
    assert_eq!(wsl.problem().unwrap().code(), "cuwright::detect::wsl");
    let roots = Roots { os: "macos", ..Roots::default() };
    let mac = detect_with(&Env::default(), &roots, None).problem().unwrap();
    assert_eq!(mac.code(), "cuwright::detect::macos");
    assert!(mac.evidence()[0].contains("MPS"));
}
