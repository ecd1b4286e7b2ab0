//! Short probes: run a program to its end, capture what it says, give up after a time.
//!
//! Long builds live in `build`, which streams. Both take a `CommandSpec`, so that folder and environment are always
//! chosen and never inherited by accident.

use std::io::{Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::clock::Stopwatch;
use crate::domain::command::CommandSpec;

/// What a probe said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Exit status, as the system gave it.
    pub status: ExitStatus,
    /// Standard output, lossily as UTF-8.
    pub stdout: String,
    /// Standard error, lossily as UTF-8.
    pub stderr: String,
}

impl Captured {
    /// Standard error, else standard output, cut to its last `lines` lines.
    pub fn tail(&self, lines: usize) -> String {
        let text = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let all: Vec<&str> = text.trim_end().lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// Why a program gave no answer.
#[derive(Debug)]
pub enum ProcessError {
    /// It could not be started.
    Start(std::io::Error),
    /// It was still running after this long and was killed.
    Timeout(Duration),
}

impl std::fmt::Display for ProcessError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start(error) => write!(f, "could not be started: {error}"),
            Self::Timeout(limit) => write!(f, "gave no answer within {} s and was killed", limit.as_secs()),
        }
    }
}

/// A `std` command with exactly the program, arguments, folder and environment of `spec`, and no standard input.
#[expect(clippy::disallowed_methods, reason = "this is where processes are made")]
pub fn command(spec: &CommandSpec) -> Command {
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).env_clear().envs(&spec.env).current_dir(&spec.cwd).stdin(Stdio::null());
    command
}

/// Runs `spec` to its end and captures both streams; kills it with all its children after `limit`.
pub fn capture(spec: &CommandSpec, limit: Duration) -> Result<Captured, ProcessError> {
    start(spec, Stdio::null())?.finish(None, limit)
}

/// Starts `spec` so that [`Started::finish`] can give it its input later.
pub fn start_waiting(spec: &CommandSpec) -> Result<Started, ProcessError> {
    start(spec, Stdio::piped())
}

fn start(spec: &CommandSpec, stdin: Stdio) -> Result<Started, ProcessError> {
    let mut child = command(spec)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(ProcessError::Start)?;
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    Ok(Started { child, stdout, stderr })
}

/// A running probe. Dropping it kills it with all its children.
#[derive(Debug)]
pub struct Started {
    child: Child,
    stdout: Drain,
    stderr: Drain,
}

impl Started {
    /// Writes `input`, waits for the end, and captures both streams; kills after `limit`.
    pub fn finish(mut self, input: Option<&str>, limit: Duration) -> Result<Captured, ProcessError> {
        let watch = Stopwatch::start();
        if let (Some(mut stdin), Some(input)) = (self.child.stdin.take(), input) {
            // A process that has ended does not read; its status and words tell why.
            let _ = stdin.write_all(input.as_bytes());
        }
        let mut pause = Duration::from_millis(1);
        let status = loop {
            if let Some(status) = self.child.try_wait().map_err(ProcessError::Start)? {
                break status;
            }
            if watch.elapsed() > limit {
                return Err(ProcessError::Timeout(limit));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        Ok(Captured { status, stdout: collect(self.stdout.take()), stderr: collect(self.stderr.take()) })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            kill_group(&mut self.child);
        }
    }
}

type Drain = Option<std::thread::JoinHandle<Vec<u8>>>;

fn drain<R: Read + Send + 'static>(stream: Option<R>) -> Drain {
    stream.map(|mut stream| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // A broken pipe ends the text early; what was read is still worth showing.
            let _ = stream.read_to_end(&mut bytes);
            bytes
        })
    })
}

fn collect(drain: Drain) -> String {
    let bytes = drain.and_then(|thread| thread.join().ok()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Kills a child that leads its own process group, and everything it started.
fn kill_group(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> CommandSpec {
        CommandSpec::new("/bin/sh", "/").args(["-c", script])
    }

    #[test]
    fn both_streams_and_the_status_come_back() {
        let got = capture(&sh("echo out; echo err >&2; exit 3"), Duration::from_secs(5)).unwrap();
        assert_eq!((got.stdout.as_str(), got.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(got.status.code(), Some(3));
    }

    #[test]
    fn a_hanging_probe_is_killed_with_its_children() {
        let got = capture(&sh("sleep 60 & wait"), Duration::from_millis(100));
        assert!(matches!(got, Err(ProcessError::Timeout(_))));
    }

    #[test]
    fn input_may_come_later() {
        let waiting = start_waiting(&sh("read line; echo got $line")).unwrap();
        assert_eq!(waiting.finish(Some("it\n"), Duration::from_secs(5)).unwrap().stdout, "got it\n");
        drop(start_waiting(&sh("sleep 60")).unwrap());
    }

    #[test]
    fn the_environment_is_exactly_what_was_given() {
        let mut spec = CommandSpec::new("/usr/bin/env", "/");
        spec.env.insert("ONLY".into(), "1".into());
        assert_eq!(capture(&spec, Duration::from_secs(5)).unwrap().stdout, "ONLY=1\n");
    }
}
