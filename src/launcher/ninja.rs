//! The stand-in for ninja: lets it start more compilers than may work, so that the coordinator chooses among them.
//!
//! ninja starts steps in its own order, and torch gives it `-j MAX_JOBS`. A stand-in that waits costs next to nothing, so
//! ninja may start them all, provided that every compiler in its file is one: `MAX_JOBS` itself stays what the machine
//! bears, for whatever goes around the launcher.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::message::{Ask, send};
use super::socket;
use crate::sys::exec;

/// Waiting stand-ins at once. Each holds a process, so not without end.
const MOST: usize = 384;

/// The arguments for ninja, with a larger `-j` where that is safe; tells the coordinator how many calls will come.
pub(super) fn widened(arguments: &[OsString], root: &Path) -> Vec<OsString> {
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let wide =
        plan(&words, &root.to_string_lossy(), |path| fs_err::read_to_string(exec::current_dir().join(path)).ok());
    let Some((jobs, mut widened)) = wide else { return arguments.to_vec() };
    if let Ok(mut stream) = socket::connect(root) {
        let _ = send(&mut stream, &Ask::Crowd { calls: jobs });
    }
    widened.push(format!("-j{jobs}").into());
    widened
}

/// How many jobs, and the arguments without their own `-j`; nothing where the call is no build or the file is not
/// wholly ours.
fn plan(words: &[String], root: &str, read: impl Fn(&Path) -> Option<String>) -> Option<(usize, Vec<OsString>)> {
    let (mut folder, mut file, mut asked) = (PathBuf::new(), PathBuf::from("build.ninja"), 1);
    let mut kept = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        // `-j 8`, `-j8`; the same for the others.
        let mut value = |letter: &str| match word.strip_prefix(letter)? {
            "" => rest.next().cloned(),
            attached => Some(attached.to_owned()),
        };
        if word.starts_with("--version") || matches!(word.as_str(), "-h" | "--help" | "-n") || word.starts_with("-t") {
            return None;
        } else if let Some(jobs) = value("-j") {
            asked = jobs.parse().unwrap_or(1);
            continue;
        } else if let Some(path) = value("-C") {
            kept.push(OsString::from(format!("-C{path}")));
            folder = path.into();
            continue;
        } else if let Some(path) = value("-f") {
            kept.push(OsString::from(format!("-f{path}")));
            file = path.into();
            continue;
        }
        kept.push(word.into());
    }
    let text = read(&folder.join(file))?;
    let rules = read(&folder.join("CMakeFiles/rules.ninja"));
    if !ours(rules.as_deref().unwrap_or(&text), root) {
        return None;
    }
    let steps = text.lines().filter(|line| line.starts_with("build ") && !line.contains(": phony")).count();
    Some((steps.clamp(1, MOST).max(asked), kept))
}

/// Whether every compiler of a ninja file is a stand-in: torch's files name theirs in variables, `CMake` in commands.
fn ours(text: &str, root: &str) -> bool {
    let variable = |line: &&str| line.starts_with("cxx = ") || line.starts_with("nvcc = ");
    let mut named = text.lines().filter(variable).peekable();
    if named.peek().is_some() {
        return named.all(|line| line.contains(root));
    }
    text.contains(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "cxx = /b/launch/cxx/g++\nnvcc = /b/launch/bin/nvcc\nbuild a.o: compile a.cpp\n\
                        build b.o: cuda_compile b.cu\nbuild all: phony a.o\n";

    fn of(line: &str, text: &str) -> Option<(usize, String)> {
        let words = shlex::split(line).unwrap();
        let (jobs, kept) = plan(&words, "/b/launch", |path| (path == "x/y.ninja").then(|| text.to_owned()))?;
        Some((jobs, kept.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")))
    }

    #[test]
    fn a_build_of_our_compilers_is_widened_and_nothing_else() {
        assert_eq!(of("-v -j 1 -C x -f y.ninja", FILE), Some((2, "-v -Cx -fy.ninja".to_owned())));
        assert_eq!(of("-j9 -Cx -fy.ninja all", FILE), Some((9, "-Cx -fy.ninja all".to_owned())));
        assert_eq!(of("--version", FILE), None);
        assert_eq!(of("-t clean -C x -f y.ninja", FILE), None);
        assert_eq!(of("-C x", FILE), None, "no such file");
        let half = FILE.replace("nvcc = /b/launch/bin", "nvcc = /usr/local/cuda/bin");
        assert_eq!(of("-C x -f y.ninja", &half), None, "a compiler that goes around the launcher");
    }
}
