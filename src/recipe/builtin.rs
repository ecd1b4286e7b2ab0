//! The recipes that travel inside the binary.
//!
//! They are ordinary recipe files under `recipes/`; nothing here may treat one of them differently.

use crate::domain::problem::nearest;

/// A built-in recipe.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Name on the command line.
    pub name: &'static str,
    /// Recipe text.
    pub text: &'static str,
}

/// Every built-in recipe, by name.
pub const ALL: [Builtin; 19] = [
    builtin("apex", include_str!("../../recipes/apex.toml")),
    builtin("bitsandbytes", include_str!("../../recipes/bitsandbytes.toml")),
    builtin("caffe", include_str!("../../recipes/caffe.toml")),
    builtin("causal-conv1d", include_str!("../../recipes/causal-conv1d.toml")),
    builtin("detectron2", include_str!("../../recipes/detectron2.toml")),
    builtin("flash-attn", include_str!("../../recipes/flash-attn.toml")),
    builtin("gsplat", include_str!("../../recipes/gsplat.toml")),
    builtin("mamba-ssm", include_str!("../../recipes/mamba-ssm.toml")),
    builtin("mmcv", include_str!("../../recipes/mmcv.toml")),
    builtin("natten", include_str!("../../recipes/natten.toml")),
    builtin("opencv-contrib-python-headless", include_str!("../../recipes/opencv-contrib-python-headless.toml")),
    builtin("tensorflow", include_str!("../../recipes/tensorflow.toml")),
    builtin("tinycudann", include_str!("../../recipes/tinycudann.toml")),
    builtin("torch", include_str!("../../recipes/torch.toml")),
    builtin("torch-cluster", include_str!("../../recipes/torch-cluster.toml")),
    builtin("torch-linear-assignment", include_str!("../../recipes/torch-linear-assignment.toml")),
    builtin("torch-scatter", include_str!("../../recipes/torch-scatter.toml")),
    builtin("torch-sparse", include_str!("../../recipes/torch-sparse.toml")),
    builtin("xformers", include_str!("../../recipes/xformers.toml")),
];

const fn builtin(name: &'static str, text: &'static str) -> Builtin {
    Builtin { name, text }
}

/// Names by which people know a project whose package is called otherwise.
const ALIASES: [(&str, &str); 5] = [
    ("opencv", "opencv-contrib-python-headless"),
    ("flash-attention", "flash-attn"),
    ("mamba", "mamba-ssm"),
    ("pytorch", "torch"),
    ("tiny-cuda-nn", "tinycudann"),
];

/// The recipe called `name`; `_` and `-` are one, as in package names.
pub fn find(name: &str) -> Option<Builtin> {
    let wanted = name.to_ascii_lowercase().replace('_', "-");
    let wanted = ALIASES.iter().find(|(alias, _)| *alias == wanted).map_or(wanted.as_str(), |(_, name)| name);
    ALL.into_iter().find(|recipe| recipe.name == wanted)
}

/// The built-in name that `name` was probably meant to be.
pub fn nearest_name(name: &str) -> Option<&'static str> {
    nearest(name, ALL.iter().map(|recipe| recipe.name))
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Document, parse};
    use super::super::resolve::resolve;
    use super::*;

    #[test]
    fn every_built_in_recipe_is_legal_and_named_after_its_package() {
        for recipe in ALL {
            let document = Document { origin: recipe.name, text: recipe.text };
            let resolved = resolve(document, parse(document).unwrap(), |_| Err(String::new())).unwrap();
            assert_eq!(resolved.name, recipe.name);
            assert_eq!(find(recipe.name).map(|found| found.name), Some(recipe.name));
            assert!(resolved.tried.is_some(), "{} does not say how far it was tried", recipe.name);
        }
        assert_eq!(find("torch_scatter").map(|found| found.name), Some("torch-scatter"));
        for (alias, name) in ALIASES {
            assert_eq!(find(alias).map(|found| found.name), Some(name));
        }
    }
}
