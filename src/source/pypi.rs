//! A source that is an sdist of the package index, named by version and sha256.
//!
//! Order: unpacked already; downloaded already; in a folder of packages (`--find-links` of pip and uv), recognised by
//! its hash alone; else asked of each index. Invariant: no byte is used before its hash has been checked.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::tree::{Taken, Tree, unreadable, unwritable};
use super::{archive, simple};
use crate::domain::index::{Index, redact};
use crate::domain::requirement::normalise;
use crate::domain::{exit::Exit, problem::Problem};
use crate::sys::files;
use crate::sys::lock::Lock;
use crate::sys::net::{Client, NetError};

const DOWNLOADS: &str = "downloads-v1";
const SOURCES: &str = "sources-v1";
const SUFFIXES: [&str; 3] = [".tar.gz", ".tgz", ".zip"];

/// Which sdist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sdist {
    /// Project name.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// sha256 of the file, lower-case hex.
    pub sha256: String,
}

/// The unpacked tree of an earlier run; a warm run needs nothing else.
pub fn stored(sdist: &Sdist, root: &Utf8Path) -> Option<Tree> {
    let folder = root.join(SOURCES).join(&sdist.sha256);
    let tree: Tree = serde_json::from_slice(&fs::read(folder.join("tree.json")).ok()?).ok()?;
    let place = folder.join("tree");
    place.is_dir().then_some(Tree { root: place, ..tree })
}

/// The tree, unpacked under the cache root. `index` is asked only if no file with the hash is at hand.
pub fn tree(
    sdist: &Sdist,
    root: &Utf8Path,
    folders: &[Utf8PathBuf],
    client: &Client,
    index: impl FnOnce() -> Result<Index, Problem>,
) -> Result<Tree, Problem> {
    if let Some(tree) = stored(sdist, root) {
        return Ok(tree);
    }
    let lock = root.join(SOURCES).join(format!("{}.lock", sdist.sha256));
    let _alone = Lock::exclusive(&lock, || {}).map_err(|error| unwritable(&error))?;
    if let Some(tree) = stored(sdist, root) {
        return Ok(tree);
    }
    let file = match downloaded(sdist, root).or_else(|| carried(sdist, folders)) {
        Some(file) => file,
        None => fetch(sdist, root, client, &index()?)?,
    };
    unpack(sdist, root, &file)
}

fn unpack(sdist: &Sdist, root: &Utf8Path, file: &Utf8Path) -> Result<Tree, Problem> {
    let bucket = root.join(SOURCES);
    let staged = tempfile::Builder::new().prefix(".unpack-").tempdir_in(&bucket).map_err(|error| unwritable(&error))?;
    let staging = Utf8Path::from_path(staged.path()).unwrap_or(&bucket);
    let (raw, ready) = (staging.join("raw"), staging.join("ready"));
    for folder in [&raw, &ready] {
        fs::create_dir_all(folder).map_err(|error| unwritable(&error))?;
    }
    archive::unpack(file, &raw)?;
    let top = archive::top(&raw).map_err(|error| unreadable(&error))?;
    fs::rename(top, ready.join("tree")).map_err(|error| unwritable(&error))?;
    let tree = Tree::read(&ready.join("tree"), Taken::All)?;
    let text = serde_json::to_vec(&tree).map_err(|error| unwritable(&error.into()))?;
    files::write_atomic(&ready.join("tree.json"), &text).map_err(|error| unwritable(&error))?;
    let place = bucket.join(&sdist.sha256);
    files::remove_tree(&place).map_err(|error| unwritable(&error))?;
    fs::rename(&ready, &place).map_err(|error| unwritable(&error))?;
    Ok(Tree { root: place.join("tree"), ..tree })
}

/// The file of an earlier download, if it is still what it was.
fn downloaded(sdist: &Sdist, root: &Utf8Path) -> Option<Utf8PathBuf> {
    let entries = root.join(DOWNLOADS).join(&sdist.sha256).read_dir_utf8().ok()?.flatten();
    entries.map(|entry| entry.path().to_owned()).find(|path| has_hash(path, &sdist.sha256))
}

/// The file in a folder of packages: only files named like this project's sdist are hashed.
fn carried(sdist: &Sdist, folders: &[Utf8PathBuf]) -> Option<Utf8PathBuf> {
    let entries = folders.iter().filter_map(|folder| folder.read_dir_utf8().ok()).flatten().flatten();
    entries
        .filter(|entry| is_sdist_of(entry.file_name(), sdist))
        .map(|entry| entry.path().to_owned())
        .find(|path| has_hash(path, &sdist.sha256))
}

fn has_hash(path: &Utf8Path, sha256: &str) -> bool {
    files::sha256_file(path).is_ok_and(|got| got == sha256)
}

/// `Torch.Scatter-2.1.2.tar.gz` is an sdist of torch-scatter 2.1.2.
fn is_sdist_of(file: &str, sdist: &Sdist) -> bool {
    let stem = SUFFIXES.iter().find_map(|suffix| file.strip_suffix(suffix));
    let parts = stem.and_then(|stem| stem.rsplit_once('-'));
    parts.is_some_and(|(name, version)| normalise(name) == normalise(&sdist.name) && version == sdist.version)
}

fn fetch(sdist: &Sdist, root: &Utf8Path, client: &Client, index: &Index) -> Result<Utf8PathBuf, Problem> {
    if let Some(file) = carried(sdist, &index.folders) {
        return Ok(file);
    }
    let mut seen = Vec::new();
    let mut last = None;
    for base in &index.simple {
        let page_url = format!("{}/{}/", base.trim_end_matches('/'), normalise(&sdist.name));
        let page = match client.page(&page_url, simple::ACCEPT) {
            Ok(page) => page,
            Err(NetError::Status { status: 404, .. }) => {
                seen.push(format!("{} has no project {}", redact(base), sdist.name));
                continue;
            }
            Err(error) => {
                last = Some(error);
                continue;
            }
        };
        let Some(files) = simple::files(&page_url, &page.media_type, &page.body) else {
            seen.push(format!("{} is no page of a package index, or names more than 200,000 files", redact(&page_url)));
            continue;
        };
        let named: Vec<&simple::File> = files.iter().filter(|file| is_sdist_of(&file.name, sdist)).collect();
        let fitting = named.iter().find(|file| file.sha256.as_ref().is_none_or(|hash| *hash == sdist.sha256));
        if let Some(file) = fitting {
            let place = root.join(DOWNLOADS).join(&sdist.sha256).join(&file.name);
            return client.file(&file.url, &place, &sdist.sha256).map(|()| place).map_err(|error| failed(sdist, error));
        }
        let hashes = named.iter().filter_map(|file| Some((&file.name, file.sha256.as_ref()?)));
        seen.extend(hashes.map(|(name, hash)| format!("{} has {name} with sha256 {hash}", redact(base))));
        if named.is_empty() {
            seen.push(format!("{} has no sdist of {} {}", redact(base), sdist.name, sdist.version));
        }
    }
    match last {
        Some(error) if seen.is_empty() => Err(failed(sdist, error)),
        _ => Err(absent(sdist, index, &seen)),
    }
}

fn failed(sdist: &Sdist, error: NetError) -> Problem {
    let what = format!("the source of {} {}", sdist.name, sdist.version);
    let new = |code, message: String| Problem::new(code, Exit::Recipe, message);
    match error {
        NetError::Digest { url, wanted, got } => {
            new("cuwright::source::hash", format!("{what} is not the file that the recipe names"))
                .why(format!("the recipe wants sha256 {wanted}"))
                .why(format!("{url} has  sha256 {got}"))
                .help("do not build it before you know why; if the project changed the file, correct `source.sha256`")
        }
        NetError::Disk(error) => unwritable(&error),
        error => new("cuwright::source::unreachable", format!("{what} cannot be fetched"))
            .why(error.to_string())
            .help("check the network, the proxy (HTTPS_PROXY) and the index (UV_DEFAULT_INDEX, PIP_INDEX_URL)")
            .help("or put the file into a folder and name that in PIP_FIND_LINKS"),
    }
}

fn absent(sdist: &Sdist, index: &Index, seen: &[String]) -> Problem {
    let other_hash = seen.iter().any(|line| line.contains("with sha256"));
    let (code, message) = if other_hash {
        let message = format!("the index has {} {}, but not with the recipe's hash", sdist.name, sdist.version);
        ("cuwright::source::hash", message)
    } else {
        ("cuwright::source::not_found", format!("the source of {} {} was not found", sdist.name, sdist.version))
    };
    let mut problem =
        Problem::new(code, Exit::Recipe, message).why(format!("the recipe wants sha256 {}", sdist.sha256));
    problem = seen.iter().fold(problem, Problem::why);
    if index.no_index {
        problem = problem.why("indexes are switched off (UV_NO_INDEX, PIP_NO_INDEX)");
    }
    problem
        .help("check name, version and hash in `source` of the recipe")
        .help("or put the file into a folder and name that in PIP_FIND_LINKS")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sys::net::Patience;
    use crate::sys::test_server::Server;

    struct World {
        folder: tempfile::TempDir,
        bytes: Vec<u8>,
        sdist: Sdist,
    }

    fn world() -> World {
        let folder = tempfile::tempdir().unwrap();
        let file = Utf8Path::from_path(folder.path()).unwrap().join("made.tar.gz");
        archive::tests::sdist(&file, &[("x_y-1.0/setup.py", tar::EntryType::Regular, "s")]);
        let bytes = fs::read(&file).unwrap();
        let sdist = Sdist { name: "X.Y".into(), version: "1.0".into(), sha256: files::sha256(&bytes) };
        World { folder, bytes, sdist }
    }

    impl World {
        fn root(&self) -> &Utf8Path {
            Utf8Path::from_path(self.folder.path()).unwrap()
        }

        fn tree(&self, server: &Server) -> Result<Tree, Problem> {
            let index = Index { simple: vec![server.url("/simple/")], ..Index::default() };
            let short = Duration::from_millis(200);
            let client = Client::new(Patience { connect: short, silence: short, pause: Duration::from_millis(1) });
            tree(&self.sdist, self.root(), &[], &client, || Ok(index))
        }
    }

    fn page(hash: &str) -> String {
        format!(r#"{{"files":[{{"filename":"x_y-1.0.tar.gz","url":"/f","hashes":{{"sha256":"{hash}"}}}}]}}"#)
    }

    const JSON: &str = "application/vnd.pypi.simple.v1+json";

    #[test]
    fn an_sdist_is_fetched_once_and_its_tree_kept() {
        let world = world();
        let server = Server::start(&[("/simple/x-y/", 200, JSON, &page(&world.sdist.sha256))]);
        server.answer("/f", 200, "", &world.bytes);
        let first = world.tree(&server).unwrap();
        assert_eq!(first.files.len(), 1);
        assert!(first.root.join("setup.py").is_file());
        assert_eq!(world.tree(&server).unwrap(), first);
        assert_eq!(server.requests().len(), 2);
    }

    #[test]
    fn the_html_form_does_as_well() {
        let world = world();
        let page = format!("<html><a href='/f/x_y-1.0.tar.gz#sha256={}'>f</a>", world.sdist.sha256);
        let server = Server::start(&[("/simple/x-y/", 200, "text/html", &page)]);
        server.answer("/f/x_y-1.0.tar.gz", 200, "", &world.bytes);
        assert!(world.tree(&server).is_ok());
    }

    #[test]
    fn a_wrong_hash_names_both_and_leaves_nothing() {
        let world = world();
        let claimed = Server::start(&[("/simple/x-y/", 200, JSON, &page(&"0".repeat(64)))]);
        let problem = world.tree(&claimed).unwrap_err();
        assert_eq!(problem.code(), "cuwright::source::hash");
        let said = problem.evidence().join("\n");
        assert!(said.contains(&world.sdist.sha256) && said.contains(&"0".repeat(64)), "{said}");
        let lying = Server::start(&[("/simple/x-y/", 200, JSON, &page(&world.sdist.sha256)), ("/f", 200, "", "?")]);
        assert_eq!(world.tree(&lying).unwrap_err().code(), "cuwright::source::hash");
        assert_eq!(downloaded(&world.sdist, world.root()), None);
        assert!(stored(&world.sdist, world.root()).is_none());
    }

    #[test]
    fn an_absent_project_and_a_silent_index_are_told_apart() {
        let world = world();
        assert_eq!(world.tree(&Server::start(&[])).unwrap_err().code(), "cuwright::source::not_found");
        let silent = Server::start(&[("/simple/x-y/", 0, "", "")]);
        assert_eq!(world.tree(&silent).unwrap_err().code(), "cuwright::source::unreachable");
    }

    #[test]
    fn a_carried_file_needs_no_index() {
        let world = world();
        let folder = world.root().join("carried");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("X-Y-1.0.tar.gz"), "another file of that name").unwrap();
        fs::write(folder.join("x_y-1.0.tar.gz"), &world.bytes).unwrap();
        let got = tree(&world.sdist, world.root(), &[folder], &Client::new(Patience::default()), || {
            panic!("the index must not be asked")
        });
        assert_eq!(got.unwrap().files.len(), 1);
    }
}
