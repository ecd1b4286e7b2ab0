//! Files that a command is asked to write beside its answer. Whether they can be written is asked before the work.
//!
//! Invariant: an option that names a file makes no folder, as with compilers and shells: a folder that is not there is
//! a slip in its name. Options that name a folder (`--out`, `--extract`, `--cache-dir`) make it.

use camino::Utf8Path;

use crate::domain::exit::Exit;
use crate::domain::problem::Problem;

/// Refuses a report that cannot come to be. `made` is a folder that the command itself will make.
pub(super) fn check(path: &Utf8Path, shown: &Utf8Path, made: Option<&Utf8Path>) -> Result<(), Problem> {
    let refused = |why: String| unwritable(shown, why);
    let folder = path.parent().unwrap_or(Utf8Path::new("/"));
    if path.is_dir() {
        return Err(refused("it is a folder".to_owned()).help(format!("name a file in it: {}", shown.join("FILE"))));
    }
    if folder.is_dir() || made.is_some_and(|made| made.starts_with(folder)) {
        return Ok(());
    }
    Err(if folder.exists() {
        refused(format!("{folder} is not a folder")).help("name a file in a folder")
    } else {
        refused(format!("there is no folder {folder}"))
            .help(format!("make it: `mkdir -p {folder}`; or name another file"))
    })
}

/// A report that was begun and could not be finished.
pub(super) fn failed(shown: &Utf8Path, error: &std::io::Error) -> Problem {
    unwritable(shown, error.to_string()).help("name a file in a folder that is yours")
}

fn unwritable(shown: &Utf8Path, why: String) -> Problem {
    Problem::new("cuwright::usage::unwritable_file", Exit::Usage, format!("{shown} cannot be written")).why(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_by_nobody_but_the_command_itself() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        fs_err::write(root.join("file"), "").unwrap();
        let dist = root.join("new/dist");
        let told = |name: &str| {
            let refused = check(&root.join(name), Utf8Path::new(name), Some(&dist)).err()?;
            Some(refused.evidence()[0].replace(root.as_str(), "[ROOT]"))
        };
        assert_eq!(told("x.xml"), None);
        assert_eq!(told("new/dist/x.html"), None);
        assert_eq!(told("new/x.html"), None);
        assert_eq!(told("new/dist/deep/x.html").as_deref(), Some("there is no folder [ROOT]/new/dist/deep"));
        assert_eq!(told("other/x.xml").as_deref(), Some("there is no folder [ROOT]/other"));
        assert_eq!(told("file/x.xml").as_deref(), Some("[ROOT]/file is not a folder"));
        assert_eq!(told(".").as_deref(), Some("it is a folder"));
    }
}
