//! `CUDA_ARCH_NAME`, `CUDA_ARCH_BIN` and `CUDA_ARCH_PTX`, as Caffe's CMake and OpenCV read them.
//!
//! All of them are always given together: Caffe drops the two lists unless the name is `Manual`, and an unset PTX list
//! would be filled by the project's own default. Digits only: suffixes would be lost there in silence.

use super::super::{Arch, ArchSet, Form};
use super::{Spelling, each, plain_only};
use crate::domain::problem::Problems;

/// Values of the variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    /// `CUDA_ARCH_BIN`: archs that get machine code.
    pub bin: String,
    /// `CUDA_ARCH_PTX`: archs that get PTX.
    pub ptx: String,
}

impl Values {
    /// CMake definitions for Caffe.
    pub fn definitions(&self) -> Vec<String> {
        let mut all = vec!["-DCUDA_ARCH_NAME=Manual".to_owned()];
        all.extend(self.definitions_without_name());
        all
    }

    /// CMake definitions for OpenCV, which knows no `Manual`.
    pub fn definitions_without_name(&self) -> Vec<String> {
        vec![format!("-DCUDA_ARCH_BIN={}", self.bin), format!("-DCUDA_ARCH_PTX={}", self.ptx)]
    }
}

/// The values, numbers spelled as `spelling` says.
pub fn render(set: &ArchSet, spelling: Spelling) -> Result<Values, Problems> {
    each(set, "", |arch, form| plain_only("CUDA_ARCH_BIN", arch, form).map(|()| String::new()))?;
    let list = |archs: Vec<Arch>| archs.into_iter().map(|arch| spelling.write(arch)).collect::<Vec<_>>().join(" ");
    Ok(Values { bin: list(set.real().collect()), ptx: list(set.virtuals().collect()) })
}

/// What the consumer makes of two such values.
pub fn read(values: &Values, spelling: Spelling) -> Option<ArchSet> {
    let list = |text: &str, form| -> Option<ArchSet> {
        text.split_whitespace().map(|item| spelling.read(item).map(|arch| (arch, form))).collect()
    };
    Some(list(&values.bin, Form::SASS)?.union(&list(&values.ptx, Form::PTX)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::Variant;
    use super::super::super::set::tests::sets;
    use super::*;

    proptest! {
        #[test]
        fn what_renders_reads_back(set in sets(), dotted in any::<bool>()) {
            let spelling = if dotted { Spelling::Dotted } else { Spelling::Joined };
            let holds = set.iter().all(|(arch, _)| arch.variant == Variant::Plain);
            match render(&set, spelling) {
                Ok(values) => prop_assert!(holds && read(&values, spelling) == Some(set)),
                Err(_) => prop_assert!(!holds),
            }
        }
    }

    #[test]
    fn the_name_is_always_manual() {
        let set: ArchSet = "7.5;8.6+PTX".parse().unwrap();
        let values = render(&set, Spelling::Joined).unwrap();
        assert_eq!(values.definitions(), ["-DCUDA_ARCH_NAME=Manual", "-DCUDA_ARCH_BIN=75 86", "-DCUDA_ARCH_PTX=86"]);
        assert_eq!(render(&set, Spelling::Dotted).unwrap().bin, "7.5 8.6");
    }
}
