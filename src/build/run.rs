//! One build process from start to end: its output to the log and to the caller, its group killed as a whole.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use camino::Utf8Path;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::ninja;
use crate::domain::command::CommandSpec;
use crate::sys::clock::Stopwatch;
use crate::sys::processes::{self, Process};
use crate::sys::{process, signals};

/// How a build ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The process ended by itself.
    Exited(ExitStatus),
    /// We were asked to stop, and stopped it.
    Interrupted,
}

/// What the caller is told while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening<'a> {
    /// A line of output, without its end.
    Line(&'a str),
    /// A second has passed.
    Tick {
        /// Seconds since the start.
        seconds: u64,
    },
}

/// Why a build could not be run at all.
#[derive(Debug)]
pub enum RunError {
    /// The program could not be started.
    Start(std::io::Error),
    /// The log could not be written.
    Log(std::io::Error),
    /// The runtime or a pipe failed.
    System(std::io::Error),
}

/// Longest line kept whole; a longer one is cut for the caller but not in the log.
const LINE_LIMIT: usize = 1 << 18;
/// How long a group may take to end after a polite signal.
const GRACE: Duration = Duration::from_secs(3);

/// Runs `spec`, all of whose processes work below `folder`, with both streams added to `log`, telling `tell` about every
/// line and every second.
pub fn run(
    spec: &CommandSpec,
    folder: &Utf8Path,
    log: &Utf8Path,
    tell: impl FnMut(Happening<'_>),
) -> Result<(Ending, Duration), RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::System)?;
    runtime.block_on(drive(spec, folder, log, tell))
}

async fn drive(
    spec: &CommandSpec,
    folder: &Utf8Path,
    log: &Utf8Path,
    mut tell: impl FnMut(Happening<'_>),
) -> Result<(Ending, Duration), RunError> {
    let mut log = fs_err::OpenOptions::new().append(true).create(true).open(log).map_err(RunError::Log)?;
    writeln!(log, "$ {}", spec.command_line()).map_err(RunError::Log)?;
    // Signals first: one that comes while the process starts must not be lost.
    let mut asked = Signals::listen().map_err(RunError::System)?;
    let watch = Stopwatch::start();
    let (reader, writer) = std::io::pipe().map_err(RunError::System)?;
    let mut command = process::command(spec);
    command.stdout(writer.try_clone().map_err(RunError::System)?).stderr(writer).process_group(0);
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn().map_err(RunError::Start)?;
    let group = child.id().and_then(|id| i32::try_from(id).ok());
    let reader = Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(RunError::System)?;
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let second = Duration::from_secs(1);
    let mut ticker = tokio::time::interval_at(tokio::time::Instant::now() + second, second);
    ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut line = Vec::new();
    let mut status = None;
    let ending = loop {
        tokio::select! {
            // A piece at a time: a build may print gigabytes without a line end.
            read = reader.fill_buf() => {
                let piece = read.map_err(RunError::System)?;
                if piece.is_empty() {
                    break None;
                }
                log.write_all(piece).map_err(RunError::Log)?;
                let length = piece.len();
                for part in piece.split_inclusive(|byte| *byte == b'\n') {
                    line.extend_from_slice(&part[..part.len().min(LINE_LIMIT.saturating_sub(line.len()))]);
                    if part.ends_with(b"\n") {
                        tell(Happening::Line(text(&line).as_ref()));
                        line.clear();
                    }
                }
                reader.consume(length);
            }
            ended = child.wait(), if status.is_none() => {
                status = Some(ended.map_err(RunError::System)?);
                // Whatever still holds the pipe was left behind by the build; give it a moment to finish its words.
                ticker.reset_after(GRACE);
            }
            () = asked.any() => {
                stop(group, folder, &mut child, &mut asked).await;
                break Some(Ending::Interrupted);
            }
            _ = ticker.tick() => {
                if status.is_some() {
                    break None;
                }
                // A signal may have come before we began to listen.
                if signals::caught() {
                    stop(group, folder, &mut child, &mut asked).await;
                    break Some(Ending::Interrupted);
                }
                tell(Happening::Tick { seconds: watch.elapsed().as_secs() });
            }
        }
    };
    let elapsed = watch.elapsed();
    if !line.is_empty() {
        tell(Happening::Line(text(&line).as_ref()));
    }
    if let Some(ending) = ending {
        return Ok((ending, elapsed));
    }
    let status = match status {
        Some(status) => status,
        None => child.wait().await.map_err(RunError::System)?,
    };
    kill(group, rustix::process::Signal::KILL);
    if !status.success() {
        // ninja gives each compiler a group of its own, and one that was killed leaves them behind.
        processes::kill_working_in(folder);
    }
    Ok((Ending::Exited(status), elapsed))
}

fn text(line: &[u8]) -> std::borrow::Cow<'_, str> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line)
}

/// What goes on in a build's folder: the source that a compiler has worked on longest, with its seconds, and the memory
/// of all its processes in bytes.
pub fn look(folder: &Utf8Path) -> (Option<(String, u64)>, u64) {
    let members = processes::working_in(folder);
    (oldest_source(&members), members.iter().map(|process| process.memory).sum())
}

/// The source that some compiler among these has worked on longest, with its age in seconds.
fn oldest_source(members: &[Process]) -> Option<(String, u64)> {
    let now = processes::ticks_since_boot()?;
    let compiling = members
        .iter()
        .filter(|process| process.argv.iter().any(|word| word == "-c"))
        .filter_map(|process| Some((ninja::source_of(&process.argv)?, process.started)));
    let (source, started) = compiling.min_by_key(|(_, started)| *started)?;
    Some((source.to_owned(), now.saturating_sub(started) / processes::TICKS))
}

/// Asks politely first, so that ninja stops its own children; whatever is left after that is killed, and at once when
/// a second signal shows that somebody is in a hurry.
async fn stop(group: Option<i32>, folder: &Utf8Path, child: &mut tokio::process::Child, signals: &mut Signals) {
    kill(group, rustix::process::Signal::TERM);
    tokio::select! {
        _ = tokio::time::timeout(GRACE, child.wait()) => {}
        () = signals.any() => {}
    }
    kill(group, rustix::process::Signal::KILL);
    processes::kill_working_in(folder);
    let _ = child.wait().await;
}

fn kill(group: Option<i32>, signal: rustix::process::Signal) {
    if let Some(group) = group.and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Wakes us when a signal asks us to stop.
struct Signals(Vec<Signal>);

impl Signals {
    fn listen() -> std::io::Result<Self> {
        let one = |number: i32| signal(SignalKind::from_raw(number));
        signals::stopping().into_iter().map(one).collect::<Result<_, _>>().map(Self)
    }

    async fn any(&mut self) {
        std::future::poll_fn(|context| {
            let came = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if came { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> (Ending, Vec<String>, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let log = path.join("log");
        let mut lines = Vec::new();
        let spec = CommandSpec::new("/bin/sh", "/").args(["-c", script]);
        let (ending, _) = run(&spec, path, &log, |happening| {
            if let Happening::Line(line) = happening {
                lines.push(line.to_owned());
            }
        })
        .unwrap();
        (ending, lines, fs_err::read_to_string(log).unwrap())
    }

    #[test]
    fn both_streams_reach_the_log_and_the_caller_in_order() {
        let (ending, lines, log) = sh("echo a; echo b >&2; printf 'c\\r\\nd'; exit 3");
        assert!(matches!(ending, Ending::Exited(status) if status.code() == Some(3)));
        assert_eq!(lines, ["a", "b", "c", "d"]);
        assert!(log.ends_with("a\nb\nc\r\nd"), "{log}");
    }

    #[test]
    fn an_endless_line_is_cut_for_the_caller_and_kept_in_the_log() {
        let (_, lines, log) = sh("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end");
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [LINE_LIMIT, 3]);
        assert!(log.len() > 3_000_000);
    }

    #[test]
    fn what_a_build_leaves_behind_does_not_hold_us() {
        let watch = Stopwatch::start();
        let (ending, lines, _) = sh("sleep 30 & echo done");
        assert!(matches!(ending, Ending::Exited(status) if status.success()));
        assert_eq!(lines, ["done"]);
        assert!(watch.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_missing_program_is_told_apart() {
        let spec = CommandSpec::new("/nonexistent/program", "/");
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let log = path.join("log");
        assert!(matches!(run(&spec, path, &log, |_| {}), Err(RunError::Start(_))));
    }
}
