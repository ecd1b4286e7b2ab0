//! `explain`: why something failed, from its log, or a page on a topic.

use clap::Args;

use super::word;

const AFTER: &str = "\
LOG may be of any size, and from anywhere: a terminal, CI, Docker, pip, ninja,
make, Bazel. A file of that name wins over a topic; `./NAME` and `-` are never
topics. Exit code 0 means that the log was read, whatever it says.";

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct ExplainArgs {
    /// A log file, `-` for standard input, a cause or error code such as `no-kernel-image`, or a topic
    #[arg(value_name = "LOG|TOPIC", value_parser = word, required_unless_present = "list")]
    pub what: Option<String>,
    /// List every topic
    #[arg(long, conflicts_with_all = ["what", "here"])]
    pub list: bool,
    /// CUDA toolkit that was used, where the log does not tell
    #[arg(long, value_name = "VERSION", help_heading = "Facts that the log lacks")]
    pub cuda: Option<String>,
    /// torch that was used, such as 2.5.1+cu124
    #[arg(long, value_name = "VERSION", help_heading = "Facts that the log lacks")]
    pub torch: Option<String>,
    /// Card that it is for: a product name or a capability
    #[arg(long, value_name = "GPU", help_heading = "Facts that the log lacks")]
    pub gpu: Option<String>,
    /// The log is of this machine: look at its GPUs, compiler, cores and memory for what the log lacks
    #[arg(long, help_heading = "Facts that the log lacks")]
    pub here: bool,
}
