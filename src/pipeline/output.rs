//! The output folder of a run: whether it can be written to, and where in it each artifact goes.
//!
//! Invariant: no artifact of a run overwrites another one of it. File names of wheels are known once they are built,
//! and recipes of different packages may make the same one: then the one that is ready later goes to a folder of its
//! unit's name, and stays there in later runs of several units. What an earlier run left under the name is replaced, with
//! a warning: the cache has it. A file that cuwright did not write, or that was changed since, is kept under another name.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::Context;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::sys::files;

/// What the units of one run have put where.
#[derive(Debug)]
pub struct Output {
    several: bool,
    /// Unit and digest by path.
    taken: Mutex<BTreeMap<Utf8PathBuf, (String, Option<String>)>>,
}

/// Where one unit puts its artifact.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Unlike that of any other unit of the run.
    pub id: &'a str,
    /// Its output folder.
    pub folder: &'a Utf8Path,
    /// What the others have put where.
    pub output: &'a Output,
}

impl Output {
    /// Of a run of this many units.
    pub fn of(units: usize) -> Self {
        Self { several: units > 1, taken: Mutex::default() }
    }

    /// Takes `path` for a unit, or tells which other one has put something else there.
    fn take(&self, path: &Utf8Path, id: &str, digest: Option<&str>) -> Option<String> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (other, theirs) =
            taken.entry(path.to_owned()).or_insert_with(|| (id.to_owned(), digest.map(str::to_owned)));
        (other.as_str() != id && theirs.as_deref() != digest).then(|| other.clone())
    }
}

impl Place<'_> {
    /// Refuses a folder that cannot be written to before an hour is spent on what should go there; makes nothing.
    ///
    /// # Errors
    /// It cannot be written to.
    pub fn check(&self) -> Result<(), Problem> {
        let nearest = self.folder.ancestors().find(|folder| folder.exists()).unwrap_or(Utf8Path::new("/"));
        tempfile::tempfile_in(nearest).map(drop).map_err(|error| not_written(self.folder, &error))
    }

    /// Puts an artifact there, and gives its new path.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put(&self, context: &Context<'_>, unit: &str, artifact: &Utf8Path) -> Result<Utf8PathBuf, Problem> {
        let digest = |path: &Utf8Path| files::sha256_file(path).ok();
        let name = artifact.file_name().unwrap_or_default();
        let (plain, own) = (self.folder.join(name), self.folder.join(self.id.replace('/', "-")).join(name));
        let ours = digest(artifact);
        let to = if self.output.several && own.exists() {
            own
        } else if let Some(other) = self.output.take(&plain, self.id, ours.as_deref()) {
            context.warn(unit, format!("{other} made a file of the same name, {name}: this one goes to {own}"));
            own
        } else {
            plain
        };
        // The arch set is not part of an artifact's file name, so another build of the same package has the same one.
        let theirs = digest(&to).filter(|theirs| Some(theirs) != ours.as_ref());
        if let Some(theirs) = theirs {
            if Written::read(&to).digests.get(name) == Some(&theirs) {
                let text = format!("{to} held another build and is replaced; that one can be restored from the cache");
                context.warn(unit, text);
            } else {
                let kept = Utf8PathBuf::from(format!("{to}.kept-{}", &theirs[..8]));
                fs_err::rename(&to, &kept).map_err(|error| not_written(&to, &error))?;
                context.warn(unit, format!("{to} was not written by cuwright, or was changed since: it is now {kept}"));
            }
        }
        files::copy_atomic(artifact, &to).map_err(|error| not_written(&to, &error))?;
        if let Some(ours) = ours {
            Written::read(&to).with(name, ours).save(&to);
        }
        Ok(to)
    }
}

/// What cuwright has written into one folder: a hidden file beside the artifacts.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Written {
    /// sha256 by file name.
    digests: BTreeMap<String, String>,
}

impl Written {
    fn file(artifact: &Utf8Path) -> Utf8PathBuf {
        artifact.with_file_name(".cuwright-written.json")
    }

    /// Of the folder of `artifact`. A file that is missing or damaged knows nothing, and then nothing is replaced.
    fn read(artifact: &Utf8Path) -> Self {
        let text = fs_err::read(Self::file(artifact)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn with(mut self, name: &str, digest: String) -> Self {
        self.digests.insert(name.to_owned(), digest);
        self
    }

    /// A record that cannot be kept costs a copy the next time, and is no reason to fail.
    fn save(&self, artifact: &Utf8Path) {
        let _ = files::write_atomic(&Self::file(artifact), &serde_json::to_vec(self).unwrap_or_default());
    }
}

/// A file that could not be put where it should go.
pub(super) fn not_written(path: &Utf8Path, error: &std::io::Error) -> Problem {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let help = match error.kind() {
        NotADirectory => "a part of this path is a file: name a folder with `--out DIR`",
        NotFound => "nothing can be made in that place: name another folder with `--out DIR`",
        _ => "free some space or check the permissions of the folder; `--out DIR` chooses another",
    };
    let problem = Problem::new("cuwright::build::not_written", Exit::Build, format!("{path} could not be written"));
    problem.why(error.to_string()).help(help)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use fs_err as fs;

    use super::*;
    use crate::report::Event;
    use crate::sys::Env;

    /// Puts files with these texts under one name for units `a`, `b`, … and gives what lies where, and the warnings.
    fn put(root: &Utf8Path, texts: &[&str]) -> (Vec<String>, Vec<String>) {
        let warnings = Mutex::new(Vec::new());
        let tell = |event: Event| {
            if let Event::Warning { text, .. } = event {
                warnings.lock().unwrap().push(text.replace(root.as_str(), "[ROOT]"));
            }
        };
        let env = Env::default();
        let context = Context { env: &env, cache_root: root, tell: &tell };
        let (output, folder) = (Output::of(texts.len()), root.join("dist"));
        let mut placed = Vec::new();
        for (text, id) in texts.iter().zip(["a", "b", "c/9.0"]) {
            let artifact = root.join(format!("built-{}", id.replace('/', "-"))).join("x.whl");
            fs::create_dir_all(artifact.parent().unwrap()).unwrap();
            fs::write(&artifact, text).unwrap();
            let place = Place { id, folder: &folder, output: &output };
            let to = place.put(&context, id, &artifact).unwrap();
            assert_eq!(fs::read_to_string(&to).unwrap(), *text);
            placed.push(to.strip_prefix(&folder).unwrap().to_string());
        }
        (placed, warnings.into_inner().unwrap())
    }

    #[test]
    fn units_whose_files_have_one_name_keep_all_of_them() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        let (placed, warnings) = put(root, &["1", "2", "3"]);
        assert_eq!(placed, ["x.whl", "b/x.whl", "c-9.0/x.whl"]);
        assert_eq!(warnings[0], "a made a file of the same name, x.whl: this one goes to [ROOT]/dist/b/x.whl");
        assert_eq!(warnings.len(), 2);
        // Where each of them lies does not hang on who is ready first the next time.
        assert_eq!(put(root, &["1", "2", "3"]), (placed, Vec::new()));
    }

    #[test]
    fn the_same_file_is_one_and_an_earlier_build_is_replaced_with_a_warning() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        assert_eq!(put(root, &["1", "1"]), (vec!["x.whl".to_owned(); 2], Vec::new()));
        let (placed, warnings) = put(root, &["2"]);
        assert_eq!(placed, ["x.whl"]);
        assert!(warnings[0].starts_with("[ROOT]/dist/x.whl held another build and is replaced"), "{warnings:?}");
    }

    #[test]
    fn a_file_that_is_not_ours_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        let dist = root.join("dist");
        fs::create_dir_all(&dist).unwrap();
        fs::write(dist.join("x.whl"), "somebody's").unwrap();
        let kept = |text: &str| dist.join(format!("x.whl.kept-{}", &files::sha256(text.as_bytes())[..8]));
        let (_, warnings) = put(root, &["1"]);
        assert!(warnings[0].contains("was not written by cuwright"), "{warnings:?}");
        assert_eq!(fs::read_to_string(kept("somebody's")).unwrap(), "somebody's");
        // Ours, changed by somebody since.
        fs::write(dist.join("x.whl"), "patched").unwrap();
        assert_eq!(put(root, &["1"]).1.len(), 1);
        assert_eq!(fs::read_to_string(kept("patched")).unwrap(), "patched");
        // The same contents are the same file, whoever wrote them.
        fs::remove_file(dist.join(".cuwright-written.json")).unwrap();
        assert_eq!(put(root, &["1"]).1, Vec::<String>::new());
    }
}
