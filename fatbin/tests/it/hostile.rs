//! Headers that lie: sizes near 2^64, no progress, bombs, and shapes that could cost time.

use fatbin::{Compression, ExtractError, Extractor, Limits, Options, Problem};

use crate::build::{Entry, elf, fatbin, fatbin_of, lz4, member};
use crate::support::{fatbin_sm80, list, problems, shown};

#[test]
fn sizes_near_the_end_of_64_bits_cut_to_what_is_there() {
    for size in [u64::MAX, u64::MAX - 7, u64::MAX - 64, 1 << 63, u64::MAX - 1544] {
        let entry = Entry { size: Some(size), ..Entry::new(2, 80, &[1; 64]) };
        let listing = list(&fatbin(&[entry]));
        assert_eq!(shown(&listing), ["elf sm_80"], "{size:x}");
        assert!(listing.entries[0].truncated);
        assert_eq!(listing.entries[0].payload.stored_size, size);

        let listing = list(&fatbin_of(&Entry::new(2, 80, &[1; 64]).bytes(), size));
        assert_eq!(shown(&listing), ["elf sm_80"], "{size:x}");
        assert!(matches!(problems(&listing)[..], [Problem::FatbinTruncated { .. }]));

        let mut host = elf(&[(".nv_fatbin", 1, &fatbin_sm80())]);
        let table = host.len() - 3 * 64;
        host[table + 64 + 32..table + 64 + 40].copy_from_slice(&size.to_le_bytes());
        let listing = list(&host);
        assert_eq!(shown(&listing), ["elf sm_80"]);
        host[table + 64 + 24..table + 64 + 32].copy_from_slice(&size.to_le_bytes());
        assert_eq!(list(&host).entries, []);
    }
}

#[test]
fn an_entry_header_that_makes_no_progress_ends_its_fatbin_only() {
    for size in [0, 1, 63] {
        let bad = Entry { header_size: Some(size), ..Entry::new(2, 80, &[1; 64]) };
        let bytes = [fatbin(&[Entry::new(1, 75, b"a"), bad]), fatbin_sm80()].concat();
        let listing = list(&bytes);
        assert_eq!(shown(&listing), ["ptx sm_75", "elf sm_80"]);
        assert_eq!(problems(&listing), [Problem::EntryHeaderSize { size }]);
    }
}

#[test]
fn a_header_longer_than_its_fatbin_is_listed_as_truncated() {
    let bad = Entry { header_size: Some(u32::MAX), ..Entry::new(2, 80, &[1; 64]) };
    let listing = list(&fatbin(&[bad]));
    assert!(listing.entries[0].truncated);
    assert!(Extractor::new(&[][..], Limits::default()).bytes(&listing.entries[0]).is_err());
}

#[test]
fn unknown_kinds_and_compressions_are_listed_and_stepped_over() {
    let odd = Entry { flags: 0x4011, ..Entry::new(0x1234, 200, &[0; 8]) };
    let bytes = fatbin(&[odd, Entry::new(0, 0, &[]), Entry::new(1, 75, b"x")]);
    let listing = list(&bytes);
    assert_eq!(shown(&listing), ["unknown(0x1234) sm_200", "unknown(0x0) sm_0", "ptx sm_75"]);
    assert_eq!(listing.entries[0].compression, Compression::Unknown(0x4000));
    let mut extractor = Extractor::new(bytes.as_slice(), Limits::default());
    let error = extractor.bytes(&listing.entries[0]).expect_err("unknown");
    assert!(matches!(error, ExtractError::UnknownCompression { bits: 0x4000 }));
}

#[test]
fn bombs_are_refused_by_their_claim() {
    let packed = lz4(b"small");
    for uncompressed in [u64::MAX, 1 << 40, 100 << 20] {
        for flags in [0x2011, 0x8011] {
            let compressed = u32::try_from(packed.len()).expect("small");
            let bomb = Entry { flags, compressed, uncompressed, ..Entry::new(1, 80, &packed) };
            let bytes = fatbin(&[bomb]);
            let error = Extractor::new(bytes.as_slice(), Limits::default()).bytes(&list(&bytes).entries[0]);
            assert!(matches!(error, Err(ExtractError::TooLarge { .. })), "{uncompressed}");
        }
    }
}

#[test]
fn the_limits_hold_for_one_image_and_for_all() {
    let bytes = fatbin_sm80();
    let entry = &list(&bytes).entries[0];
    let mut small = Extractor::new(bytes.as_slice(), Limits::default().max_payload(100));
    assert!(matches!(small.bytes(entry), Err(ExtractError::TooLarge { limit: 100, .. })));

    let packed = lz4(&[7; 100]);
    let compressed = u32::try_from(packed.len()).expect("small");
    let image = Entry { flags: 0x2011, compressed, uncompressed: 100, ..Entry::new(1, 80, &packed) };
    let bytes = fatbin(&[image]);
    let entry = &list(&bytes).entries[0];
    let mut total = Extractor::new(bytes.as_slice(), Limits::default().max_total(250));
    assert!(total.bytes(entry).is_ok() && total.bytes(entry).is_ok());
    assert!(matches!(total.bytes(entry), Err(ExtractError::TooLarge { limit: 50, .. })));
}

#[test]
fn more_compressed_bytes_than_stored_ones_are_corrupt() {
    let image = Entry { flags: 0x2011, compressed: 1000, uncompressed: 1000, ..Entry::new(1, 80, &[0; 64]) };
    let bytes = fatbin(&[image, Entry::new(1, 80, &[0; 2000])]);
    let error = Extractor::new(bytes.as_slice(), Limits::default()).bytes(&list(&bytes).entries[0]);
    assert!(matches!(error, Err(ExtractError::Corrupt { .. })));
}

#[test]
fn texts_past_their_header_are_cut() {
    let named = Entry { name: "kernel.cu", ..Entry::new(1, 80, b"secret") };
    let mut bytes = fatbin(&[named]);
    bytes[16 + 0x24..16 + 0x28].copy_from_slice(&u32::MAX.to_le_bytes());
    let listing = list(&bytes);
    assert_eq!(listing.entries[0].identifier.as_deref(), Some("kernel.cu"));
    assert_eq!(problems(&listing), [Problem::TextOutsideHeader]);
}

#[test]
fn a_missing_fatbin_start_is_searched_for_past_junk() {
    let junk = [1, 2, 3, 4, 5];
    let bytes = [&fatbin_sm80()[..], &[0; 64], &fatbin_sm80(), &junk, &fatbin_sm80(), &junk].concat();
    let listing = list(&bytes);
    assert_eq!(shown(&listing), ["elf sm_80"; 3]);
    assert_eq!(problems(&listing), [Problem::Junk { skipped: 5 }, Problem::Junk { skipped: 5 }]);
}

#[test]
fn a_fatbin_that_claims_the_next_one_ends_where_that_starts() {
    let entry = Entry::new(1, 75, b"x").bytes();
    let bytes = [fatbin_of(&entry, entry.len() as u64 + 5936), fatbin_sm80()].concat();
    let listing = list(&bytes);
    assert_eq!(shown(&listing), ["ptx sm_75", "elf sm_80"]);
    assert_eq!(problems(&listing), [Problem::FatbinShort]);
}

#[test]
fn sections_that_lie_over_each_other_are_walked_once() {
    let mut host = elf(&[(".nv_fatbin", 1, &fatbin_sm80()), ("__nv_relfatbin", 1, &[0; 8])]);
    let table = host.len() - 4 * 64;
    let place: Vec<u8> = host[table + 64 + 24..table + 64 + 40].to_vec();
    host[table + 128 + 24..table + 128 + 40].copy_from_slice(&place);
    let listing = list(&host);
    assert_eq!(shown(&listing), ["elf sm_80"]);
    assert_eq!(problems(&listing), [Problem::SectionOverlap]);
}

#[test]
fn the_limit_on_entries_stops_the_walk_in_every_container() {
    let many = fatbin(&vec![Entry::new(1, 75, b"x"); 100]);
    let archive = [b"!<arch>\n".to_vec(), member("a", &many), member("b", &many)].concat();
    for bytes in [many.clone(), elf(&[(".nv_fatbin", 1, &many)]), archive] {
        let listing = fatbin::list(bytes.as_slice(), &Options::default().max_entries(10)).expect("known");
        assert_eq!(listing.entries.len(), 10);
        assert_eq!(problems(&listing), [Problem::LimitReached]);
        assert!(!listing.complete);
    }
}

#[test]
fn findings_are_bounded() {
    let bad = Entry { header_size: Some(0), ..Entry::new(2, 80, &[]) };
    let listing = list(&fatbin(&[bad]).repeat(5000));
    assert_eq!(listing.diagnostics.len(), 1001);
    assert_eq!(listing.diagnostics[1000].problem, Problem::MoreFindings);
}

#[test]
fn long_runs_of_zeros_magics_and_tiny_fatbins_take_linear_time() {
    const SIZE: usize = 4 << 20;
    let tiny = [fatbin(&[Entry::new(1, 75, &[])]), vec![1]].concat();
    let broken = fatbin_of(&Entry { header_size: Some(0), ..Entry::new(2, 80, &[]) }.bytes(), u64::MAX);
    for pattern in [vec![0], vec![0x50], vec![0x50, 0xed, 0x55, 0xba], tiny, broken] {
        let body = pattern.repeat(SIZE / pattern.len());
        let bytes = [fatbin_sm80(), body].concat();
        assert_eq!(list(&bytes).entries[0].arch.number, 80);
        let host = elf(&[(".rodata", 1, &bytes)]);
        fatbin::list(host.as_slice(), &Options::default().scan_all(true)).expect("an ELF");
    }
}
