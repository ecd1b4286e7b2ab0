//! What CI services read out of a job's log: folded sections, and errors to show beside the code.
//!
//! Invariant: text of others never works as a command of the service.

use std::time::{SystemTime, UNIX_EPOCH};

use camino::Utf8Path;

use crate::domain::problem::Problem;
use crate::report::Location;
use crate::sys::{Env, env_vars};

/// The service whose log this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// GitLab CI.
    GitLab,
    /// GitHub Actions.
    GitHub,
}

impl Service {
    /// The service that has started us, by its variable.
    pub fn detect(env: &Env) -> Option<Self> {
        if env.flag(env_vars::GITLAB_CI) {
            return Some(Self::GitLab);
        }
        env.flag(env_vars::GITHUB_ACTIONS).then_some(Self::GitHub)
    }

    /// Opens a section; everything up to its end can be folded away.
    pub(super) fn begin(self, name: &str, folded: bool, now: SystemTime) -> String {
        match self {
            Self::GitLab => {
                let folded = if folded { "[collapsed=true]" } else { "" };
                format!("\u{1b}[0Ksection_start:{}:{}{folded}\r\u{1b}[0K{name}\n", seconds(now), section(name))
            }
            Self::GitHub => format!("::group::{}\n", escape(name)),
        }
    }

    /// Closes a section.
    pub(super) fn end(self, name: &str, now: SystemTime) -> String {
        match self {
            Self::GitLab => format!("\u{1b}[0Ksection_end:{}:{}\r\u{1b}[0K\n", seconds(now), section(name)),
            Self::GitHub => "::endgroup::\n".to_owned(),
        }
    }

    /// A problem for the service's own list of errors, where it has one.
    pub(super) fn annotation(self, problem: &Problem) -> String {
        if self == Self::GitLab {
            return String::new();
        }
        let place = problem.snippet().map(Location::from).filter(|place| is_file(&place.origin));
        let place = place.map_or_else(String::new, |place| {
            format!("file={},line={},col={},", property(&place.origin), place.line, place.column)
        });
        let lines = [problem.message()].into_iter().chain(problem.evidence().first().map(String::as_str));
        let help = problem.mends().first().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
        let text = format!("{}{help}", lines.collect::<Vec<_>>().join("\n"));
        format!("::error {place}title={}::{}\n", property(problem.code()), escape(&text))
    }

    /// A line of others, which must not work as a command.
    pub(super) fn harmless(self, line: &str) -> String {
        if self == Self::GitHub && line.trim_start().starts_with("::") {
            return format!("| {}", line.replace("##[", "# #["));
        }
        if self == Self::GitHub { line.replace("##[", "# #[") } else { line.to_owned() }
    }
}

/// A recipe file, and neither a flag nor a variable.
fn is_file(origin: &str) -> bool {
    Utf8Path::new(origin).extension() == Some("toml") && !origin.starts_with('-')
}

fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// GitLab takes letters, digits, `_`, `.` and `-` in names of sections.
fn section(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    format!("cuwright_{}", name.chars().map(legal).collect::<String>())
}

fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::exit::Exit;
    use crate::domain::problem::Snippet;

    #[test]
    fn a_problem_stands_beside_its_line_on_github_alone() {
        let text = "schema = 1\narch = [\"10.0\"]\n".to_owned();
        let at = Snippet { origin: "a,b.toml".into(), text, range: 19..25, label: String::new() };
        let problem = Problem::new("cuwright::test", Exit::Recipe, "50% of\nit").why("w").help("do");
        let plain = "::error title=cuwright%3A%3Atest::50%25 of%0Ait%0Aw%0Ahelp: do\n";
        assert_eq!(Service::GitHub.annotation(&problem), plain);
        let placed = "::error file=a%2Cb.toml,line=2,col=9,title=cuwright%3A%3Atest::";
        assert!(Service::GitHub.annotation(&problem.clone().at(at)).starts_with(placed));
        assert_eq!(Service::GitLab.annotation(&problem), "");
    }

    #[test]
    fn output_of_a_build_gives_no_commands() {
        assert_eq!(Service::GitHub.harmless("  ::error::x"), "|   ::error::x");
        assert_eq!(Service::GitHub.harmless("a ##[endgroup]"), "a # #[endgroup]");
        assert_eq!(Service::GitLab.harmless("::x"), "::x");
    }

    #[test]
    fn the_service_is_known_by_its_variable() {
        let of = |name: &str| Service::detect(&Env::of("/", [(name, "true")]));
        assert_eq!(of("GITLAB_CI"), Some(Service::GitLab));
        assert_eq!((of("GITHUB_ACTIONS"), of("CI")), (Some(Service::GitHub), None));
    }
}
