//! `inspect`: the GPU code in finished files.

use camino::Utf8PathBuf;
use clap::Args;

use super::{path, word};

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Libraries, objects, archives, cubins, fatbins, wheels, folders or globs of such
    #[arg(required_unless_present = "package", value_name = "FILE", value_parser = path)]
    pub files: Vec<Utf8PathBuf>,
    /// List every kernel with its registers and memory
    #[arg(long, short)]
    pub kernels: bool,
    /// Only what each arch takes, without a line for every entry
    #[arg(long, short, conflicts_with = "kernels")]
    pub summary: bool,
    /// Search sections where no loader looks, too
    #[arg(long)]
    pub scan_all: bool,
    /// Write every image into this folder, unpacked
    #[arg(long, value_name = "DIR", value_parser = path)]
    pub extract: Option<Utf8PathBuf>,
    /// Read an installed package, too
    #[arg(long, value_name = "NAME", value_parser = word)]
    pub package: Option<String>,
    /// The Python that has the package: a path, an environment's folder, a program name or a version
    #[arg(long, value_name = "PYTHON", requires = "package", value_parser = word)]
    pub python: Option<String>,
}
