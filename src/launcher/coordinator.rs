//! Holds the one limit of all builds: lets calls in, watches their memory, remembers what they took.
//!
//! A thread for each connection (`unit`) writes down what its stand-in says, and lets in what may begin by it; one
//! thread, the pump, does so as time passes and memory changes. Invariant: a call is in `active` exactly as long as its
//! connection lives.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::ahead::Ahead;
use super::book::UnitState;
use super::jobserver::{self, Jobserver};
use super::message::{Answer, send};
use super::schedule::{Id, Schedule};

use crate::report::timeline::{Call, Sample};
use crate::sys::clock::Stopwatch;
use crate::sys::{Env, machine, processes};

/// Time between two looks at memory.
const LOOK: Duration = Duration::from_millis(250);
/// Memory that is left to everything else.
const MARGIN: u64 = 256 << 20;
/// Share of time, in percent, in which everything waited for memory, above which nothing more is let in.
const PRESSED: f64 = 30.0;

/// Milliseconds after which somebody looks whether those who took tokens still live.
const LOST: u64 = 5000;

/// What all builds together may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Compilers at once, each counted by its threads.
    pub cores: u32,
    /// Bytes of memory for compilers, where less than the machine's is wanted.
    pub memory: Option<u64>,
}

impl Limits {
    /// Bytes that may still be given away where the running calls hold `used`.
    fn free(self, used: u64, env: &Env) -> Option<u64> {
        if machine::memory_pressure().is_some_and(|pressure| pressure > PRESSED) {
            return Some(0);
        }
        let own = self.memory.map(|limit| limit.saturating_sub(used));
        let system = machine::available_memory(env).map(|bytes| bytes.saturating_sub(MARGIN));
        match (own, system) {
            (Some(own), Some(system)) => Some(own.min(system)),
            (own, system) => own.or(system),
        }
    }
}

/// Lets the compilers of all builds run within one limit.
#[derive(Debug)]
pub struct Coordinator {
    pub(super) shared: Arc<Shared>,
    pump: Option<JoinHandle<()>>,
}

impl Coordinator {
    /// Starts one; it stops when dropped, after all its units.
    pub fn start(limits: Limits, env: &Env) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::new(limits, env));
        let pump = std::thread::Builder::new().name("launcher".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.pump()
        })?;
        Ok(Self { shared, pump: Some(pump) })
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.woken.notify_all();
        if let Some(pump) = self.pump.take() {
            let _ = pump.join();
        }
    }
}

/// What keeps a call back though there may be room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// Nothing.
    No,
    /// The rest of its crowd has not come yet.
    Crowd,
    /// It links what is compiled ahead, or follows on what has failed there.
    Behind,
}

/// A call that waits or runs.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) unit: usize,
    pub(super) stream: UnixStream,
    pub(super) call: Call,
    /// The stand-in's process, as the system says.
    pub(super) stand_in: Option<i32>,
    /// The compiler's process, once it runs.
    pub(super) child: Option<i32>,
    /// Whether it was let in.
    pub(super) running: bool,
    /// Bytes it holds now.
    pub(super) used: u64,
    /// Whether it has a token of its parent's.
    pub(super) covered: bool,
    /// What it waits for beside room.
    pub(super) hold: Hold,
    /// Whether its caller was told already that all went well.
    pub(super) ahead: Ahead,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) schedule: Schedule,
    pub(super) active: BTreeMap<Id, Active>,
    pub(super) units: BTreeMap<usize, UnitState>,
    pub(super) next: Id,
    pub(super) jobserver: Option<Jobserver>,
    /// Cores that others have held by tokens since this time.
    foreign_since: Option<u64>,
    limits: Limits,
    /// Tells where control groups are.
    env: Env,
    stopped: bool,
}

#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) woken: Condvar,
    watch: Stopwatch,
}

impl Shared {
    fn new(limits: Limits, env: &Env) -> Self {
        let state = State {
            schedule: Schedule::new(limits.cores),
            active: BTreeMap::new(),
            units: BTreeMap::new(),
            next: 1,
            jobserver: None,
            foreign_since: None,
            limits,
            env: env.clone(),
            stopped: false,
        };
        Self { state: Mutex::new(state), woken: Condvar::new(), watch: Stopwatch::start() }
    }

    /// A thread that panicked leaves plain data behind, which is still the best there is.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the coordinator's start.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.watch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn pump(&self) {
        let mut looked = Stopwatch::start();
        let mut state = self.lock();
        while !state.stopped {
            let gathering = state.settle(self.now());
            let busy = state.active.values().any(|active| active.running);
            let pause = match (gathering, busy || state.schedule.waiting() > 0) {
                (true, _) => Duration::from_millis(10),
                (false, true) => LOOK.saturating_sub(looked.elapsed()),
                (false, false) => Duration::from_hours(1),
            };
            state = self.woken.wait_timeout(state, pause).map_or_else(|e| e.into_inner().0, |(state, _)| state);
            if looked.elapsed() >= LOOK {
                looked = Stopwatch::start();
                let (stand_ins, env): (Vec<(Id, i32)>, _) = (state.stand_ins(), state.env.clone());
                drop(state);
                // Reading /proc takes a while, and nobody need wait for it.
                let memory = stand_ins.into_iter().map(|(id, pid)| (id, processes::tree_memory(pid))).collect();
                let free = machine::available_memory(&env);
                state = self.lock();
                state.look(self.now(), memory, free);
            }
        }
    }
}

impl State {
    /// Lets in what may begin now; says whether a crowd is still gathering. Whoever changes what waits or runs calls it,
    /// so that no call waits for the pump to be woken first.
    pub(super) fn settle(&mut self, now: u64) -> bool {
        let gathering = self.gather(now);
        self.admit(now);
        gathering
    }

    /// Lets crowds go that are complete; says whether one is still gathering.
    fn gather(&mut self, now: u64) -> bool {
        let mut gathering = false;
        for (number, unit) in &mut self.units {
            if unit.gathering(now) {
                gathering = true;
                continue;
            }
            for (id, active) in
                self.active.iter_mut().filter(|(_, active)| active.unit == *number && active.hold == Hold::Crowd)
            {
                active.hold = Hold::No;
                self.schedule.release(*id);
            }
        }
        gathering
    }

    fn admit(&mut self, now: u64) {
        let foreign = self.balance(now);
        if self.schedule.waiting() == 0 {
            return;
        }
        let used: u64 = self.active.values().map(|active| active.used).sum();
        let (limits, env) = (self.limits, &self.env);
        for id in self.schedule.admit(|| limits.free(used, env), foreign) {
            let Some(active) = self.active.get_mut(&id) else { continue };
            active.running = true;
            active.call.attempts += 1;
            if active.call.attempts == 1 {
                active.call.began = now;
            }
            // One that is gone has closed its end, and its connection's thread will say so.
            let _ = send(&mut active.stream, &Answer::Run { alone: active.call.attempts > 1 });
        }
    }

    /// Sets the tokens by what runs, and says how many cores others hold.
    fn balance(&mut self, now: u64) -> u32 {
        let covered = self.active.values().filter(|active| active.covered).count();
        let slots = self.schedule.cores_used();
        let Some(jobserver) = &mut self.jobserver else { return 0 };
        let foreign = jobserver.balance(slots, u32::try_from(covered).unwrap_or(u32::MAX));
        if foreign == 0 {
            self.foreign_since = None;
        } else if now >= *self.foreign_since.get_or_insert(now) + LOST {
            self.foreign_since = None;
            let paths = self.units.values().map(|unit| unit.root.join(jobserver::NAME));
            if !paths.into_iter().any(|path| processes::opened_by_another(&path)) {
                jobserver.forgive();
            }
        }
        foreign
    }

    /// Cores that all builds share.
    pub(super) fn cores(&self) -> u32 {
        self.limits.cores
    }

    fn stand_ins(&self) -> Vec<(Id, i32)> {
        let running = self.active.iter().filter(|(_, active)| active.running);
        running.filter_map(|(id, active)| Some((*id, active.stand_in?))).collect()
    }

    fn look(&mut self, now: u64, memory: Vec<(Id, (u64, u64))>, free: Option<u64>) {
        for (id, (used, peak)) in memory {
            if let Some(active) = self.active.get_mut(&id) {
                active.used = used;
                active.call.peak = active.call.peak.max(peak);
                self.schedule.used(id, used);
            }
        }
        for (number, unit) in &mut self.units {
            let own = || self.active.values().filter(|active| active.unit == *number);
            let running = own().filter(|active| active.running).count();
            let used = own().map(|active| active.used).sum();
            unit.sample(Sample { at: now, used, free: free.unwrap_or(0), running, waiting: own().count() - running });
        }
    }
}
