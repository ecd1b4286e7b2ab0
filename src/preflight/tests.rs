//! Each constraint refused on its own, and several at once.

use super::*;
use crate::domain::toolchain;
use crate::domain::version::CudaVersion;
use crate::recipe;

fn codes(archs: &str, change: impl FnOnce(&mut Recipe, &mut Toolchain)) -> Vec<&'static str> {
    let (mut recipe, mut toolchain) = (recipe::sample(), toolchain::sample());
    change(&mut recipe, &mut toolchain);
    match check(&recipe, &toolchain, &archs.parse().unwrap()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|p| p.code().rsplit("::").next().unwrap()).collect(),
    }
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
    let warnings = check(&recipe::sample(), &toolchain, &"9.0".parse().unwrap()).unwrap();
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
    let warnings = check(&recipe::sample(), &toolchain::sample(), &"9.0a+PTX".parse().unwrap()).unwrap();
    assert!(warnings[0].contains("9.0+PTX"), "{warnings:?}");
}
