//! Where cuwright keeps what it may throw away, and where a user keeps what it reads. XDG on every unix, overridable by one variable.

use camino::{Utf8Path, Utf8PathBuf};

use super::{Env, env_vars};

/// Root of all caches, or `None` where neither a home nor an override is known. Given by its real name: an environment
/// knows the path it was made for, and under another name of the same folder it would be made anew.
pub fn cache_root(env: &Env) -> Option<Utf8PathBuf> {
    named_cache_root(env).map(real)
}

/// A path whose links are followed as far as it exists.
fn real(path: Utf8PathBuf) -> Utf8PathBuf {
    let followed = |folder: &Utf8Path| {
        let real = folder.canonicalize_utf8().ok()?;
        let rest = path.strip_prefix(folder).ok()?;
        Some(if rest.as_str().is_empty() { real } else { real.join(rest) })
    };
    path.ancestors().find_map(followed).unwrap_or(path)
}

fn named_cache_root(env: &Env) -> Option<Utf8PathBuf> {
    if let Some(path) = env.get(env_vars::CUWRIGHT_CACHE_DIR) {
        return Some(env.absolute(path.into()));
    }
    let absolute = |path: &&str| path.starts_with('/');
    env.get(env_vars::XDG_CACHE_HOME)
        .filter(absolute)
        .map(Utf8PathBuf::from)
        .or_else(|| env.get(env_vars::HOME).map(|home| Utf8PathBuf::from(home).join(".cache")))
        .map(|base| base.join("cuwright"))
}

/// Folder of the user's own settings, or `None` where no home is known.
pub fn config(env: &Env) -> Option<Utf8PathBuf> {
    let given = env.get(env_vars::XDG_CONFIG_HOME).filter(|path| path.starts_with('/')).map(Utf8PathBuf::from);
    given
        .or_else(|| env.get(env_vars::HOME).map(|home| Utf8PathBuf::from(home).join(".config")))
        .map(|base| base.join("cuwright"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linked_cache_goes_by_its_real_name_before_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap();
        fs_err::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        let of = |path: &str| cache_root(&Env::of("/", [("CUWRIGHT_CACHE_DIR", root.join(path).as_str())]));
        assert_eq!(of("link"), Some(root.join("real")));
        assert_eq!(of("link/a/b"), Some(root.join("real/a/b")));
    }

    #[test]
    fn the_override_wins_and_a_relative_xdg_is_ignored() {
        let env = |vars: &[(&'static str, &'static str)]| Env::of("/w", vars.iter().copied());
        assert_eq!(cache_root(&env(&[("CUWRIGHT_CACHE_DIR", "c")])), Some("/w/c".into()));
        assert_eq!(cache_root(&env(&[("XDG_CACHE_HOME", "rel"), ("HOME", "/h")])), Some("/h/.cache/cuwright".into()));
        assert_eq!(cache_root(&env(&[])), None);
    }
}
