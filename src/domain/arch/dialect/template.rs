//! Private arch variables of single projects, described by a few properties instead of code.
//!
//! Such consumers often add PTX of their own or know a few archs only, so a rendering comes with what the consumer
//! will build; it may be more than the set, never less.

use super::super::{Arch, ArchSet, Form, Variant};
use super::{Spelling, refusal};
use crate::domain::problem::Problems;

/// What the consumer does about PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ptx {
    /// `8.6+PTX` asks for it.
    Suffix,
    /// Builds it for every arch, asked or not.
    Always,
    /// Builds it for the highest arch, asked or not.
    Highest,
    /// Never builds it, and the recipe accepts that.
    Dropped,
}

/// How a variable is spelled and understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Name of the variable, for messages.
    pub variable: String,
    /// Spelling of numbers.
    pub spelling: Spelling,
    /// Text between two archs.
    pub separator: String,
    /// PTX behaviour.
    pub ptx: Ptx,
    /// Whether `a` and `f` are understood.
    pub variants: bool,
    /// The only archs that have an effect, where the project fixes them.
    pub only: Option<Vec<Arch>>,
}

/// A value, and what the consumer builds for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The variable's value.
    pub value: String,
    /// What gets built.
    pub effective: ArchSet,
}

impl Template {
    /// The variables of well-known projects.
    pub fn named(name: &str) -> Option<Self> {
        let joined = |variable: &str, ptx, variants, only| Self {
            variable: variable.to_owned(),
            spelling: Spelling::Joined,
            separator: ";".to_owned(),
            ptx,
            variants,
            only,
        };
        let flash = || [(8, 0), (9, 0), (10, 0), (11, 0), (12, 0)].map(|(major, minor)| Arch::new(major, minor));
        Some(match name {
            "flash-attention" => joined("FLASH_ATTN_CUDA_ARCHS", Ptx::Highest, false, Some(flash().to_vec())),
            "transformer-engine" => joined("NVTE_CUDA_ARCHS", Ptx::Always, true, None),
            "tiny-cuda-nn" => joined("TCNN_CUDA_ARCHITECTURES", Ptx::Always, false, None),
            "bitsandbytes" => joined("COMPUTE_CAPABILITY", Ptx::Highest, false, None),
            "natten" => Self { spelling: Spelling::Dotted, ..joined("NATTEN_CUDA_ARCH", Ptx::Dropped, true, None) },
            _ => return None,
        })
    }

    /// Writes the set; refuses what the consumer would not build.
    pub fn render(&self, set: &ArchSet) -> Result<Rendered, Problems> {
        let mut words = Vec::new();
        let mut effective = ArchSet::new();
        let mut refused = Vec::new();
        let highest = set.highest();
        for (arch, form) in set.iter() {
            if let Some((why, help)) = self.cannot(arch, form, highest == Some(arch)) {
                refused.push(refusal(&self.variable, arch, form, why, help));
                continue;
            }
            let adds_ptx = match self.ptx {
                Ptx::Always => true,
                Ptx::Highest => highest == Some(arch),
                Ptx::Suffix => form.ptx,
                Ptx::Dropped => false,
            };
            let suffix = if self.ptx == Ptx::Suffix && form.ptx { "+PTX" } else { "" };
            words.push(format!("{}{suffix}", self.spelling.write(arch)));
            effective.insert(arch, Form { sass: true, ptx: adds_ptx });
        }
        Problems::check(refused)?;
        Ok(Rendered { value: words.join(&self.separator), effective })
    }

    fn cannot(&self, arch: Arch, form: Form, highest: bool) -> Option<(String, String)> {
        if !self.variants && arch.variant != Variant::Plain {
            let plain = arch.with(Variant::Plain);
            return Some(("it reads plain numbers only".to_owned(), format!("use {plain}")));
        }
        if let Some(only) = self.only.as_ref().filter(|only| !only.contains(&arch)) {
            let names: Vec<String> = only.iter().map(Arch::to_string).collect();
            let why = format!("the project builds for {} and nothing else", names.join(", "));
            let below = only.iter().rev().find(|o| o.capability.major == arch.capability.major && **o < arch);
            let help = below.map_or_else(
                || format!("leave {arch} out"),
                |below| format!("use {below}, whose code runs on {} too", arch.capability),
            );
            return Some((why, help));
        }
        if !form.sass {
            return Some(("it cannot ask for PTX alone".to_owned(), format!("use {arch}+PTX")));
        }
        if form.ptx && self.ptx == Ptx::Highest && !highest {
            let why = "it builds PTX of the highest arch only".to_owned();
            return Some((why, format!("use {arch} without PTX")));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::set::tests::sets;
    use super::*;

    const NAMES: [&str; 5] = ["flash-attention", "transformer-engine", "tiny-cuda-nn", "bitsandbytes", "natten"];

    proptest! {
        #[test]
        fn the_consumer_builds_at_least_the_machine_code_asked_for(set in sets(), pick in 0usize..NAMES.len()) {
            let template = Template::named(NAMES[pick]).unwrap();
            if let Ok(rendered) = template.render(&set) {
                let code: Vec<Arch> = rendered.effective.real().collect();
                prop_assert_eq!(code, set.real().collect::<Vec<_>>());
                let ptx_kept = set.virtuals().all(|arch| rendered.effective.get(arch) == Some(Form::BOTH));
                prop_assert!(ptx_kept || template.ptx == Ptx::Dropped);
            }
        }
    }

    #[test]
    fn projects_differ_in_what_they_add() {
        let render = |name: &str, set: &str| Template::named(name).unwrap().render(&set.parse().unwrap());
        let flash = render("flash-attention", "8.0;9.0").unwrap();
        assert_eq!((flash.value.as_str(), flash.effective.to_string().as_str()), ("80;90", "8.0;9.0+PTX"));
        assert_eq!(render("tiny-cuda-nn", "8.6").unwrap().value, "86");
        let refused = render("flash-attention", "8.6").unwrap_err();
        assert_eq!(refused.iter().next().unwrap().mends(), ["use 8.0, whose code runs on 8.6 too"]);
        assert_eq!(render("natten", "8.0;9.0+PTX").unwrap().value, "8.0;9.0");
    }
}
