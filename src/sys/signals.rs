//! The signals that mean "stop": Ctrl-C, a CI runner's cancel, a closed terminal.
//!
//! They end the process at once, as everywhere, except while a [`Deferred`] lives: then they are remembered, so that
//! its holder can stop the children and clear away what is half made. Signal handlers belong to the process, which
//! makes this the one place with values of the process. A signal that was ignored at the start (`nohup`) stays ignored.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether a signal ends the process.
static FATAL: AtomicBool = AtomicBool::new(true);
/// Whether one came while it did not.
static CAUGHT: AtomicBool = AtomicBool::new(false);
static LISTEN: Once = Once::new();
/// How many [`Deferred`] there are: units are built side by side, and the last one to end makes signals fatal again.
static HOLDERS: Mutex<usize> = Mutex::new(0);

/// While this lives, signals are remembered instead of ending the process.
#[derive(Debug)]
#[must_use = "signals are deferred only while this lives"]
pub struct Deferred(());

impl Deferred {
    /// Begins to remember signals.
    pub fn begin() -> Self {
        LISTEN.call_once(|| {
            for signal in stopping() {
                // Where no handler can be set, a signal simply stays fatal.
                let _ = listen(signal);
            }
        });
        let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        *holders += 1;
        FATAL.store(false, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        *holders -= 1;
        FATAL.store(*holders == 0, Ordering::SeqCst);
    }
}

/// Whether somebody defers signals, and with that has taken on to stop what was started.
pub fn deferred() -> bool {
    !FATAL.load(Ordering::SeqCst)
}

/// The error of a wait that a signal ended.
pub fn interrupted() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "stopped by a signal")
}

/// Whether a signal came while signals were deferred.
pub fn caught() -> bool {
    CAUGHT.load(Ordering::SeqCst)
}

/// The signals that mean "stop" to this process.
pub fn stopping() -> Vec<i32> {
    let ignored = ignored();
    [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter(|signal| *signal != SIGHUP || ignored & (1 << (SIGHUP - 1)) == 0)
        .collect()
}

fn listen(signal: i32) -> io::Result<()> {
    flag::register_conditional_default(signal, &FATAL)?;
    flag::register(signal, &CAUGHT)?;
    Ok(())
}

/// The mask of ignored signals, as `/proc` tells it; nothing where there is no `/proc`.
pub(super) fn ignored() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_stay_deferred_until_the_last_holder_is_gone() {
        let (one, two) = (Deferred::begin(), Deferred::begin());
        drop(one);
        assert!(!FATAL.load(Ordering::SeqCst));
        drop(two);
    }
}
