//! Which waiting call may begin: cores, memory, the longest first. Pure.
//!
//! Invariant: what runs never needs more cores than there are, nor more memory than is free by its estimates, with one
//! exception: one call may always run, or nothing ever would.

use std::cell::LazyCell;
use std::collections::BTreeMap;

/// Names a call.
pub(super) type Id = u64;

/// What a call is expected to need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    /// Cores, at least 1.
    pub(super) cores: u32,
    /// Bytes at its peak.
    pub(super) memory: u64,
    /// Milliseconds of work: the larger, the sooner.
    pub(super) work: u64,
    /// Nothing else may run beside it.
    pub(super) alone: bool,
    /// The build it belongs to.
    pub(super) unit: usize,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    id: Id,
    need: Need,
    /// How often another went before it though it was longer.
    passed: u32,
    /// Not to be chosen yet.
    held: bool,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    need: Need,
    /// Bytes it holds now.
    used: u64,
}

/// The calls of all builds that share one limit.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    cores: u32,
    waiting: Vec<Waiting>,
    running: BTreeMap<Id, Running>,
    /// Milliseconds of work that each build has not asked for yet.
    rest: BTreeMap<usize, u64>,
}

impl Schedule {
    /// For this many cores.
    pub(super) fn new(cores: u32) -> Self {
        Self { cores: cores.max(1), waiting: Vec::new(), running: BTreeMap::new(), rest: BTreeMap::new() }
    }

    /// A call asks for room; `held` keeps it back until [`Schedule::release`].
    pub(super) fn ask(&mut self, id: Id, need: Need, held: bool) {
        let need = Need { cores: need.cores.clamp(1, self.cores), ..need };
        self.waiting.push(Waiting { id, need, passed: 0, held });
    }

    /// A build will ask for so much more work once what it has asked for is done, in milliseconds. What it waits for
    /// is then as urgent as all of that: a build that asks step by step would else be the last, alone on one core.
    pub(super) fn follows(&mut self, unit: usize, work: u64) {
        self.rest.insert(unit, work);
    }

    /// A call that was held back may now be chosen.
    pub(super) fn release(&mut self, id: Id) {
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.id == id) {
            waiting.held = false;
        }
    }

    /// A call has ended, or does not wait any more.
    pub(super) fn leave(&mut self, id: Id) {
        self.waiting.retain(|waiting| waiting.id != id);
        self.running.remove(&id);
    }

    /// What a running call holds now.
    pub(super) fn used(&mut self, id: Id, bytes: u64) {
        if let Some(running) = self.running.get_mut(&id) {
            running.used = bytes;
        }
    }

    /// Calls that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Cores in use.
    pub(super) fn cores_used(&self) -> u32 {
        self.running.values().map(|running| running.need.cores).sum()
    }

    /// Chooses those that may begin now, with `free` bytes that can be had (`None` where unknown), asked for only where
    /// it matters, and `foreign` cores that others hold.
    pub(super) fn admit(&mut self, free: impl Fn() -> Option<u64>, foreign: u32) -> Vec<Id> {
        let free = LazyCell::new(free);
        // The longest first; among equals the one that came first.
        let rest = |unit: usize| self.rest.get(&unit).copied().unwrap_or_default();
        self.waiting.sort_by_key(|waiting| {
            let need = waiting.need;
            (!need.alone, std::cmp::Reverse(need.work.saturating_add(rest(need.unit))), waiting.id)
        });
        let mut admitted = Vec::new();
        while let Some(index) = self.next(&free, foreign) {
            let chosen = self.waiting.remove(index);
            for longer in self.waiting[..index].iter_mut().filter(|waiting| !waiting.held) {
                longer.passed += 1;
            }
            self.running.insert(chosen.id, Running { need: chosen.need, used: 0 });
            admitted.push(chosen.id);
        }
        admitted
    }

    fn next<F: FnOnce() -> Option<u64>>(&self, free: &LazyCell<Option<u64>, F>, foreign: u32) -> Option<usize> {
        if self.running.values().any(|running| running.need.alone) {
            return None;
        }
        let mut ready = self.waiting.iter().enumerate().filter(|(_, waiting)| !waiting.held).peekable();
        if self.running.is_empty() {
            return ready.next().map(|(index, _)| index);
        }
        ready.peek()?;
        let cores = self.cores.saturating_sub(foreign).saturating_sub(self.cores_used());
        // What the running ones have still to take is not free, although nobody holds it yet.
        let promised: u64 = self.running.values().map(|one| one.need.memory.saturating_sub(one.used)).sum();
        let free = (**free).map_or(u64::MAX, |free| free.saturating_sub(promised));
        for (index, waiting) in ready {
            let fits = waiting.need.cores <= cores && waiting.need.memory <= free;
            if fits && !waiting.need.alone {
                return Some(index);
            }
            // Shorter ones fill the gaps, but must not keep a longer one waiting for ever.
            if waiting.need.alone || waiting.passed >= 2 * self.cores {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn need(work: u64, memory: u64) -> Need {
        Need { cores: 1, memory, work, alone: false, unit: 0 }
    }

    #[test]
    fn the_longest_go_first_within_the_cores() {
        let mut schedule = Schedule::new(2);
        for (id, work) in [(1, 10), (2, 30), (3, 20), (4, 30)] {
            schedule.ask(id, need(work, GIB), false);
        }
        assert_eq!(schedule.admit(|| None, 0), [2, 4]);
        assert_eq!(schedule.admit(|| None, 0), Vec::<Id>::new());
        schedule.leave(4);
        assert_eq!(schedule.admit(|| None, 0), [3]);
        assert_eq!((schedule.running.len(), schedule.waiting()), (2, 1));
    }

    #[test]
    fn of_two_builds_the_one_with_more_to_come_goes_first() {
        let mut schedule = Schedule::new(1);
        schedule.ask(1, need(30, GIB), false);
        schedule.ask(2, Need { unit: 1, ..need(10, GIB) }, false);
        schedule.follows(1, 25);
        assert_eq!(schedule.admit(|| None, 0), [2]);
        schedule.leave(2);
        schedule.ask(3, Need { unit: 1, ..need(25, GIB) }, false);
        schedule.follows(1, 0);
        assert_eq!(schedule.admit(|| None, 0), [1]);
    }

    #[test]
    fn memory_that_is_promised_is_not_given_twice() {
        let mut schedule = Schedule::new(8);
        (1..=8).for_each(|id| schedule.ask(id, need(1, 3 * GIB), false));
        assert_eq!(schedule.admit(|| Some(7 * GIB), 0), [1, 2]);
        // Half of what they will need is taken; the other half is still theirs.
        (1..=2).for_each(|id| schedule.used(id, 3 * GIB / 2));
        assert_eq!(schedule.admit(|| Some(4 * GIB), 0), Vec::<Id>::new());
        schedule.leave(1);
        assert_eq!(schedule.admit(|| Some(6 * GIB), 0), [3]);
    }

    #[test]
    fn one_runs_whatever_it_needs_and_one_that_must_be_alone_is() {
        let mut schedule = Schedule::new(4);
        schedule.ask(1, need(1, 100 * GIB), false);
        assert_eq!(schedule.admit(|| Some(GIB), 4), [1]);
        schedule.ask(2, Need { alone: true, ..need(1, GIB) }, false);
        schedule.ask(3, need(9, GIB), false);
        assert_eq!(schedule.admit(|| None, 0), Vec::<Id>::new(), "it comes first, and must wait for the others");
        schedule.leave(1);
        assert_eq!(schedule.admit(|| None, 0), [2]);
        assert_eq!(schedule.admit(|| None, 0), Vec::<Id>::new());
        schedule.leave(2);
        assert_eq!(schedule.admit(|| None, 0), [3]);
    }

    #[test]
    fn a_large_one_is_not_passed_over_for_ever() {
        let mut schedule = Schedule::new(2);
        schedule.ask(0, need(1, GIB), false);
        schedule.admit(|| Some(4 * GIB), 0);
        schedule.ask(1, need(1000, 4 * GIB), false);
        let mut id = 2;
        let mut passed = 0;
        loop {
            schedule.ask(id, need(1, GIB), false);
            match schedule.admit(|| Some(3 * GIB), 0).first() {
                Some(chosen) => schedule.leave(*chosen),
                None => break,
            }
            (id, passed) = (id + 1, passed + 1);
            assert!(passed < 100);
        }
        schedule.leave(0);
        assert_eq!(schedule.admit(|| Some(3 * GIB), 0), [1]);
    }

    #[test]
    fn one_that_is_held_back_waits_and_blocks_nobody() {
        let mut schedule = Schedule::new(1);
        schedule.ask(1, need(5, GIB), true);
        assert_eq!(schedule.admit(|| None, 0), Vec::<Id>::new());
        schedule.ask(2, need(1, GIB), false);
        assert_eq!(schedule.admit(|| None, 0), [2]);
        schedule.leave(2);
        schedule.release(1);
        assert_eq!(schedule.admit(|| None, 0), [1]);
    }

    proptest::proptest! {
        #[test]
        fn cores_and_memory_are_never_exceeded(
            cores in 1u32..9,
            calls in proptest::collection::vec((1u32..5, 1u64..6, 0u64..50, proptest::bool::weighted(0.1)), 1..40),
        ) {
            let total = 10 * GIB;
            let mut schedule = Schedule::new(cores);
            for (id, (cores, memory, work, alone)) in (0..).zip(&calls) {
                schedule.ask(id, Need { cores: *cores, memory: memory * GIB, work: *work, alone: *alone, unit: 0 }, false);
            }
            let mut done = 0;
            while done < calls.len() {
                schedule.admit(|| Some(total), 0);
                let running: Vec<_> = schedule.running.iter().map(|(id, one)| (*id, one.need)).collect();
                proptest::prop_assert!(!running.is_empty(), "nothing runs");
                proptest::prop_assert!(schedule.cores_used() <= cores);
                let memory: u64 = running.iter().map(|(_, need)| need.memory).sum();
                proptest::prop_assert!(memory <= total || running.len() == 1);
                proptest::prop_assert!(running.len() == 1 || running.iter().all(|(_, need)| !need.alone));
                schedule.leave(running[0].0);
                done += 1;
            }
        }
    }
}
