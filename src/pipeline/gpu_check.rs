//! The recipe's check on a GPU of this machine: whether there is one that the files have code for, and how it went.
//!
//! Invariant: a machine without such a GPU is no fault of the files, so the check is then not run, and it is said why.

use std::collections::BTreeMap;

use camino::Utf8Path;

use crate::domain::arch::Capability;
use crate::domain::problem::Problem;
use crate::probe::gpu::Detection;
use crate::recipe::Verify;
use crate::report::GpuCheck;
use crate::sys::env_vars;
use crate::verify::fate::{self, Driver, Gpu};
use crate::verify::found::Found;
use crate::verify::import::{self, Checker};
use crate::verify::{coverage, site::Site};

/// What a check needs to run.
pub(super) struct Setting<'a> {
    pub(super) verify: &'a Verify,
    pub(super) found: &'a [Found],
    pub(super) python: &'a Utf8Path,
    pub(super) env: BTreeMap<String, String>,
    pub(super) within: Option<&'a Utf8Path>,
    pub(super) site: &'a Site,
    pub(super) modules: &'a [String],
}

/// How the check went, if the recipe has one; what failed is given as a problem, too.
pub(super) type Ran = Result<Option<(GpuCheck, Option<Problem>)>, Problem>;

/// Runs the check beside `import`: both are processes that import torch for seconds.
pub(super) fn beside<T>(
    setting: Setting<'_>,
    detect: impl FnOnce() -> Detection + Send,
    import: impl FnOnce() -> T,
) -> (T, Ran) {
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| run(setting, detect));
        let imported = import();
        (imported, ran.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Runs the recipe's check, if it has one, in a process of its own. What fails is given as a problem, too.
///
/// # Errors
/// A process that cannot be run to its end.
fn run(setting: Setting<'_>, detect: impl FnOnce() -> Detection) -> Ran {
    let Some(check) = &setting.verify.gpu_check else { return Ok(None) };
    let place = match place(setting.verify, setting.found, &detect()) {
        Ok(place) => place,
        Err(why) => return Ok(Some((GpuCheck::not_run(why), None))),
    };
    let mut env = setting.env;
    if let Some(device) = place.device {
        env.insert(env_vars::CUDA_VISIBLE_DEVICES.to_owned(), device);
    }
    let checker = Checker::start(setting.python, env, setting.within, true)?;
    import::run_on_gpu(checker, setting.site, setting.modules, check, &place.name).map(Some)
}

/// The GPU to run on.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    name: String,
    /// Its id, where another GPU of the machine must stay out of it.
    device: Option<String>,
}

/// The first GPU that every file with code starts on; the reason why there is none.
fn place(verify: &Verify, found: &[Found], detection: &Detection) -> Result<Place, String> {
    if let Some(problem) = detection.problem() {
        let none = problem.code() == crate::targets::NO_TARGET;
        return Err(if none { "no GPU is known here".to_owned() } else { problem.message().to_owned() });
    }
    let globs = coverage::globs(verify);
    let files: Vec<&Found> =
        found.iter().filter(|file| coverage::is_judged(&globs, file) && !file.archs.is_empty()).collect();
    if files.is_empty() {
        return Err("no file holds device code".to_owned());
    }
    let driver = detection.cuda_driver.map(|cuda| Driver { cuda, name: "this machine's driver".to_owned() });
    let starts = |capability: Capability| {
        let gpu = Gpu { name: String::new(), capability };
        files.iter().all(|file| fate::fate(file, &gpu, driver.as_ref()).starts())
    };
    let mut here = Vec::new();
    for (device, capability) in detection.usable() {
        let name = device.name.clone().unwrap_or_else(|| format!("GPU {}", device.index));
        if starts(capability) {
            let alone = detection.usable().count() == 1;
            return Ok(Place { name, device: device.uuid.clone().filter(|_| !alone) });
        }
        here.push(format!("{name} ({capability})"));
    }
    let archs: Vec<String> = files.iter().map(|file| file.archs.to_string()).collect();
    Err(format!("nothing of {} starts on {}", archs.join("; "), here.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::gpu::{Confidence, Device, Method};
    use crate::verify::found::sample;

    fn machine(gpus: &[(&str, u8, u8)]) -> Detection {
        let device = |(index, (name, major, minor)): (u32, &(&str, u8, u8))| Device {
            index,
            name: Some((*name).to_owned()),
            uuid: Some(format!("GPU-{index}")),
            capability: Some(Capability { major: *major, minor: *minor }),
            source: Method::Nvml,
            confidence: Confidence::High,
            mig: Vec::new(),
            visible: true,
        };
        Detection { devices: (0..).zip(gpus).map(device).collect(), ..Detection::default() }
    }

    fn placed(archs: &[&str], gpus: &[(&str, u8, u8)]) -> Result<Place, String> {
        let found: Vec<Found> = archs.iter().map(|archs| sample("a.so", archs)).collect();
        place(&Verify::default(), &found, &machine(gpus))
    }

    #[test]
    fn the_check_runs_on_the_first_gpu_that_every_file_with_code_starts_on() {
        let one = Place { name: "H200".to_owned(), device: None };
        assert_eq!(placed(&["9.0", "8.0 9.0"], &[("H200", 9, 0)]), Ok(one));
        let second = Place { name: "H200".to_owned(), device: Some("GPU-1".to_owned()) };
        assert_eq!(placed(&["9.0"], &[("T4", 7, 5), ("H200", 9, 0)]), Ok(second));
        assert_eq!(placed(&["8.0+PTX", ""], &[("H200", 9, 0)]).unwrap().name, "H200");
    }

    #[test]
    fn it_is_told_why_there_is_no_such_gpu() {
        let why = placed(&["9.0"], &[("T4", 7, 5)]).unwrap_err();
        assert_eq!(why, "nothing of 9.0 starts on T4 (7.5)");
        assert_eq!(placed(&["9.0", "8.6"], &[("H200", 9, 0)]).unwrap_err(), "nothing of 9.0; 8.6 starts on H200 (9.0)");
        assert_eq!(placed(&[""], &[("H200", 9, 0)]).unwrap_err(), "no file holds device code");
        assert!(!placed(&["9.0"], &[]).unwrap_err().is_empty());
    }
}
