//! Runs a program whose error stream is its progress report, a line at a time.
//!
//! For installers, which take minutes and say what they do. The child stays in our process group, so that Ctrl-C
//! stops both; where signals are deferred it has a group of its own, which we stop. Compilers are not run here: `build`
//! has its own, richer streaming.

use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::domain::command::CommandSpec;

use super::clock::Stopwatch;
use super::{lock::Lock, process, signals};

/// How much of the error stream is kept for a report.
const KEPT_LINES: usize = 400;
/// How long the child may take to end after a polite signal.
const GRACE: Duration = Duration::from_millis(600);
/// Time between two looks for a signal.
const NAP: Duration = Duration::from_millis(50);
/// How long words may come after the end: what a child leaves behind holds its streams, and we do not wait for that.
const LAST_WORDS: Duration = Duration::from_millis(500);

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
    let apart = signals::deferred();
    if apart {
        command.process_group(0);
    }
    let mut child = command.spawn()?;
    let (output, lines) = (whole(child.stdout.take()), lines_of(child.stderr.take()));
    let mut stopper = Stopper { group: apart.then(|| Pid::from_child(&child)), asked: None };
    let mut stderr = std::collections::VecDeque::new();
    let mut status = None;
    loop {
        match lines.recv_timeout(if status.is_some() { LAST_WORDS } else { NAP }) {
            Ok(line) => {
                on_line(&line);
                if stderr.len() == KEPT_LINES {
                    stderr.pop_front();
                }
                stderr.push_back(line);
            }
            Err(_) if status.is_some() => break,
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(2)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if status.is_none() {
            stopper.look(&mut child);
            status = child.try_wait()?;
        }
    }
    stopper.end();
    let stdout = output.recv_timeout(LAST_WORDS).unwrap_or_default();
    let status = status.map_or_else(|| child.wait(), Ok)?;
    Ok(Finished { status, stdout: String::from_utf8_lossy(&stdout).into_owned(), stderr: stderr.into() })
}

/// Everything that a stream says.
fn whole<R: Read + Send + 'static>(stream: Option<R>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut stream) = stream {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // A broken pipe ends the text early; what was read still counts.
            let _ = stream.read_to_end(&mut bytes);
            let _ = sender.send(bytes);
        });
    }
    receiver
}

/// The lines of a stream as they come.
fn lines_of<R: Read + Send + 'static>(stream: Option<R>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stream) = stream {
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                    return;
                }
                line.clear();
            }
        });
    }
    receiver
}

/// Asks a child to stop once a deferred signal has come, and kills it when it does not.
struct Stopper {
    group: Option<Pid>,
    asked: Option<Stopwatch>,
}

impl Stopper {
    fn look(&mut self, child: &mut Child) {
        match &self.asked {
            None if signals::caught() => {
                self.asked = Some(Stopwatch::start());
                self.signal(Signal::TERM);
            }
            Some(since) if since.elapsed() > GRACE => {
                self.signal(Signal::KILL);
                let _ = child.kill();
            }
            _ => {}
        }
    }

    /// Whatever a stopped child has left behind goes too.
    fn end(&self) {
        if self.asked.is_some() {
            self.signal(Signal::KILL);
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
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

    #[test]
    fn what_a_child_leaves_running_does_not_hold_us() {
        let watch = Stopwatch::start();
        let spec = CommandSpec::new("/bin/sh", "/").args(["-c", "sleep 30 & echo told >&2"]);
        assert_eq!(run(&spec, None, |_| {}).unwrap().stderr, ["told"]);
        assert!(watch.elapsed() < Duration::from_secs(10));
    }
}
