//! Concatenated entries: several images in one compressed blob, with a table in the outer header.

use fatbin::{Compression, Contents, Extractor, Kind, Limits, Problem};

use crate::build::{Entry, fatbin, lz4, table};
use crate::support::{list, problems, shown, vector};

const PTX: &[u8] = b".version 9.0\n.target sm_90a\n.address_size 64\n.entry k() {}\n\0";

/// A blob with a cubin at 0 and PTX behind it, and the two records.
fn parts() -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut blob = vector("v18_sm90a.cubin");
    let cubin_size = blob.len().next_multiple_of(8);
    blob.resize(cubin_size, 0);
    blob.extend(PTX);
    blob.resize(blob.len().next_multiple_of(8), 0);
    let cubin = Entry { flags: 0x10_0011, name: "kernel08.cu", ..Entry::new(2, 90, &[]) };
    let ptx = Entry { flags: 0x10_0011, name: "a.cu", options: Some(" -O1 "), ..Entry::new(1, 90, &[]) };
    let start = u32::try_from(cubin_size).expect("small");
    let records = vec![cubin.record(0, cubin_size as u64), ptx.record(start, blob.len() as u64 - u64::from(start))];
    (blob, records)
}

fn outer(blob: &[u8], table: Vec<u8>) -> Entry {
    let packed = lz4(blob);
    Entry {
        flags: 0x2011,
        compressed: u32::try_from(packed.len()).expect("small"),
        uncompressed: blob.len() as u64,
        table: Some(table),
        ..Entry::new(0x100, 0, &packed)
    }
}

#[test]
fn images_of_one_blob_are_listed_and_read_like_others() {
    let (blob, records) = parts();
    let bytes = fatbin(&[outer(&blob, table(&records)), Entry::new(1, 75, b"single")]);
    let listing = list(&bytes);
    assert_eq!(listing.diagnostics, []);
    assert_eq!(shown(&listing), ["concatenated entry sm_0", "elf sm_90a", "ptx sm_90a", "ptx sm_75"]);
    assert_eq!(listing.images().count(), 3);
    let [outer, cubin, ptx, _] = listing.entries.as_slice() else { panic!("four entries") };
    assert_eq!((outer.compression, outer.kind), (Compression::Lz4, Kind::Concatenated));
    assert_eq!((cubin.compression, cubin.identifier.as_deref()), (Compression::Inherited, Some("kernel08.cu")));
    assert_eq!(ptx.options.as_deref(), Some(" -O1 "));
    assert_eq!(ptx.image.map(|image| image.parent), Some(0));

    let mut extractor = Extractor::new(bytes.as_slice(), Limits::default());
    assert_eq!(extractor.bytes(cubin).expect("whole"), vector("v18_sm90a.cubin"));
    assert_eq!(extractor.bytes(ptx).expect("whole"), &PTX[..PTX.len() - 1]);
    assert_eq!(extractor.bytes(outer).expect("whole"), blob);
    let Contents::Cubin(cubin) = extractor.inspect(cubin).expect("whole").contents else { panic!("a cubin") };
    assert_eq!(cubin.kernels.len(), 2);
}

#[test]
fn a_blob_is_unpacked_once_for_all_its_images() {
    let (blob, records) = parts();
    let bytes = fatbin(&[outer(&blob, table(&records))]);
    let listing = list(&bytes);
    // Enough for one pass over the blob, not for two.
    let limits = Limits::default().max_total(blob.len() as u64 + 1);
    let mut extractor = Extractor::new(bytes.as_slice(), limits);
    for entry in listing.images() {
        extractor.bytes(entry).expect("within the limit");
    }
    assert!(extractor.bytes(&listing.entries[0]).is_err());
}

#[test]
fn a_blob_stored_unpacked_works_too() {
    let (blob, records) = parts();
    let outer = Entry { flags: 0x11, table: Some(table(&records)), ..Entry::new(0x100, 0, &blob) };
    let bytes = fatbin(&[outer]);
    let listing = list(&bytes);
    assert_eq!(listing.diagnostics, []);
    let mut extractor = Extractor::new(bytes.as_slice(), Limits::default());
    assert_eq!(extractor.bytes(&listing.entries[1]).expect("whole"), vector("v18_sm90a.cubin"));
}

#[test]
fn a_lying_table_gives_its_good_records_and_a_finding() {
    let (blob, records) = parts();
    let lie = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut table = table(&records);
        change(&mut table);
        let listing = list(&fatbin(&[outer(&blob, table), Entry::new(1, 75, b"after")]));
        assert_eq!(listing.entries.last().expect("the entry after").arch.number, 75);
        assert!(!listing.complete);
        assert!(problems(&listing).iter().any(|found| matches!(found, Problem::ConcatTable { .. })));
        listing.entries.len()
    };
    // Count too large, count too small, table size zero, table size beyond the header.
    assert_eq!(lie(&|table| table[0..4].fill(0xff)), 4);
    assert_eq!(lie(&|table| table[0] = 1), 3);
    assert_eq!(lie(&|table| table[4..8].fill(0)), 2);
    assert_eq!(lie(&|table| table[4..8].fill(0xff)), 4);
    // First record: image size near 2^64, then image offset beyond the blob, then a name of 4 GiB.
    assert_eq!(lie(&|table| table[16..24].fill(0xff)), 4);
    assert_eq!(lie(&|table| table[12..16].fill(0xff)), 4);
    assert_eq!(lie(&|table| table[8 + 0x24..8 + 0x28].fill(0xff)), 3);
}

#[test]
fn an_image_outside_its_blob_cannot_be_read() {
    let (blob, mut records) = parts();
    records[0] = Entry::new(2, 90, &[]).record(8, blob.len() as u64);
    let bytes = fatbin(&[outer(&blob, table(&records))]);
    let listing = list(&bytes);
    assert!(listing.entries[1].truncated && !listing.entries[2].truncated);
    let mut extractor = Extractor::new(bytes.as_slice(), Limits::default());
    assert!(extractor.bytes(&listing.entries[1]).is_err());
    assert!(extractor.bytes(&listing.entries[2]).is_ok());
}

#[test]
fn one_inside_another_is_listed_but_not_followed() {
    let (blob, records) = parts();
    let inner = Entry { table: Some(table(&records)), ..Entry::new(0x100, 0, &[]) };
    let nested = inner.record(0, 8);
    let bytes = fatbin(&[outer(&blob, table(&[nested]))]);
    let listing = list(&bytes);
    assert_eq!(shown(&listing), ["concatenated entry sm_0", "concatenated entry sm_0"]);
    assert!(!listing.complete);
}
