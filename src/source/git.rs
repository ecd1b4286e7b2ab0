//! A source that is one commit of a git repository, fetched by the system's git.
//!
//! A commit's name is the digest of what it holds, and git checks every object against its name. So trees are kept by
//! commit alone, whatever address they came from, and a stored one needs no network. Nothing of git's own is kept.

use std::time::Duration;

use camino::Utf8Path;
use fs_err as fs;

use super::tree::{Taken, Tree, unwritable};
use crate::domain::command::CommandSpec;
use crate::domain::{exit::Exit, problem::Problem};
use crate::sys::lock::Lock;
use crate::sys::process::{self, ProcessError};
use crate::sys::signals::Deferred;
use crate::sys::{Env, files};

const SOURCES: &str = "sources-v1";
/// Submodules of large projects come from dozens of repositories.
const LIMIT: Duration = Duration::from_hours(3);

/// Which commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Address of the repository, or an absolute path.
    pub url: String,
    /// The commit, 40 or 64 hex digits in lower case.
    pub id: String,
    /// Whether its submodules belong to it.
    pub submodules: bool,
}

impl Commit {
    fn folder(&self) -> String {
        format!("git-{}{}", self.id, if self.submodules { "-submodules" } else { "" })
    }

    /// Whether fetching it needs no network.
    pub fn is_local(&self) -> bool {
        self.url.starts_with('/') || self.url.starts_with("file://")
    }
}

/// The tree of an earlier run; a warm run needs nothing else.
pub fn stored(commit: &Commit, root: &Utf8Path) -> Option<Tree> {
    let folder = root.join(SOURCES).join(commit.folder());
    let tree: Tree = serde_json::from_slice(&fs::read(folder.join("tree.json")).ok()?).ok()?;
    let place = folder.join("tree");
    place.is_dir().then_some(Tree { root: place, ..tree })
}

/// The tree, checked out under the cache root.
///
/// # Errors
/// No git, a repository that cannot be reached or lacks the commit, a full disk, or a signal.
pub fn tree(commit: &Commit, root: &Utf8Path, env: &Env) -> Result<Tree, Problem> {
    let bucket = root.join(SOURCES);
    let lock = bucket.join(format!("{}.lock", commit.folder()));
    let _alone = Lock::exclusive(&lock, || {}).map_err(|error| unwritable(&error))?;
    if let Some(tree) = stored(commit, root) {
        return Ok(tree);
    }
    // A signal ends git and us, and what is half fetched goes.
    let _deferred = Deferred::begin();
    let staged = tempfile::Builder::new().prefix(".git-").tempdir_in(&bucket).map_err(|error| unwritable(&error))?;
    let ready = Utf8Path::from_path(staged.path()).unwrap_or(&bucket).join("ready");
    let work = ready.join("tree");
    fs::create_dir_all(&work).map_err(|error| unwritable(&error))?;
    Git::new(commit, &work, env)?.check_out()?;
    remove_git(&work).map_err(|error| unwritable(&error))?;
    let tree = Tree::read(&work, Taken::All)?;
    let text = serde_json::to_vec(&tree).map_err(|error| unwritable(&error.into()))?;
    files::write_atomic(&ready.join("tree.json"), &text).map_err(|error| unwritable(&error))?;
    let place = bucket.join(commit.folder());
    files::remove_tree(&place).map_err(|error| unwritable(&error))?;
    fs::rename(&ready, &place).map_err(|error| unwritable(&error))?;
    Ok(Tree { root: place.join("tree"), ..tree })
}

struct Git<'a> {
    commit: &'a Commit,
    base: CommandSpec,
}

impl<'a> Git<'a> {
    fn new(commit: &'a Commit, work: &Utf8Path, env: &Env) -> Result<Self, Problem> {
        let program = env.find_program("git").ok_or_else(|| {
            failed(commit, "there is no `git` program on PATH".to_owned())
                .help("Debian, Ubuntu: apt-get install git")
                .help("Fedora, RHEL: dnf install git")
        })?;
        let mut variables = env.variables().clone();
        // Such as GIT_DIR, which a hook sets: they would lead git to another repository.
        let leads_away = |name: &str| {
            ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_NAMESPACE"].contains(&name)
                || name.starts_with("GIT_OBJECT")
                || name.starts_with("GIT_ALTERNATE")
        };
        variables.retain(|name, _| !leads_away(name));
        variables.insert("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned());
        variables.insert("LC_ALL".to_owned(), "C".to_owned());
        let mut base = CommandSpec::new(program.as_str(), work).env(variables);
        // A repository's or a user's hooks and file monitor are programs, and a checkout has no need of them.
        base = base.args([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "protocol.ext.allow=never",
        ]);
        base = base.args(["-c", "advice.detachedHead=false", "-c", "core.autocrlf=false", "-c", "core.symlinks=true"]);
        if commit.is_local() {
            // git takes submodules of a local repository from local paths only if told to.
            base = base.args(["-c", "protocol.file.allow=always"]);
        }
        Ok(Self { commit, base })
    }

    fn check_out(&self) -> Result<(), Problem> {
        let (url, id) = (self.commit.url.as_str(), self.commit.id.as_str());
        self.run(&["init", "--quiet", "--template="])?;
        // Not every server gives out a commit that no branch or tag points at; with all of history it must be there.
        if self.run(&["fetch", "--quiet", "--depth=1", "--no-tags", url, id]).is_err() {
            self.run(&[
                "fetch",
                "--quiet",
                "--no-tags",
                url,
                "+refs/heads/*:refs/all/heads/*",
                "+refs/tags/*:refs/all/tags/*",
            ])?;
        }
        self.run(&["checkout", "--quiet", "--detach", id])?;
        let head = self.run(&["rev-parse", "HEAD"])?;
        if head.trim() != id {
            let why = format!("{id} is no commit but leads to {}", head.trim());
            return Err(failed(self.commit, why).help("write the full id of the commit, not of a tag"));
        }
        if self.commit.submodules {
            // Relative addresses of submodules are relative to the repository's own.
            self.run(&["config", "remote.origin.url", url])?;
            self.run(&["submodule", "--quiet", "update", "--init", "--recursive", "--depth=1"])?;
        }
        Ok(())
    }

    fn run(&self, args: &[&str]) -> Result<String, Problem> {
        let spec = self.base.clone().args(args.iter().copied());
        match process::capture(&spec, LIMIT) {
            Ok(said) if said.status.success() => Ok(said.stdout),
            Ok(said) => Err(failed(self.commit, said.tail(6))
                .help("check `git` and `commit` in `[source]`, the network, and whether you may read the repository")),
            Err(ProcessError::Interrupted) => Err(Problem::new(
                "cuwright::source::interrupted",
                Exit::Interrupted,
                "fetching the source was interrupted",
            )
            .help("run the same command again")),
            Err(error) => Err(failed(self.commit, error.to_string())),
        }
    }
}

/// Removes what belongs to git and not to the source.
fn remove_git(work: &Utf8Path) -> std::io::Result<()> {
    let mut entries = walkdir::WalkDir::new(work).into_iter();
    let mut found = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if entry.file_name() == ".git" {
            if entry.file_type().is_dir() {
                entries.skip_current_dir();
            }
            found.push(entry);
        }
    }
    for entry in found {
        let path = Utf8Path::from_path(entry.path()).unwrap_or(work);
        if entry.file_type().is_dir() { files::remove_tree(path)? } else { files::remove_file(path)? }
    }
    Ok(())
}

fn failed(commit: &Commit, why: String) -> Problem {
    let message =
        format!("the commit {}… of {} cannot be fetched", commit.id.get(..12).unwrap_or(&commit.id), commit.url);
    Problem::new("cuwright::source::git_failed", Exit::Recipe, message).why(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// git with a name and nobody's configuration; tests run where the system has it.
    fn git(folder: &Utf8Path, args: &[&str]) -> String {
        let env = Env::of("/", [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", folder.as_str())]);
        let identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always"];
        let program = env.find_program("git").expect("git");
        let spec = CommandSpec::new(program.as_str(), folder).args(identity).args(args.iter().copied());
        let said = process::capture(&spec.env(env.variables().clone()), LIMIT).unwrap();
        assert!(said.status.success(), "{args:?}: {}", said.stderr);
        said.stdout.trim().to_owned()
    }

    fn repository(folder: &Utf8Path) -> String {
        fs::create_dir_all(folder.join("deep")).unwrap();
        git(folder, &["init", "--quiet", "-b", "main"]);
        fs::write(folder.join("deep/setup.py"), folder.as_str()).unwrap();
        std::os::unix::fs::symlink("deep/setup.py", folder.join("link")).unwrap();
        git(folder, &["add", "."]);
        git(folder, &["commit", "--quiet", "-m", "one"]);
        git(folder, &["rev-parse", "HEAD"])
    }

    fn names(tree: &Tree) -> Vec<&str> {
        tree.files.iter().map(|entry| entry.path.as_str()).collect()
    }

    #[test]
    fn one_commit_with_its_submodules_is_fetched_once() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap();
        let (inner, outer) = (root.join("inner"), root.join("o ü"));
        repository(&inner);
        let first = repository(&outer);
        git(&outer, &["submodule", "--quiet", "add", "../inner", "third_party/inner"]);
        git(&outer, &["commit", "--quiet", "-m", "two"]);
        let second = git(&outer, &["rev-parse", "HEAD"]);
        let env =
            Env::of("/", [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", root.as_str()), ("GIT_DIR", "/nowhere")]);
        let commit = |id: &str, submodules| Commit { url: outer.to_string(), id: id.to_owned(), submodules };
        // The older commit is the tip of nothing.
        let old = tree(&commit(&first, false), root, &env).unwrap();
        assert_eq!(names(&old), ["deep/setup.py", "link"]);
        let plain = tree(&commit(&second, false), root, &env).unwrap();
        assert_eq!(names(&plain), [".gitmodules", "deep/setup.py", "link"]);
        let full = tree(&commit(&second, true), root, &env).unwrap();
        assert!(names(&full).contains(&"third_party/inner/deep/setup.py") && !full.root.join(".git").exists());
        fs::remove_dir_all(&outer).unwrap();
        assert_eq!(tree(&commit(&second, true), root, &env).unwrap(), full);
        let code = |id: &str, url: &str| {
            let commit = Commit { url: url.to_owned(), id: id.to_owned(), submodules: false };
            tree(&commit, root, &env).map_err(|problem| problem.code())
        };
        assert_eq!(code(&"0".repeat(40), inner.as_str()).unwrap_err(), "cuwright::source::git_failed");
        assert_eq!(code(&"1".repeat(40), "/nowhere").unwrap_err(), "cuwright::source::git_failed");
        assert_eq!(
            fs::read_dir(root.join(SOURCES))
                .unwrap()
                .filter(|e| { e.as_ref().unwrap().file_name().to_string_lossy().starts_with(".git-") })
                .count(),
            0
        );
    }
}
