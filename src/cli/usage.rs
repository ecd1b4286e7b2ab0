//! A command line that cannot be followed, and how to tell of it: `clap` words it for people, and the same becomes a
//! problem for whoever reads JSON.
//!
//! Invariant: where JSON was asked for anywhere in the command line, a mistake elsewhere in it is told as JSON. Help
//! and versions are pages for people in any case.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ErrorKind};

use super::Cli;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;

/// What is shown instead of running a command.
#[derive(Debug)]
pub struct Refused {
    error: clap::Error,
    json: bool,
    command: Option<String>,
}

impl Refused {
    pub(super) fn new(error: clap::Error, args: &[OsString]) -> Self {
        let typed = Typed::of(args.get(1..).unwrap_or_default());
        Self { error, json: typed.json, command: typed.command }
    }

    /// The exit code: 0 after help or version, 2 after a usage error.
    pub fn exit(&self) -> Exit {
        if self.error.use_stderr() { Exit::Usage } else { Exit::Ok }
    }

    /// The command that was meant, as far as that can be told.
    pub fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }

    /// Prints it for people.
    pub fn print(&self) {
        // A closed pipe is no reason to fail.
        let _ = self.error.print();
    }

    /// The mistake as a problem, where JSON was asked for.
    pub fn problem(&self) -> Option<Problem> {
        (self.json && self.error.use_stderr()).then(|| problem(&self.error))
    }
}

/// What `clap` says, as a problem: its first line is the message, its tips are the mends.
fn problem(error: &clap::Error) -> Problem {
    let new = |message: &str| Problem::new("cuwright::usage::arguments", Exit::Usage, message);
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return new("a command is missing").help("`--help` lists the commands");
    }
    let text = error.render().to_string();
    let mut parts = text.trim_end().split("\n\n");
    let head = parts.next().unwrap_or_default();
    let mut lines = head.strip_prefix("error: ").unwrap_or(head).lines();
    let problem = new(lines.next().unwrap_or_default().trim_end_matches(':'));
    let mut problem = lines.fold(problem, |problem, line| problem.why(line.trim().trim_matches(['[', ']'])));
    for line in parts.flat_map(str::lines) {
        if let Some(tip) = line.trim().strip_prefix("tip: ") {
            problem = problem.help(tip);
        }
    }
    if let Some(usage) = error.get(ContextKind::Usage) {
        problem = problem.help(usage.to_string().trim().replacen("Usage: ", "write it as: ", 1));
    }
    problem.help("`--help` after the command tells what it takes")
}

/// What can be told of a command line that does not parse.
#[derive(Debug, Default, PartialEq, Eq)]
struct Typed {
    json: bool,
    command: Option<String>,
}

impl Typed {
    fn of(args: &[OsString]) -> Self {
        let cli = Cli::command();
        let takes_value = |flag: &str| {
            let global = cli.get_arguments().find(|arg| arg.get_long().is_some_and(|long| flag[2..] == *long));
            global.is_some_and(|arg| arg.get_action().takes_values())
        };
        let mut typed = Self::default();
        let mut args =
            args.iter().map(|arg| arg.to_str().unwrap_or_default()).take_while(|arg| *arg != "--").peekable();
        while let Some(arg) = args.next() {
            match arg {
                "--json" | "--message-format=json" => typed.json = true,
                "--message-format" if args.peek() == Some(&"json") => {
                    typed.json = true;
                    args.next();
                }
                // The value of a flag in front of the command is not the command.
                flag if flag.starts_with("--") && typed.command.is_none() && takes_value(flag) => drop(args.next()),
                flag if flag.starts_with('-') => {}
                name if typed.command.is_none() => typed.command = Some(name.to_owned()),
                _ => {}
            }
        }
        typed
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command, Parser as _};

    use super::*;

    fn refused(line: &str) -> Refused {
        super::super::parse(line.split(' ').map(OsString::from)).unwrap_err()
    }

    #[test]
    fn json_is_seen_wherever_it_stands_and_not_behind_the_end_of_flags() {
        for line in [
            "cuwright --json build --archs 9.0",
            "cuwright build --archs 9.0 --json",
            "cuwright build --archs 9.0 --message-format=json",
            "cuwright build --message-format json --archs 9.0",
            "cuwright --tables x build --quiet --verbose --json",
        ] {
            let refused = refused(line);
            assert_eq!((refused.json, refused.command()), (true, Some("build")), "{line}");
            assert_eq!(refused.problem().map(|problem| problem.exit()), Some(Exit::Usage), "{line}");
        }
        for line in ["cuwright build --archs 9.0", "cuwright build --archs 9.0 -- --json", "cuwright --help --json"] {
            assert_eq!(refused(line).problem(), None, "{line}");
        }
        assert_eq!(refused("cuwright --cache-dir build --json").command(), None);
    }

    /// Every argument that is a path or a name, of every command.
    fn named(command: &Command, before: &[String]) -> Vec<(Vec<String>, Arg)> {
        const NAMES: [&str; 10] =
            ["FILE", "DIR", "REPORT", "RECIPE", "PYTHON", "COMPILER", "NAME", "LOG|TOPIC", "KEY", "DIGEST"];
        let path = || before.iter().cloned().chain([command.get_name().to_owned()]).collect::<Vec<_>>();
        let is = |arg: &&Arg| {
            let names = arg.get_value_names().unwrap_or_default();
            // `--gpu` says itself that it names no GPU.
            arg.get_id() != "gpu" && names.iter().any(|name| NAMES.contains(&name.as_str()))
        };
        let own = command.get_arguments().filter(is).map(|arg| (path(), arg.clone()));
        own.chain(command.get_subcommands().flat_map(|sub| named(sub, &path()))).collect()
    }

    #[test]
    fn an_empty_path_or_name_is_refused_and_its_argument_is_named() {
        let all = named(&Cli::command(), &[]);
        assert!(all.len() > 25, "{}", all.len());
        for (mut line, arg) in all {
            let shown = arg
                .get_long()
                .map_or_else(|| arg.get_value_names().unwrap()[0].to_string(), |long| format!("--{long}"));
            line.push(arg.get_long().map(|long| format!("--{long}=")).unwrap_or_default());
            let error = Cli::try_parse_from(&line).unwrap_err();
            let message = problem(&error).message().to_owned();
            assert!(message.contains(&shown) && message.contains("it is empty"), "{line:?}: {message}");
        }
    }

    #[test]
    fn a_mistake_is_told_with_what_would_be_right() {
        let told = |line: &str| {
            let problem = refused(line).problem().unwrap();
            format!("{problem}\nwhy {:?}\nhelp {:?}", problem.evidence(), problem.mends())
        };
        let lines = [
            "cuwright build --archs 9.0 --json",
            "cuwright verify --json",
            "cuwright builds --json",
            "cuwright --json cache",
            "cuwright build --jobs many --json",
            "cuwright env --format shell --json",
            "cuwright -q -v recipes --json",
        ];
        insta::assert_snapshot!(lines.map(|line| format!("$ {line}\n{}", told(line))).join("\n\n"));
    }
}
