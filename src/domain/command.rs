//! A command as data: what would run, before it is a process.
//!
//! Arguments are argv, never a shell string; the environment is explicit and complete. `paste` gives the one text form.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde::Serialize;

/// Everything needed to start one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandSpec {
    /// Program to run; a path, or a name found on the `PATH` of `env`.
    pub program: String,
    /// Arguments, without the program.
    pub args: Vec<String>,
    /// The child's whole environment.
    pub env: BTreeMap<String, String>,
    /// Folder to run in.
    pub cwd: Utf8PathBuf,
}

impl CommandSpec {
    /// A command without arguments or environment.
    pub fn new(program: impl Into<String>, cwd: impl Into<Utf8PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: BTreeMap::new(), cwd: cwd.into() }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Replaces the environment.
    #[must_use]
    pub fn env(mut self, env: BTreeMap<String, String>) -> Self {
        self.env = env;
        self
    }

    /// The argument list as a shell would take it, without environment and folder.
    pub fn command_line(&self) -> String {
        let words: Vec<String> = std::iter::once(&self.program).chain(&self.args).map(|word| quote(word)).collect();
        words.join(" ")
    }

    /// A line that can be pasted into a POSIX shell; of the environment only the variables that `show` accepts.
    pub fn paste(&self, show: impl Fn(&str) -> bool) -> String {
        let variables: Vec<String> = self
            .env
            .iter()
            .filter(|(name, _)| show(name))
            .map(|(name, value)| format!("{name}={} ", quote(value)))
            .collect();
        format!("cd {} && {}{}", quote(self.cwd.as_str()), variables.concat(), self.command_line())
    }
}

/// Quotes one word for a POSIX shell. A NUL cannot occur in argv, so it is shown as U+FFFD.
pub fn quote(word: &str) -> String {
    let word = word.replace('\0', "\u{fffd}");
    shlex::try_quote(&word).map_or_else(|_| word.clone(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_line_survives_spaces_and_quotes() {
        let env = BTreeMap::from([("A".to_owned(), "1 2".to_owned()), ("B".to_owned(), "x".to_owned())]);
        let spec = CommandSpec::new("python", "/tmp/a b").args(["setup.py", "it's"]).env(env);
        assert_eq!(spec.paste(|n| n == "A"), "cd '/tmp/a b' && A='1 2' python setup.py \"it's\"");
    }
}
