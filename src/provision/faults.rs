//! The ways provisioning fails, each as a problem with uv's or pip's own last words.
//!
//! Invariant: what a tool said is cut short and loses its passwords before it is shown.

use std::io;

use camino::Utf8Path;

use crate::domain::{exit::Exit, index::redact_text, problem::Problem, toolchain::Python};

/// How many of a tool's lines are shown.
const SHOWN: usize = 8;
/// Characters shown of each.
const WIDTH: usize = 300;

/// What uv's or pip's words mean, the most telling first.
const SIGNS: [(Kind, &[&str]); 6] = [
    (Kind::Disk, &["No space left on device", "os error 28", "Disk quota exceeded", "os error 122"]),
    (Kind::Folder, &["Failed to initialize cache", "Permission denied", "Read-only file system"]),
    (Kind::Hash, &["Hash mismatch", "DO NOT MATCH THE HASHES"]),
    (Kind::Offline, &["network was disabled", "network connectivity is disabled", "`--offline`"]),
    (
        Kind::Network,
        &[
            "error sending request",
            "Failed to fetch",
            "dns error",
            "tcp connect error",
            "Connection refused",
            "Temporary failure in name resolution",
            "Max retries exceeded",
            "NewConnectionError",
            "ConnectTimeoutError",
            "ReadTimeoutError",
            "operation timed out",
            "certificate",
            "UnknownIssuer",
        ],
    ),
    (Kind::Unsolvable, &["No solution found", "unsatisfiable", "No matching distribution found"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Disk,
    Folder,
    Hash,
    Offline,
    Network,
    Unsolvable,
    Other,
}

/// uv ended with an error while it did `what`.
pub(super) fn uv_failed(what: &str, said: &[String]) -> Problem {
    let problem = match kind(said) {
        Kind::Disk => problem("cuwright::provision::disk_full", "the disk is full").help(DISK),
        Kind::Folder => problem("cuwright::provision::cache_folder", format!("{} could not write its files", task(what)))
            .help("make the cache folder writable, or name another one with CUWRIGHT_CACHE_DIR"),
        Kind::Hash => problem("cuwright::provision::hash", "a downloaded package is not the one that was resolved")
            .help("try again; if it stays, the index serves changed files: ask who runs it"),
        Kind::Offline => problem("cuwright::provision::offline", format!("{} needs packages that are not stored here", task(what)))
            .help("run once with a network and without `--offline`"),
        Kind::Network => problem("cuwright::provision::unreachable", format!("{} could not reach the package index", task(what)))
            .help("check the network, the proxy (HTTPS_PROXY) and the index (UV_DEFAULT_INDEX, PIP_INDEX_URL)")
            .help("behind a company's certificate: add it to the system's store (Debian: /usr/local/share/ca-certificates, then update-ca-certificates), or name a file of certificates in SSL_CERT_FILE")
            .help("or start cuwright in an environment that holds a fitting torch and toolkit"),
        Kind::Unsolvable => problem("cuwright::provision::unresolvable", "no set of packages satisfies all requirements")
            .help("loosen `build-requires` or `verify.requires` in the recipe, or choose other `--torch`, `--cuda`, `--python`"),
        Kind::Other => problem("cuwright::provision::uv_failed", format!("uv failed at {}", task(what)))
            .help("the lines above are uv's own; run again with another uv on PATH if it looks broken"),
    };
    with_words(problem, "uv", said)
}

/// No Python here has pip.
pub(super) fn no_pip(python: &Python) -> Problem {
    problem("cuwright::provision::no_uv", "there is no uv, and no pip to fetch it with")
        .why(format!("neither {} nor a `python3` on PATH runs `-m pip`", python.executable))
        .help("Debian, Ubuntu: apt-get install python3-pip; Fedora, RHEL: dnf install python3-pip")
        .help("or install uv and put it on PATH")
}

/// pip could not fetch uv.
pub(super) fn pip(said: &[String]) -> Problem {
    let install = "install uv and put it on PATH";
    let problem = match kind(said) {
        Kind::Disk => problem("cuwright::provision::disk_full", "the disk is full").help(DISK),
        Kind::Folder => problem("cuwright::provision::cache_folder", "fetching uv could not write its files")
            .help("make the cache folder writable, or name another one with CUWRIGHT_CACHE_DIR"),
        Kind::Hash => {
            problem("cuwright::provision::hash", "the uv that the index serves is not the pinned one").help(install)
        }
        Kind::Network | Kind::Offline => {
            problem("cuwright::provision::unreachable", "fetching uv could not reach the package index")
                .help("check the network, the proxy (HTTPS_PROXY) and pip's index (`pip config list`)")
                .help(format!("or {install}"))
        }
        Kind::Unsolvable => {
            problem("cuwright::provision::no_uv", "the package index has no uv for this machine").help(install)
        }
        Kind::Other => problem("cuwright::provision::no_uv", "pip could not fetch uv").help(install),
    };
    with_words(problem, "pip", said)
}

/// The wheel is not what a wheel of uv looks like.
pub(super) fn no_uv_in_wheel(python: &Utf8Path) -> Problem {
    problem("cuwright::provision::no_uv", "the fetched wheel holds no uv")
        .why(format!("fetched by {python} -m pip"))
        .help("install uv and put it on PATH")
}

/// There is no uv and nothing may be fetched.
pub(super) fn uv_offline() -> Problem {
    problem("cuwright::provision::offline", "there is no uv, and the network may not be used")
        .why("`--offline` was given; neither PATH nor the cache holds uv")
        .help("run once without `--offline`, or put uv on PATH")
        .help("or start cuwright in an environment that holds a fitting torch and toolkit")
}

/// A file of ours could not be written or read.
pub(super) fn disk(what: &str, error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            problem("cuwright::provision::disk_full", "the disk is full").why(error.to_string()).help(DISK)
        }
        _ => problem("cuwright::provision::cache_folder", format!("the cache cannot be used at {what}"))
            .why(error.to_string())
            .help("make it writable, or name another folder with CUWRIGHT_CACHE_DIR"),
    }
}

/// The installed set lacks something it must have.
pub(super) fn incomplete(folder: &Utf8Path, what: &str) -> Problem {
    problem("cuwright::provision::incomplete", format!("the installed packages hold no {what}"))
        .why(format!("looked in {folder}"))
        .help("this is a fault of the set in `combinations.toml`: choose another with `--torch` or `--cuda`, and report it")
}

const DISK: &str = "a torch toolchain takes about 6 GiB: free some, or name another disk with CUWRIGHT_CACHE_DIR";

fn problem(code: &'static str, message: impl Into<String>) -> Problem {
    Problem::new(code, Exit::Toolchain, message)
}

fn task(what: &str) -> &str {
    match what {
        "resolve" => "resolving the toolchain",
        "venv" => "making the environment",
        "install" => "installing the toolchain",
        _ => "asking for the index",
    }
}

fn kind(said: &[String]) -> Kind {
    let says = |sign: &&str| said.iter().any(|line| line.contains(*sign));
    SIGNS.iter().find(|(_, signs)| signs.iter().any(says)).map_or(Kind::Other, |(kind, _)| *kind)
}

fn with_words(problem: Problem, who: &str, said: &[String]) -> Problem {
    let telling = |line: &&String| {
        let line = line.trim();
        let progress = ["Downloading", "Downloaded", "WARNING: Retrying"];
        !line.is_empty() && !progress.iter().any(|word| line.starts_with(word))
    };
    let lines: Vec<&String> = said.iter().filter(telling).collect();
    let last = &lines[lines.len().saturating_sub(SHOWN)..];
    let short = |line: &str| redact_text(line.trim_end()).chars().take(WIDTH).collect::<String>();
    last.iter().fold(problem, |problem, line| problem.why(format!("{who}: {}", short(line))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> &'static str {
        uv_failed("install", &["  × Failed".to_owned(), line.to_owned()]).code()
    }

    #[test]
    fn a_tools_words_are_told_apart() {
        assert_eq!(code("Caused by: No space left on device (os error 28)"), "cuwright::provision::disk_full");
        assert_eq!(
            code("error sending request for url (https://u:p@h.invalid/simple)"),
            "cuwright::provision::unreachable"
        );
        assert_eq!(code("× No solution found when resolving dependencies:"), "cuwright::provision::unresolvable");
        assert_eq!(code("Packages were unavailable because the network was disabled."), "cuwright::provision::offline");
        assert_eq!(code("Hash mismatch for `x==1`"), "cuwright::provision::hash");
        assert_eq!(code("cause: failed to open file `x`: Permission denied"), "cuwright::provision::cache_folder");
        assert_eq!(code("panicked"), "cuwright::provision::uv_failed");
    }

    #[test]
    fn shown_words_are_few_and_have_no_password() {
        let said: Vec<String> = (0..50).map(|n| format!("line {n} https://u:secret@h.invalid/x")).collect();
        let problem = uv_failed("resolve", &said);
        assert_eq!(problem.evidence().len(), SHOWN);
        assert!(problem.evidence().iter().all(|line| !line.contains("secret")), "{problem:?}");
    }
}
