//! One build at the coordinator: listens to its stand-ins, guesses what each call will need, keeps what each took.

use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use camino::Utf8PathBuf;
use globset::GlobMatcher;

use super::book::UnitState;
use super::coordinator::{Coordinator, Shared};
use super::costs::Costs;
use super::jobserver::{self, Jobserver};
use super::message::{Ask, receive};
use super::place::Placement;
use super::socket;
use crate::report::timeline::Timeline;
use crate::sys::clock::Stopwatch;
use crate::sys::processes;

/// How long the end of a build waits for what its stand-ins have said.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a build tells about itself.
#[derive(Debug)]
pub struct UnitSpec {
    /// The launcher's folder.
    pub root: Utf8PathBuf,
    /// The source tree.
    pub source: Utf8PathBuf,
    /// What is known from earlier builds.
    pub costs: Costs,
    /// Bytes that a compiler needs where nothing better is known.
    pub memory: u64,
    /// Bytes for sources that the recipe names.
    pub heavy: Vec<(GlobMatcher, u64)>,
    /// Whether the build starts one compiler after another, which may then run ahead of it.
    pub ahead: bool,
}

/// A build that the coordinator serves.
#[derive(Debug)]
pub struct Unit {
    shared: Arc<Shared>,
    number: usize,
    /// The socket itself, to wake who listens at it.
    socket: UnixListener,
    listener: Option<JoinHandle<()>>,
}

/// A compiler at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Working {
    /// Its source.
    pub source: String,
    /// Seconds since it began.
    pub seconds: u64,
    /// Bytes it holds.
    pub memory: u64,
}

/// How a build stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Compilers at work, the oldest first.
    pub working: Vec<Working>,
    /// Calls that wait for room.
    pub waiting: usize,
    /// Calls that ended.
    pub done: usize,
}

/// What a build leaves behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finished {
    /// Everything that ran.
    pub timeline: Timeline,
    /// What is now known of its sources.
    pub costs: Costs,
}

impl Coordinator {
    /// Begins to serve a build.
    pub fn unit(&self, spec: UnitSpec) -> io::Result<Unit> {
        let listener = socket::listen(spec.root.as_std_path())?;
        let socket = listener.try_clone()?;
        let shared = Arc::clone(&self.shared);
        let number = {
            let mut state = shared.lock();
            // One pipe for all builds, under a name in the folder of each.
            let (path, cores) = (spec.root.join(jobserver::NAME), state.cores());
            match state.units.values().next().map(|unit| unit.root.join(jobserver::NAME)) {
                Some(other) => drop(fs_err::hard_link(other, path)),
                None => state.jobserver = Jobserver::make(&path, cores).ok(),
            }
            let number = state.units.keys().next_back().map_or(0, |last| last + 1);
            state.units.insert(number, UnitState::new(spec, shared.now()));
            number
        };
        let thread = std::thread::Builder::new().name("launcher".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || accept(&shared, number, &listener)
        })?;
        Ok(Unit { shared, number, socket, listener: Some(thread) })
    }
}

impl Unit {
    /// The value of `MAKEFLAGS` by which tools below the build share the limit; nothing where there is no such pipe.
    pub fn make_flags(&self, placement: &Placement) -> Option<String> {
        let cores = self.shared.lock().cores();
        let path = placement.root().join(jobserver::NAME);
        path.exists().then(|| jobserver::flags(&path, cores))
    }

    /// How it stands now.
    pub fn status(&self) -> Status {
        let (state, now) = (self.shared.lock(), self.shared.now());
        let own = || state.active.values().filter(|active| active.unit == self.number);
        let mut working: Vec<Working> = own()
            .filter(|active| active.running)
            .map(|active| Working {
                source: active.call.source.clone(),
                seconds: now.saturating_sub(active.call.began) / 1000,
                memory: active.used,
            })
            .collect();
        working.sort_by_key(|working| std::cmp::Reverse(working.seconds));
        let done = state.units.get(&self.number).map_or(0, |unit| unit.timeline.calls.len());
        Status { waiting: own().count() - working.len(), working, done }
    }

    /// Stops serving: stand-ins that are still there stop their compilers and end.
    pub fn finish(mut self) -> Finished {
        self.close();
        let mut state = self.shared.lock();
        let cores = state.cores();
        let Some(mut unit) = state.units.remove(&self.number) else { return Finished::default() };
        unit.timeline.cores = cores;
        unit.costs.learn(&unit.timeline.calls);
        Finished { timeline: unit.timeline, costs: unit.costs }
    }

    fn close(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        let _ = listener.join();
        let mut state = self.shared.lock();
        for active in state.active.values().filter(|active| active.unit == self.number) {
            let _ = active.stream.shutdown(Shutdown::Both);
        }
        // What a stand-in said last may still lie in its socket: a connection ends when that is read.
        let watch = Stopwatch::start();
        while state.active.values().any(|active| active.unit == self.number) && watch.elapsed() < PATIENCE {
            let woken = self.shared.woken.wait_timeout(state, Duration::from_millis(20));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        self.close();
    }
}

fn accept(shared: &Arc<Shared>, unit: usize, listener: &UnixListener) {
    for stream in listener.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            // The unit is closed.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            Err(_) => {
                // Out of descriptors, most likely; the stand-in waits in the queue meanwhile.
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
        };
        let shared = Arc::clone(shared);
        let serve = move || serve(&shared, unit, stream);
        // Without a thread the connection closes, and the stand-in says that there is no build.
        let _ = std::thread::Builder::new().name("stand-in".to_owned()).stack_size(256 << 10).spawn(serve);
    }
}

/// Follows one stand-in to its end.
fn serve(shared: &Shared, unit: usize, stream: UnixStream) {
    let Ok(answers) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    let id = match receive(&mut reader) {
        Some(Ask::Crowd { calls }) => {
            let now = shared.now();
            if let Some(unit) = shared.lock().units.get_mut(&unit) {
                unit.expect(calls, now);
            }
            return;
        }
        Some(Ask::Call { tool, cwd, covered, arguments, .. }) => {
            let (now, mut state) = (shared.now(), shared.lock());
            let id = state.begin(unit, answers, now, &tool, &cwd, &arguments);
            if let Some(active) = id.and_then(|id| state.active.get_mut(&id)) {
                active.covered = covered;
            }
            state.settle(now);
            shared.woken.notify_all();
            match id {
                Some(id) => id,
                None => return,
            }
        }
        _ => return,
    };
    while let Some(ask) = receive(&mut reader) {
        let (now, mut state) = (shared.now(), shared.lock());
        match ask {
            Ask::Started { pid } => state.started(id, pid),
            Ask::Apart { pid } => {
                state.apart(id, pid);
                state.settle(now);
            }
            Ask::Here => {
                state.not_apart(id);
                state.settle(now);
            }
            Ask::Ended { status, user, system, starved } => {
                if state.ended(id, now, (status, user, system, starved)) {
                    break;
                }
            }
            Ask::Call { .. } | Ask::Crowd { .. } => break,
        }
        shared.woken.notify_all();
    }
    let child = {
        let mut state = shared.lock();
        let child = state.left(id);
        state.settle(shared.now());
        child
    };
    shared.woken.notify_all();
    // The stand-in was killed, and its compiler works for nobody.
    if let Some(child) = child {
        processes::kill_tree(child);
    }
}
