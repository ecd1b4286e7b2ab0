//! Applies a recipe's patches to the copy of the source tree, with the system's `patch`.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use crate::domain::command::CommandSpec;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::recipe::Patch;
use crate::sys::{Env, process};

const LIMIT: Duration = Duration::from_mins(1);

/// Applies `patches` in order below `source`, which is a copy that may be thrown away; its parent takes the files.
///
/// # Errors
/// A patch that does not apply, or no `patch` program.
pub fn apply(patches: &[Patch], source: &Utf8Path, env: &Env) -> Result<(), Problem> {
    let Some(program) = program(patches, env)? else { return Ok(()) };
    let file = source.with_file_name("applied.patch");
    for patch in patches {
        let failed = |why: &str| {
            let message = format!("the patch {} does not apply", patch.name);
            Problem::new("cuwright::source::patch_failed", Exit::Recipe, message)
                .why(why)
                .help("make it against exactly this source, with paths for `-p1`")
        };
        fs_err::write(&file, &patch.text).map_err(|error| {
            Problem::new("cuwright::source::unwritable", Exit::Recipe, "the source cannot be patched")
                .why(error.to_string())
                .help("free some space in the cache folder, or choose another with `--cache-dir DIR`")
        })?;
        let spec = CommandSpec::new(program.as_str(), source)
            .args(["-p1", "--batch", "--forward", "--reject-file=-", "-i", file.as_str()])
            .env(BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]));
        let said = process::capture(&spec, LIMIT).map_err(|error| failed(&error.to_string()))?;
        if !said.status.success() {
            return Err(failed(format!("{}{}", said.stdout, said.stderr).trim()));
        }
    }
    Ok(())
}

/// The system's `patch`, where there is something to apply.
///
/// # Errors
/// There is none.
pub fn program(patches: &[Patch], env: &Env) -> Result<Option<Utf8PathBuf>, Problem> {
    let Some(first) = patches.first() else { return Ok(None) };
    let missing = || {
        let message = format!("the patch {} cannot be applied", first.name);
        Problem::new("cuwright::source::patch_failed", Exit::Recipe, message)
            .why("there is no `patch` program on PATH")
            .help("Debian, Ubuntu: apt-get install patch")
            .help("Fedora, RHEL: dnf install patch")
    };
    env.find_program("patch").ok_or_else(missing).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_applies_and_a_stale_one_is_refused() {
        let env = Env::of("/", [("PATH", "/usr/bin:/bin")]);
        assert_eq!(program(&[], &Env::of("/", [])).unwrap(), None);
        if env.find_program("patch").is_none() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let root = &Utf8Path::from_path(folder.path()).unwrap().join("src");
        fs_err::create_dir(root).unwrap();
        fs_err::write(root.join("a.txt"), "one\n").unwrap();
        let text = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n".to_owned();
        let patches = [Patch { name: "p".into(), text }];
        apply(&patches, root, &env).unwrap();
        assert_eq!(fs_err::read_to_string(root.join("a.txt")).unwrap(), "two\n");
        assert_eq!(apply(&patches, root, &env).unwrap_err().code(), "cuwright::source::patch_failed");
    }
}
