//! `env`: the environment that cuwright would choose, for use without it.

use clap::{Args, ValueEnum};

use super::build::Aim;
use super::word;
use crate::domain::arch::dialect::Consumer;
use crate::domain::problem::Problem;
use crate::emit::Format;
use crate::pipeline::Request;

/// Arguments of `env`.
#[derive(Debug, Args)]
pub struct EnvArgs {
    /// A recipe, as `build` takes it, whose targets and variables are used [default: that of the current folder, if
    /// there is one]
    #[arg(value_name = "RECIPE", value_parser = word)]
    pub recipe: Option<String>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Sh, value_name = "FORMAT")]
    pub format: Format,
    /// Whose arch variables to write; repeatable [default: torch and cmake, as far as they have words for the archs]
    #[arg(long = "for", value_enum, value_name = "CONSUMER")]
    pub consumers: Vec<For>,
    /// Whether to name the toolkit, compilers and PATH of this machine [default: here for sh, dotenv and json; none for
    /// formats that travel]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub toolchain: Option<Which>,
    /// For which GPUs and with what.
    #[command(flatten)]
    pub aim: Aim,
}

/// Which toolchain to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// The one that a build on this machine would use
    Here,
    /// None
    None,
}

/// Whose variables to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum For {
    /// `TORCH_CUDA_ARCH_LIST`
    Torch,
    /// `CUDAARCHS`
    Cmake,
    /// `CUDA_ARCH_NAME`, `CUDA_ARCH_BIN`, `CUDA_ARCH_PTX`
    Caffe,
    /// `CUDA_ARCH_BIN`, `CUDA_ARCH_PTX`
    Opencv,
    /// `TF_CUDA_COMPUTE_CAPABILITIES`, `HERMETIC_CUDA_COMPUTE_CAPABILITIES`
    #[value(alias = "bazel")]
    Tensorflow,
    /// `FLASH_ATTN_CUDA_ARCHS`
    FlashAttention,
    /// `NVTE_CUDA_ARCHS`
    TransformerEngine,
    /// `NATTEN_CUDA_ARCH`
    Natten,
    /// `TCNN_CUDA_ARCHITECTURES`
    TinyCudaNn,
    /// `COMPUTE_CAPABILITY`
    Bitsandbytes,
    /// Everybody who has words for the archs
    All,
}

impl For {
    /// The consumer; `None` for all of them.
    pub fn consumer(self) -> Option<Consumer> {
        Some(match self {
            Self::Torch => Consumer::Torch,
            Self::Cmake => Consumer::Cmake,
            Self::Caffe => Consumer::Caffe,
            Self::Opencv => Consumer::Opencv,
            Self::Tensorflow => Consumer::Bazel,
            Self::FlashAttention => Consumer::FlashAttention,
            Self::TransformerEngine => Consumer::TransformerEngine,
            Self::Natten => Consumer::Natten,
            Self::TinyCudaNn => Consumer::TinyCudaNn,
            Self::Bitsandbytes => Consumer::Bitsandbytes,
            Self::All => return None,
        })
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl EnvArgs {
    /// Everybody whose variables are wanted, and whether one without words is an error: it is where it was named.
    pub fn wanted(&self) -> (Vec<For>, bool) {
        let all = || For::value_variants().iter().copied().filter(|one| *one != For::All).collect();
        match self.consumers.as_slice() {
            [] => (vec![For::Torch, For::Cmake], false),
            list if list.contains(&For::All) => (all(), false),
            list => (list.to_vec(), true),
        }
    }

    /// The request to the pipeline; installs nothing.
    ///
    /// # Errors
    /// A version named twice.
    pub fn request(&self) -> Result<Request, Problem> {
        Ok(Request { dry: true, ..self.aim.request()? })
    }
}
