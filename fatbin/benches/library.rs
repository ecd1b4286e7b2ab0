//! Listing and deep read of a large library, against NVIDIA's `cuobjdump` in the same run where it is at hand.
//!
//! ```text
//! FATBIN_BENCH_FILE=…/libtorch_cuda.so FATBIN_BENCH_CUOBJDUMP=…/bin/cuobjdump cargo bench -p fatbin
//! ```
//!
//! `FATBIN_BENCH_ONLY=list` (or `deep`) does one of the two and skips the tool, for a profiler or `/usr/bin/time`.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and its settings")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fatbin::{Contents, Limits, Options};

/// Runs of what takes milliseconds; the median counts.
const RUNS: usize = 21;

/// Runs of what takes seconds.
const TURNS: usize = 5;

fn main() {
    let set = |name: &str| std::env::var(name).ok();
    let Some(path) = set("FATBIN_BENCH_FILE") else {
        println!("set FATBIN_BENCH_FILE to a library with much GPU code");
        return;
    };
    let only = set("FATBIN_BENCH_ONLY");
    let does = |what: &str| only.as_deref().is_none_or(|only| only == what);
    let tool = set("FATBIN_BENCH_CUOBJDUMP").filter(|_| only.is_none());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    if does("list") {
        let times: Vec<Duration> = (0..if only.is_some() { 1 } else { RUNS }).map(|_| list(&path).0).collect();
        let images = list(&path).1;
        report("list", &times, &format!("{images} images"));
        if let Some(time) = tool.as_ref().map(|tool| run(tool, "-lelf", &path)) {
            compare("cuobjdump -lelf", time, &times);
        }
    }
    if does("deep") {
        // Taken in turns, so that what else the machine does falls on both alike.
        let (mut ours, mut theirs, mut kernels) = (Vec::new(), Vec::new(), 0);
        for _ in 0..if only.is_some() { 1 } else { TURNS } {
            let (time, count) = deep(&path, threads);
            ours.push(time);
            kernels = count;
            theirs.extend(tool.as_ref().map(|tool| run(tool, "-res-usage", &path)));
        }
        report("deep", &ours, &format!("{kernels} kernels, {threads} threads"));
        if !theirs.is_empty() {
            compare("cuobjdump -res-usage", median(&theirs), &ours);
        }
    }
}

fn list(path: &str) -> (Duration, usize) {
    let start = Instant::now();
    let file = fs_err::File::open(path).expect("the file opens");
    let listing = fatbin::list(file.file(), &Options::default()).expect("the file lists");
    (start.elapsed(), listing.images().count())
}

fn deep(path: &str, threads: usize) -> (Duration, usize) {
    let start = Instant::now();
    let file = fs_err::File::open(path).expect("the file opens");
    let listing = fatbin::list(file.file(), &Options::default()).expect("the file lists");
    let inspections = fatbin::inspect_all(file.file(), &listing.entries, Limits::default(), threads);
    let kernels = inspections.iter().flatten().map(|inspection| match &inspection.contents {
        Contents::Cubin(cubin) => cubin.kernels.len(),
        _ => 0,
    });
    (start.elapsed(), kernels.sum())
}

/// The tool, writing to nowhere.
fn run(tool: &str, option: &str, path: &str) -> Duration {
    let start = Instant::now();
    let status = Command::new(tool).args([option, path]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "{tool} {option} {path} fails");
    start.elapsed()
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

fn report(name: &str, times: &[Duration], what: &str) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let fastest = times.iter().min().copied().unwrap_or_default();
    println!("{name}: median {:.1} ms, fastest {:.1} ms ({what})", ms(median(times)), ms(fastest));
}

fn compare(name: &str, theirs: Duration, ours: &[Duration]) {
    let factor = theirs.as_secs_f64() / median(ours).as_secs_f64();
    println!("{name}: {:.2} s, {factor:.1} times as long", theirs.as_secs_f64());
}
