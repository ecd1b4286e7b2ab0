//! nvcc's own `-gencode` flags. They hold every set, and one flag is one image in the file.
//!
//! Brackets and commas inside `code=` are avoided: they need quotes in a shell and break in a single-argument variable.

use super::super::{ArchSet, Effective, effective_archs};

/// One argument per image.
pub fn flags(set: &ArchSet) -> Vec<String> {
    let mut flags = Vec::new();
    for (arch, form) in set.iter() {
        if form.sass {
            flags.push(format!("-gencode=arch={},code={}", arch.compute(), arch.sm()));
        }
        if form.ptx {
            flags.push(format!("-gencode=arch={0},code={0}", arch.compute()));
        }
    }
    flags
}

/// The flags as one line.
pub fn render(set: &ArchSet) -> String {
    flags(set).join(" ")
}

/// What nvcc makes of such arguments.
pub fn read(flags: &[String]) -> Effective {
    effective_archs(flags)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::set::tests::sets;
    use super::*;

    proptest! {
        #[test]
        fn every_set_renders_and_reads_back(set in sets()) {
            prop_assert_eq!(read(&flags(&set)), Effective { set, unread: Vec::new() });
        }
    }

    #[test]
    fn one_flag_is_one_image() {
        let set: ArchSet = "8.6+PTX;90a".parse().unwrap();
        let want = "-gencode=arch=compute_86,code=sm_86 -gencode=arch=compute_86,code=compute_86 \
                    -gencode=arch=compute_90a,code=sm_90a";
        assert_eq!(render(&set), want);
    }
}
