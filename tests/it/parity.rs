//! Entry for entry against NVIDIA's own `cuobjdump`, over every library with GPU code that is at hand.
//!
//! By default over what the tests of `real` provision (cuBLAS, cuDNN, NCCL, torch and more), with the tool from its
//! wheel. `CUWRIGHT_TEST_CUOBJDUMP` names other tools, tried in turn, and `CUWRIGHT_TEST_LIBRARIES` other folders; both
//! are lists with colons. Where a tool refuses a library, the reason must be among the known ones in `excused`.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

use crate::support::{Sandbox, project};

/// The tool that the libraries are compared with.
const TOOL: &str = "nvidia-cuda-cuobjdump==13.5.37";

/// Kind, arch and compression of an entry, with how often it occurs.
type Entries = BTreeMap<String, usize>;

fn list(variable: &str) -> Option<Vec<Utf8PathBuf>> {
    std::env::var(variable).ok().map(|value| value.split(':').map(Utf8PathBuf::from).collect())
}

/// The folder of packages that the tests of `real` build with; provisioned where they have not run yet.
fn provisioned() -> Utf8PathBuf {
    let cache = Utf8PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let mut sandbox = Sandbox::new().var("CUWRIGHT_CACHE_DIR", cache.as_str());
    for name in ["PATH", "SSL_CERT_FILE", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "HTTPS_PROXY", "PIP_CERT"] {
        if let Ok(value) = std::env::var(name) {
            sandbox = sandbox.var(name, &value);
        }
    }
    sandbox.run(&["toolchain", "install", project("examples/hello_ext").as_str()]).assert_code(0);
    cache.join("toolchains-v1")
}

/// NVIDIA's tool out of its wheel, kept between runs.
fn tool() -> Utf8PathBuf {
    let folder = Utf8PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(TOOL.replace("==", "-"));
    let tool = folder.join("cuobjdump");
    if tool.exists() {
        return tool;
    }
    let said = Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder.as_str(), TOOL])
        .output()
        .unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let wheel = folder.read_dir_utf8().unwrap().next().unwrap().unwrap().into_path();
    let mut zip = zip::ZipArchive::new(fs_err::File::open(wheel).unwrap()).unwrap();
    let names = zip.file_names().map(|name| name.unwrap().into_owned());
    let name = names.into_iter().find(|name| name.ends_with("bin/cuobjdump")).unwrap();
    let staged = folder.join("cuobjdump.part");
    std::io::copy(&mut zip.by_name(&name).unwrap(), &mut fs_err::File::create(&staged).unwrap()).unwrap();
    fs_err::set_permissions(&staged, std::fs::Permissions::from_mode(0o755)).unwrap();
    fs_err::rename(&staged, &tool).unwrap();
    tool
}

/// Libraries below a folder, each once.
fn libraries(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    // An environment offers some of its libraries a second time, as links.
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_map(Result::ok);
    let paths = entries
        .filter(|entry| entry.file_type().is_file())
        .filter_map(|e| Utf8PathBuf::from_path_buf(e.into_path()).ok());
    paths
        .filter(|path| path.file_name().is_some_and(|name| name.contains(".so")) || path.extension() == Some("a"))
        .collect()
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
#[expect(clippy::print_stderr, reason = "the list of what was compared is a result, seen with `--nocapture`")]
fn listings_equal_those_of_the_tool() {
    let tools = list("CUWRIGHT_TEST_CUOBJDUMP").unwrap_or_else(|| vec![tool()]);
    let folders = list("CUWRIGHT_TEST_LIBRARIES").unwrap_or_else(|| vec![provisioned()]);
    let (mut compared, mut entries) = (Vec::new(), 0);
    for library in folders.iter().flat_map(|folder| libraries(folder)) {
        let Ok(file) = fs_err::File::open(&library) else { continue };
        let Ok(listing) = fatbin::list(file.file(), &fatbin::Options::default()) else { continue };
        if listing.entries.is_empty() {
            continue;
        }
        let mut refusals = Vec::new();
        let theirs = tools.iter().find_map(|tool| theirs(tool, &library).map_err(|said| refusals.push(said)).ok());
        for said in &refusals {
            let reason = excused(said).unwrap_or_else(|| panic!("{library}: {said}"));
            eprintln!("{library}: a tool fails, since {reason}");
        }
        if let Some(theirs) = theirs {
            assert_eq!(ours(&library), theirs, "{library}");
            entries += theirs.values().sum::<usize>();
            eprintln!("{library}: equal");
            compared.push(library);
        }
    }
    eprintln!("{} libraries compared, {entries} entries", compared.len());
    assert!(compared.len() >= 10, "only {} libraries were compared", compared.len());
}

/// Cubins in zstd frames are read in parts. Taken out and read as files of their own, they must say the same.
#[test]
#[expect(clippy::print_stderr, reason = "how much was compared is a result, seen with `--nocapture`")]
fn cubins_read_in_parts_equal_cubins_read_whole() {
    let folders = list("CUWRIGHT_TEST_LIBRARIES").unwrap_or_else(|| vec![provisioned()]);
    let (mut compared, mut kernels) = (0, 0);
    for library in folders.iter().flat_map(|folder| libraries(folder)) {
        let Ok(file) = fs_err::File::open(&library) else { continue };
        let Ok(listing) = fatbin::list(file.file(), &fatbin::Options::default()) else { continue };
        let zstd = listing
            .entries
            .iter()
            .filter(|entry| entry.kind == fatbin::Kind::Elf && entry.payload.compression == fatbin::Compression::Zstd);
        // Large libraries hold thousands; unpacking all of them takes a minute without optimisation.
        let zstd: Vec<_> = zstd.collect();
        for entry in zstd.iter().step_by(zstd.len() / 15 + 1) {
            let mut extractor = fatbin::Extractor::new(file.file(), fatbin::Limits::default());
            let in_parts = extractor.inspect(entry).unwrap_or_else(|error| panic!("{library}: {error}"));
            let whole = extractor.bytes(entry).unwrap();
            let bare = fatbin::list(&whole, &fatbin::Options::default()).unwrap();
            let of_whole = fatbin::Extractor::new(&whole, fatbin::Limits::default()).inspect(&bare.entries[0]).unwrap();
            assert!(in_parts.contents == of_whole.contents, "{library}, entry at {}", entry.offset);
            compared += 1;
            if let fatbin::Contents::Cubin(cubin) = in_parts.contents {
                kernels += cubin.kernels.len();
            }
        }
    }
    eprintln!("{compared} cubins with {kernels} kernels compared");
    assert!(compared >= 100, "only {compared} cubins were compared");
}
