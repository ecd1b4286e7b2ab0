//! `build` and `plan`: the same choices, one carried out.

use camino::Utf8PathBuf;
use clap::Args;

use super::{path, word};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::pipeline::Request;
use crate::pipeline::units::Axes;

/// Arguments of `build`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of one command line")]
pub struct BuildArgs {
    /// What to build and for which GPUs.
    #[command(flatten)]
    pub choice: Choice,
    /// Folder for the artifacts
    #[arg(long, short, value_name = "DIR", default_value = "dist", value_parser = path)]
    pub out: Utf8PathBuf,
    /// Build even if the cache holds the artifact, and leave the cache alone
    #[arg(long)]
    pub no_cache: bool,
    /// Run compilers as they come, without the launcher that admits them by cores and memory
    #[arg(long, conflicts_with = "timings")]
    pub no_launcher: bool,
    /// Write how long each compiler took, as a page and a trace [default file: NAME-timings.html in the output folder]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, value_parser = path)]
    pub timings: Option<Option<Utf8PathBuf>>,
    /// Begin further units after one has failed; without it, those that run go on and no other begins
    #[arg(long)]
    pub keep_going: bool,
    /// Build every cell of the recipe's matrix, each into a folder of its own; --arch, --torch, --cuda and --python, each
    /// repeatable, replace an axis
    #[arg(long)]
    pub matrix: bool,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What to build and for which GPUs.
    #[command(flatten)]
    pub choice: Choice,
    /// Show every cell of the recipe's matrix, and which ones nothing can satisfy
    #[arg(long)]
    pub matrix: bool,
}

/// For which GPUs and with what, wherever that is asked.
#[derive(Debug, Args)]
pub struct Aim {
    /// GPU targets, such as "8.6;9.0+PTX", `sm_90`, native, all-major
    #[arg(long, short, value_name = "LIST", help_heading = "Targets")]
    pub arch: Vec<String>,
    /// GPU product to build for, such as "RTX 4090"; repeatable
    #[arg(long, value_name = "NAME", help_heading = "Targets")]
    pub gpu: Vec<String>,
    /// Named target set of the recipe
    #[arg(long, value_name = "NAME", help_heading = "Targets", value_parser = word)]
    pub profile: Option<String>,
    /// CUDA toolkit version or range, such as 13.0
    #[arg(long, value_name = "VERSION", help_heading = "Toolchain")]
    pub cuda: Vec<String>,
    /// torch version or range, such as 2.11.0
    #[arg(long, value_name = "VERSION", help_heading = "Toolchain")]
    pub torch: Vec<String>,
    /// Python interpreter or version to build for
    #[arg(long, value_name = "PYTHON", help_heading = "Toolchain", value_parser = word)]
    pub python: Vec<String>,
    /// Host compiler, such as gcc-13 or a path; its C++ half is found
    #[arg(long, value_name = "COMPILER", help_heading = "Toolchain", value_parser = word)]
    pub cc: Option<String>,
}

impl Aim {
    /// The request for this aim alone.
    ///
    /// # Errors
    /// A version named twice, which is a matrix.
    pub fn request(&self) -> Result<Request, Problem> {
        Ok(Request {
            archs: self.arch.clone(),
            gpus: self.gpu.clone(),
            profile: self.profile.clone(),
            cuda: one("--cuda", &self.cuda)?,
            torch: one("--torch", &self.torch)?,
            python: one("--python", &self.python)?,
            cc: self.cc.clone(),
            ..Request::default()
        })
    }

    /// The same values as axes of a matrix.
    pub fn axes(&self) -> Axes {
        [self.arch.clone(), self.torch.clone(), self.cuda.clone(), self.python.clone()]
    }
}

fn one(flag: &str, values: &[String]) -> Result<Option<String>, Problem> {
    match values {
        [] => Ok(None),
        [value] => Ok(Some(value.clone())),
        _ => Err(Problem::new(
            "cuwright::usage::several_values",
            Exit::Usage,
            format!("`{flag}` is given {} times", values.len()),
        )
        .why(values.join(", "))
        .help("give it once; or `build --matrix` builds a unit for each value")),
    }
}

/// What to build, for what, with what.
#[derive(Debug, Args)]
pub struct Choice {
    /// A built-in name (`cuwright recipes` lists them), a recipe file, a folder with `cuwright.toml`, or a source tree
    /// with `setup.py`, `pyproject.toml`, `CMakeLists.txt` or a Bazel workspace [default: the current folder]
    #[arg(value_name = "RECIPE", value_parser = word)]
    pub recipes: Vec<String>,
    /// For which GPUs and with what.
    #[command(flatten)]
    pub aim: Aim,
    /// Use no network
    #[arg(long, help_heading = "Toolchain")]
    pub offline: bool,
    /// Compile jobs at once [default: what cores and memory allow, and at most `MAX_JOBS` of the environment]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
}

impl Choice {
    /// The request for one recipe, with `out` absolute.
    ///
    /// # Errors
    /// A version named twice.
    pub fn request(&self, out: Utf8PathBuf, no_cache: bool) -> Result<Request, Problem> {
        Ok(Request { jobs: self.jobs, offline: self.offline, no_cache, out, ..self.aim.request()? })
    }

    /// The request that all cells of a matrix share; what spans the matrix is in [`Aim::axes`].
    pub fn request_of_cells(&self, out: Utf8PathBuf, no_cache: bool) -> Request {
        let (gpus, profile, cc) = (self.aim.gpu.clone(), self.aim.profile.clone(), self.aim.cc.clone());
        Request { gpus, profile, cc, jobs: self.jobs, offline: self.offline, no_cache, out, ..Request::default() }
    }

    /// The recipes, or the current folder.
    pub fn recipes(&self) -> Vec<Option<&str>> {
        if self.recipes.is_empty() { vec![None] } else { self.recipes.iter().map(|r| Some(r.as_str())).collect() }
    }
}
