//! Entry for entry against NVIDIA's own `cuobjdump`, over every library with GPU code that is at hand.
//!
//! Runs over the environment that the tests of `real` provision, with the tool from its wheel. Differences are
//! allowed only where the tool is known to hide or to refuse something, and each is named in `excused`.

use std::collections::BTreeMap;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

/// Kind, arch and compression of an entry, with how often it occurs.
type Entries = BTreeMap<String, usize>;

/// Where to find the tool, libraries beside the provisioned ones, and how large a library may be.
struct Settings {
    tool: Utf8PathBuf,
    folders: Vec<Utf8PathBuf>,
}

fn settings() -> Option<Settings> {
    let tool = Utf8PathBuf::from(std::env::var("CUWRIGHT_TEST_CUOBJDUMP").ok()?);
    let folders = std::env::var("CUWRIGHT_TEST_LIBRARIES").ok()?;
    Some(Settings { tool, folders: folders.split(':').map(Utf8PathBuf::from).collect() })
}

/// Libraries below a folder, each once.
fn libraries(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_map(Result::ok);
    let paths = entries
        .filter(|entry| entry.file_type().is_file())
        .filter_map(|e| Utf8PathBuf::from_path_buf(e.into_path()).ok());
    paths.filter(|path| path.file_name().is_some_and(|name| name.contains(".so") || name.ends_with(".a"))).collect()
}

/// What the tool's header dump says: the one form that needs no disassembler and shows suffixes.
fn theirs(tool: &Utf8Path, library: &Utf8Path) -> Result<Entries, String> {
    let output = Command::new(tool).args(["-all", library.as_str()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    if !output.status.success() || said.contains("Invalid ELF") {
        return Err(said.lines().last().unwrap_or_default().to_owned());
    }
    let mut entries = Entries::new();
    let mut current: Option<(String, String, bool)> = None;
    let mut flush = |current: &mut Option<(String, String, bool)>| {
        if let Some((kind, arch, packed)) = current.take() {
            *entries.entry(format!("{kind} {arch}{}", if packed { " compressed" } else { "" })).or_default() += 1;
        }
    };
    for line in text.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("Fatbin ").and_then(|rest| rest.strip_suffix(" code:")) {
            flush(&mut current);
            current = Some((kind.to_owned(), String::new(), false));
        } else if let Some((_, arch, packed)) = &mut current {
            if let Some(name) = line.trim_start().strip_prefix("arch = ") {
                name.trim().clone_into(arch);
            }
            *packed |= line.trim() == "compressed";
        }
    }
    flush(&mut current);
    Ok(entries)
}

fn ours(library: &Utf8Path) -> Entries {
    let file = fs_err::File::open(library).unwrap();
    let listing = fatbin::list(file.file(), &fatbin::Options::default()).unwrap();
    assert!(listing.complete, "{library}: {:?}", listing.diagnostics);
    let mut entries = Entries::new();
    for entry in &listing.entries {
        let packed = entry.payload.compression != fatbin::Compression::None;
        let text = format!("{} {}{}", entry.kind, entry.arch, if packed { " compressed" } else { "" });
        *entries.entry(text).or_default() += 1;
    }
    entries
}

/// Why the tool may fail on a library although its code is sound.
fn excused(said: &str) -> Option<&'static str> {
    [
        ("Invalid ELF", "the tool refuses cubins of CUDA 12.0 and 12.1, whose section links are stale"),
        ("does not contain device code", "nothing to compare"),
    ]
    .into_iter()
    .find(|(sign, _)| said.contains(sign))
    .map(|(_, reason)| reason)
}

#[test]
fn listings_equal_those_of_the_tool() {
    let Some(settings) = settings() else { return };
    let (mut compared, mut entries, mut with_code) = (Vec::new(), 0, 0);
    for library in settings.folders.iter().flat_map(|folder| libraries(folder)) {
        let Ok(file) = fs_err::File::open(&library) else { continue };
        let Ok(listing) = fatbin::list(file.file(), &fatbin::Options::default()) else { continue };
        if listing.entries.is_empty() {
            continue;
        }
        with_code += 1;
        match theirs(&settings.tool, &library) {
            Ok(theirs) => {
                assert_eq!(ours(&library), theirs, "{library}");
                entries += theirs.values().sum::<usize>();
                compared.push(library);
            }
            Err(said) => assert!(excused(&said).is_some(), "{library}: {said}"),
        }
    }
    eprintln!("{} of {with_code} libraries with code compared, {entries} entries", compared.len());
    for library in &compared {
        eprintln!("  {library}");
    }
    assert!(compared.len() >= 10, "only {} libraries were compared", compared.len());
}
