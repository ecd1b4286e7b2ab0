//! Name and version of a project, from the files that state them, the surest first.
//!
//! `PKG-INFO` was written by the build that made the sdist; the tables of `pyproject.toml` and `setup.cfg` are data; a
//! literal in `setup.py` comes last, since a program may change it. Nothing is computed.

use regex::Regex;

use super::{Sight, legal, project};

/// A value and the file that states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stated {
    pub(super) value: String,
    pub(super) file: &'static str,
}

/// The project's name, where a file states one that is legal.
pub(super) fn name(sight: &Sight) -> Option<Stated> {
    stated(sight, "name", legal)
}

/// The project's version, where a file states one.
pub(super) fn version(sight: &Sight) -> Option<Stated> {
    stated(sight, "version", |value| {
        value.starts_with(|c: char| c.is_ascii_digit()) && legal(&value.replace(['+', '!'], ""))
    })
}

fn stated(sight: &Sight, key: &str, fits: impl Fn(&str) -> bool) -> Option<Stated> {
    let header = || header(sight.pkg_info.as_deref()?, key);
    let table = || Some(project(sight)?.get(key)?.as_str()?.to_owned());
    let cfg = || setup_cfg(sight.setup_cfg.as_deref()?, key);
    let literal = || argument(sight.setup_py.as_deref()?, key);
    let places: [(&str, &dyn Fn() -> Option<String>); 4] =
        [("PKG-INFO", &header), ("pyproject.toml", &table), ("setup.cfg", &cfg), ("setup.py", &literal)];
    places.into_iter().find_map(|(file, find)| {
        let value = find().filter(|value| fits(value))?;
        Some(Stated { value, file })
    })
}

/// `Name: x` before the first empty line.
fn header(text: &str, key: &str) -> Option<String> {
    let mut lines = text.lines().take_while(|line| !line.trim().is_empty()).filter_map(|line| line.split_once(':'));
    lines.find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.trim().to_owned())
}

/// `name = x` of `[metadata]`, unless it says where to look (`attr:`, `file:`).
fn setup_cfg(text: &str, key: &str) -> Option<String> {
    let section = text.lines().skip_while(|line| line.trim() != "[metadata]").skip(1);
    let mut pairs = section.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once('='));
    pairs.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
}

/// The literal of an argument of the `setup(` call, or of a variable that is given there and assigned once. Extensions have
/// names too, and come after `setup(` or before it, so what is behind an `Extension(` call is left alone.
fn argument(setup: &str, key: &str) -> Option<String> {
    let call = setup.rfind("setup(")? + "setup(".len();
    let pattern = Regex::new(&format!(r#"\b{key}\s*=\s*(?:['"]([^'"\n]*)['"]|(\w+))\s*[,)\n]"#)).ok()?;
    let found = pattern.captures(&setup[call..])?;
    let before = &setup[call..call + found.get(0)?.start()];
    if before.contains("Extension(") {
        return None;
    }
    if let Some(literal) = found.get(1) {
        return Some(literal.as_str().to_owned());
    }
    let assigned = format!(r#"(?m)^{}\s*=\s*(?:['"]([^'"\n]*)['"][ \t]*(?:#.*)?$)?"#, found.get(2)?.as_str());
    let assigned = Regex::new(&assigned).ok()?;
    let mut all = assigned.captures_iter(setup);
    let only = all.next()?;
    if all.next().is_some() { None } else { only.get(1).map(|value| value.as_str().to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surest_file_wins() {
        let mut sight = Sight {
            setup_py: Some("setup(name='from_setup', version='4')".into()),
            setup_cfg: Some("[x]\nname = no\n[metadata]\nname = from_cfg\nversion = attr: x.y\n".into()),
            pyproject: Some("[project]\nname = \"from_project\"\ndynamic = [\"version\"]\n".into()),
            pkg_info: Some("Metadata-Version: 2.1\nName: from_info\nVersion: 1.2+cu1\n\nName: no\n".into()),
            ..Sight::default()
        };
        let mut seen = Vec::new();
        for step in 0..4 {
            let of = |stated: Option<Stated>| stated.map(|stated| stated.value).unwrap_or_default();
            seen.push(format!("{} {}", of(name(&sight)), of(version(&sight))));
            match step {
                0 => sight.pkg_info = None,
                1 => sight.pyproject = None,
                _ => sight.setup_cfg = None,
            }
        }
        assert_eq!(seen, ["from_info 1.2+cu1", "from_project 4", "from_cfg 4", "from_setup 4"]);
    }

    #[test]
    fn a_variable_counts_where_it_is_assigned_once() {
        let of = |text: &str| argument(text, "version");
        assert_eq!(of("V = '1.2'  # x\nsetup(name='a', version=V,)"), Some("1.2".into()));
        assert_eq!(of("V = '1.2'\nif x:\n  pass\nV = V + 'a'\nsetup(version=V)"), None);
        assert_eq!(of("V = f()\nsetup(version=V)"), None);
        assert_eq!(of("setup(version=get_version(),)"), None);
    }
}
