//! Files and fragments for the places where cuwright is used: an environment for shells, containers and CI services.
//!
//! Invariant: pure, and exact or refused. Each format either holds a value so that its reader gets the same bytes back,
//! or says which variable it cannot hold.

mod quoting;

use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};

/// How an environment is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Lines for `eval` in a POSIX shell
    Sh,
    /// A `.env` file
    Dotenv,
    /// One document with everything that is known
    Json,
    /// `ENV` lines of a Dockerfile
    Docker,
    /// The `variables:` of a GitLab job
    Gitlab,
    /// The `env:` list of a Kubernetes container
    K8s,
}

impl Format {
    /// Whether what is written is for another machine, where paths of this one mean nothing.
    pub fn travels(self) -> bool {
        matches!(self, Self::Docker | Self::Gitlab | Self::K8s)
    }

    /// Whether it can put folders in front of the reader's own `PATH`.
    pub fn extends_path(self) -> bool {
        matches!(self, Self::Sh | Self::Json | Self::Docker)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sh => "a shell",
            Self::Dotenv => "a .env file",
            Self::Json => "JSON",
            Self::Docker => "a Dockerfile",
            Self::Gitlab => "GitLab's variables",
            Self::K8s => "Kubernetes' env",
        }
    }
}

/// Variables to set, and folders that go in front of `PATH`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    /// Names and values, in the order to write them.
    pub set: Vec<(String, String)>,
    /// Folders, the first wins.
    pub path: Vec<String>,
}

/// The text for `format`, without a final line end; for `Json` just the variables as an object.
///
/// # Errors
/// Every variable that the format cannot hold.
pub fn write(format: Format, variables: &Variables) -> Result<String, Problems> {
    let mut lines: Vec<String> = match format {
        Format::Gitlab => vec!["variables:".to_owned()],
        Format::K8s => vec!["env:".to_owned()],
        _ => Vec::new(),
    };
    if format == Format::Json {
        let object: serde_json::Map<String, serde_json::Value> =
            variables.set.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        return Ok(serde_json::Value::Object(object).to_string());
    }
    let mut refused = Vec::new();
    for (name, value) in &variables.set {
        match line(format, name, value) {
            Ok(line) => lines.push(line),
            Err(why) => refused.push(cannot_hold(format, name, &why)),
        }
    }
    let path = variables.path.join(":");
    if !path.is_empty() && format.extends_path() {
        match format {
            Format::Docker => match quoting::docker(&path) {
                Ok(path) => lines.push(format!("ENV PATH=\"{path}:$PATH\"")),
                Err(why) => refused.push(cannot_hold(format, "PATH", &why)),
            },
            _ => lines.push(format!("export PATH={}\"${{PATH:+:$PATH}}\"", quoting::sh(&path))),
        }
    }
    Problems::check(refused)?;
    Ok(lines.join("\n"))
}

fn line(format: Format, name: &str, value: &str) -> Result<String, String> {
    if value.contains('\0') {
        return Err("no variable can hold a NUL".to_owned());
    }
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.starts_with(|c: char| letter(c) && !c.is_ascii_digit()) || !name.chars().all(letter) {
        return Err("its name is none that every reader takes: letters, digits and `_`".to_owned());
    }
    Ok(match format {
        Format::Sh | Format::Json => format!("export {name}={}", quoting::sh(value)),
        Format::Dotenv => format!("{name}={}", quoting::dotenv(value)?),
        Format::Docker => format!("ENV {name}=\"{}\"", quoting::docker(value)?),
        Format::Gitlab => format!("  {}: {}", quoting::yaml_key(name), quoting::yaml(&value.replace('$', "$$"))),
        Format::K8s => {
            format!("- name: {}\n  value: {}", quoting::yaml(name), quoting::yaml(&value.replace('$', "$$")))
        }
    })
}

fn cannot_hold(format: Format, name: &str, why: &str) -> Problem {
    let message = format!("{} cannot hold the variable {name}", format.name());
    Problem::new("cuwright::usage::format_cannot_hold", Exit::Usage, message)
        .why(why)
        .help("use `--format sh` or `--format json`, or change the value")
}
