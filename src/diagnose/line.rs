//! One raw line of a log as the tool wrote it: without colours, CI timestamps, Docker steps, pip's boxes and prompts.
//!
//! Only lines that a rule may know come here, so clarity wins over speed. Never fails: what is no UTF-8 is replaced.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::words::english;

/// A line without what others put in front of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The Docker build step it belongs to; steps run at once and their lines mix.
    pub(super) stream: Option<u32>,
    /// Whether it is a command that somebody typed, not what a tool said.
    pub(super) prompt: bool,
    /// Blanks in front of the text.
    pub(super) indent: usize,
    /// The text, trimmed; a compiler's in English.
    pub(super) text: String,
    /// The text as printed, where that is not in English.
    printed: Option<String>,
}

impl Line {
    /// The text as the tool printed it, trimmed.
    pub(super) fn printed(&self) -> &str {
        self.printed.as_deref().unwrap_or(&self.text)
    }
}

/// What terminals obey: colours, cursor moves, titles, and GitLab's section marks.
static ESCAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|section_(?:start|end):\d+:[\w.-]*(?:\[[^\]]*\])?")
        .ok()
});

/// What machines put in front of a line, one kind a row; several may stand in a row.
static PREFIXES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let kinds = [
        // Docker's steps, `#14 3.202 `, and the same in its summary, `3.202 `.
        r"#(?<step>\d+) (?:\d+\.\d+ )?",
        r"\d{1,6}\.\d{2,3} ",
        // Timestamps of GitLab (with the stream's letter), GitHub, Jenkins, syslog.
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z \d\d[OE][ +]",
        r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?Z|[+-]\d\d:?\d\d)?\]?(?: - |[ |]|$)",
        r"\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]? ",
        // The kernel's log.
        r"\[ *\d+\.\d{6}\] ",
        // Kubernetes and compose: a name and a bar. gcc's excerpts have a number there.
        r"[A-Za-z][\w.-]*\s*\| ",
        r"##\[(?:error|warning|group|endgroup|debug|command)\]",
        r"(?:stdout|stderr) [FP] ",
        // Workers of torchrun and Ray, and pytest's mark.
        r"\[(?:rank|default)\d+\]: ?",
        r"\(\w+ pid=\d+[^)]*\) ",
        r"E {3,}",
        // Boxes of pip and uv, and a quoting mark.
        r"[│╰├─▶>×]+ ",
    ];
    Regex::new(&format!("^\\s*(?:{})", kinds.join("|"))).ok()
});

/// `$ `, `user@host:~/x$ `, `(env) root@host:/# `, and what `sh -x` prints.
static PROMPT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:\([\w.-]+\) )?(?:[\w.-]+@[\w.-]+[: ]?[^$#\s]*[$#]|\[[\w.-]+@[\w.-]+ [^\]]*\][$#]|\$|\++|>>>) ")
        .ok()
});

/// Reads one line, given without its end.
pub(super) fn clean(raw: &[u8]) -> Line {
    let text = String::from_utf8_lossy(raw);
    let text = match &*ESCAPES {
        Some(escapes) if text.contains(['\u{1b}', ':']) => Cow::Owned(escapes.replace_all(&text, "").into_owned()),
        _ => text,
    };
    let mut rest = text.trim_end();
    let mut stream = None;
    for _ in 0..6 {
        let Some(found) = PREFIXES.as_ref().and_then(|prefixes| prefixes.captures(rest)) else { break };
        if let Some(step) = found.name("step") {
            stream = step.as_str().parse().ok();
        }
        rest = &rest[found.get(0).map_or(0, |whole| whole.end())..];
    }
    let trimmed = rest.trim_start();
    let indent = rest.len() - trimmed.len();
    let prompt = PROMPT.as_ref().and_then(|prompt| prompt.find(trimmed));
    let body = prompt.map_or(trimmed, |found| trimmed[found.end()..].trim_start());
    let english = english(body);
    let printed = english.is_some().then(|| body.to_owned());
    Line { stream, prompt: prompt.is_some(), indent, text: english.unwrap_or_else(|| body.to_owned()), printed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_put_in_front_is_gone() {
        for raw in [
            "#14 3.202 nvcc fatal   : x",
            "3.202 nvcc fatal   : x",
            "2026-05-01T12:00:00.1234567Z nvcc fatal   : x",
            "2026-05-01T12:00:00.123456Z 01O nvcc fatal   : x",
            "2026-05-01T12:00:00.123456Z 01E+nvcc fatal   : x",
            "[2026-05-01T12:00:00.123Z] nvcc fatal   : x",
            "12:00:01 nvcc fatal   : x",
            "\u{1b}[0K\u{1b}[31;1mnvcc fatal   : x\u{1b}[0m",
            "section_end:1700000000:build\u{1b}[0Knvcc fatal   : x",
            "      nvcc fatal   : x",
            "  │ nvcc fatal   : x",
            "  ╰─> nvcc fatal   : x",
            "builder-1  | #9 1.203     nvcc fatal   : x\r",
            "##[error]nvcc fatal   : x",
            "[rank0]: nvcc fatal   : x",
            "> nvcc fatal   : x",
        ] {
            let line = clean(raw.as_bytes());
            assert_eq!((line.text.as_str(), line.prompt), ("nvcc fatal   : x", false), "{raw:?}");
        }
        assert_eq!(clean(b"#14 3.202 x").stream, Some(14));
    }

    #[test]
    fn what_was_typed_is_known_and_what_only_looks_like_a_prefix_stays() {
        for raw in ["$ make", "root@box:/src# make", "(env) me@box:~$ make", "+ make", "#9 1.0 $ make"] {
            let line = clean(raw.as_bytes());
            assert_eq!((line.text.as_str(), line.prompt), ("make", true), "{raw:?}");
        }
        for raw in ["143 | #error x", "14.2.0", "[3/22] c++ x", "2.1.0+cu121 12.1", "-- Found", "# comment"] {
            assert_eq!(clean(raw.as_bytes()).text, raw);
        }
        assert_eq!(clean(b"a\xffb\x1b[0").text, "a\u{fffd}b\u{1b}[0");
    }
}
