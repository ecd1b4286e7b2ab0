//! Installed Python packages, read from the names of their metadata folders: no Python is started.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::domain::requirement::{Requirement, normalise};

/// One installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Normalised name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Its metadata folder or file.
    pub metadata: Utf8PathBuf,
}

/// Everything installed in `site_dirs`; where a name is there twice, the first one wins, as it does on import.
pub fn installed(site_dirs: &[Utf8PathBuf]) -> Vec<Package> {
    let mut found: Vec<Package> = Vec::new();
    for folder in site_dirs {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let Ok(path) = Utf8PathBuf::from_path_buf(entry.path()) else { continue };
            found.extend(package(&path).filter(|new| found.iter().all(|known| known.name != new.name)));
        }
    }
    found
}

/// The requirements that `installed` does not satisfy, each with what stands in its place.
pub fn unmet(requirements: &[Requirement], installed: &[Package]) -> Vec<String> {
    let judge = |wanted: &Requirement| match installed.iter().find(|package| package.name == wanted.name) {
        None => Some(format!("`{wanted}` is not installed")),
        Some(package) if wanted.accepts(&package.version) && is_there(package) => None,
        Some(package) if wanted.accepts(&package.version) => {
            Some(format!("`{wanted}` cannot be imported: the files of {} {} are gone", package.name, package.version))
        }
        Some(package) => Some(format!("`{wanted}` is not met by {} {}", package.name, package.version)),
    };
    requirements.iter().filter(|wanted| !wanted.conditional).filter_map(judge).collect()
}

/// Whether a module of the package is where its record says; one without a record is believed.
fn is_there(package: &Package) -> bool {
    let record = fs::read_to_string(package.metadata.join("RECORD")).unwrap_or_default();
    let module = record
        .lines()
        .filter_map(|line| line.split(',').next())
        .find(|file| Utf8Path::new(file).extension() == Some("py"));
    module.zip(package.metadata.parent()).is_none_or(|(module, site)| site.join(module).exists())
}

fn package(metadata: &Utf8Path) -> Option<Package> {
    let file = metadata.file_name()?;
    let stem = file.strip_suffix(".dist-info").or_else(|| file.strip_suffix(".egg-info"))?;
    let mut parts = stem.splitn(3, '-');
    let (name, version) = (parts.next()?, parts.next()?);
    Some(Package { name: normalise(name), version: version.to_owned(), metadata: metadata.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_tell_what_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for name in ["setuptools-80.1.dist-info", "Typing_Extensions-4.1-py3.11.egg-info", "torch", "x.dist-info"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let found = installed(&[root.to_owned(), "/nonexistent".into()]);
        assert_eq!(found.len(), 2);
        let all: Vec<Requirement> =
            ["setuptools<81", "typing-extensions", "setuptools<70", "wheel", "y ; python_version < '3'"]
                .iter()
                .map(|text| text.parse().unwrap())
                .collect();
        assert_eq!(unmet(&all, &found), ["`setuptools<70` is not met by setuptools 80.1", "`wheel` is not installed"]);
        fs::write(root.join("setuptools-80.1.dist-info/RECORD"), "setuptools/__init__.py,sha256=x,1\n").unwrap();
        assert!(unmet(&all[..1], &found)[0].ends_with("the files of setuptools 80.1 are gone"));
        fs::create_dir_all(root.join("setuptools")).unwrap();
        fs::write(root.join("setuptools/__init__.py"), "").unwrap();
        assert!(unmet(&all[..1], &found).is_empty());
    }
}
