//! `CMAKE_CUDA_ARCHITECTURES` and `CUDAARCHS`.
//!
//! A bare number means machine code and PTX there, so members are always written with `-real` or `-virtual`: what is
//! asked for is what is built.

use super::super::{Arch, ArchSet, Form, Variant};
use super::{each, refusal};
use crate::domain::problem::Problems;

/// The CMake variable.
pub const VARIABLE: &str = "CMAKE_CUDA_ARCHITECTURES";
/// The environment variable that initialises it, on the first configure only.
pub const ENVIRONMENT: &str = "CUDAARCHS";

/// The value for a CMake release `(major, minor, patch)`; without one every suffix is assumed to be known.
pub fn render(set: &ArchSet, version: Option<(u32, u32, u32)>) -> Result<String, Problems> {
    each(set, ";", |arch, form| {
        if let Some((major, minor, patch)) = version.filter(|v| arch.variant == Variant::F && !knows_family(*v)) {
            let why = format!("CMake {major}.{minor}.{patch} knows no `f` suffix: that came with 3.31.8 and 4.0.2");
            let help = format!("use a newer CMake, or {}", arch.with(Variant::Plain));
            return Err(refusal(VARIABLE, arch, form, why, help));
        }
        let name = arch.joined();
        Ok(match (form.sass, form.ptx) {
            (true, true) => format!("{name}-real;{name}-virtual"),
            (true, false) => format!("{name}-real"),
            (false, _) => format!("{name}-virtual"),
        })
    })
}

fn knows_family(version: (u32, u32, u32)) -> bool {
    version >= (4, 0, 2) || ((3, 31, 8)..(4, 0, 0)).contains(&version)
}

/// What CMake makes of a value; `None` for words (`native`, `all`, `OFF`) and for what it would refuse.
pub fn read(value: &str) -> Option<ArchSet> {
    let value = value.strip_suffix(';').unwrap_or(value);
    value
        .split(';')
        .map(|item| {
            let (name, form) = item
                .strip_suffix("-real")
                .map(|name| (name, Form::SASS))
                .or_else(|| item.strip_suffix("-virtual").map(|name| (name, Form::PTX)))
                .unwrap_or((item, Form::BOTH));
            Arch::from_joined(name).map(|arch| (arch, form))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::set::tests::sets;
    use super::*;

    proptest! {
        #[test]
        fn every_set_renders_and_reads_back(set in sets().prop_filter("empty", |set| !set.is_empty())) {
            prop_assert_eq!(read(&render(&set, None).unwrap()), Some(set));
        }
    }

    #[test]
    fn members_say_what_kind_of_code_they_are() {
        let set: ArchSet = "7.5;8.6+PTX;compute_90".parse().unwrap();
        assert_eq!(render(&set, Some((3, 20, 0))).unwrap(), "75-real;86-real;86-virtual;90-virtual");
        assert_eq!(read("75;86-real").unwrap().to_string(), "7.5+PTX;8.6");
        assert_eq!(read("native"), None);
    }

    #[test]
    fn an_old_cmake_refuses_families() {
        let set: ArchSet = "9.0a;10.0f".parse().unwrap();
        for (version, ok) in [((3, 31, 7), false), ((3, 31, 8), true), ((4, 0, 1), false), ((4, 0, 2), true)] {
            assert_eq!(render(&set, Some(version)).is_ok(), ok, "{version:?}");
        }
    }
}
