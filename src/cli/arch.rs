//! `arch`: read, check, translate and explain an arch list.

use camino::Utf8PathBuf;
use clap::Args;

use super::path;
use crate::domain::arch::dialect::Consumer;

/// Arguments of `arch`.
#[derive(Debug, Args)]
pub struct ArchArgs {
    /// Archs, families, GPU names, `native`, `all`, `all-major`, in any tool's spelling [default: the environment's
    /// list, else this machine's GPUs]
    #[arg(value_name = "LIST")]
    pub list: Vec<String>,
    /// Print what this consumer reads
    #[arg(long, value_name = "CONSUMER", value_enum)]
    pub to: Option<Consumer>,
    /// Tell which GPUs run it natively, by JIT, or not
    #[arg(long)]
    pub explain: bool,
    /// Check against this CUDA release, by the tables
    #[arg(long, value_name = "VERSION")]
    pub cuda: Option<String>,
    /// Check against this torch release, by the tables
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
    /// CUDA release of the driver that the result must start with
    #[arg(long, value_name = "VERSION")]
    pub driver: Option<String>,
    /// GPU product; repeatable. Alone it names the targets; with a list it is judged by that list
    #[arg(long, value_name = "NAME")]
    pub gpu: Vec<String>,
    /// File of GPU products, a name a line; answers with a line for each
    #[arg(long, value_name = "FILE", value_parser = path, conflicts_with_all = ["list", "gpu", "to", "explain"])]
    pub gpu_file: Option<Utf8PathBuf>,
}
