//! What a stand-in adds to a compiler call: the same program run by itself, through a stand-in alone, and through one
//! that asks a coordinator. Also what a waiting stand-in holds in memory.
//!
//! `cargo bench --bench launcher`. Runs are taken in turns, so that a busy moment of the machine hits all three.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark prints what it measured")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use cuwright::launcher::{Coordinator, Costs, Limits, Placement, Tools, UnitSpec};
use cuwright::sys::Env;

const RUNS: usize = 300;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
    let (home, launch) = (root.join("cuda"), root.join("launch"));
    fs_err::create_dir_all(home.join("bin")).expect("a folder");
    std::os::unix::fs::symlink("/bin/true", home.join("bin/nvcc")).expect("a link");
    let program = Utf8Path::new(env!("CARGO_BIN_EXE_cuwright"));
    let nvcc = home.join("bin/nvcc");
    let tools = Tools { nvcc: &nvcc, cc: "/usr/bin/gcc".into(), cxx: "/usr/bin/g++".into() };
    let placement = Placement::make(&launch, program, tools, "/usr/bin:/bin").expect("stand-ins");
    let coordinator = Coordinator::start(Limits { cores: 1, memory: None }, &Env::default()).expect("a coordinator");
    let costs = Costs::load(root, "bench", "13.0");
    let spec =
        UnitSpec { root: launch.clone(), source: root.to_owned(), costs, memory: 1, heavy: Vec::new(), ahead: false };
    let unit = coordinator.unit(spec).expect("a unit");
    let call = |program: &Utf8Path, with: bool| {
        let mut command = Command::new(program);
        command.args(["-c", "a.cu", "-o", "a.o", "-gencode=arch=compute_90,code=sm_90"]).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).env_remove("CUWRIGHT_LAUNCHER");
        if with {
            command.envs(placement.variables());
        }
        command
    };
    let stand_in = launch.join("bin/nvcc");
    let ways = [
        ("the tool itself", Utf8Path::new("/bin/true"), false),
        ("a stand-in alone", &stand_in, false),
        ("with a coordinator", &stand_in, true),
    ];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..RUNS {
        for ((_, program, with), times) in ways.iter().zip(&mut times) {
            let start = Instant::now();
            assert!(call(program, *with).output().expect("it runs").status.success());
            times.push(start.elapsed());
        }
    }
    println!("| a call of /bin/true | median ms | 90 % ms | added ms |\n|---|---|---|---|");
    let median = |times: &mut Vec<Duration>, share: usize| {
        times.sort();
        times[times.len() * share / 100].as_secs_f64() * 1000.0
    };
    let base = median(&mut times[0], 50);
    for ((name, ..), times) in ways.iter().zip(&mut times) {
        let (middle, high) = (median(times, 50), median(times, 90));
        println!("| {name} | {middle:.2} | {high:.2} | {:.2} |", middle - base);
    }
    // One that runs for long whatever it is given, so that the other waits.
    let long = root.join("long");
    fs_err::write(&long, "#!/bin/sh\nexec sleep 60\n").expect("a script");
    fs_err::set_permissions(&long, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    fs_err::remove_file(launch.join("real/bin/nvcc")).expect("a link");
    std::os::unix::fs::symlink(&long, launch.join("real/bin/nvcc")).expect("a link");
    let mut children = [call(&stand_in, true).stdout(Stdio::null()).spawn(), call(&stand_in, true).spawn()]
        .map(|child| child.expect("it runs"));
    while unit.status().waiting == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let waiting =
        children.iter().map(std::process::Child::id).find(|pid| unit.status().working.is_empty() || !busy(*pid));
    let smaps =
        fs_err::read_to_string(format!("/proc/{}/smaps_rollup", waiting.unwrap_or_default())).unwrap_or_default();
    let field = |name: &str| smaps.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("?").trim().to_owned();
    println!("a waiting stand-in: {} resident, of which its own: {}", field("Rss:"), field("Private_Dirty:"));
    drop(unit.finish());
    for child in &mut children {
        let _ = child.wait();
    }
}

/// Whether a process has children.
fn busy(pid: u32) -> bool {
    fs_err::read_to_string(format!("/proc/{pid}/task/{pid}/children")).is_ok_and(|children| !children.trim().is_empty())
}
