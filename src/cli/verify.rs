//! `verify`: does a finished file hold what it must, and will it run?

use camino::Utf8PathBuf;
use clap::Args;

use super::{path, word};

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Wheels, libraries, folders or globs of such
    #[arg(required_unless_present = "package", value_name = "FILE", value_parser = path)]
    pub files: Vec<Utf8PathBuf>,
    /// Archs that every file must hold, such as "8.6;9.0+PTX"
    #[arg(long, short, value_name = "LIST")]
    pub expect: Option<String>,
    /// GPUs that every file must run on: names or capabilities, such as "RTX 3090, 9.0", or `native`; repeatable
    #[arg(long, value_name = "GPUS")]
    pub runs_on: Vec<String>,
    /// Driver that must start them: 535, 535.161.08, or the CUDA release it is for [default: a new one]
    #[arg(long, value_name = "VERSION", requires = "runs_on")]
    pub driver: Option<String>,
    /// Archs beyond the expected ones fail, and so do code for a GPU in a part of a file only and a file without any
    #[arg(long)]
    pub strict: bool,
    /// Recipe whose `[verify]` holds; its targets are expected unless `--expect` or `--runs-on` says otherwise
    #[arg(long, value_name = "RECIPE", value_parser = word)]
    pub recipe: Option<String>,
    /// Target profile of the recipe that is expected
    #[arg(long, value_name = "NAME", requires = "recipe", conflicts_with = "expect", value_parser = word)]
    pub profile: Option<String>,
    /// Import the modules with this Python: a path, an environment's folder, a program name or a version
    #[arg(long, value_name = "PYTHON", value_parser = word)]
    pub python: Option<String>,
    /// Judge symbols and libraries by the torch in this folder [default: the one of `--python`]
    #[arg(long, value_name = "DIR", value_parser = path)]
    pub torch_dir: Option<Utf8PathBuf>,
    /// Judge an installed package, too, of `--python` or of the first Python
    #[arg(long, value_name = "NAME", value_parser = word)]
    pub package: Option<String>,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE", value_parser = path)]
    pub junit: Option<Utf8PathBuf>,
}
