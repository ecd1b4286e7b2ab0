//! Runs a program whose error stream is its progress report, a line at a time.
//!
//! For installers, which take minutes and say what they do. The child stays in our process group, so that Ctrl-C
//! stops both. Compilers are not run here: `build` has its own, richer streaming.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::process::{ExitStatus, Stdio};

use crate::domain::command::CommandSpec;

use super::{lock::Lock, process};

/// How much of the error stream is kept for a report.
const KEPT_LINES: usize = 400;

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
    let mut stderr = std::collections::VecDeque::new();
    if let Some(stream) = child.stderr.take() {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            on_line(&text);
            if stderr.len() == KEPT_LINES {
                stderr.pop_front();
            }
            stderr.push_back(text);
        }
    }
    let status = child.wait()?;
    let stdout = output.and_then(|thread| thread.join().ok()).unwrap_or_default();
    Ok(Finished { status, stdout: String::from_utf8_lossy(&stdout).into_owned(), stderr: stderr.into() })
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
