//! Deep reads of many images at once, spread over threads.
//!
//! Invariant: the result does not depend on the number of threads. Images that share a concatenated blob stay on one
//! thread, so the blob is unpacked once; a thread holds one unpacked image at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::entry::Entry;
use crate::error::ExtractError;
use crate::extract::{Extractor, Inspection, Limits};
use crate::reader::ReadAt;

/// Results of a run of entries that begins at an index.
type Part = (usize, Vec<Result<Inspection, ExtractError>>);

/// Reads what each of `entries` holds, on up to `threads` threads, and gives the results in the same order.
///
/// [`Limits::max_total`] is shared out among the threads. Where the largest image is large, so is the memory: one
/// unpacked image per thread.
///
/// ```
/// # let bytes: &[u8] = include_bytes!("../tests/vectors/v03_sm90_90a_ptx90a.o");
/// let listing = fatbin::list(bytes, &fatbin::Options::default())?;
/// let inspections = fatbin::inspect_all(bytes, &listing.entries, fatbin::Limits::default(), 2);
/// assert_eq!(inspections.len(), listing.entries.len());
/// assert!(inspections.iter().all(Result::is_ok));
/// # Ok::<(), fatbin::Error>(())
/// ```
pub fn inspect_all<R: ReadAt + Sync + ?Sized>(
    reader: &R,
    entries: &[Entry],
    limits: Limits,
    threads: usize,
) -> Vec<Result<Inspection, ExtractError>> {
    let units = units(entries);
    let threads = threads.clamp(1, units.len().max(1));
    let share = limits.max_total(limits.total() / threads as u64);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Part>> = Mutex::new(Vec::with_capacity(units.len()));
    let work = || {
        let mut extractor = Extractor::new(reader, share);
        let mut own = Vec::new();
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            own.push((unit.start, entries[unit.clone()].iter().map(|entry| extractor.inspect(entry)).collect()));
        }
        // Nothing panics while the lock is held, so it cannot be poisoned.
        if let Ok(mut done) = done.lock() {
            done.append(&mut own);
        }
    };
    if threads == 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let mut parts = done.into_inner().unwrap_or_default();
    parts.sort_unstable_by_key(|(start, _)| *start);
    parts.into_iter().flat_map(|(_, results)| results).collect()
}

/// Runs of entries that one thread should read: single ones, and neighbours in one blob.
fn units(entries: &[Entry]) -> Vec<std::ops::Range<usize>> {
    let mut units: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let joins = entry.image.is_some() && index > 0 && {
            let before = &entries[index - 1];
            before.image.map(|image| image.parent) == entry.image.map(|image| image.parent)
        };
        match units.last_mut().filter(|_| joins) {
            Some(last) => last.end = index + 1,
            None => units.push(index..index + 1),
        }
    }
    units
}
