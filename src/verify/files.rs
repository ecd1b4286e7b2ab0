//! Files that users name, opened for reading their GPU code: a wheel gives its extension files, any other file itself.

use camino::{Utf8Path, Utf8PathBuf};

use super::site::{self, ExtensionFile};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;

/// Files to read, and the folder that keeps unpacked ones alive.
#[derive(Debug)]
pub struct Opened {
    /// What to read, named as the user knows it.
    pub files: Vec<ExtensionFile>,
    _scratch: Option<tempfile::TempDir>,
}

/// Opens `path`, shown as `shown`.
///
/// # Errors
/// A path that is not there, is a folder, or is a broken wheel.
pub fn open(path: &Utf8Path, shown: &str) -> Result<Opened, Problem> {
    if !path.is_file() {
        let why = if path.is_dir() { "it is a folder" } else { "there is no such file" };
        return Err(Problem::new("cuwright::verify::no_file", Exit::Verify, format!("{shown} cannot be read"))
            .why(why)
            .help("name a wheel, a library, an object, an archive, a fatbin or a cubin"));
    }
    if !site::is_wheel(path) {
        let file = ExtensionFile { name: shown.to_owned(), path: path.to_owned() };
        return Ok(Opened { files: vec![file], _scratch: None });
    }
    let no_scratch = |why: String| {
        Problem::new("cuwright::verify::no_scratch", Exit::Verify, format!("{shown} cannot be unpacked"))
            .why(why)
            .help("free some space in the temporary folder, or point TMPDIR at another")
    };
    let scratch =
        tempfile::Builder::new().prefix("cuwright-").tempdir().map_err(|error| no_scratch(error.to_string()))?;
    let root = Utf8PathBuf::from_path_buf(scratch.path().to_owned())
        .map_err(|_| no_scratch("its path is not UTF-8".to_owned()))?;
    let mut files = site::unpack(path, &root)?.extensions;
    for file in &mut files {
        file.name = format!("{shown}:{}", file.name);
    }
    Ok(Opened { files, _scratch: Some(scratch) })
}
