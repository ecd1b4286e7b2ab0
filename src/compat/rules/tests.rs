//! The compatibility rules against what ptxas and NVIDIA's texts say.

use super::*;
use crate::domain::arch::Form;

fn capability(text: &str) -> Capability {
    text.parse().unwrap()
}

fn cuda(text: &str) -> CudaVersion {
    text.parse().unwrap()
}

fn sass(arch: &str, gpu: &str) -> bool {
    runs(&Image::new(arch.parse().unwrap(), Code::Sass), capability(gpu), None) == Runs::Natively
}

fn ptx(arch: &str, gpu: &str) -> bool {
    runs(&Image::new(arch.parse().unwrap(), Code::Ptx), capability(gpu), None).starts()
}

fn built(arch: &str, code: Code, toolkit: &str) -> Image {
    Image { toolkit: Some(cuda(toolkit)), ..Image::new(arch.parse().unwrap(), code) }
}

#[test]
fn machine_code_runs_upward_within_a_major() {
    for (arch, gpu, want) in [
        ("8.0", "8.0", true),
        ("8.0", "8.6", true),
        ("8.0", "8.9", true),
        ("8.6", "8.9", true),
        ("8.6", "8.0", false),
        ("8.9", "8.6", false),
        ("7.5", "8.6", false),
        ("9.0", "10.0", false),
        ("10.0", "10.3", true),
        ("10.0", "12.0", false),
        ("10.0", "11.0", false),
        ("12.0", "12.1", true),
        ("12.1", "12.0", false),
        ("10.0", "10.7", true),
    ] {
        assert_eq!(sass(arch, gpu), want, "{arch} on {gpu}");
    }
}

#[test]
fn tegra_parts_match_only_themselves() {
    for (arch, gpu, want) in [
        ("8.7", "8.7", true),
        ("8.6", "8.7", false),
        ("8.0", "8.7", false),
        ("8.7", "8.9", false),
        ("7.0", "7.2", false),
        ("7.2", "7.5", false),
        ("5.2", "5.3", false),
        ("11.0", "11.0", true),
        ("10.0", "10.1", false),
        ("10.1", "11.0", false),
        ("11.0", "10.1", false),
    ] {
        assert_eq!(sass(arch, gpu), want, "{arch} on {gpu}");
    }
    let Runs::No { why } = runs(&Image::new("10.1".parse().unwrap(), Code::Sass), capability("11.0"), None) else {
        panic!("must not run");
    };
    assert!(why.contains("renamed in CUDA 13.0"), "{why}");
}

#[test]
fn specific_code_is_exact_and_family_code_stays_in_the_family() {
    for (arch, gpu, want) in [
        ("9.0a", "9.0", true),
        ("10.0a", "10.0", true),
        ("10.0a", "10.3", false),
        ("10.0f", "10.3", true),
        ("10.3f", "10.0", false),
        ("10.0f", "10.7", true),
        ("10.0f", "11.0", false),
        ("10.0f", "12.0", false),
        ("12.0f", "12.1", true),
        ("11.0f", "11.0", true),
        ("10.0f", "10.1", false),
    ] {
        assert_eq!(sass(arch, gpu), want, "sm {arch} on {gpu}");
        assert_eq!(ptx(arch, gpu), want, "ptx {arch} on {gpu}");
    }
}

#[test]
fn plain_ptx_compiles_for_every_later_number() {
    let numbers = [75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121];
    for built in numbers {
        for gpu in numbers {
            let arch = Arch::plain(Capability::from_number(built).unwrap());
            let gpu_capability = Capability::from_number(gpu).unwrap();
            assert_eq!(ptx_compiles(arch, gpu_capability).is_ok(), built <= gpu, "{built} for {gpu}");
        }
    }
}

#[test]
fn drivers_start_programs_of_their_major() {
    for (toolkit, driver, want) in [
        ("12.8", "12.8", true),
        ("12.8", "13.0", true),
        ("12.8", "12.2", true),
        ("12.8", "11.8", false),
        ("13.0", "12.9", false),
        ("11.8", "11.0", true),
        ("10.2", "10.1", false),
        ("10.2", "12.0", true),
    ] {
        assert_eq!(driver_starts(cuda(toolkit), cuda(driver)).is_ok(), want, "{toolkit} on {driver}");
        let image = built("8.6", Code::Sass, toolkit);
        assert_eq!(runs(&image, capability("8.6"), Some(cuda(driver))).starts(), want, "{toolkit} on {driver}");
    }
}

#[test]
fn ptx_needs_a_driver_as_new_as_its_version() {
    let gpu = capability("9.0");
    for (toolkit, driver, want) in [
        ("12.4", "12.4", true),
        ("12.8", "12.4", false),
        ("12.6", "12.5", true),
        ("12.4", "13.0", true),
        ("13.2", "13.0", false),
    ] {
        let image = built("8.0", Code::Ptx, toolkit);
        assert_eq!(runs(&image, gpu, Some(cuda(driver))).starts(), want, "{toolkit} on {driver}");
    }
    let isa = Image { ptx_isa: Some("8.0".parse().unwrap()), ..built("8.0", Code::Ptx, "12.8") };
    assert!(runs(&isa, gpu, Some(cuda("12.0"))).starts(), "the text's own version decides");
}

#[test]
fn a_set_offers_its_nearest_member() {
    let set = |text: &str| text.parse::<ArchSet>().unwrap();
    let verdict = |text: &str, gpu: &str| match best(&set(text), None, capability(gpu), None) {
        (Runs::Natively, Some(image)) => format!("{}", image.arch),
        (Runs::ByJit { .. }, Some(image)) => format!("jit {}", image.arch),
        (Runs::No { .. }, None) => "no".to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(verdict("7.5;8.0;8.6+PTX", "8.9"), "8.6");
    assert_eq!(verdict("8.0;8.6+PTX", "9.0"), "jit 8.6");
    assert_eq!(verdict("7.5", "8.6"), "no");
    assert_eq!(verdict("8.0", "8.6"), "8.0");
    assert_eq!(verdict("compute_75", "8.6"), "jit 7.5");
    assert_eq!(verdict("8.9", "8.6"), "no");
    assert_eq!(verdict("9.0;9.0a", "9.0"), "9.0a");
    assert_eq!(best(&ArchSet::new(), None, capability("8.6"), None).1, None);
}

#[test]
fn a_driver_that_is_too_old_is_the_reason_given() {
    let set: ArchSet = "8.0+PTX".parse().unwrap();
    assert_eq!(set.get(Arch::new(8, 0)), Some(Form::BOTH));
    let (Runs::No { why }, None) = best(&set, Some(cuda("12.8")), capability("9.0"), Some(cuda("12.2"))) else {
        panic!("must not run");
    };
    assert!(why.contains("PTX 8.7 of CUDA 12.8 is newer than the driver"), "{why}");
}
