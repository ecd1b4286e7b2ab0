//! What is known of a build and its calls: guesses what each will need, writes down what each took.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use globset::GlobMatcher;

use super::ahead::{self, Ahead};
use super::call::{self, Kind};
use super::coordinator::{Active, Hold, State};
use super::costs::Costs;
use super::message::{Answer, send};
use super::schedule::{Id, Need};
use super::unit::UnitSpec;
use crate::domain::arch::{ArchSet, effective_archs};
use crate::report::timeline::{Call, Sample, Timeline};
use crate::sys::{clock, exec, processes};

/// A crowd is complete when nothing has come for this many milliseconds…
const QUIET: u64 = 150;
/// … or at the latest after this many.
const PATIENCE: u64 = 3000;
/// Finished calls of a language after which its largest peak is worth more than the recipe's word.
const ENOUGH: usize = 8;

#[derive(Debug)]
struct Crowd {
    missing: usize,
    since: u64,
    last: u64,
}

#[derive(Debug)]
pub(super) struct UnitState {
    pub(super) root: Utf8PathBuf,
    source: Utf8PathBuf,
    pub(super) costs: Costs,
    memory: u64,
    heavy: Vec<(GlobMatcher, u64)>,
    pub(super) timeline: Timeline,
    crowd: Option<Crowd>,
    began: u64,
    /// For each kind of source: how many ended, and the largest peak.
    seen: BTreeMap<bool, (usize, u64)>,
    /// Whether its compilers may run ahead.
    ahead: bool,
    /// The wall clock at its beginning.
    since: SystemTime,
    /// The source that was compiled ahead and failed, until the build has been told.
    pub(super) failed: Option<String>,
    /// Milliseconds of work that it has not asked for yet, as far as earlier builds tell.
    rest: u64,
}

impl UnitState {
    pub(super) fn new(spec: UnitSpec, began: u64) -> Self {
        let UnitSpec { root, source, costs, memory, heavy, ahead } = spec;
        let (timeline, crowd, seen, rest) = (Timeline::default(), None, BTreeMap::new(), costs.total());
        let (since, failed) = (clock::now(), None);
        Self { root, source, costs, memory, heavy, timeline, crowd, began, seen, ahead, since, failed, rest }
    }

    /// So many calls will come at once.
    pub(super) fn expect(&mut self, calls: usize, now: u64) {
        self.crowd = Some(Crowd { missing: calls, since: now, last: now });
    }

    /// Whether calls are expected to come at once and have not all come.
    pub(super) fn gathering(&mut self, now: u64) -> bool {
        let over = |crowd: &Crowd| {
            crowd.missing == 0 || now >= crowd.last + QUIET && crowd.last > crowd.since || now >= crowd.since + PATIENCE
        };
        self.crowd = self.crowd.take().filter(|crowd| !over(crowd));
        self.crowd.is_some()
    }

    /// Whether a source was there before the build began. One that the build wrote may be a test whether something
    /// compiles, and may be gone soon.
    fn was_there(&self, source: &Utf8Path) -> bool {
        source.metadata().and_then(|meta| meta.modified()).is_ok_and(|written| written <= self.since)
    }

    pub(super) fn sample(&mut self, sample: Sample) {
        if sample.running + sample.waiting > 0 {
            self.timeline.samples.push(Sample { at: sample.at - self.began, ..sample });
        }
    }

    /// What a call will need, from what was learnt, what the recipe says and how large the source is.
    fn need(&self, unit: usize, call: &Call, path: &Utf8Path) -> Need {
        let (seen, largest) = self.seen.get(&call.device).copied().unwrap_or_default();
        let known = self.costs.find(&call.source, &call.archs);
        let heavy = self.heavy.iter().find(|(glob, _)| glob.is_match(&call.source)).map(|(_, memory)| *memory);
        let memory = match (known, heavy) {
            (Some(cost), _) if cost.peak > 0 => cost.peak / 10 * 11 + (64 << 20),
            (_, Some(memory)) => memory,
            _ if call.link => self.memory / 4,
            _ if seen >= ENOUGH => largest / 4 * 5,
            // Each of nvcc's threads needs memory of its own.
            _ => (self.memory * u64::from(call.cores)).max(largest),
        };
        let bytes = path.metadata().map_or(0, |meta| meta.len());
        // Nothing but the order hangs on this: device code takes longer, and a long source longer still.
        let guess = if call.device { 20_000 + bytes * 2 } else { 10_000 + bytes / 4 };
        let work = known.map_or(guess, |cost| cost.work);
        Need { cores: call.cores, memory, work, alone: false, unit }
    }
}

impl State {
    pub(super) fn begin(
        &mut self,
        number: usize,
        mut stream: UnixStream,
        now: u64,
        tool: &str,
        cwd: &str,
        arguments: &[String],
    ) -> Option<Id> {
        let read = call::read(arguments, |file| fs_err::read_to_string(Utf8Path::new(cwd).join(file)).ok());
        let is_ahead = self.is_ahead(number);
        let unit = self.units.get_mut(&number)?;
        // The one call that is told: what a build that goes on makes next is another matter.
        if let Some(source) = unit.failed.take_if(|_| !is_ahead) {
            let _ = send(&mut stream, &Answer::Failed { source });
            return None;
        }
        let failed = unit.failed.is_some();
        let path = Utf8Path::new(cwd).join(&read.subject);
        let source =
            path.strip_prefix(&unit.source).map_or_else(|_| path.file_name().unwrap_or_default(), |p| p.as_str());
        let device = tool.contains("nvcc") && read.kind == Kind::Compile && path.extension() == Some("cu");
        let archs = if device { effective_archs(&read.words).set } else { ArchSet::new() };
        // nvcc's threads each take an arch, and there is no work for more.
        let cores = read.threads.min(u32::try_from(archs.len().max(1)).unwrap_or(1));
        let call = Call {
            source: source.to_owned(),
            tool: tool.to_owned(),
            link: read.kind == Kind::Link,
            device,
            archs: archs.to_string(),
            asked: now,
            cores,
            ..Call::default()
        };
        let need = unit.need(number, &call, &path);
        if let Some(known) = unit.costs.find(&call.source, &call.archs) {
            unit.rest = unit.rest.saturating_sub(known.work);
        }
        self.schedule.follows(number, unit.rest);
        let mut hold = if failed || is_ahead && read.kind == Kind::Link { Hold::Behind } else { Hold::No };
        if let Some(crowd) = &mut unit.crowd {
            (crowd.missing, crowd.last) = (crowd.missing.saturating_sub(1), now);
            hold = Hold::Crowd;
        }
        let stand_in = exec::peer(&stream);
        let mut ahead = Ahead::No;
        let may = unit.ahead && !failed && ahead::may(&read, Utf8Path::new(cwd), &unit.source);
        if may && unit.was_there(&path) && ahead::below_python(stand_in) {
            ahead = Ahead::Told(need);
            let _ = send(&mut stream, &Answer::Ahead);
        }
        let id = self.next;
        self.next += 1;
        if ahead == Ahead::No {
            self.schedule.ask(id, need, hold != Hold::No);
        }
        self.active.insert(
            id,
            Active {
                unit: number,
                stand_in,
                stream,
                call,
                child: None,
                running: false,
                used: 0,
                covered: false,
                hold,
                ahead,
            },
        );
        Some(id)
    }

    pub(super) fn started(&mut self, id: Id, pid: i32) {
        if let Some(active) = self.active.get_mut(&id) {
            // In a sandbox with process numbers of its own, this one would name a stranger.
            let known = active.stand_in.is_some() && processes::parent(pid) == active.stand_in;
            active.child = Some(pid).filter(|_| known);
        }
    }

    /// Writes down how a call ended. Says whether that was all, or it is to run again.
    pub(super) fn ended(&mut self, id: Id, now: u64, (status, user, system, starved): (i32, u64, u64, bool)) -> bool {
        self.schedule.leave(id);
        let Some(active) = self.active.get_mut(&id) else { return true };
        (active.child, active.running, active.used) = (None, false, 0);
        let call = &mut active.call;
        (call.status, call.ended) = (status, now);
        (call.user, call.system) = (call.user + user, call.system + system);
        if starved && call.attempts == 1 {
            let need = Need { cores: 1, memory: call.peak, work: u64::MAX, alone: true, unit: active.unit };
            self.schedule.ask(id, need, false);
            return false;
        }
        if starved {
            let _ = send(&mut active.stream, &Answer::End);
        }
        call.starved = starved;
        let mut call = call.clone();
        let (number, failed) = (active.unit, active.ahead == Ahead::Apart && status != 0);
        if active.ahead == Ahead::Apart {
            active.ahead = Ahead::Over;
        }
        if failed {
            self.failed_ahead(number, &call.source);
        }
        if let Some(unit) = self.units.get_mut(&number) {
            let (seen, largest) = unit.seen.entry(call.device).or_default();
            if !call.link {
                (*seen, *largest) = (*seen + 1, call.peak.max(*largest));
            }
            for time in [&mut call.asked, &mut call.began, &mut call.ended] {
                *time = time.saturating_sub(unit.began);
            }
            unit.timeline.calls.push(call);
        }
        true
    }

    /// The connection is closed. Gives the compiler that is left behind, if one is.
    pub(super) fn left(&mut self, id: Id) -> Option<i32> {
        self.schedule.leave(id);
        let active = self.active.remove(&id)?;
        // One that was promised and is gone without a word was killed.
        if matches!(active.ahead, Ahead::Told(_) | Ahead::Apart) {
            self.failed_ahead(active.unit, &active.call.source);
        }
        self.caught_up(active.unit);
        active.child
    }
}
