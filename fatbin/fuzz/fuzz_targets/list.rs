//! Lists arbitrary bytes. `cargo fuzz run list fuzz/corpus/list tests/vectors`, from the crate's folder.
//!
//! Found faults belong into `tests/it/damage.rs` or `hostile.rs` as named cases.
#![no_main]

use fatbin::Options;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for scan_all in [false, true] {
        let options = Options::default().scan_all(scan_all).max_entries(10_000);
        if let Ok(listing) = fatbin::list(bytes, &options) {
            assert!(listing.entries.len() <= 10_000);
            for diagnostic in &listing.diagnostics {
                assert!(!diagnostic.to_string().is_empty());
            }
        }
    }
});
