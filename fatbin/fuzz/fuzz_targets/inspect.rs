//! Lists arbitrary bytes and reads every image deep. `cargo fuzz run inspect fuzz/corpus/inspect tests/vectors`.
//!
//! Limits are low, so that a slow input is a fault and not a large file.
#![no_main]

use fatbin::{Extractor, Limits, Options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(listing) = fatbin::list(bytes, &Options::default().max_entries(1000)) else {
        return;
    };
    let limits = Limits::default().max_payload(4 << 20).max_total(32 << 20);
    let mut extractor = Extractor::new(bytes, limits);
    for entry in &listing.entries {
        let _ = extractor.inspect(entry);
        if let Ok(image) = extractor.bytes(entry) {
            assert!(image.len() <= 4 << 20);
        }
    }
});
