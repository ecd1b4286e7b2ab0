//! For a program that stands in for another: how it was called, and running the other one in its place.
//!
//! Here the environment and the streams are inherited as they are, which is the point; everything else in cuwright names
//! both and goes through `process`. Nothing is read or parsed that need not be: this is on the path of every compiler.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::Utf8PathBuf;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// The path this process was started by, links kept: what was found on the `PATH`, not what the caller typed.
pub fn invoked_as() -> PathBuf {
    PathBuf::from(OsStr::from_bytes(rustix::param::linux_execfn().to_bytes()))
}

/// The arguments after the program, untouched.
pub fn arguments() -> Vec<OsString> {
    std::env::args_os().skip(1).collect()
}

/// One variable of the process environment.
#[expect(clippy::disallowed_methods, reason = "a stand-in captures no environment: it hands its own on")]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The working folder, if it has a name.
#[expect(clippy::disallowed_methods, reason = "a stand-in captures no environment: it hands its own on")]
pub fn current_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "the environment and streams of a stand-in are inherited on purpose")]
fn command(program: &Path, arguments: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// This program's own file; `None` where it is gone.
pub fn own_path() -> Option<Utf8PathBuf> {
    let path = Utf8PathBuf::from_path_buf(fs_err::read_link("/proc/self/exe").ok()?).ok()?;
    path.is_file().then_some(path)
}

/// The process at the other end of a Unix socket, in our own numbering.
pub fn peer(stream: &UnixStream) -> Option<i32> {
    let credentials = rustix::net::sockopt::socket_peercred(stream).ok()?;
    Some(credentials.pid.as_raw_pid()).filter(|pid| *pid > 0)
}

/// Becomes `program`. Comes back only where that failed.
pub fn replace(program: &Path, arguments: &[OsString]) -> io::Error {
    command(program, arguments).exec()
}

/// Starts `program` with `socket` as its input, and leaves it to itself.
pub fn hand_over(program: &Path, arguments: &[OsString], socket: &UnixStream) -> io::Result<()> {
    command(program, arguments).stdin(OwnedFd::from(socket.try_clone()?)).spawn().map(drop)
}

/// The socket that came as this process's input.
pub fn handed_over() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Asks the system to kill this process when its parent dies; kept across [`replace`].
pub fn die_with_parent() {
    // Without it, a build outlives a cuwright that was killed, until its next compiler call.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}

/// A child whose words are kept until it has ended, so that a failed attempt can be taken back.
#[derive(Debug)]
pub struct Held {
    child: Child,
    words: Option<std::fs::File>,
}

/// What a child used, in milliseconds of processor time, with everything it started and waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// In user mode.
    pub user: u64,
    /// In the system.
    pub system: u64,
}

impl Held {
    /// Starts `program` with `extra` variables. Its error stream is held back unless that is a terminal, and its
    /// output too where both go to the same place, so that their order is kept.
    /// One that runs `apart` gets no input: the caller's is not its own.
    pub fn start(program: &Path, arguments: &[OsString], extra: &[(&str, String)], apart: bool) -> io::Result<Self> {
        let mut command = command(program, arguments);
        if apart {
            command.stdin(Stdio::null());
        }
        command.envs(extra.iter().map(|(name, value)| (name, value)));
        let words = if io::IsTerminal::is_terminal(&io::stderr()) { None } else { buffer() };
        if let Some(words) = &words {
            command.stderr(Stdio::from(words.try_clone()?));
            if same_place() {
                command.stdout(Stdio::from(words.try_clone()?));
            }
        }
        Ok(Self { child: command.spawn()?, words })
    }

    /// The child's process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or_default()
    }

    /// Whether it has ended. It stays there to be asked about until [`Held::finish`].
    pub fn ended(&self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid()) else { return true };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
    }

    /// Sends it a signal.
    pub fn signal(&self, number: i32) {
        if let (Some(pid), Some(signal)) = (Pid::from_raw(self.pid()), Signal::from_named_raw(number)) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Waits for its end: how it ended, what it used, what it said.
    pub fn finish(mut self) -> io::Result<(std::process::ExitStatus, Usage, Option<std::fs::File>)> {
        if let Some(pid) = Pid::from_raw(self.pid()) {
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        }
        let usage = usage(self.pid()).unwrap_or_default();
        Ok((self.child.wait()?, usage, self.words))
    }
}

/// Memory rather than a file: what a compiler says is short, and a full disk must not silence it.
fn buffer() -> Option<std::fs::File> {
    memfd_create("cuwright", MemfdFlags::CLOEXEC).ok().map(std::fs::File::from)
}

fn same_place() -> bool {
    let stat = |fd: std::os::fd::BorrowedFd<'_>| rustix::fs::fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino));
    let (out, err) = (stat(io::stdout().as_fd()), stat(io::stderr().as_fd()));
    out.is_some() && out == err
}

/// Reads a process that has ended and was not yet waited for.
fn usage(pid: i32) -> Option<Usage> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // utime, stime, and those of the children it waited for.
    let milliseconds =
        |own: usize, children: usize| Some((ticks(own)? + ticks(children)?) * 1000 / super::processes::TICKS);
    Some(Usage { user: milliseconds(11, 13)?, system: milliseconds(12, 14)? })
}

/// What woke a [`Watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A child may have ended.
    Child,
    /// This signal came, and is for the child.
    Signal(i32),
    /// The other end of the socket was closed.
    Gone,
}

/// Signals that a stand-in hands to its compiler.
const HANDED_ON: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

/// Waits for the end of a child, for signals and for a socket at once.
#[derive(Debug)]
pub struct Watch {
    woken: UnixStream,
    came: Vec<(i32, Arc<AtomicBool>)>,
}

impl Watch {
    /// Begins to listen. From here on the signals of a terminal do not end this process.
    pub fn begin() -> io::Result<Self> {
        let (woken, wake) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let mut came = Vec::new();
        pipe::register(SIGCHLD, wake.try_clone()?)?;
        let ignored = super::signals::ignored();
        // One that was ignored at the start stays ignored, for the compiler too.
        for signal in HANDED_ON.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0) {
            let flag = Arc::new(AtomicBool::new(false));
            flag::register(signal, Arc::clone(&flag))?;
            pipe::register(signal, wake.try_clone()?)?;
            came.push((signal, flag));
        }
        Ok(Self { woken, came })
    }

    /// Waits for the next event; nobody may write to `socket` meanwhile.
    pub fn wait(&self, socket: &UnixStream) -> io::Result<Event> {
        loop {
            for (signal, flag) in &self.came {
                if flag.swap(false, Ordering::SeqCst) {
                    return Ok(Event::Signal(*signal));
                }
            }
            let mut fds = [PollFd::new(&self.woken, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if !fds[1].revents().is_empty() {
                return Ok(Event::Gone);
            }
            let mut bytes = [0; 64];
            let _ = (&self.woken).read(&mut bytes);
            if self.came.iter().all(|(_, flag)| !flag.load(Ordering::SeqCst)) {
                return Ok(Event::Child);
            }
        }
    }
}

/// Dies by `signal`, so that the parent sees the same end as ours saw. Leaves no core: the compiler left its own.
pub fn die_by(signal: i32) {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    // Signals without a handler of ours have their default action already.
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
    }
}
