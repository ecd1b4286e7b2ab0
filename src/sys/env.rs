//! The environment as a value: captured once in `main`, passed down, never read again.
//!
//! Invariant: no other file reads the process environment. Variables whose name or value is not UTF-8 are left out
//! and remembered by name, since everything we write down (plans, keys, locks) is UTF-8.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

/// Variables that name code which a loader, a shell or perl runs before the program itself.
const RUN_FIRST: [&str; 6] = ["LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "PERL5OPT", "PERL5LIB"];

/// A snapshot of the process environment and working folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    variables: BTreeMap<String, String>,
    current_dir: Utf8PathBuf,
    /// Names of the variables that were left out because they are not UTF-8, lossily.
    pub skipped: Vec<String>,
    /// Why the working folder cannot be used, if it cannot; `/` stands in its place then.
    pub no_current_dir: Option<String>,
}

impl Env {
    /// Reads the process environment.
    #[expect(clippy::disallowed_methods, reason = "this is the one reader of the process environment")]
    pub fn capture() -> Self {
        let mut env = Self::default();
        for (name, value) in std::env::vars_os() {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => drop(env.variables.insert(name, value)),
                (Ok(name), Err(_)) => env.skipped.push(name),
                (Err(name), _) => env.skipped.push(name.to_string_lossy().into_owned()),
            }
        }
        let current = std::env::current_dir().map_err(|error| error.to_string());
        let utf8 = |path| Utf8PathBuf::from_path_buf(path).map_err(|path| format!("{} is not UTF-8", path.display()));
        env.current_dir = current.and_then(utf8).unwrap_or_else(|why| {
            env.no_current_dir = Some(why);
            Utf8PathBuf::from("/")
        });
        env
    }

    /// An environment made of `variables`, for tests and for children.
    pub fn of<'a>(
        current_dir: impl Into<Utf8PathBuf>,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        Self { variables, current_dir: current_dir.into(), ..Self::default() }
    }

    /// The value of `name`; an empty value counts as unset, as it does for every tool we drive.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether `name` is set to something other than `0`, `false` or nothing.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "0" | "false" | "no" | "off"))
    }

    /// Folder the process was started in.
    pub fn current_dir(&self) -> &Utf8Path {
        &self.current_dir
    }

    /// `path` made absolute against the working folder, without touching the disk; `./` parts are dropped.
    pub fn absolute(&self, path: &Utf8Path) -> Utf8PathBuf {
        self.current_dir.join(path).components().collect()
    }

    /// A place of the system, such as `/usr/local`, below the folder that stands for `/`.
    pub fn system(&self, path: &str) -> Utf8PathBuf {
        match self.get(super::env_vars::CUWRIGHT_SYSTEM_ROOT) {
            Some(root) => self.absolute(Utf8Path::new(root)).join(path.trim_start_matches('/')),
            None => Utf8PathBuf::from(path),
        }
    }

    /// All variables, ordered by name.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// A copy without `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.variables.remove(name);
        self
    }

    /// A copy with `name` set.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    /// The variables for a program that is asked about itself: without those that make a loader, a shell or perl run
    /// something else first, and with only the absolute folders of search paths, so that none means the working folder.
    pub fn probe_variables(&self) -> BTreeMap<String, String> {
        use super::env_vars::{LD_LIBRARY_PATH, PATH};
        let mut variables = self.variables.clone();
        variables.retain(|name, _| !RUN_FIRST.contains(&name.as_str()) && !name.starts_with("BASH_FUNC_"));
        for name in [PATH, LD_LIBRARY_PATH] {
            if let Some(value) = variables.get_mut(name) {
                *value = value.split(':').filter(|folder| folder.starts_with('/')).collect::<Vec<_>>().join(":");
            }
        }
        variables
    }

    /// The same for programs that may be Python scripts, which `PYTHONPATH` and the user's packages would come into.
    pub fn tool_variables(&self) -> BTreeMap<String, String> {
        let mut variables = self.probe_variables();
        variables.retain(|name, _| !name.starts_with("PYTHON"));
        variables.insert("PYTHONNOUSERSITE".to_owned(), "1".to_owned());
        variables
    }

    /// Finds a program on this environment's `PATH`, or checks a path.
    pub fn find_program(&self, name: &str) -> Option<Utf8PathBuf> {
        self.find_programs(name).into_iter().next()
    }

    /// Every program called `name` on this environment's `PATH`, in its order. Entries that are not absolute (`.`, an
    /// empty one) are passed over: they name the working folder, and nothing in it runs because of its name.
    pub fn find_programs(&self, name: &str) -> Vec<Utf8PathBuf> {
        let path = self.get(super::env_vars::PATH).unwrap_or_default();
        let absolute: Vec<&str> = path.split(':').filter(|entry| entry.starts_with('/')).collect();
        // To `which`, an empty list is one empty entry: the working folder.
        if absolute.is_empty() && !name.contains('/') {
            return Vec::new();
        }
        let found = which::which_in_all(name, Some(absolute.join(":")), &self.current_dir);
        found.map(|all| all.filter_map(|path| Utf8PathBuf::from_path_buf(path).ok()).collect()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_unset() {
        let env = Env::of("/", [("A", ""), ("B", "0"), ("C", "1")]);
        assert_eq!(env.get("A"), None);
        assert!(!env.flag("B"));
        assert!(env.flag("C"));
    }

    #[test]
    fn programs_are_found_on_the_captured_path_only() {
        let env = Env::of("/", [("PATH", "/nonexistent")]);
        assert_eq!(env.find_program("sh"), None);
        assert!(Env::of("/", [("PATH", "/bin")]).find_program("sh").is_some());
        let env = Env::of("/", [("LD_PRELOAD", "x.so"), ("BASH_ENV", "b"), ("PATH", ".:/bin::"), ("PYTHONPATH", "/p")]);
        assert_eq!(env.probe_variables(), Env::of("/", [("PATH", "/bin"), ("PYTHONPATH", "/p")]).variables);
        assert!(!env.tool_variables().contains_key("PYTHONPATH"));
        for relative in [".", "", ":", "bin", "./bin:."] {
            assert_eq!(Env::of("/bin", [("PATH", relative)]).find_program("sh"), None, "{relative:?}");
        }
    }
}
