//! A real build, killed somewhere at a random moment, again and again: nothing may be left running, nothing half made.
//!
//! The extension uses no torch headers, so that a build takes seconds; compilers, ninja, setup.py and cuwright are the real
//! ones. `CUWRIGHT_KILLS` says how often; the figure in docs/measurements.md is from 50.

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use crate::support::Sandbox;
use crate::support::real::{Running, Signal, artifact, sandbox, send, stamp};

const SETUP: &str = "from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
sources = ['bind.cpp', *[f'k{n}.cu' for n in range(4)], *[f'h{n}.cpp' for n in range(4)]]
setup(name='kills', version='1.0', packages=['kills'], cmdclass={'build_ext': BuildExtension},
      ext_modules=[CUDAExtension('kills._C', sources)])
";
const BIND: &str = "#include <Python.h>
static PyModuleDef module = {PyModuleDef_HEAD_INIT, \"_C\", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
";

fn tree(sandbox: &Sandbox) -> Utf8PathBuf {
    sandbox.file("kills/setup.py", SETUP).file("kills/kills/__init__.py", "");
    sandbox.file("kills/bind.cpp", &format!("{BIND}// {}\n", stamp()));
    for n in 0..4 {
        sandbox
            .file(&format!("kills/k{n}.cu"), &format!("__global__ void k{n}(float* x) {{ x[threadIdx.x] += {n}; }}\n"));
        sandbox.file(
            &format!("kills/h{n}.cpp"),
            &format!(
                "#include <regex>\nbool h{n}(const char* s) {{ return std::regex_match(s, std::regex(\"a*\")); }}\n"
            ),
        );
    }
    sandbox.work().join("kills")
}

/// A small generator, seeded by the clock: the test must not know the moment.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below.max(1)
    }
}

/// Processes that work in a folder, with their command lines.
fn working_in(folder: &Utf8Path) -> Vec<(u32, String)> {
    let inside = |pid: &u32| {
        fs_err::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder.as_std_path()))
    };
    let pids =
        Utf8Path::new("/proc").read_dir_utf8().unwrap().flatten().filter_map(|entry| entry.file_name().parse().ok());
    let line = |pid: u32| {
        let line = fs_err::read(format!("/proc/{pid}/cmdline")).ok()?;
        // One that has ended and waits for its parent has no command line.
        (!line.is_empty()).then(|| (pid, String::from_utf8_lossy(&line).replace('\0', " ")))
    };
    pids.filter(inside).filter_map(line).collect()
}

/// Kills a process; `false` where it had ended by itself.
fn kill(pid: u32) -> bool {
    match send(pid, Signal::KILL) {
        Ok(()) => true,
        Err(rustix::io::Errno::SRCH) => false,
        Err(error) => panic!("process {pid} cannot be killed: {error}"),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the tally is the measurement")]
fn a_build_that_is_killed_anywhere_leaves_no_process_and_no_half() {
    let times: u32 = std::env::var("CUWRIGHT_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let sandbox = sandbox();
    let tree = tree(&sandbox);
    let args = ["build", tree.as_str(), "--arch", "9.0", "--json", "--no-cache"];
    let first = artifact(&sandbox.run(&args).assert_code(0));
    let length = Duration::from_secs(first["build-seconds"].as_u64().unwrap().max(4));
    let mut dice = Dice(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into());
    let mut tally = std::collections::BTreeMap::<String, u32>::new();
    let mut hits = 0;
    for round in 0..times {
        let mut running = Running::start(sandbox.command(&args));
        let folder = running.folder();
        std::thread::sleep(Duration::from_millis(dice.roll(u64::try_from(length.as_millis()).unwrap())));
        let all = working_in(&folder);
        let part = |of: &str| all.iter().filter(|(_, line)| line.contains(of)).map(|(pid, _)| *pid).collect::<Vec<_>>();
        let (what, victims) = match round % 6 {
            0 => ("cuwright", vec![running.id()]),
            1 => ("a compiler", [part("cicc "), part("cc1plus "), part("cudafe++ ")].concat()),
            2 => ("a stand-in", part("launch/")),
            3 => ("ninja", part("ninja ")),
            4 => ("setup.py", part("setup.py ")),
            _ => ("everything", all.iter().map(|(pid, _)| *pid).chain([running.id()]).collect()),
        };
        let victims = if what == "everything" || victims.is_empty() {
            victims
        } else {
            vec![victims[usize::try_from(dice.roll(victims.len() as u64)).unwrap()]]
        };
        let hit = victims.iter().filter(|pid| kill(**pid)).count();
        let said = running.finish();
        let end = match said.code {
            _ if hit == 0 => "was not there",
            Some(0) => "built",
            Some(13) => "failed",
            None => "killed",
            other => panic!("round {round}, {what}: {other:?}\n{}\n{}", said.stdout, said.stderr),
        };
        hits += hit;
        *tally.entry(format!("{what}: {end}")).or_default() += 1;
        let start = Instant::now();
        loop {
            let left = working_in(&folder);
            if left.is_empty() {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(5), "round {round}, {what}: left behind {left:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    // Whatever was left lying around, the next build is whole.
    let last = artifact(&sandbox.run(&args).assert_code(0));
    assert_eq!((&last["key"], &last["files"][0]["found"]), (&first["key"], &"9.0".into()));
    assert!(hits > 0 || times == 0, "no process was there to be killed: {tally:#?}");
    println!("{times} kills: {tally:#?}");
}
