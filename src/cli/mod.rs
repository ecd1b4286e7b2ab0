//! The command line as values. The structs are dumb: `clap` fills them, `commands` gives them meaning.

pub mod arch;
pub mod build;
pub mod cache;
pub mod detect;
pub mod doctor;
pub mod env;
pub mod explain;
pub mod inspect;
pub mod toolchain;
pub mod usage;
pub mod verify;

use std::ffi::OsString;

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand};

use self::usage::Refused;
use crate::ui::Format;

const AFTER: &str = "\
Start with `cuwright build mmcv --arch 9.0`, or `cuwright build` in a folder with a
setup.py, a pyproject.toml, a CMakeLists.txt or a Bazel workspace.

Exit codes: 0 ok, 1 bug, 2 usage, 10 recipe, 11 no target, 12 toolchain or
preflight, 13 build, 14 verify, 15 cache, 130 interrupted.";

/// Builds CUDA extensions, and proves that every GPU asked for will run them.
#[derive(Debug, Parser)]
#[command(name = "cuwright", version, about, after_help = AFTER, max_term_width = 110)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a command line")]
pub struct Global {
    /// How answers and messages look; as `json`, `build` writes one object a line, other commands one document (`cache
    /// why` and `toolchain remove` one for each name)
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub message_format: Format,
    /// Same as `--message-format json`
    #[arg(long, global = true)]
    pub json: bool,
    /// Only results and errors
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Every decision with its source, and what the compilers print
    #[arg(long, short, global = true)]
    pub verbose: bool,
    /// No bars: a line every 15 seconds instead, as where there is no terminal
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Folder for toolchains, downloads and artifacts [env: `CUWRIGHT_CACHE_DIR`] [default: ~/.cache/cuwright]
    #[arg(long, global = true, value_name = "DIR", value_parser = path)]
    pub cache_dir: Option<Utf8PathBuf>,
    /// File with further GPUs and archs [env: `CUWRIGHT_TABLES`] [default: ~/.config/cuwright/gpus.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE", value_parser = path)]
    pub tables: Option<Utf8PathBuf>,
}

impl Global {
    /// The message format after both spellings.
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.message_format }
    }
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build and verify wheels and libraries
    Build(build::BuildArgs),
    /// Show what `build` would do, without installing or building anything
    Plan(build::PlanArgs),
    /// List the built-in recipes, and how far each was tried
    Recipes,
    /// The GPUs of this machine, and how each is known
    Detect(detect::DetectArgs),
    /// One page about this machine: what is here for building, and what is in the way
    Doctor(doctor::DoctorArgs),
    /// Read, check, translate and explain a list of archs
    Arch(arch::ArchArgs),
    /// The environment of a build, for a shell, a container or a CI job
    Env(env::EnvArgs),
    /// List the GPU code in libraries, objects, archives and wheels
    Inspect(inspect::InspectArgs),
    /// Judge wheels and libraries: the GPU code they hold, the GPUs they run on, what they link
    Verify(verify::VerifyArgs),
    /// Why a build or a program failed, from its log; or a page on a topic
    Explain(explain::ExplainArgs),
    /// Provisioned toolkits and environments
    Toolchain(toolchain::ToolchainArgs),
    /// The artifact cache
    Cache(cache::CacheArgs),
    /// Write shell completions to standard output
    Completions {
        /// Shell to write for
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// The command's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Build(_) => "build",
            Self::Plan(_) => "plan",
            Self::Recipes => "recipes",
            Self::Detect(_) => "detect",
            Self::Doctor(_) => "doctor",
            Self::Arch(_) => "arch",
            Self::Env(_) => "env",
            Self::Inspect(_) => "inspect",
            Self::Verify(_) => "verify",
            Self::Explain(_) => "explain",
            Self::Toolchain(_) => "toolchain",
            Self::Cache(_) => "cache",
            Self::Completions { .. } => "completions",
        }
    }
}

/// Reads the command line.
///
/// # Errors
/// What is to be shown instead: help, a version, or a usage error.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, Refused> {
    let args: Vec<OsString> = args.into_iter().collect();
    Cli::try_parse_from(&args).map_err(|error| Refused::new(error, &args))
}

/// A path as typed. An empty one, as of a variable that is not set, would mean the current folder.
fn path(text: &str) -> Result<Utf8PathBuf, String> {
    word(text).map(Utf8PathBuf::from)
}

/// A name or a path as typed, which nothing can be called if it is empty.
fn word(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
