//! The compiler stand-in: cuwright under a compiler's name.
//!
//! Invariant: whatever happens here, the real compiler runs with the arguments as they came, and its streams, exit code
//! and signal are this process's own. Nothing is set up before it is known that a slot is needed.
//!
//! ```text
//! <root>/<kind>/<name>        this program, called as `name`
//! <root>/real/<kind>/<name>   link to the tool that it stands for
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use super::call::{self, Call, Kind};
use super::message::{Answer, Ask, receive, send};
use super::{NAME, ninja, socket};
use crate::sys::env_vars::{CUWRIGHT_LAUNCHER, CUWRIGHT_SLOT};
use crate::sys::exec::{self, Event, Held, Usage, Watch};
use crate::sys::processes;

/// Variables that make and cargo set for what they start.
const TOKEN_HOLDERS: [&str; 2] = ["MAKELEVEL", "CARGO_MANIFEST_DIR"];
/// Code of a call whose build has ended, or whose compiler cannot be started.
const FAILED: u8 = 127;

/// Does a stand-in's work, if this process was started as one.
pub fn run() -> Option<ExitCode> {
    let invoked = exec::invoked_as();
    let name = invoked.file_name()?.to_str()?;
    // Every ordinary start ends here.
    if name == "cuwright" {
        return None;
    }
    let mut arguments = exec::arguments();
    let named = |arguments: &mut Vec<OsString>| (!arguments.is_empty()).then(|| PathBuf::from(arguments.remove(0)));
    let program = match name {
        NAME => named(&mut arguments)?,
        super::START => {
            exec::die_with_parent();
            let program = named(&mut arguments)?;
            return Some(become_it(&program, &arguments));
        }
        super::APART => {
            let program = named(&mut arguments)?;
            return Some(apart(&program, &arguments));
        }
        _ => real(&invoked)?,
    };
    let root = exec::variable(CUWRIGHT_LAUNCHER).filter(|_| exec::variable(CUWRIGHT_SLOT).is_none());
    let Some(root) = root.map(PathBuf::from) else { return Some(become_it(&program, &arguments)) };
    if name == "ninja" {
        let arguments = ninja::widened(&arguments, &root);
        return Some(become_it(&program, &arguments));
    }
    Some(compile(&program, &arguments, &root))
}

/// The tool behind `<root>/<kind>/<name>`.
fn real(invoked: &Path) -> Option<PathBuf> {
    let (folder, name) = (invoked.parent()?, invoked.file_name()?);
    fs_err::read_link(folder.parent()?.join("real").join(folder.file_name()?).join(name)).ok()
}

fn become_it(program: &Path, arguments: &[OsString]) -> ExitCode {
    let error = exec::replace(program, arguments);
    complain(&format!("{}: {error}", program.display()));
    ExitCode::from(FAILED)
}

/// The arguments as text, and what they ask for.
fn understood(arguments: &[OsString]) -> (Vec<String>, Call) {
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let call = call::read(&words, |file| fs_err::read_to_string(file).ok());
    (words, call)
}

fn compile(program: &Path, arguments: &[OsString], root: &Path) -> ExitCode {
    let (words, call) = understood(arguments);
    if call.kind == Kind::Pass {
        return become_it(program, arguments);
    }
    let stream = match socket::connect(root) {
        Ok(stream) => stream,
        // Somebody listened there and does no more: the build this call belongs to was killed.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return ended(),
        Err(_) => return become_it(program, arguments),
    };
    let tool = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let cwd = exec::current_dir().to_string_lossy().into_owned();
    let pid = rustix::process::getpid().as_raw_pid();
    let mut coordinator = Coordinator { reader: BufReader::new(stream), apart: false };
    let covered = TOKEN_HOLDERS.into_iter().any(|name| exec::variable(name).is_some());
    coordinator.say(&Ask::Call { pid, tool, cwd, covered, arguments: words });
    coordinator.follow(program, arguments, &call.subject, root)
}

/// Goes on with a call whose caller was told that all went well.
fn apart(program: &Path, arguments: &[OsString]) -> ExitCode {
    let Ok(stream) = exec::handed_over() else { return ended() };
    let subject = understood(arguments).1.subject;
    let mut coordinator = Coordinator { reader: BufReader::new(stream), apart: true };
    coordinator.say(&Ask::Apart { pid: rustix::process::getpid().as_raw_pid() });
    coordinator.follow(program, arguments, &subject, Path::new(""))
}

/// The other end, which may go away at any time.
struct Coordinator {
    reader: BufReader<UnixStream>,
    /// Whether the caller has been told already that all went well.
    apart: bool,
}

impl Coordinator {
    fn say(&mut self, ask: &Ask) {
        // One that is gone shows itself at the next read.
        let _ = send(self.reader.get_mut(), ask);
    }

    /// Runs the compiler as often as it is told to.
    fn follow(mut self, program: &Path, arguments: &[OsString], subject: &str, root: &Path) -> ExitCode {
        let mut arguments = arguments.to_vec();
        let mut answer = receive(&mut self.reader);
        loop {
            match answer {
                Some(Answer::Run { alone: false }) => {}
                Some(Answer::Run { alone: true }) => {
                    narrow(&mut arguments);
                    complain(&format!("{subject}: the compiler was killed, as when memory is short; once more, alone"));
                }
                Some(Answer::Ahead) => {
                    if self.hand_over(program, &arguments, root).is_ok() {
                        return ExitCode::SUCCESS;
                    }
                    self.say(&Ask::Here);
                    answer = receive(&mut self.reader);
                    continue;
                }
                Some(Answer::Failed { source }) => {
                    if !self.apart {
                        complain(&format!(
                            "{subject} is not made, because {source} failed to compile; see its errors above"
                        ));
                    }
                    return ExitCode::FAILURE;
                }
                Some(Answer::End) | None => return ended(),
            }
            let Attempt { status, usage, starved, words } = match self.attempt(program, &arguments) {
                Ok(Some(attempt)) => attempt,
                Ok(None) => return ended(),
                Err(error) => {
                    complain(&format!("{}: {error}", program.display()));
                    return ExitCode::from(FAILED);
                }
            };
            let number = status.code().unwrap_or_else(|| -status.signal().unwrap_or(1));
            self.say(&Ask::Ended { status: number, user: usage.user, system: usage.system, starved });
            if starved {
                answer = receive(&mut self.reader);
                // What the killed attempt said is void.
                if let Some(Answer::Run { .. }) = answer {
                    continue;
                }
            }
            pass_on(words);
            return leave(status);
        }
    }

    /// Starts a copy of this process that goes on with the call.
    fn hand_over(&self, program: &Path, arguments: &[OsString], root: &Path) -> io::Result<()> {
        let words: Vec<OsString> =
            [program.as_os_str().to_owned()].into_iter().chain(arguments.iter().cloned()).collect();
        exec::hand_over(&root.join("bin").join(super::APART), &words, self.reader.get_ref())
    }

    /// One run of the compiler; nothing where the coordinator went away and the compiler was stopped.
    fn attempt(&mut self, program: &Path, arguments: &[OsString]) -> io::Result<Option<Attempt>> {
        let watch = Watch::begin()?;
        let held = Held::start(program, arguments, &[(CUWRIGHT_SLOT, "1".to_owned())], self.apart)?;
        self.say(&Ask::Started { pid: held.pid() });
        while !held.ended() {
            match watch.wait(self.reader.get_ref())? {
                Event::Child => {}
                Event::Signal(number) => held.signal(number),
                Event::Gone => {
                    processes::kill_tree(held.pid());
                    held.finish()?;
                    return Ok(None);
                }
            }
        }
        let (status, usage, mut words) = held.finish()?;
        let starved = status.signal() == Some(KILL) || status.code() == Some(128 + KILL) || told_of_kill(&mut words);
        Ok(Some(Attempt { status, usage, starved: starved && !status.success(), words }))
    }
}

const KILL: i32 = 9;

struct Attempt {
    status: ExitStatus,
    usage: Usage,
    starved: bool,
    words: Option<File>,
}

/// Whether a driver says that one of its parts was killed: nvcc, gcc and clang have their own words for it.
fn told_of_kill(words: &mut Option<File>) -> bool {
    const MARKS: [&str; 3] =
        ["died due to signal 9", "Killed signal terminated program", "due to signal (use -v to see"];
    let Some(file) = words else { return false };
    let mut text = Vec::new();
    // The end is enough, and a torrent of errors is no reason to hold it twice.
    let length = file.seek(SeekFrom::End(0)).unwrap_or_default();
    let _ = file.seek(SeekFrom::Start(length.saturating_sub(1 << 16)));
    let _ = file.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    MARKS.iter().any(|mark| text.contains(mark))
}

/// Writes what the compiler said to where it would have said it.
fn pass_on(words: Option<File>) {
    if let Some(mut words) = words {
        let _ = words.rewind();
        let _ = io::copy(&mut words, &mut io::stderr().lock());
    }
}

/// Ends as the compiler did.
fn leave(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        exec::die_by(signal);
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
}

/// nvcc with one thread instead of several.
fn narrow(arguments: &mut [OsString]) {
    let mut next = false;
    for argument in arguments {
        let word = argument.to_string_lossy().into_owned();
        if std::mem::take(&mut next) {
            *argument = "1".into();
        } else if matches!(word.as_str(), "-t" | "--threads" | "-split-compile" | "--split-compile") {
            next = true;
        } else if let Some((name @ ("-t" | "--threads" | "-split-compile" | "--split-compile"), _)) =
            word.split_once('=')
        {
            *argument = format!("{name}=1").into();
        }
    }
}

fn ended() -> ExitCode {
    complain("the build that this compiler call belongs to has ended");
    ExitCode::from(FAILED)
}

fn complain(text: &str) {
    // Where even this cannot be written, the exit code has to do.
    let _ = writeln!(io::stderr(), "cuwright: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_attempt_has_one_thread() {
        let mut words: Vec<OsString> = ["-c", "a.cu", "--threads", "4", "-t=8", "-o", "x"].map(OsString::from).to_vec();
        narrow(&mut words);
        assert_eq!(words, ["-c", "a.cu", "--threads", "1", "-t=1", "-o", "x"].map(OsString::from));
    }
}
