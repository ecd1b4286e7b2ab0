//! Each constraint refused on its own, and several at once.

use super::*;
use crate::domain::toolchain::{self, HostFamily};
use crate::domain::version::CudaVersion;
use crate::recipe;

fn codes(archs: &str, change: impl FnOnce(&mut Recipe, &mut Toolchain)) -> Vec<&'static str> {
    let (mut recipe, mut toolchain) = (recipe::sample(), toolchain::sample());
    change(&mut recipe, &mut toolchain);
    let report = check(&recipe, &toolchain, &archs.parse().unwrap(), &Site::default());
    report.problems.iter().map(|p| p.code().rsplit("::").next().unwrap()).collect()
}

#[test]
fn what_fits_passes() {
    assert!(codes("7.5;8.6;9.0+PTX", |_, _| {}).is_empty());
}

#[test]
fn an_arch_that_nvcc_dropped_or_does_not_know_is_refused_in_one_message() {
    assert_eq!(
        codes("6.0;7.0;9.0", |_, t| t.torch.supported_archs.extend(["6.0".into(), "7.0".into()])),
        ["arch_unsupported"]
    );
}

#[test]
fn an_arch_that_torch_refuses_is_refused() {
    assert_eq!(codes("9.0", |_, t| t.torch.supported_archs = vec!["8.6".into()]), ["arch_unsupported"]);
}

#[test]
fn another_cuda_major_is_refused_and_another_minor_warned_of() {
    assert_eq!(codes("9.0", |_, t| t.torch.cuda = Some(CudaVersion::new(12, 4))), ["toolkit_torch"]);
    let mut toolchain = toolchain::sample();
    toolchain.torch.cuda = Some(CudaVersion::new(13, 2));
    let warnings = check(&recipe::sample(), &toolchain, &"9.0".parse().unwrap(), &Site::default()).warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[test]
fn a_torch_without_cuda_is_refused() {
    assert_eq!(codes("9.0", |_, t| t.torch.cuda = None), ["torch_cpu_only"]);
}

#[test]
fn a_host_compiler_beyond_the_bound_is_refused() {
    assert_eq!(codes("9.0", |_, t| t.host.version = "16.1.0".into()), ["host_compiler_too_new"]);
    assert!(codes("9.0", |_, t| t.host.version = "15.2.0".into()).is_empty());
    let clang = |version: &'static str| {
        move |_: &mut Recipe, t: &mut Toolchain| {
            t.host.family = HostFamily::Clang;
            t.host.version = version.into();
        }
    };
    assert_eq!(codes("9.0", clang("21.0.0")), ["host_compiler_too_new"]);
    assert!(codes("9.0", clang("20.1.0")).is_empty());
}

#[test]
fn everything_wrong_is_reported_at_once() {
    let all = codes("6.0", |r, t| {
        r.toolchain.torch = "<2".into();
        t.torch.cuda = Some(CudaVersion::new(12, 4));
        t.host.version = "16.0".into();
    });
    assert_eq!(all, ["arch_unsupported", "arch_unsupported", "toolkit_torch", "host_compiler_too_new", "recipe_range"]);
}

#[test]
fn ptx_that_no_later_gpu_can_use_is_warned_of() {
    let warnings =
        check(&recipe::sample(), &toolchain::sample(), &"9.0a+PTX".parse().unwrap(), &Site::default()).warnings;
    assert!(warnings[0].contains("9.0+PTX"), "{warnings:?}");
}

fn warned(archs: &str, site: &Site<'_>) -> Vec<String> {
    check(&recipe::sample(), &toolchain::sample(), &archs.parse().unwrap(), site).warnings
}

#[test]
fn a_torch_of_another_python_is_refused() {
    assert_eq!(codes("9.0", |_, t| t.torch.tag = Some("cp310".into())), ["python_torch"]);
    assert!(codes("9.0", |_, t| t.torch.tag = None).is_empty());
}

#[test]
fn a_driver_warns_only_where_the_result_is_meant_for_its_gpu() {
    let site = |gpu, cuda: CudaVersion| Site {
        here: Some(Here { gpus: vec![gpu], driver: "535.161".into(), cuda }),
        ..Site::default()
    };
    let (ampere, old, same_major) = (Capability::new(8, 6), CudaVersion::new(12, 2), CudaVersion::new(13, 0));
    let all = warned("8.6;9.0", &site(ampere, old));
    assert!(all.len() == 1 && all[0].contains("the 8.6 of this machine") && all[0].contains("535.161"), "{all:?}");
    assert!(warned("9.0", &site(ampere, old)).is_empty(), "it is for another GPU");
    assert!(warned("8.6", &site(ampere, same_major)).is_empty());
    // PTX of a newer release is beyond an older driver of the same major; machine code is not.
    let mut toolchain = toolchain::sample();
    toolchain.toolkit.nvcc = CudaVersion::new(13, 2);
    let of =
        |archs: &str| check(&recipe::sample(), &toolchain, &archs.parse().unwrap(), &site(ampere, same_major)).warnings;
    assert!(of("8.0+PTX").iter().all(|text| !text.contains("will not start")));
    assert!(of("7.5-virtual").iter().any(|text| text.contains("will not start")), "{:?}", of("7.5-virtual"));
}

#[test]
fn a_full_disk_stops_and_a_small_one_warns_with_the_arithmetic() {
    let disk = |free: u64, files| Disk {
        what: "temporary files",
        folder: "/tmp".into(),
        mend: "choose another folder with TMPDIR",
        free,
        files,
        each: 256 << 20,
    };
    let judge = |disk: Disk, jobs| {
        let disks = [disk];
        check(
            &recipe::sample(),
            &toolchain::sample(),
            &"9.0".parse().unwrap(),
            &Site { disks: &disks, jobs, ..Site::default() },
        )
    };
    assert_eq!(judge(disk(1 << 20, None), 1).problems[0].code(), "cuwright::preflight::disk_full");
    assert!(judge(disk(1 << 40, Some(3)), 1).problems[0].evidence()[0].contains("3 files left"));
    assert!(judge(disk(1 << 30, Some(9999)), 64).warnings[0].contains("64 jobs may need 256 MiB each"));
    assert_eq!(judge(disk(1 << 30, None), 2), Report::default());
}

#[test]
fn a_refused_host_compiler_names_the_one_beside_it_and_what_can_be_had() {
    let mut toolchain = toolchain::sample();
    toolchain.host.version = "16.1.0".into();
    let older = HostCompiler { version: "13.3.0".into(), cc: "/usr/bin/gcc-13".into(), ..toolchain.host.clone() };
    let (compilers, wheels) = ([older], vec![(CudaVersion::new(13, 4), "2.16.0".to_owned())]);
    let available = Available { installed: Vec::new(), wheels };
    let site = Site { compilers: &compilers, available: Some(&available), ..Site::default() };
    let report = check(&recipe::sample(), &toolchain, &"9.0".parse().unwrap(), &site);
    let mends = report.problems[0].mends();
    assert!(mends[0].contains("`--cc /usr/bin/gcc-13`") && mends[1].contains("`--cuda 13.4`"), "{mends:?}");
}
