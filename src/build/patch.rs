//! Applies a recipe's patches to the copy of the source tree, with the system's `patch`.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8Path;

use crate::domain::command::CommandSpec;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::recipe::Patch;
use crate::sys::{Env, process};

const LIMIT: Duration = Duration::from_mins(1);

/// Applies `patches` in order below `source`, which is a copy that may be thrown away.
///
/// # Errors
/// A patch that does not apply, or no `patch` program.
pub fn apply(patches: &[Patch], source: &Utf8Path, env: &Env) -> Result<(), Problem> {
    for patch in patches {
        let failed = |why: String| {
            Problem::new(
                "cuwright::source::patch_failed",
                Exit::Recipe,
                format!("the patch {} does not apply", patch.name),
            )
            .why(why)
            .help("make it against exactly this source, with paths for `-p1`")
        };
        let Some(program) = env.find_program("patch") else {
            return Err(
                failed("there is no `patch` program on PATH".to_owned()).help("install it: `apt install patch`")
            );
        };
        let file = tempfile::NamedTempFile::new().map_err(|error| failed(error.to_string()))?;
        fs_err::write(file.path(), &patch.text).map_err(|error| failed(error.to_string()))?;
        let path =
            Utf8Path::from_path(file.path()).ok_or_else(|| failed("the temporary path is not UTF-8".to_owned()))?;
        let spec = CommandSpec::new(program.as_str(), source)
            .args(["-p1", "--batch", "--forward", "--reject-file=-", "-i", path.as_str()])
            .env(BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]));
        let said = process::capture(&spec, LIMIT).map_err(|error| failed(error.to_string()))?;
        if !said.status.success() {
            return Err(failed(format!("{}{}", said.stdout, said.stderr).trim().to_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_applies_and_a_stale_one_is_refused() {
        let env = Env::of("/", [("PATH", "/usr/bin:/bin")]);
        if env.find_program("patch").is_none() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs_err::write(root.join("a.txt"), "one\n").unwrap();
        let text = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n".to_owned();
        let patches = [Patch { name: "p".into(), text }];
        apply(&patches, root, &env).unwrap();
        assert_eq!(fs_err::read_to_string(root.join("a.txt")).unwrap(), "two\n");
        assert_eq!(apply(&patches, root, &env).unwrap_err().code(), "cuwright::source::patch_failed");
    }
}
