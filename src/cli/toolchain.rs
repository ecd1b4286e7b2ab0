//! `toolchain`: provisioned toolkits and environments.

use clap::{Args, Subcommand};

use super::word;

/// Arguments of `toolchain`.
#[derive(Debug, Args)]
pub struct ToolchainArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: ToolchainAction,
}

/// Actions on toolchains.
#[derive(Debug, Subcommand)]
pub enum ToolchainAction {
    /// List what is installed
    List,
    /// Install the toolchain that a recipe needs
    Install {
        /// A recipe, as `build` takes it; without one, torch and toolkit alone
        #[arg(value_name = "RECIPE", value_parser = word)]
        recipe: Option<String>,
        /// CUDA toolkit version or range
        #[arg(long, value_name = "VERSION")]
        cuda: Option<String>,
        /// torch version or range
        #[arg(long, value_name = "VERSION")]
        torch: Option<String>,
        /// Python interpreter or version
        #[arg(long, value_name = "PYTHON", value_parser = word)]
        python: Option<String>,
        /// Host compiler, such as gcc-13 or a path
        #[arg(long, value_name = "COMPILER", value_parser = word)]
        cc: Option<String>,
        /// Use no network: install from what uv has stored
        #[arg(long)]
        offline: bool,
    },
    /// Remove by the first digits of the digest that `list` shows
    Remove {
        /// First digits of the digest
        #[arg(required = true, value_name = "DIGEST", value_parser = word)]
        digests: Vec<String>,
    },
}
