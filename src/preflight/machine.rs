//! What this machine says against a build: a driver that will not start the result here, disks without room.
//!
//! The result may be meant for other machines, so the driver only warns.

use camino::Utf8PathBuf;

use super::{Report, Site};
use crate::compat::rules::{self, Runs};
use crate::domain::arch::{ArchSet, Capability};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::domain::toolchain::Toolchain;
use crate::domain::version::CudaVersion;

/// The GPUs that are visible and the driver under them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    /// Their compute capabilities.
    pub gpus: Vec<Capability>,
    /// The driver's version.
    pub driver: String,
    /// The newest CUDA that it supports.
    pub cuda: CudaVersion,
}

/// Room on a disk that is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// What is written there: `the build folder`, `temporary files`.
    pub what: &'static str,
    /// The folder, and the variable that moves it elsewhere.
    pub folder: Utf8PathBuf,
    /// How to choose another one.
    pub mend: &'static str,
    /// Bytes that this user may still write.
    pub free: u64,
    /// Files that may still be made; `None` where the file system has no limit.
    pub files: Option<u64>,
    /// Bytes that a job puts there at its peak.
    pub each: u64,
}

/// Below this nothing can be built.
const LEAST: u64 = 64 << 20;
/// Files that a small build makes.
const LEAST_FILES: u64 = 64;

pub(super) fn check(toolchain: &Toolchain, archs: &ArchSet, site: &Site<'_>, report: &mut Report) {
    if let Some(here) = &site.here {
        driver(toolchain, archs, here, report);
    }
    for disk in site.disks {
        room(disk, site.jobs.max(1), report);
    }
}

/// Every GPU here that the set is meant for, and that will not start it because of the driver.
fn driver(toolchain: &Toolchain, archs: &ArchSet, here: &Here, report: &mut Report) {
    let nvcc = toolchain.toolkit.nvcc.release();
    for gpu in &here.gpus {
        // A set for other GPUs says nothing about this one.
        let meant = rules::best(archs, Some(nvcc), *gpu, None).0.starts();
        if let (true, Runs::No { why }) = (meant, rules::best(archs, Some(nvcc), *gpu, Some(here.cuda)).0) {
            report.warnings.push(format!(
                "the result will not start on the {gpu} of this machine: {why} (driver {}, CUDA {})",
                here.driver, here.cuda
            ));
        }
    }
}

/// The disks on which nothing can be built, whatever is built.
pub fn full(disks: &[Disk]) -> Vec<Problem> {
    let full = |disk: &&Disk| disk.free < LEAST || disk.files.is_some_and(|files| files < LEAST_FILES);
    let problem = |Disk { what, folder, mend, free, files, .. }: &Disk| {
        let left = match files.filter(|files| *files < LEAST_FILES) {
            Some(files) => format!("{files} files"),
            None => mib(*free),
        };
        Problem::new("cuwright::preflight::disk_full", Exit::Toolchain, format!("the disk of {what} is full"))
            .why(format!("{folder}: {left} left"))
            .help(format!("free some space, or {mend}"))
    };
    disks.iter().filter(full).map(problem).collect()
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn room(disk: &Disk, jobs: u32, report: &mut Report) {
    let full = full(std::slice::from_ref(disk));
    let Disk { what, folder, mend, free, each, .. } = disk;
    if !full.is_empty() {
        report.problems.extend(full);
    } else if *free < each.saturating_mul(u64::from(jobs)) {
        report.warnings.push(format!(
            "little room for {what}: {} left at {folder}, and {jobs} jobs may need {} each; {mend} if compilers fail to write",
            mib(*free),
            mib(*each)
        ));
    }
}
