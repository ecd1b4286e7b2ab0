//! How tools mark an error, and how they say that all went well, whatever the matter. No meaning is read here.

use std::sync::LazyLock;

use regex::Regex;

use super::line::Line;

/// Literals, one of which every line that marks an error holds.
pub(super) const ERRORS: [&str; 27] = [
    "error:",
    "Error:",
    "ERROR:",
    "error #",
    "error :",
    "error   :",
    "fatal :",
    "fatal   :",
    "fatal:",
    "FATAL",
    "Exception:",
    "Fatal error",
    "undefined reference to",
    "cannot find -l",
    "CMake Error",
    "Killed",
    "Segmentation fault",
    "command not found",
    "panicked at",
    "what():",
    " *** ",
    "Interrupt",
    "Error response from daemon",
    "Illegal instruction",
    "Bus error",
    "core dumped",
    " error LNK",
];

/// Literals, one of which every line holds that ends a build well.
pub(super) const SUCCESSES: [&str; 9] = [
    "Successfully installed",
    "Successfully built",
    "Successfully tagged",
    "Build completed successfully",
    "[100%] Built target",
    "-- Generating done",
    "finished with status 'done'",
    "BUILD SUCCESS",
    "Job succeeded",
];

static MARK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let kinds = [
        r"(?:^|[\s:)])(?:fatal |internal compiler |linker )?(?:Error|error)(?: [A-Z]*\d+)?\s*: \S",
        r"^(?:ERROR|FATAL|Fatal error|fatal|CRITICAL)(?:\[[^\]]*\])?\s*:",
        r": error #",
        r"^\w+ (?:fatal|error)\s*: ",
        r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Failure)(?:: \S|:?$)",
        r"undefined reference to",
        r"cannot find -l",
        r"^CMake Error",
        r"(?:^|: )Killed\b",
        r"Segmentation fault",
        r": command not found$",
        r"panicked at",
        r"^what\(\): ",
        r"^(?:docker: )?Error response from daemon: ",
        r"(?:^|: |\d )(?:Illegal instruction|Bus error|Aborted|Floating point exception)(?: |$)",
        r"\(core dumped\)",
        // Microsoft's codes; 4 is their class of warnings.
        r"(?:^|[\s:])(?:LNK[12]\d{3}|C[123]\d{3})\s*: ",
        r"^make(?:\[\d+\])?: \*\*\* ",
    ];
    Regex::new(&kinds.join("|")).ok()
});

/// Marks of a lesser matter in a line that also says "error".
static LESSER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\bwarning\b|^note:|^W\d{4} |: note:|\b0 errors?\b|^-- |deprecated|deprecation").ok()
});

/// Whether a line marks an error.
pub(super) fn is_error(line: &Line) -> bool {
    let matches = |regex: &LazyLock<Option<Regex>>| regex.as_ref().is_some_and(|regex| regex.is_match(&line.text));
    !line.prompt && matches(&MARK) && !matches(&LESSER)
}

/// Whether a line ends a Python traceback, so that what stands above it tells the place.
pub(super) fn is_exception(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    let ends = ["Error", "Exception", "Interrupt"].iter().any(|end| name.ends_with(end));
    ends && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_'))
}

#[cfg(test)]
mod tests {
    use super::super::line::clean;
    use super::*;

    #[test]
    fn errors_are_told_from_what_only_mentions_them() {
        for yes in [
            "a.cu(3): error: no",
            "a.cpp:3:4: error: no",
            "a.cpp:3:4: fatal error: x.h: No such file or directory",
            "nvcc fatal   : x",
            "nvcc error   : 'cicc' died",
            "ptxas fatal : x",
            "ModuleNotFoundError: No module named 'x'",
            "torch.cuda.OutOfMemoryError: CUDA out of memory",
            "RuntimeError:",
            "collect2: error: ld returned 1 exit status",
            "/usr/bin/ld: cannot find -lcudart",
            "ERROR: Failed building wheel",
            "Killed",
            "docker: Error response from daemon: x",
            "Illegal instruction (core dumped)",
            "run.sh: line 3:    77 Bus error               python x.py",
            "LINK : fatal error LNK1104: x",
            "LINK : errore irreversibile LNK1104: x",
            "a.cpp(3): 致命的なエラー C1083: x",
            "a.cpp:3:4: 错误：x",
            "KeyboardInterrupt",
        ] {
            assert!(is_error(&clean(yes.as_bytes())), "{yes}");
        }
        for no in [
            "a.cu(3): warning #177-D: error: unused",
            "-- Performing Test ERROR: - Failed",
            "[1/2] c++ -c error.cpp -o error.o",
            "0 errors: fine",
            "  raise RuntimeError(\"Error: x\")",
            "$ echo 'error: x'",
            "class SyntaxError: pass",
        ] {
            assert!(!is_error(&clean(no.as_bytes())), "{no}");
        }
        assert!(is_exception("a.b.CError: x") && is_exception("E1Error") && !is_exception("a b Error: x"));
    }
}
