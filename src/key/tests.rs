//! One test a promise of the table: what is in the key changes it, what is not does not, and the form is pinned.

use super::*;
use crate::domain::toolchain::{self, HostFamily};
use crate::recipe::{self, Backend};

fn key(change: impl FnOnce(&mut Recipe, &mut Toolchain)) -> String {
    let (mut recipe, mut toolchain) = (recipe::sample(), toolchain::sample());
    change(&mut recipe, &mut toolchain);
    of(&recipe, &toolchain, "8.6;9.0+PTX", "tree")
}

fn identity() -> Identity {
    let tool = Tool { path: "/usr/bin/g++".into(), sha256: "ab".into() };
    Identity { tools: BTreeMap::from([("cxx".to_owned(), tool)]), packages: "cd".into() }
}

fn of(recipe: &Recipe, toolchain: &Toolchain, archs: &str, tree: &str) -> String {
    let variables = BTreeMap::from([("CFLAGS".to_owned(), "-O2".to_owned())]);
    let inputs = inputs(recipe, toolchain, &archs.parse().unwrap(), tree, &variables, identity());
    cache::digest(&cache::canonical_json(&inputs.to_json()).unwrap()).to_string()
}

#[test]
fn every_input_changes_the_key() {
    let base = key(|_, _| {});
    let changed = [
        key(|r, _| r.name = "y".into()),
        key(|r, _| r.version = Some("2".into())),
        key(|r, _| r.patches.push(Patch { name: "p".into(), text: "t".into() })),
        key(|r, _| r.toolchain.build_requires.push("numpy".into())),
        key(|r, _| r.build.backend = Backend::Cmake),
        key(|r, _| r.build.folder = "python".into()),
        key(|r, _| r.build.archs.consumers.clear()),
        key(|r, _| r.build.cmake.targets.push("all".into())),
        key(|r, _| r.build.bazel.flags.push("--config=cuda".into())),
        key(|r, _| r.verify.check = Some("pass".into())),
        key(|_, t| t.toolkit.nvcc.build = Some(89)),
        key(|_, t| t.torch.version = "2.11.1+cu130".into()),
        key(|_, t| t.torch.cuda = None),
        key(|_, t| t.torch.cxx11_abi = false),
        key(|_, t| t.python.tag = "cp312".into()),
        key(|_, t| t.python.platform = "linux-aarch64".into()),
        key(|_, t| t.python.libc = Some("glibc 2.28".into())),
        key(|_, t| t.host.version = "13.1.0".into()),
        key(|_, t| t.host.family = HostFamily::Clang),
        of(&recipe::sample(), &toolchain::sample(), "8.6;9.0", "tree"),
        of(&recipe::sample(), &toolchain::sample(), "8.6;9.0+PTX", "other"),
    ];
    for (index, other) in changed.iter().enumerate() {
        assert_ne!(*other, base, "change {index} did not reach the key");
    }
}

#[test]
fn places_and_origins_do_not_change_the_key() {
    let base = key(|_, _| {});
    let moved = key(|_, t| {
        t.toolkit.home = "/usr/local/cuda".into();
        t.toolkit.origin = "CUDA_HOME".into();
        t.python.executable = "/opt/python".into();
        t.torch.folder = "/opt/torch".into();
        t.host.cxx = "/opt/g++".into();
        t.path.clear();
        t.environment = None;
    });
    assert_eq!(moved, base);
    assert_eq!(key(|r, _| r.build.bazel.disk_cache = Some("/own".into())), base);
}

#[test]
fn what_a_toolchain_is_changes_the_key_where_its_versions_stay() {
    let (recipe, toolchain) = (recipe::sample(), toolchain::sample());
    let of = |identity| inputs(&recipe, &toolchain, &"9.0".parse().unwrap(), "t", &BTreeMap::new(), identity).to_json();
    let base = of(identity());
    let changes: [fn(&mut Identity); 3] = [
        |it| it.packages = "ce".into(),
        |it| it.tools.get_mut("cxx").unwrap().path = "/opt/g++".into(),
        |it| it.tools.get_mut("cxx").unwrap().sha256 = "ac".into(),
    ];
    for change in changes {
        let mut other = identity();
        change(&mut other);
        assert_ne!(of(other), base);
    }
}

#[test]
fn every_spelling_of_an_arch_set_has_one_key() {
    let spelled = |archs| of(&recipe::sample(), &toolchain::sample(), archs, "tree");
    let base = spelled("8.6;9.0+PTX");
    for archs in ["9.0+PTX 8.6", "sm_90,86;;9.0+PTX", "compute_90 90 8.6 86-real", "9.0, 9.0+PTX, 8.6"] {
        assert_eq!(spelled(archs), base, "{archs}");
    }
}

#[test]
fn the_form_of_the_key_is_pinned() {
    // If this changes, raise KEY_VERSION: artifacts of older versions would otherwise be taken for these.
    assert_eq!((KEY_VERSION, key(|_, _| {}).get(..16).unwrap()), (3, "b8493baacd931021"));
}
