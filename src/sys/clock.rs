//! Time, in one place so that nothing else reads a clock behind a test's back.

use std::time::{Duration, Instant, SystemTime};

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "this is the one reader of the wall clock")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the one reader of the monotonic clock")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
