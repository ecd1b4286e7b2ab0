//! `TF_CUDA_COMPUTE_CAPABILITIES` and its hermetic form, as TensorFlow, XLA and JAX read them through Bazel.
//!
//! There `sm_86` is machine code and `compute_86` is machine code *and* PTX; commas without blanks. Releases before
//! that grammar know only `8.6`, and give PTX to the last after sorting the numbers as text.

use super::super::{Arch, ArchSet, Form, Variant};
use super::{each, plain_only, refusal};
use crate::domain::problem::Problems;

/// The environment variable.
pub const VARIABLE: &str = "TF_CUDA_COMPUTE_CAPABILITIES";
/// The hermetic form, given as `--repo_env=NAME=value`; it wins over the other.
pub const HERMETIC: &str = "HERMETIC_CUDA_COMPUTE_CAPABILITIES";

/// The value for releases that read `sm_` and `compute_`.
pub fn render(set: &ArchSet) -> Result<String, Problems> {
    each(set, ",", |arch, form| {
        if arch.variant == Variant::F {
            let help = format!("use {} or {}a", arch.with(Variant::Plain), arch.capability);
            return Err(refusal(VARIABLE, arch, form, "it reads an `a` suffix only", help));
        }
        if !form.sass {
            let why = "`compute_` means machine code and PTX there, so PTX alone cannot be said";
            return Err(refusal(VARIABLE, arch, form, why, format!("use {arch}+PTX")));
        }
        Ok(if form.ptx { arch.compute() } else { arch.sm() })
    })
}

/// The value for older releases, which read dotted numbers only.
pub fn render_dotted(set: &ArchSet) -> Result<String, Problems> {
    let last = set.iter().max_by_key(|(arch, _)| arch.joined());
    each(set, ",", |arch, form| {
        plain_only(VARIABLE, arch, form)?;
        let implied = last.is_some_and(|(last, _)| last == arch);
        if !form.sass || form.ptx != implied {
            let place = last.map(|(last, _)| last.to_string()).unwrap_or_default();
            let why = format!("in the dotted grammar PTX goes to {place}, the last in text order, and to no other");
            let help = "use a release that reads `sm_` and `compute_`, or move `+PTX` there";
            return Err(refusal(VARIABLE, arch, form, why, help));
        }
        Ok(arch.to_string())
    })
}

/// What XLA makes of a value; `None` where it would stop.
pub fn read(value: &str) -> Option<ArchSet> {
    let items: Vec<&str> = value.split(',').collect();
    let dotted: Option<Vec<Arch>> = items.iter().map(|item| item.parse().ok()).collect();
    if let Some(mut archs) = dotted {
        archs.sort_by_key(|arch| arch.joined());
        let last = archs.last().copied();
        let form = |arch| if Some(arch) == last { Form::BOTH } else { Form::SASS };
        return Some(archs.into_iter().map(|arch| (arch, form(arch))).collect());
    }
    items
        .into_iter()
        .map(|item| {
            let form = if item.starts_with("sm_") { Form::SASS } else { Form::BOTH };
            let arch = Arch::from_code(item).or_else(|| item.parse().ok())?;
            (arch.variant != Variant::F).then_some((arch, form))
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
        fn what_renders_reads_back(set in sets().prop_filter("empty", |set| !set.is_empty())) {
            let holds = set.iter().all(|(arch, form)| form.sass && arch.variant != Variant::F);
            match render(&set) {
                Ok(value) => prop_assert!(holds && read(&value) == Some(set.clone())),
                Err(_) => prop_assert!(!holds),
            }
            if let Ok(value) = render_dotted(&set) {
                prop_assert_eq!(read(&value), Some(set));
            }
        }
    }

    #[test]
    fn ptx_falls_where_text_order_puts_it() {
        assert_eq!(read("8.0,10.0").unwrap().to_string(), "8.0+PTX;10.0");
        assert_eq!(render(&"8.0;10.0+PTX".parse().unwrap()).unwrap(), "sm_80,compute_100");
        assert!(render_dotted(&"8.0;10.0+PTX".parse().unwrap()).is_err());
        assert_eq!(render_dotted(&"7.5;8.6+PTX".parse().unwrap()).unwrap(), "7.5,8.6");
        assert_eq!(read("8.0,sm_90").unwrap().to_string(), "8.0+PTX;9.0");
    }
}
