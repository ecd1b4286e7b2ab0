//! What a toolchain is, beyond the versions that it says: digests of its programs, and of the records of its packages.
//!
//! Everything is remembered by stamps, so that a warm run reads none of it. Which parts a compiler driver starts and which
//! headers it finds is not here: a build says what it read (`build::record`).

use std::collections::BTreeMap;
use std::convert::Infallible;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::domain::toolchain::Toolchain;
use crate::key::Tool;
use crate::probe::facts::{self, Facts};
use crate::provision;
use crate::sys::files;

/// How the folder of a provisioned environment is written: it lies elsewhere on another machine.
const PROVISIONED: &str = "(toolchain)";

/// The programs of a toolchain, each with its place and its contents. A place in a provisioned environment is written
/// from its root.
pub(super) fn tools(toolchain: &Toolchain, facts: &Facts, cache_root: &Utf8Path) -> BTreeMap<String, Tool> {
    let nvcc = toolchain.toolkit.home.join("bin/nvcc");
    let programs = [
        ("nvcc", &nvcc),
        ("cc", &toolchain.host.cc),
        ("cxx", &toolchain.host.cxx),
        ("python", &toolchain.python.executable),
    ];
    let digest = |program: &Utf8Path| {
        let contents = || Ok::<_, Infallible>(files::sha256_file(program).unwrap_or_default());
        facts.remember("contents", program, &[], contents).unwrap_or_default()
    };
    let ours = provision::folder(cache_root);
    let place = |program: &Utf8Path| match program.strip_prefix(&ours) {
        Ok(inside) => inside.components().skip(1).fold(Utf8PathBuf::from(PROVISIONED), |path, part| path.join(part)),
        Err(_) => program.to_owned(),
    };
    let tool = |(name, program): (&str, &Utf8PathBuf)| {
        (name.to_owned(), Tool { path: place(program).into_string(), sha256: digest(program) })
    };
    programs.into_iter().map(tool).collect()
}

/// One digest over the records of all packages that a build can import: what each package consists of, file by file.
pub(super) fn packages(toolchain: &Toolchain, facts: &Facts) -> String {
    let folders = toolchain.overlay.iter().chain(&toolchain.python.site_dirs);
    let digests: Vec<String> = folders.filter_map(|folder| of_folder(folder, facts)).collect();
    files::sha256(digests.join("\n").as_bytes())
}

fn of_folder(folder: &Utf8Path, facts: &Facts) -> Option<String> {
    let entries = folder.read_dir_utf8().ok()?.filter_map(Result::ok);
    let mut records: Vec<Utf8PathBuf> = entries.filter_map(|entry| record(entry.path())).collect();
    records.sort();
    let stamps: Vec<String> = records.iter().filter_map(|record| facts::stamp(record)).collect();
    let read = || Ok::<_, Infallible>(files::sha256(contents(folder, &records).as_bytes()));
    facts.remember("packages", folder, &stamps, read).ok()
}

/// The file that tells what a package consists of.
fn record(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let inside = |names: [&str; 2]| names.map(|name| path.join(name)).into_iter().find(|file| file.exists());
    match path.extension()? {
        "dist-info" => inside(["RECORD", "METADATA"]),
        "egg-info" if path.is_dir() => inside(["SOURCES.txt", "PKG-INFO"]),
        "egg-info" | "egg-link" | "pth" => Some(path.to_owned()),
        _ => None,
    }
}

fn contents(folder: &Utf8Path, records: &[Utf8PathBuf]) -> String {
    // Scripts begin with the path of their Python, which is no part of a package, and what was compiled is no source.
    let counts = |line: &&str| !line.starts_with("../") && !line.contains("__pycache__");
    let mut text = String::new();
    for record in records {
        let lines = fs::read_to_string(record).unwrap_or_default();
        text.push_str(record.strip_prefix(folder).unwrap_or(record).as_str());
        for line in lines.lines().filter(counts) {
            text.push('\n');
            text.push_str(line);
        }
        text.push('\0');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::toolchain;

    #[test]
    fn a_package_that_is_replaced_under_its_version_changes_the_digest_and_its_place_does_not() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap();
        let site = |name: &str, record: &str| {
            let info = root.join(name).join("torch-2.11.0.dist-info");
            fs::create_dir_all(&info).unwrap();
            fs::write(info.join("RECORD"), record).unwrap();
            let mut toolchain = toolchain::sample();
            toolchain.python.site_dirs = vec![root.join(name)];
            packages(&toolchain, &Facts::new(Some(&root.join("cache"))))
        };
        let first = site("a", "torch/version.py,sha256=aa,1\n../../../bin/torchrun,sha256=a1,9\n");
        assert_eq!(site("b", "torch/version.py,sha256=aa,1\n../../../bin/torchrun,sha256=b1,9\n"), first);
        assert_ne!(site("a", "torch/version.py,sha256=bb,1\n"), first);
    }

    #[test]
    fn a_program_of_the_same_version_is_told_apart_by_its_contents_and_its_place() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap();
        let tools = |place: &str, text: &str| {
            let path = root.join(place).join("g++");
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let mut toolchain = toolchain::sample();
            toolchain.host.cxx = path;
            tools(&toolchain, &Facts::new(Some(&root.join("cache"))), &root.join("cache"))
        };
        let first = tools("bin", "exec g++-12");
        assert_ne!(tools("bin", "exec g++-12 -DX"), first);
        assert_ne!(tools("other", "exec g++-12"), first);
        let ours = tools("cache/toolchains-v1/aaaa/bin", "x");
        assert_eq!(ours["cxx"].path, "(toolchain)/bin/g++");
        assert_eq!(ours, tools("cache/toolchains-v1/bbbb/bin", "x"));
    }
}
