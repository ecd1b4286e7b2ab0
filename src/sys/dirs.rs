//! Where cuwright keeps what it may throw away, and where a user keeps what it reads. XDG on every unix, overridable by one variable.

use camino::Utf8PathBuf;

use super::{Env, env_vars};

/// Root of all caches, or `None` where neither a home nor an override is known.
pub fn cache_root(env: &Env) -> Option<Utf8PathBuf> {
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
    fn the_override_wins_and_a_relative_xdg_is_ignored() {
        let env = |vars: &[(&'static str, &'static str)]| Env::of("/w", vars.iter().copied());
        assert_eq!(cache_root(&env(&[("CUWRIGHT_CACHE_DIR", "c")])), Some("/w/c".into()));
        assert_eq!(cache_root(&env(&[("XDG_CACHE_HOME", "rel"), ("HOME", "/h")])), Some("/h/.cache/cuwright".into()));
        assert_eq!(cache_root(&env(&[])), None);
    }
}
