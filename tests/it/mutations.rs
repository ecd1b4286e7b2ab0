//! Inputs from outside, harmed in many ways: each may be refused, but none may panic, hang, or take memory without end.
//!
//! Deterministic: a case is known by its kind and number. `CUWRIGHT_MUTATIONS=1000` sets how many there are of each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cuwright::diagnose::{self, Facts};
use cuwright::domain::problem::{Problem, Problems};
use cuwright::recipe::{builtin, parse, resolve};
use cuwright::source::archive;
use cuwright::ui::diagnostic::render;
use cuwright::verify::found::Depth;
use cuwright::verify::{found, site, wheel};
use fs_err as fs;

use crate::support::project;

/// Cases of each kind in an ordinary run.
const CASES: u64 = 200;
/// What no input of a few kilobytes may take, on a machine that is busy with other tests.
const LONGEST: Duration = Duration::from_secs(20);
/// What no run may take at its peak, in KiB. Without harm it is some 60 MiB.
const MOST_KIB: u64 = 1 << 20;

/// Numbers that look random and are the same everywhere (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Pieces that mean something to one parser or another.
const PIECES: [&[u8]; 16] = [
    b"\0",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f\0\0\0\0",
    b"\0\0\0\0\0\0\0\x80",
    b"\xc3",
    "é\u{202e}".as_bytes(),
    b"\n",
    b"[[",
    b"\"\"\"",
    b"{\"a\":",
    b"../",
    b"99999999999999999999",
    b"-1",
    b"1e999",
    b"\x1b[31m",
    b"sm_90a",
];

/// Harms `bytes` in one to four places.
fn harm(numbers: &mut Numbers, bytes: &mut Vec<u8>) {
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        let end = (at + 1 + numbers.below(64)).min(bytes.len());
        match numbers.below(9) {
            _ if bytes.is_empty() => bytes.extend_from_slice(numbers.pick::<&[u8]>(&PIECES)),
            0 => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes[at] = *numbers.pick(&[0, 1, 0x7f, 0x80, 0xff, b'"', b'/', b'\\']),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let again = bytes[at..end].repeat(1 + numbers.below(200));
                drop(bytes.splice(at..at, again));
            }
            4 => bytes.truncate(at),
            5 => drop(bytes.splice(at..at, numbers.pick(&PIECES).iter().copied())),
            6 => {
                let piece = *numbers.pick(&PIECES);
                let end = (at + piece.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&piece[..end - at]);
            }
            7 => {
                let other = numbers.below(bytes.len());
                bytes.swap(at, other);
            }
            _ => bytes[at..end].reverse(),
        }
    }
}

/// What became of the cases of one kind.
#[derive(Default)]
struct Tally {
    accepted: u64,
    slowest: (Duration, u64),
    panicked: Vec<u64>,
}

/// Runs every case of one kind. `case` says whether the harmed input was accepted.
#[expect(clippy::print_stdout, reason = "the counts are the measurement")]
fn run(kind: &str, mut case: impl FnMut(&mut Numbers) -> bool) {
    let cases = std::env::var("CUWRIGHT_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let mut tally = Tally::default();
    for number in 0..cases {
        let mut numbers = Numbers(kind.bytes().fold(number << 20, |seed, byte| seed.rotate_left(5) ^ u64::from(byte)));
        let started = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| case(&mut numbers))) {
            Ok(accepted) => tally.accepted += u64::from(accepted),
            Err(_) => tally.panicked.push(number),
        }
        tally.slowest = tally.slowest.max((started.elapsed(), number));
    }
    let peak = peak_kib();
    let Tally { accepted, slowest, panicked } = tally;
    println!(
        "{kind}: {cases} cases, {accepted} accepted, {} panics, slowest {:.1} ms (case {}), peak {} MiB",
        panicked.len(),
        slowest.0.as_secs_f64() * 1e3,
        slowest.1,
        peak / 1024
    );
    assert!(panicked.is_empty(), "{kind}: the cases {panicked:?} panicked");
    assert!(slowest.0 < LONGEST, "{kind}: case {} took {:?}", slowest.1, slowest.0);
    assert!(peak < MOST_KIB, "{kind}: {peak} KiB of memory");
}

/// The most memory that this process ever had.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Shown, too: an excerpt may be cut where no character begins.
fn show(problems: &Problems) {
    problems.iter().for_each(show_one);
}

fn show_one(problem: &Problem) {
    assert!(!render(problem, false).is_empty());
}

fn folder_of(files: &str, endings: &[&str]) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = project(files)
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.extension().is_some_and(|ending| endings.contains(&ending)))
        .map(|path| (path.file_name().unwrap().to_owned(), fs::read(&path).unwrap()))
        .collect();
    found.sort();
    assert!(found.len() > 3, "{files}");
    found
}

fn vectors() -> Vec<(String, Vec<u8>)> {
    folder_of("fatbin/tests/vectors", &["o", "so", "a", "fatbin", "cubin"])
}

/// An empty folder that is new for each case.
struct Room {
    root: tempfile::TempDir,
    count: u64,
}

impl Room {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), count: 0 }
    }

    fn with<T>(&mut self, work: impl FnOnce(&Utf8Path) -> T) -> T {
        self.count += 1;
        let folder = Utf8Path::from_path(self.root.path()).unwrap().join(self.count.to_string());
        fs::create_dir(&folder).unwrap();
        let result = work(&folder);
        fs::remove_dir_all(&folder).unwrap();
        result
    }
}

#[test]
fn recipes() {
    run("recipe", |numbers| {
        let mut bytes = numbers.pick(&builtin::ALL).text.as_bytes().to_vec();
        harm(numbers, &mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let document = parse::Document { origin: "recipe.toml", text: &text };
        if let Err(problems) = parse::parse(document) {
            show(&problems);
        }
        resolve::read(document, |_| Ok("--- a\n+++ b\n".to_owned())).map_err(|problems| show(&problems)).is_ok()
    });
}

#[test]
fn logs() {
    let logs = folder_of("src/diagnose/logs", &["log"]);
    run("log", |numbers| {
        let mut bytes = numbers.pick(&logs).1.clone();
        harm(numbers, &mut bytes);
        let diagnosis = diagnose::explain(&bytes, "build.log", &Facts::default());
        serde_json::to_string(&diagnosis).is_ok()
    });
}

#[test]
fn fatbins() {
    let vectors = vectors();
    run("fatbin", |numbers| {
        let mut bytes = numbers.pick(&vectors).1.clone();
        harm(numbers, &mut bytes);
        let Ok(listing) = fatbin::list(&bytes[..], &fatbin::Options::default()) else { return false };
        let mut extractor = fatbin::Extractor::new(&bytes[..], fatbin::Limits::default());
        listing.images().fold(true, |good, image| good & extractor.inspect(image).is_ok())
    });
}

/// A wheel of these members, either packed as given or with one member harmed before it is packed.
fn zip(numbers: &mut Numbers, members: &[(String, Vec<u8>)], path: &Utf8Path) {
    let inner = numbers.below(2) == 0;
    let harmed = numbers.below(members.len());
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let method = *numbers.pick(&[zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated]);
    for (index, (name, contents)) in members.iter().enumerate() {
        let (mut name, mut contents) = (name.clone(), contents.clone());
        if inner && index == harmed {
            if numbers.below(2) == 0 {
                let mut bytes = name.into_bytes();
                harm(numbers, &mut bytes);
                name = String::from_utf8_lossy(&bytes).into_owned();
            }
            harm(numbers, &mut contents);
        }
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        if zip.start_file(name, options).is_ok() {
            std::io::Write::write_all(&mut zip, &contents).unwrap();
        }
    }
    let mut bytes = zip.finish().unwrap().into_inner();
    if !inner {
        harm(numbers, &mut bytes);
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn wheels() {
    let text = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    let code = vectors().into_iter().find(|(name, _)| name.ends_with("stripped.so")).unwrap().1;
    let members = [
        ("ext/_C.cpython-312-x86_64-linux-gnu.so".to_owned(), code),
        text("ext/__init__.py", "from . import _C\n"),
        text("ext-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp312-cp312-linux_x86_64\n"),
        text(
            "ext-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: ext\nVersion: 1.0\nRequires-Dist: torch>=2.4\n",
        ),
        text("ext-1.0.dist-info/RECORD", "ext/__init__.py,,\n"),
    ];
    let mut room = Room::new();
    run("wheel", |numbers| {
        room.with(|folder| {
            let path = folder.join("ext-1.0-cp312-cp312-linux_x86_64.whl");
            zip(numbers, &members, &path);
            let site = match site::unpack(&path, &folder.join("site")) {
                Ok(site) => site,
                Err(problem) => {
                    show_one(&problem);
                    return false;
                }
            };
            for file in &site.extensions {
                if let Err(problem) = found::read(file, &file.name, Depth::Makers) {
                    show_one(&problem);
                }
            }
            let facts = wheel::facts(path.as_str(), &site.root, &site.extensions);
            wheel::judge(&facts, wheel::Beside::default()).is_empty()
        })
    });
}

/// A `.tar.gz` of these members. Harmed headers get the right checksum half the time, as a hostile one would have it.
fn tar(numbers: &mut Numbers, members: &[(String, Vec<u8>)], path: &Utf8Path) {
    let mut builder = tar::Builder::new(Vec::new());
    let harmed = numbers.below(members.len() * 2);
    for (index, (name, contents)) in members.iter().enumerate() {
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_mode(0o644);
        header.set_entry_type(*numbers.pick(&[
            tar::EntryType::Regular,
            tar::EntryType::Regular,
            tar::EntryType::Symlink,
        ]));
        header.set_size(contents.len() as u64);
        if index == harmed {
            let mut bytes = header.as_bytes().to_vec();
            harm(numbers, &mut bytes);
            bytes.resize(512, 0);
            header.as_mut_bytes().copy_from_slice(&bytes);
        }
        header.set_cksum();
        builder.append(&header, &contents[..]).unwrap();
    }
    let mut bytes = builder.into_inner().unwrap();
    if harmed >= members.len() {
        harm(numbers, &mut bytes);
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &bytes).unwrap();
    let mut packed = packed.finish().unwrap();
    if numbers.below(4) == 0 {
        harm(numbers, &mut packed);
    }
    fs::write(path, packed).unwrap();
}

#[test]
fn sdists() {
    let names = ["ext-1.0/setup.py", "ext-1.0/PKG-INFO", "ext-1.0/csrc/a.cu", "ext-1.0/csrc/link/b.h"];
    let members = names.map(|name| (name.to_owned(), format!("# {name}\n").repeat(30).into_bytes()));
    let mut room = Room::new();
    run("sdist", |numbers| {
        room.with(|folder| {
            let zipped = numbers.below(2) == 0;
            let path = folder.join(if zipped { "ext-1.0.zip" } else { "ext-1.0.tar.gz" });
            if zipped {
                zip(numbers, &members, &path);
            } else {
                tar(numbers, &members, &path);
            }
            let to = folder.join("outer/inner");
            fs::create_dir_all(&to).unwrap();
            let done = archive::unpack(&path, &to).map_err(|problem| show_one(&problem)).is_ok();
            // Nothing came to lie beside the folder.
            assert_eq!(folder.read_dir_utf8().unwrap().count(), 2);
            assert_eq!(folder.join("outer").read_dir_utf8().unwrap().count(), 1);
            done
        })
    });
}

#[test]
fn cache_entries() {
    let root = tempfile::tempdir().unwrap();
    let store = cache::Store::open(root.path()).unwrap();
    let inputs = serde_json::json!({"package": "ext", "archs": ["9.0"]});
    let key = cache::digest(&cache::canonical_json(&inputs).unwrap());
    let staging = store.stage(&key).unwrap();
    fs::write(staging.path().join("ext.whl"), "wheel").unwrap();
    let now = std::time::SystemTime::now();
    let entry = staging.commit(inputs, serde_json::json!({"unit": "ext", "seconds": 12}), now).unwrap();
    let folder = Utf8PathBuf::from_path_buf(entry.folder()).unwrap();
    let folder = folder.parent().unwrap();
    let whole =
        ["manifest.json", "inputs.json", "files/ext.whl"].map(|name| (name, fs::read(folder.join(name)).unwrap()));
    run("cache entry", |numbers| {
        // As after a removal, which a hit or a damaged entry may have been.
        fs::create_dir_all(folder.join("files")).unwrap();
        let harmed = *numbers.pick(&[0, 0, 0, 1, 2]);
        for (index, (name, bytes)) in whole.iter().enumerate() {
            let mut bytes = bytes.clone();
            if index == harmed {
                harm(numbers, &mut bytes);
            }
            fs::write(folder.join(name), bytes).unwrap();
        }
        store.list().unwrap();
        match store.get(&key, now).unwrap() {
            cache::Lookup::Hit(entry) => {
                assert_eq!(fs::read(entry.file("ext.whl").unwrap()).unwrap(), b"wheel");
                true
            }
            _ => false,
        }
    });
}
