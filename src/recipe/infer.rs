//! A recipe for a bare source tree: written as text, so that it can be shown, kept and edited.
//!
//! It states only what the tree shows. It names no archs: whoever asks for the build must name them or have a GPU.

use std::fmt::Write as _;

/// What a look at a source tree found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// Name of the tree's folder.
    pub folder: String,
    /// Text of `setup.py`.
    pub setup_py: Option<String>,
    /// Text of `pyproject.toml`.
    pub pyproject: Option<String>,
}

/// A recipe text for what was seen; `None` where there is no `setup.py` to run.
pub fn infer(sight: &Sight) -> Option<String> {
    let setup = sight.setup_py.as_deref()?;
    let name = project_name(sight, setup);
    let mut text = format!(
        "schema = 1\n\n[package]\nname = {}\n\n[source]\npath = \".\"\n\n[build]\nbackend = \"setup.py\"\n",
        toml_string(&name)
    );
    let switches: Vec<String> = SWITCHES
        .iter()
        .filter(|(name, _)| ['"', '\''].iter().any(|quote| setup.contains(&format!("{quote}{name}{quote}"))))
        .map(|(name, value)| format!("{name} = \"{value}\""))
        .collect();
    if !switches.is_empty() {
        let _ = writeln!(text, "env = {{ {} }}", switches.join(", "));
    }
    Some(text)
}

/// Switches of common setup.py files that turn the CUDA part on where no GPU is in sight. Only a quoted name counts: that
/// is how a variable is read, while `-DWITH_CUDA` is a macro.
const SWITCHES: [(&str, &str); 2] = [("FORCE_CUDA", "1"), ("WITH_CUDA", "1")];

fn project_name(sight: &Sight, setup: &str) -> String {
    let from_pyproject = sight.pyproject.as_deref().and_then(|text| {
        let table: toml::Table = toml::from_str(text).ok()?;
        Some(table.get("project")?.get("name")?.as_str()?.to_owned())
    });
    let legal = |name: &String| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    from_pyproject.or_else(|| name_argument(setup)).filter(legal).unwrap_or_else(|| clean(&sight.folder))
}

/// The literal of the `name=` argument in the `setup(` call. Extensions have names too, and come after `setup(` or
/// before it, so the first literal behind `setup(` that is not inside an `Extension(` call is taken.
fn name_argument(setup: &str) -> Option<String> {
    let call = setup.rfind("setup(")?;
    let mut rest = &setup[call + "setup(".len()..];
    loop {
        let at = rest.find("name")?;
        let before = &rest[..at];
        let own = before.matches("Extension(").count() == 0;
        let value = rest[at + "name".len()..].trim_start();
        rest = &rest[at + "name".len()..];
        let boundary = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if let (true, true, Some(value)) = (own, boundary, value.strip_prefix('=')) {
            let value = value.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            return value[1..].split(quote).next().map(str::to_owned);
        }
    }
}

fn clean(folder: &str) -> String {
    let name: String =
        folder.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') { c } else { '-' }).collect();
    let name = name.trim_matches(['-', '.']).to_owned();
    if name.is_empty() { "extension".to_owned() } else { name }
}

fn toml_string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Document, parse};
    use super::super::resolve::resolve;
    use super::*;

    fn name_of(folder: &str, setup: &str) -> String {
        let sight = Sight { folder: folder.into(), setup_py: Some(setup.into()), pyproject: None };
        let text = infer(&sight).unwrap();
        let document = Document { origin: "inferred", text: &text };
        resolve(document, parse(document).unwrap(), |_| Err(String::new())).unwrap().name
    }

    #[test]
    fn the_name_comes_from_the_setup_call() {
        assert_eq!(name_of("x", "setup(name='my_ext', ext_modules=[CUDAExtension(name='a.b')])"), "my_ext");
        assert_eq!(name_of("x", "setup(\n  name = \"my-ext\")"), "my-ext");
    }

    #[test]
    fn a_computed_name_falls_back_to_the_folder() {
        assert_eq!(name_of("my ext é", "setup(name=NAME)"), "my-ext");
        assert_eq!(name_of("tree", "setup(ext_modules=[CUDAExtension(name='a.b')])"), "tree");
        assert_eq!(name_of("", "setup()"), "extension");
    }

    #[test]
    fn a_tree_without_setup_py_gives_nothing() {
        assert_eq!(infer(&Sight::default()), None);
    }
}
