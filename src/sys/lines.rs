//! Runs a program whose error stream is its progress report, a line at a time.
//!
//! For installers, which take minutes and say what they do. The child stays in our process group, so that Ctrl-C
//! stops both; where signals are deferred, it is stopped by us. Compilers are not run here: `build` has its own, richer
//! streaming.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::domain::command::CommandSpec;

use super::clock::Stopwatch;
use super::{lock::Lock, process, signals};

/// How much of the error stream is kept for a report.
const KEPT_LINES: usize = 400;
/// How long the child may take to end after a polite signal.
const GRACE: Duration = Duration::from_secs(3);

/// What the program left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Exit status, as the system gave it.
    pub status: ExitStatus,
    /// Standard output, lossily as UTF-8.
    pub stdout: String,
    /// The last lines of the error stream.
    pub stderr: Vec<String>,
}

/// Runs `spec` to its end and hands every line of its error stream to `on_line`. The child shares `lock`, so that the
/// lock outlives us where the child does.
pub fn run(spec: &CommandSpec, lock: Option<&Lock>, mut on_line: impl FnMut(&str)) -> io::Result<Finished> {
    let mut command = process::command(spec);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(lock) = lock {
        command.stdin(Stdio::from(lock.handle()?));
    }
    let mut child = command.spawn()?;
    let output = child.stdout.take().map(|mut stream| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // A broken pipe ends the text early; what was read still counts.
            let _ = stream.read_to_end(&mut bytes);
            bytes
        })
    });
    let stream = child.stderr.take();
    let child = Mutex::new(child);
    let (stderr, status) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| stop_when_asked(&child));
        let stderr = read(stream, &mut on_line);
        let status = end(&child);
        watcher.thread().unpark();
        (stderr, status)
    });
    let stdout = output.and_then(|thread| thread.join().ok()).unwrap_or_default();
    Ok(Finished { status: status?, stdout: String::from_utf8_lossy(&stdout).into_owned(), stderr: stderr? })
}

/// Hands on every line; gives back the last ones.
fn read(stream: Option<ChildStderr>, on_line: &mut impl FnMut(&str)) -> io::Result<Vec<String>> {
    let mut kept = std::collections::VecDeque::new();
    let Some(stream) = stream else { return Ok(Vec::new()) };
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        on_line(&text);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(text);
    }
    Ok(kept.into())
}

/// Whether the child has ended. Nobody else waits for it, so its number is its own until then.
fn ended(child: &Mutex<Child>) -> io::Result<Option<ExitStatus>> {
    child.lock().unwrap_or_else(PoisonError::into_inner).try_wait()
}

fn end(child: &Mutex<Child>) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = ended(child)? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Asks the child to stop once a deferred signal has come, and kills it when it does not.
fn stop_when_asked(child: &Mutex<Child>) {
    let mut asked: Option<Stopwatch> = None;
    loop {
        {
            let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            match &asked {
                None if signals::caught() => {
                    asked = Some(Stopwatch::start());
                    let _ = number.map(|number| kill_process(number, Signal::TERM));
                }
                Some(since) if since.elapsed() > GRACE => drop(child.kill()),
                _ => {}
            }
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_in_order_and_both_streams_are_kept() {
        let spec = CommandSpec::new("/bin/sh", "/").args(["-c", "echo one >&2; echo out; echo two >&2; exit 4"]);
        let mut seen = Vec::new();
        let finished = run(&spec, None, |line| seen.push(line.to_owned())).unwrap();
        assert_eq!(seen, ["one", "two"]);
        assert_eq!((finished.stdout.as_str(), finished.status.code()), ("out\n", Some(4)));
    }
}
