//! One limit of compile jobs for all units of a run: shared fairly among those that compile, by cores and by memory.
//!
//! A unit has a [`Seat`] from the start and takes jobs when it really compiles, so a unit that comes from the cache
//! leaves its part to the others. What is free when a unit begins is divided among those that have not begun yet; a
//! running build system keeps the number it was started with.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::plan::jobs::{Bound, Machine};
use crate::recipe::size::ByteSize;
use crate::sys::signals;

/// Time between two looks for a signal.
const NAP: Duration = Duration::from_millis(100);

/// The limit.
#[derive(Debug)]
pub struct Budget {
    total: u32,
    free: Mutex<Free>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Free {
    jobs: u32,
    /// Bytes; nothing where memory is unknown or the user has named the number of jobs.
    memory: Option<u64>,
    /// Units that compile.
    running: usize,
    /// Units that may still begin to.
    ahead: usize,
}

/// A unit's part of the limit.
#[derive(Debug)]
pub struct Seat<'a> {
    budget: &'a Budget,
    taken: Option<(u32, u64)>,
    left: bool,
}

impl Budget {
    /// The number of jobs that was asked for, or what cores, memory and the user's own limit allow.
    pub fn new(machine: Machine, bound: Bound) -> Self {
        let total = bound.cores(machine.cores);
        let memory = if bound.asked.is_some() { None } else { machine.memory };
        let free = Free { jobs: total, memory, running: 0, ahead: 0 };
        Self { total, free: Mutex::new(free), changed: Condvar::new() }
    }

    /// How many of `units` are worth working on at once.
    pub fn lanes(&self, units: usize) -> usize {
        units.min(self.total as usize)
    }

    /// A place for a unit that may compile.
    pub fn seat(&self) -> Seat<'_> {
        self.lock().ahead += 1;
        Seat { budget: self, taken: None, left: false }
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat<'_> {
    /// Takes between 1 and `most` jobs of `each` bytes, and waits while there are none. Nothing once a signal came.
    pub fn take(&mut self, most: u32, each: ByteSize) -> Option<u32> {
        let mut free = self.budget.lock();
        loop {
            if signals::caught() {
                return None;
            }
            if let Some(jobs) = share(*free, most, each.0) {
                let memory = each.0.saturating_mul(u64::from(jobs));
                free.jobs = free.jobs.saturating_sub(jobs);
                free.memory = free.memory.map(|free| free.saturating_sub(memory));
                free.running += 1;
                free.ahead -= 1;
                self.taken = Some((jobs, memory));
                return Some(jobs);
            }
            let woken = self.budget.changed.wait_timeout(free, NAP);
            free = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The number of jobs that [`Seat::take`] would give now, or 1, without taking any: somebody else holds the limit.
    pub fn pass(&mut self, most: u32, each: ByteSize) -> u32 {
        let jobs = share(*self.budget.lock(), most, each.0).unwrap_or(1);
        self.leave();
        jobs
    }

    /// Gives everything back: this unit compiles nothing, or nothing more.
    pub fn leave(&mut self) {
        if std::mem::replace(&mut self.left, true) {
            return;
        }
        let mut free = self.budget.lock();
        match self.taken.take() {
            None => free.ahead -= 1,
            Some((jobs, memory)) => {
                free.jobs += jobs;
                free.memory = free.memory.map(|free| free + memory);
                free.running -= 1;
            }
        }
        drop(free);
        self.budget.changed.notify_all();
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// How many jobs a unit gets that wants up to `most` of `each` bytes; nothing while it has to wait.
fn share(free: Free, most: u32, each: u64) -> Option<u32> {
    let ahead = u32::try_from(free.ahead).unwrap_or(u32::MAX).max(1);
    let fair = free.jobs.div_ceil(ahead).min(most);
    let fits = free.memory.map_or(u32::MAX, |memory| u32::try_from(memory / each.max(1)).unwrap_or(u32::MAX));
    match fair.min(fits) {
        // Alone, a unit gets a job whatever the memory: less is not possible.
        0 if free.running == 0 && free.jobs > 0 => Some(1),
        0 => None,
        jobs => Some(jobs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn budget(cores: u32, gib: u64, asked: Option<u32>) -> Budget {
        Budget::new(Machine { cores, memory: Some(gib * GIB) }, Bound { asked, most: None })
    }

    #[test]
    fn units_share_what_there_is_and_take_over_what_is_left() {
        let budget = budget(16, 100, None);
        let mut seats = [budget.seat(), budget.seat(), budget.seat()];
        let mut take = |index: usize| seats[index].take(16, ByteSize(2 * GIB));
        assert_eq!([take(0), take(1), take(2)], [Some(6), Some(5), Some(5)]);
        seats[0].leave();
        let mut late = budget.seat();
        assert_eq!(late.take(16, ByteSize(2 * GIB)), Some(6));
        drop((late, seats));
        assert_eq!(budget.lock().jobs, 16);
    }

    #[test]
    fn a_unit_from_the_cache_leaves_its_part() {
        let budget = budget(4, 100, None);
        let (mut restored, mut built) = (budget.seat(), budget.seat());
        restored.leave();
        restored.leave();
        assert_eq!(built.take(4, ByteSize(GIB)), Some(4));
    }

    #[test]
    fn memory_bounds_all_together_but_never_the_last_one() {
        let budget = budget(8, 6, None);
        let (mut one, two) = (budget.seat(), budget.seat());
        assert_eq!(one.take(8, ByteSize(3 * GIB)), Some(2));
        assert_eq!(share(*budget.lock(), 8, 3 * GIB), None);
        one.leave();
        assert_eq!(share(*budget.lock(), 8, 10 * GIB), Some(1));
        drop(two);
    }

    #[test]
    fn a_number_that_was_asked_for_is_a_limit_whatever_the_memory() {
        let budget = budget(2, 1, Some(5));
        assert_eq!((budget.lanes(9), budget.lanes(2)), (5, 2));
        assert_eq!(budget.seat().take(5, ByteSize(3 * GIB)), Some(5));
        let (mut one, _two) = (budget.seat(), budget.seat());
        assert_eq!(one.take(5, ByteSize(3 * GIB)), Some(3));
    }

    #[test]
    fn a_limit_bounds_all_units_together_and_memory_still_counts() {
        let machine = Machine { cores: 16, memory: Some(6 * GIB) };
        let budget = Budget::new(machine, Bound { asked: None, most: Some(4) });
        assert_eq!(budget.lanes(9), 4);
        assert_eq!(budget.seat().take(16, ByteSize(GIB)), Some(4));
        assert_eq!(budget.seat().take(16, ByteSize(3 * GIB)), Some(2));
    }

    #[test]
    fn who_waits_is_woken() {
        let budget = budget(1, 1, None);
        let (mut one, mut two) = (budget.seat(), budget.seat());
        assert_eq!(one.take(1, ByteSize(1)), Some(1));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| two.take(1, ByteSize(1)));
            one.leave();
            assert_eq!(waiting.join().unwrap(), Some(1));
        });
    }
}
