//! Which package sources uv is given: its own configuration where there is one, else pip's, else uv's default.
//!
//! Invariant: no address is written in this project. pip's settings are asked of pip and turned into uv's variables;
//! uv's default is asked of uv. Addresses may carry passwords and are never shown as they are.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::{faults, uv::Tool};
use crate::domain::{command::CommandSpec, index::Index, problem::Problem, toolchain::Python};
use crate::sys::{Env, env_vars as vars, process};

const PATIENCE: Duration = Duration::from_mins(1);

/// Variables that hand pip's settings to uv; empty where uv has settings of its own.
pub fn variables(python: &Python, env: &Env) -> BTreeMap<String, String> {
    let mut settings = pip_variables(env);
    for (name, value) in pip_config(python, env) {
        settings.entry(name).or_insert(value);
    }
    let own_index =
        [vars::UV_DEFAULT_INDEX, vars::UV_INDEX_URL, vars::UV_INDEX, vars::UV_EXTRA_INDEX_URL, vars::UV_NO_INDEX];
    let configured = own_index.iter().any(|name| env.get(name).is_some()) || uv_is_configured(env);
    let mut found = BTreeMap::new();
    let mut hand_over = |setting: &str, variable: &str, turn: &dyn Fn(&str) -> Option<String>| {
        if let Some(value) = settings.get(setting).and_then(|value| turn(value)).filter(|_| env.get(variable).is_none())
        {
            found.insert(variable.to_owned(), value);
        }
    };
    let plain = |value: &str| Some(value.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|v| !v.is_empty());
    let truth = |value: &str| {
        matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on").then(|| "1".to_owned())
    };
    if !configured {
        hand_over("index-url", vars::UV_DEFAULT_INDEX, &plain);
        hand_over("extra-index-url", vars::UV_INDEX, &plain);
        hand_over("no-index", vars::UV_NO_INDEX, &truth);
    }
    hand_over("find-links", vars::UV_FIND_LINKS, &|value| {
        let places: Vec<&str> = value.split_whitespace().filter(|place| usable(place)).collect();
        Some(places.join(",")).filter(|joined| !joined.is_empty())
    });
    hand_over("cert", vars::SSL_CERT_FILE, &plain);
    found
}

/// Folders of packages that variables name.
pub fn folders(env: &Env) -> Vec<Utf8PathBuf> {
    let uv = env.get(vars::UV_FIND_LINKS).unwrap_or_default().split(',');
    let pip = env.get(vars::PIP_FIND_LINKS).unwrap_or_default().split_whitespace();
    let places = uv.chain(pip).map(str::trim).filter(|place| !place.is_empty() && !place.contains("://"));
    places.map(|place| env.absolute(Utf8Path::new(place))).collect()
}

/// The sources that variables name; `None` where only uv knows.
pub fn named(env: &Env) -> Option<Index> {
    let no_index = env.flag(vars::UV_NO_INDEX) || env.flag(vars::PIP_NO_INDEX);
    let one = |name: &str| env.get(name).map(str::to_owned);
    let main = one(vars::UV_DEFAULT_INDEX).or_else(|| one(vars::UV_INDEX_URL)).or_else(|| one(vars::PIP_INDEX_URL));
    if no_index {
        return Some(Index { simple: Vec::new(), folders: folders(env), no_index });
    }
    let more = [vars::UV_INDEX, vars::UV_EXTRA_INDEX_URL, vars::PIP_EXTRA_INDEX_URL];
    let more = more.iter().filter_map(|name| env.get(name)).flat_map(str::split_whitespace);
    // uv lets an index carry a name: `mirror=https://…`.
    let address = |entry: &str| {
        entry.split_once('=').filter(|(name, _)| !name.contains(':')).map_or(entry, |(_, url)| url).to_owned()
    };
    let simple = more.map(address).chain([main?]).collect();
    Some(Index { simple, folders: folders(env), no_index })
}

/// The same sources as values, for files that uv has no command to fetch.
pub fn ask(tool: &Tool) -> Result<Index, Problem> {
    let folder = tempfile::tempdir().map_err(|error| faults::disk("a temporary folder", &error))?;
    let empty = Utf8Path::from_path(folder.path()).map(|folder| folder.join("empty.in"));
    let empty = empty.ok_or_else(|| faults::uv_failed("index", &["the temporary folder is not UTF-8".to_owned()]))?;
    fs::write(&empty, "").map_err(|error| faults::disk(empty.as_str(), &error))?;
    let spec = tool.command([
        "pip",
        "compile",
        "--quiet",
        "--offline",
        "--no-header",
        "--emit-index-url",
        "--emit-find-links",
        empty.as_str(),
    ]);
    let said = process::capture(&spec, PATIENCE).map_err(|error| faults::uv_failed("index", &[error.to_string()]))?;
    if !said.status.success() {
        return Err(faults::uv_failed("index", &said.stderr.lines().map(str::to_owned).collect::<Vec<_>>()));
    }
    let no_index = tool.variable(vars::UV_NO_INDEX).is_some_and(|value| !matches!(value, "0" | "false"));
    Ok(parse(&said.stdout, no_index))
}

fn parse(text: &str, no_index: bool) -> Index {
    let values = |option: &str| {
        let found = text.lines().filter_map(|line| line.strip_prefix(option)?.strip_prefix(' '));
        found.map(|value| value.trim().to_owned()).collect::<Vec<_>>()
    };
    let folders = values("--find-links").into_iter().filter(|place| !place.contains("://")).map(Utf8PathBuf::from);
    let simple = [values("--extra-index-url"), values("--index-url")].concat();
    Index { simple: if no_index { Vec::new() } else { simple }, folders: folders.collect(), no_index }
}

/// A place that uv can look into: a folder that is not there would be an error, and a comma would split it.
fn usable(place: &str) -> bool {
    !place.contains(',') && (place.contains("://") || Utf8Path::new(place).is_dir())
}

fn pip_variables(env: &Env) -> BTreeMap<String, String> {
    let known = [
        ("index-url", vars::PIP_INDEX_URL),
        ("extra-index-url", vars::PIP_EXTRA_INDEX_URL),
        ("find-links", vars::PIP_FIND_LINKS),
        ("no-index", vars::PIP_NO_INDEX),
        ("cert", vars::PIP_CERT),
    ];
    known.iter().filter_map(|(name, variable)| Some(((*name).to_owned(), env.get(variable)?.to_owned()))).collect()
}

/// What pip's configuration files say; nothing where there is no pip.
fn pip_config(python: &Python, env: &Env) -> BTreeMap<String, String> {
    let spec = CommandSpec::new(python.executable.as_str(), "/")
        .args(["-I", "-m", "pip", "config", "list"])
        .env(env.probe_variables());
    let said = process::capture(&spec, PATIENCE).ok().filter(|said| said.status.success());
    said.map(|said| parse_pip_config(&said.stdout)).unwrap_or_default()
}

/// Lines such as `global.index-url='…'`; a section for one command beats `global`.
fn parse_pip_config(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for sections in [&["global"][..], &["install", "download"][..]] {
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            let Some((section, name)) = key.rsplit_once('.') else { continue };
            if sections.contains(&section) {
                let value = value.trim().trim_matches(['\'', '"']).replace("\\n", " ");
                found.insert(name.to_owned(), value);
            }
        }
    }
    found
}

/// Whether a configuration file of uv names an index.
fn uv_is_configured(env: &Env) -> bool {
    let user = env
        .get(vars::XDG_CONFIG_HOME)
        .map(Utf8PathBuf::from)
        .or_else(|| env.get(vars::HOME).map(|home| Utf8Path::new(home).join(".config")));
    let files = [
        env.get(vars::UV_CONFIG_FILE).map(Utf8PathBuf::from),
        user.map(|folder| folder.join("uv/uv.toml")),
        Some("/etc/uv/uv.toml".into()),
    ];
    files.into_iter().flatten().any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("index")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_python() -> Python {
        Python { executable: "/nonexistent".into(), ..crate::domain::toolchain::sample().python }
    }

    #[test]
    fn pip_settings_reach_uv_unless_uv_has_its_own() {
        let pip =
            [("PIP_INDEX_URL", "http://a.invalid/simple"), ("PIP_FIND_LINKS", "/usr /none"), ("PIP_NO_INDEX", "0")];
        let found = variables(&no_python(), &Env::of("/", pip));
        assert_eq!(found["UV_DEFAULT_INDEX"], "http://a.invalid/simple");
        assert_eq!(found["UV_FIND_LINKS"], "/usr");
        assert!(!found.contains_key("UV_NO_INDEX"));
        let own = Env::of("/", pip).with("UV_INDEX_URL", "http://b.invalid/simple");
        assert!(!variables(&no_python(), &own).contains_key("UV_DEFAULT_INDEX"));
    }

    #[test]
    fn pip_files_are_read_with_the_nearer_section_first() {
        let text = ":env:.cert='/c'\nglobal.index-url='http://a.invalid'\ninstall.index-url='http://b.invalid'\nglobal.find-links='\\n/a\\n/b'\n";
        let found = parse_pip_config(text);
        assert_eq!(found["index-url"], "http://b.invalid");
        assert_eq!(found["find-links"].split_whitespace().collect::<Vec<_>>(), ["/a", "/b"]);
        assert!(!found.contains_key("cert"));
    }

    #[test]
    fn variables_alone_can_name_the_sources() {
        assert_eq!(named(&Env::of("/", [])), None);
        let env = Env::of(
            "/w",
            [("PIP_INDEX_URL", "http://a.invalid/s"), ("UV_INDEX", "m=http://b.invalid/s?x=1 http://c.invalid")],
        );
        let index = named(&env.clone().with("UV_FIND_LINKS", "wheels,/x")).unwrap();
        assert_eq!(index.simple, ["http://b.invalid/s?x=1", "http://c.invalid", "http://a.invalid/s"]);
        assert_eq!(index.folders, ["/w/wheels", "/x"]);
        assert!(named(&env.with("PIP_NO_INDEX", "1")).unwrap().simple.is_empty());
    }

    #[test]
    fn uv_tells_its_sources() {
        let said = "--index-url http://i.invalid/simple\n--extra-index-url http://e.invalid/s\n--find-links /w\n\n";
        let index = parse(said, false);
        assert_eq!(index.simple, ["http://e.invalid/s", "http://i.invalid/simple"]);
        assert_eq!(index.folders, ["/w"]);
        assert!(parse(said, true).simple.is_empty());
    }
}
