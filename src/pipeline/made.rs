//! What a build made: a wheel, or a tree of files packed into one archive.

use camino::{Utf8Path, Utf8PathBuf};

use super::prepare::Prepared;
use crate::build::folder::BuildFolder;
use crate::build::setup_py::{self, Loss};
use crate::build::{bazel, pack};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::plan::{Commands, Outputs};
use crate::report::summary::Kind;

/// The artifact of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// A wheel.
    Wheel(Utf8PathBuf),
    /// A tree of files.
    Tree {
        /// The files in one archive.
        archive: Utf8PathBuf,
        /// The files themselves.
        root: Utf8PathBuf,
        /// Their paths below `root`.
        files: Vec<Utf8PathBuf>,
    },
}

impl Made {
    /// The file that is cached and handed out.
    pub fn file(&self) -> &Utf8Path {
        match self {
            Self::Wheel(file) | Self::Tree { archive: file, .. } => file,
        }
    }

    /// What kind of artifact it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Wheel(_) => Kind::Wheel,
            Self::Tree { .. } => Kind::Tree,
        }
    }

    /// The version in a wheel's file name, `name-version-…`.
    pub fn version(&self) -> Option<String> {
        let Self::Wheel(wheel) = self else { return None };
        wheel.file_name().unwrap_or_default().split('-').nth(1).map(str::to_owned)
    }
}

/// Finds what the commands of `unit` left, and packs it where it is no wheel.
///
/// # Errors
/// Nothing, or not one wheel; a disk that is full.
pub fn collect(unit: &Prepared, folder: &BuildFolder, commands: &Commands) -> Result<Made, Problem> {
    let log = format!("the log is {}", folder.log);
    let not_written = |error: std::io::Error| {
        Problem::new("cuwright::build::not_written", Exit::Build, "what was built cannot be put together")
            .why(error.to_string())
            .help("free some space, or choose another cache folder with `--cache-dir`")
    };
    let stage = match &commands.outputs {
        Outputs::Wheel(dist) => {
            let builder = commands.steps.last().map_or("the build", |step| step.name);
            return setup_py::wheel(dist, builder).map(Made::Wheel).map_err(|(message, why)| {
                Problem::new("cuwright::build::no_wheel", Exit::Build, message)
                    .why(why)
                    .why(log)
                    .help("run the command at the top of the log by hand and see what it writes to that folder")
            });
        }
        Outputs::Installed(stage) => stage,
        Outputs::Events { file, stage } => {
            let outputs = bazel::outputs(file).map_err(|problem| problem.why(&log))?;
            bazel::collect(&outputs, stage).map_err(not_written)?;
            stage
        }
    };
    let files = pack::files(stage).map_err(not_written)?;
    if files.is_empty() {
        return Err(Problem::new("cuwright::build::no_output", Exit::Build, "the project installs nothing")
            .why(format!("`cmake --install` left no file in {stage}"))
            .why(log)
            .help("give the project `install(TARGETS …)` rules, by a patch if it is not yours"));
    }
    let version = unit.recipe.version.as_deref().map(|version| format!("-{version}")).unwrap_or_default();
    let platform = &unit.toolchain.python.platform;
    let archive = folder.dist.join(format!("{}{version}-{platform}.tar.gz", unit.recipe.name));
    pack::pack(stage, &files, &archive).map_err(not_written)?;
    Ok(Made::Tree { archive, root: stage.clone(), files })
}

/// What a build without ninja lost, in words.
pub fn told(loss: Loss, jobs: u32) -> String {
    let clock = |duration: std::time::Duration| {
        let seconds = duration.as_secs_f64();
        if seconds < 60.0 {
            format!("{seconds:.1} s")
        } else {
            format!("{:.0} min {:02.0} s", (seconds / 60.0).floor(), seconds % 60.0)
        }
    };
    format!(
        "setup.py does not use ninja: {} sources compiled one after another in {}, {jobs} jobs take {} at best; look for \
         `use_ninja=False` in setup.py",
        loss.sources,
        clock(loss.took),
        clock(loss.possible)
    )
}
