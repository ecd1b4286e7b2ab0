//! One arch set, many spellings: a renderer for each consumer that reads archs from a variable or a flag.
//!
//! Every renderer either holds the set exactly or refuses and says why; none emits a word that makes another tool look
//! at a GPU. The `read` functions say what the consumer itself would make of a value.

pub mod caffe;
pub mod cmake;
pub mod nvcc;
pub mod template;
pub mod tensorflow;
pub mod torch;

use super::{Arch, ArchSet, Form, Variant};
use crate::domain::command::quote;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};

/// Code of every refusal.
pub const CANNOT_HOLD: &str = "cuwright::target::dialect_cannot_hold";

/// Who reads the archs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Consumer {
    /// `TORCH_CUDA_ARCH_LIST`
    Torch,
    /// `CMAKE_CUDA_ARCHITECTURES`
    Cmake,
    /// `TF_CUDA_COMPUTE_CAPABILITIES` of TensorFlow, XLA and JAX
    #[value(alias = "tensorflow")]
    Bazel,
    /// `CUDA_ARCH_NAME`, `CUDA_ARCH_BIN` and `CUDA_ARCH_PTX` of Caffe
    Caffe,
    /// `CUDA_ARCH_BIN` and `CUDA_ARCH_PTX` of OpenCV
    Opencv,
    /// `-gencode` flags
    Nvcc,
    /// `FLASH_ATTN_CUDA_ARCHS`
    FlashAttention,
    /// `NVTE_CUDA_ARCHS`
    TransformerEngine,
    /// `NATTEN_CUDA_ARCH`
    Natten,
    /// `TCNN_CUDA_ARCHITECTURES`
    TinyCudaNn,
    /// `COMPUTE_CAPABILITY` of bitsandbytes
    Bitsandbytes,
}

impl Consumer {
    /// The value that this consumer reads: the variable's, or arguments ready for a shell.
    pub fn render(self, set: &ArchSet, torch_allows: Option<&[String]>) -> Result<String, Problems> {
        if let Some(template) = self.template() {
            return template.render(set).map(|rendered| rendered.value);
        }
        let line = |definitions: Vec<String>| definitions.iter().map(|d| quote(d)).collect::<Vec<_>>().join(" ");
        match self {
            Self::Torch => torch::render(set, torch_allows),
            Self::Cmake => cmake::render(set, None),
            Self::Bazel => tensorflow::render(set),
            Self::Caffe => caffe::render(set, Spelling::Joined).map(|values| line(values.definitions())),
            Self::Opencv => caffe::render(set, Spelling::Dotted).map(|values| line(values.definitions_without_name())),
            Self::Nvcc => Ok(nvcc::render(set)),
            // Private names, rendered above.
            _ => Ok(String::new()),
        }
    }

    /// Names and values of the variables that carry the archs; none for nvcc, which reads flags.
    ///
    /// # Errors
    /// As `render`.
    pub fn variables(self, set: &ArchSet, torch_allows: Option<&[String]>) -> Result<Vec<(String, String)>, Problems> {
        if let Some(template) = self.template() {
            let rendered = template.render(set)?;
            return Ok(vec![(template.variable, rendered.value)]);
        }
        let pairs: Vec<(&str, String)> = match self {
            Self::Torch => vec![(torch::VARIABLE, torch::render(set, torch_allows)?)],
            Self::Cmake => vec![(cmake::ENVIRONMENT, cmake::render(set, None)?)],
            Self::Bazel => {
                let value = tensorflow::render(set)?;
                vec![(tensorflow::VARIABLE, value.clone()), (tensorflow::HERMETIC, value)]
            }
            // Caffe takes dots away, so both can share one spelling.
            Self::Caffe | Self::Opencv => {
                let values = caffe::render(set, Spelling::Dotted)?;
                let name = (self == Self::Caffe).then(|| ("CUDA_ARCH_NAME", "Manual".to_owned()));
                name.into_iter().chain([("CUDA_ARCH_BIN", values.bin), ("CUDA_ARCH_PTX", values.ptx)]).collect()
            }
            _ => Vec::new(),
        };
        Ok(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// What this consumer builds for `set`, where that is not exactly the set.
    pub fn builds_instead(self, set: &ArchSet) -> Option<ArchSet> {
        let effective = self.template()?.render(set).ok()?.effective;
        (effective != *set).then_some(effective)
    }

    /// Whether its variables are `CMake` variables, which a configure takes with `-D` only.
    pub fn reads_definitions(self) -> bool {
        matches!(self, Self::Caffe | Self::Opencv | Self::Bitsandbytes)
    }

    fn template(self) -> Option<template::Template> {
        template::Template::named(match self {
            Self::FlashAttention => "flash-attention",
            Self::TransformerEngine => "transformer-engine",
            Self::Natten => "natten",
            Self::TinyCudaNn => "tiny-cuda-nn",
            Self::Bitsandbytes => "bitsandbytes",
            _ => return None,
        })
    }
}

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// `8.6`.
    Dotted,
    /// `86`.
    Joined,
}

impl Spelling {
    fn write(self, arch: Arch) -> String {
        match self {
            Self::Dotted => arch.to_string(),
            Self::Joined => arch.joined(),
        }
    }

    fn read(self, text: &str) -> Option<Arch> {
        match self {
            Self::Dotted => text.parse().ok(),
            Self::Joined => Arch::from_joined(text),
        }
    }
}

/// A refusal: what of the set the consumer cannot hold, why, and what to do instead.
fn refusal(consumer: &str, arch: Arch, form: Form, why: impl Into<String>, help: impl Into<String>) -> Problem {
    let one: ArchSet = std::iter::once((arch, form)).collect();
    Problem::new(CANNOT_HOLD, Exit::Toolchain, format!("{consumer} cannot hold {one}")).why(why).help(help)
}

/// Joins what `write` makes of each member; all refusals come together.
fn each(
    set: &ArchSet,
    separator: &str,
    mut write: impl FnMut(Arch, Form) -> Result<String, Problem>,
) -> Result<String, Problems> {
    let mut words = Vec::new();
    let mut refused = Vec::new();
    for (arch, form) in set.iter() {
        match write(arch, form) {
            Ok(word) => words.push(word),
            Err(problem) => refused.push(problem),
        }
    }
    Problems::check(refused).map(|()| words.join(separator))
}

/// A list of numbers with semicolons, for a variable of a project's own that has no words for PTX.
///
/// # Errors
/// PTX, for which there is no word.
pub fn joined_list(variable: &str, set: &ArchSet, spelling: Spelling) -> Result<String, Problems> {
    each(set, ";", |arch, form| {
        if form.ptx || !form.sass {
            let why = "its list names machine code only";
            return Err(refusal(variable, arch, form, why, format!("use {arch} without PTX")));
        }
        Ok(spelling.write(arch))
    })
}

fn plain_only(consumer: &str, arch: Arch, form: Form) -> Result<(), Problem> {
    if arch.variant == Variant::Plain {
        return Ok(());
    }
    let why = format!("it reads digits only, so `{}` would be lost in silence", arch.variant.suffix());
    let help = format!("use {} instead, or give nvcc its flags directly", arch.with(Variant::Plain));
    Err(refusal(consumer, arch, form, why, help))
}
