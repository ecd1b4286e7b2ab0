//! `TORCH_CUDA_ARCH_LIST` as `torch.utils.cpp_extension` reads it.
//!
//! Semicolons, dotted numbers, `+PTX` in upper case. It knows no `f` and no PTX without machine code, and each release
//! has its own allow-list, which comes in as a value.

use super::super::{ArchSet, Form, Variant};
use super::{each, refusal};
use crate::domain::problem::Problems;

/// The variable's name.
pub const VARIABLE: &str = "TORCH_CUDA_ARCH_LIST";

/// The value for a torch whose allow-list is `allowed` (`8.6`, `9.0a`); without one only the grammar is judged.
pub fn render(set: &ArchSet, allowed: Option<&[String]>) -> Result<String, Problems> {
    each(set, ";", |arch, form| {
        let name = arch.to_string();
        if arch.variant == Variant::F {
            let help =
                format!("use {} or {}a, or give nvcc its flags directly", arch.with(Variant::Plain), arch.capability);
            return Err(refusal(VARIABLE, arch, form, "no torch release reads an `f` suffix", help));
        }
        if !form.sass {
            let why = "torch writes PTX only beside machine code of the same arch";
            return Err(refusal(VARIABLE, arch, form, why, format!("use {name}+PTX")));
        }
        if allowed.is_some_and(|allowed| !allowed.contains(&name)) {
            let why = "this torch's own list does not know it, so its build would stop with `Unknown CUDA arch`";
            let help = "use another torch, or give nvcc its -gencode flags directly, which torch then leaves alone";
            return Err(refusal(VARIABLE, arch, form, why, help));
        }
        Ok(if form.ptx { format!("{name}+PTX") } else { name })
    })
}

/// What torch makes of a value; `None` where it would raise an error. Family names are not read here.
pub fn read(value: &str) -> Option<ArchSet> {
    let value = value.replace(' ', ";");
    value
        .split(';')
        .map(|item| {
            let (name, form) = item.strip_suffix("+PTX").map_or((item, Form::SASS), |name| (name, Form::BOTH));
            let arch: super::Arch = name.parse().ok()?;
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
        fn what_renders_reads_back(set in sets()) {
            let holds = !set.is_empty() && set.iter().all(|(arch, form)| form.sass && arch.variant != Variant::F);
            match render(&set, None) {
                Ok(value) if !set.is_empty() => prop_assert!(holds && read(&value) == Some(set)),
                Ok(value) => prop_assert_eq!(value, ""),
                Err(problems) => prop_assert!(!holds && problems.iter().all(|p| !p.mends().is_empty())),
            }
        }
    }

    #[test]
    fn the_allow_list_is_respected() {
        let set: ArchSet = "10.1;9.0a+PTX".parse().unwrap();
        assert_eq!(render(&set, None).unwrap(), "9.0a+PTX;10.1");
        let allowed = ["9.0".to_owned(), "9.0a".to_owned(), "11.0".to_owned()];
        let problems = render(&set, Some(&allowed)).unwrap_err();
        assert_eq!(problems.iter().count(), 1);
        assert!(problems.iter().next().unwrap().message().contains("10.1"));
    }

    #[test]
    fn torch_itself_refuses_what_we_accept() {
        for wrong in ["8.0,8.6", "8.0; 8.6", " 8.6", "8.6;", "86", "8.6+ptx", "native", "10.0f", "8.6(8.0)"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
