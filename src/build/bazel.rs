//! What a Bazel build made, from its build event protocol.
//!
//! Only files of targets that were asked for count, not those of what they depend on. An event that is not understood is
//! passed over, as the protocol wants it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde_json::Value;

use super::ninja::Step;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::sys::Env;

/// One output file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Output {
    /// Path below `bazel-bin`.
    pub name: Utf8PathBuf,
    /// Where it is.
    pub path: Utf8PathBuf,
}

/// Whether Bazel is here, which nobody provisions.
///
/// # Errors
/// It is not.
pub fn program(env: &Env) -> Result<Utf8PathBuf, Problem> {
    env.find_program("bazel").ok_or_else(|| {
        Problem::new("cuwright::build::no_bazel", Exit::Toolchain, "there is no Bazel on PATH")
            .why("the recipe's backend is `bazel`, and wheels hold no Bazel")
            .help("Debian, Ubuntu: apt-get install bazel-bootstrap")
            .help("or put bazelisk on PATH under the name `bazel`")
    })
}

/// Reads `[1 / 4] Compiling kernels/relu.cu; 1s linux-sandbox`.
pub fn step(line: &str) -> Option<Step<'_>> {
    let (counts, command) = line.strip_prefix('[')?.split_once("] ")?;
    let (done, total) = counts.split_once(" / ")?;
    let number = |text: &str| text.replace(',', "").parse().ok();
    let (done, total) = (number(done)?, number(total)?);
    let command = command.split([';', ' ']).find(|word| word.contains('.')).unwrap_or(command);
    (done <= total).then_some(Step { done, total, command })
}

/// The output files of the targets that were asked for.
///
/// # Errors
/// Events that cannot be read, no output at all, or one that is not on this machine.
pub fn outputs(events: &Utf8Path) -> Result<Vec<Output>, Problem> {
    let unreadable = |why: String| failed("Bazel's build events cannot be read", why);
    let file = fs::File::open(events).map_err(|error| unreadable(error.to_string()))?;
    let mut sets = BTreeMap::new();
    let mut wanted = Vec::new();
    for line in BufReader::new(file).lines() {
        let line = line.map_err(|error| unreadable(error.to_string()))?;
        let event: Value = serde_json::from_str(&line).map_err(|error| unreadable(error.to_string()))?;
        if let Some(set) = event.pointer("/id/namedSet/id").and_then(Value::as_str) {
            sets.insert(set.to_owned(), event["namedSetOfFiles"].clone());
        }
        // Aspects and configurations of a target complete too; what they made lies in their sets.
        let groups = event.pointer("/completed/outputGroup").and_then(Value::as_array);
        for group in groups.into_iter().flatten().filter(|group| group["name"] == "default") {
            wanted.extend(ids(group));
        }
    }
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    while let Some(id) = wanted.pop() {
        let Some(set) = sets.get(&id).filter(|_| seen.insert(id.clone())) else { continue };
        wanted.extend(ids(set));
        for file in set["files"].as_array().into_iter().flatten() {
            found.insert(output(file)?);
        }
    }
    if found.is_empty() {
        let why = format!("no target that was asked for has an output, by {events}");
        return Err(failed("Bazel ended well but made no file", why));
    }
    Ok(found.into_iter().collect())
}

/// Copies outputs into `stage`, under their names.
///
/// # Errors
/// A file that cannot be copied.
pub fn collect(outputs: &[Output], stage: &Utf8Path) -> std::io::Result<()> {
    for output in outputs {
        let to = stage.join(&output.name);
        fs::create_dir_all(to.parent().unwrap_or(stage))?;
        fs::copy(&output.path, &to)?;
    }
    Ok(())
}

/// Ids of the sets that a set or an output group refers to.
fn ids(value: &Value) -> Vec<String> {
    let sets = value["fileSets"].as_array().into_iter().flatten();
    sets.filter_map(|set| set["id"].as_str()).map(str::to_owned).collect()
}

fn output(file: &Value) -> Result<Output, Problem> {
    let (name, uri) = (file["name"].as_str().unwrap_or_default(), file["uri"].as_str().unwrap_or_default());
    let Some(path) = uri.strip_prefix("file://") else {
        return Err(failed(&format!("Bazel left {name} on another machine"), format!("its address is {uri}"))
            .help("add `--remote_download_outputs=toplevel` to `build.bazel.flags`"));
    };
    let name: Utf8PathBuf = Utf8Path::new(name)
        .components()
        .filter(|part| matches!(part, Utf8Component::Normal(_)))
        .map(|part| part.as_str().to_owned())
        .collect();
    Ok(Output { name, path: decoded(path).into() })
}

/// Takes the `%20` of a URI apart; what is no UTF-8 then stays as it was written.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = hex.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn failed(message: &str, why: String) -> Problem {
    Problem::new("cuwright::build::no_output", Exit::Build, message)
        .why(why)
        .help("check `build.bazel.targets`: `bazel cquery --output=files TARGET` shows what a target makes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let events = Utf8Path::from_path(folder.path()).unwrap().join("e");
        fs::write(&events, lines).unwrap();
        let shown = |output: Output| format!("{} {}", output.name, output.path);
        outputs(&events).map(|all| all.into_iter().map(shown).collect()).map_err(|p| p.message().to_owned())
    }

    const SETS: &str = r#"{"id":{"progress":{}},"progress":{}}
{"id":{"namedSet":{"id":"0"}},"namedSetOfFiles":{"files":[{"name":"k/a b.so","uri":"file:///out/k/a%20b.so"}]}}
{"id":{"namedSet":{"id":"1"}},"namedSetOfFiles":{"files":[{"name":"../k/c.a","uri":"file:///out/c.a"}],"fileSets":[{"id":"0"}]}}
{"id":{"namedSet":{"id":"2"}},"namedSetOfFiles":{"files":[{"name":"no","uri":"file:///no"}]}}
"#;

    #[test]
    fn files_come_from_the_default_group_of_what_was_asked_for() {
        let done = r#"{"id":{"targetCompleted":{}},"completed":{"success":true,"outputGroup":[{"name":"default","fileSets":[{"id":"1"}]},{"name":"_hidden","fileSets":[{"id":"2"}]}]}}"#;
        assert_eq!(read(&format!("{SETS}{done}\n")).unwrap(), ["k/a b.so /out/k/a b.so", "k/c.a /out/c.a"]);
    }

    #[test]
    fn progress_names_the_source() {
        let step = step("[1 / 2,004] Compiling kernels/relu.cu; 1s linux-sandbox ... (2 actions running)").unwrap();
        assert_eq!((step.done, step.total, step.command), (1, 2004, "kernels/relu.cu"));
        assert_eq!(super::step("[1/4] nvcc"), None);
    }

    #[test]
    fn no_output_and_one_elsewhere_are_told() {
        assert_eq!(read(SETS), Err("Bazel ended well but made no file".to_owned()));
        assert_eq!(read("{\n"), Err("Bazel's build events cannot be read".to_owned()));
        let remote = r#"{"id":{"namedSet":{"id":"0"}},"namedSetOfFiles":{"files":[{"name":"x","uri":"bytestream://h/x"}]}}
{"completed":{"outputGroup":[{"name":"default","fileSets":[{"id":"0"}]}]}}"#;
        assert_eq!(read(remote), Err("Bazel left x on another machine".to_owned()));
    }
}
