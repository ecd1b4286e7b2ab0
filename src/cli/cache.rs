//! `cache`: the artifact cache.

use clap::{Args, Subcommand};

use super::build::Choice;
use super::word;

/// Arguments of `cache`.
#[derive(Debug, Args)]
pub struct CacheArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: CacheAction,
}

/// Actions on the cache.
#[derive(Debug, Subcommand)]
pub enum CacheAction {
    /// List the artifacts
    List,
    /// Show numbers and the folder
    Stat,
    /// Explain why a build would hit or miss
    Why {
        /// What would be built.
        #[command(flatten)]
        choice: Choice,
    },
    /// Remove what was not used for long, until the cache is small enough
    Gc {
        /// Keep at most this much, such as "10 GiB"
        #[arg(long, value_name = "SIZE")]
        max_size: Option<String>,
        /// Remove what was last used longer ago than this many days
        #[arg(long, value_name = "DAYS")]
        max_age: Option<u64>,
    },
    /// Remove artifacts by the first digits of their key
    Remove {
        /// First digits of the key
        #[arg(required = true, value_name = "KEY", value_parser = word)]
        keys: Vec<String>,
    },
}
