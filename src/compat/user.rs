//! A user's own rows beside the embedded tables: GPUs and archs that are newer than this cuwright.
//!
//! Invariant: installed at most once, before the first question, and never changed; so a fact stays a constant of the
//! process. The user's rows are looked at first.

use std::ops::Range;
use std::sync::OnceLock;

use serde::Deserialize;
use toml::Spanned;

use super::toolkits::Span;
use crate::domain::arch::{Arch, Capability};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems, Snippet, nearest};
use crate::domain::version::CudaVersion;

/// Code of everything that can be wrong with such a file.
pub const CODE: &str = "cuwright::usage::tables";

/// What a file adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Additions {
    /// The file.
    pub origin: String,
    /// Products and what they can run.
    pub gpus: Vec<(String, Capability)>,
    /// Archs and the toolkits that can target them.
    pub archs: Vec<(Arch, Span)>,
}

static INSTALLED: OnceLock<Additions> = OnceLock::new();

/// Adds rows for the rest of the process; a second call changes nothing.
pub fn install(additions: Additions) {
    let _ = INSTALLED.set(additions);
}

/// The rows of this process.
pub(super) fn installed() -> Option<&'static Additions> {
    INSTALLED.get()
}

/// Where the row of a product comes from, in words.
pub fn source_of(name: &str) -> String {
    match INSTALLED.get().filter(|own| own.gpus.iter().any(|(own, _)| own == name)) {
        Some(own) => format!("the user file {}", own.origin),
        None => "the table of products".to_owned(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTables {
    #[serde(default)]
    gpu: Vec<RawGpu>,
    #[serde(default)]
    arch: Vec<RawArch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGpu {
    name: Spanned<String>,
    capability: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawArch {
    arch: Spanned<String>,
    first_cuda: Spanned<String>,
    last_cuda: Option<Spanned<String>>,
}

/// Reads such a file.
///
/// # Errors
/// Broken TOML or an unknown key, alone; otherwise every wrong value, each with its place.
pub fn parse(origin: &str, text: &str) -> Result<Additions, Problems> {
    let at = |range: Range<usize>, label: &str| Snippet {
        origin: origin.to_owned(),
        text: text.to_owned(),
        range,
        label: label.to_owned(),
    };
    let wrong = |message: String| Problem::new(CODE, Exit::Usage, message);
    let raw: RawTables = toml::from_str(text).map_err(|error| {
        let message = error.message().lines().next().unwrap_or("it is no TOML").to_owned();
        let problem = wrong(message.clone()).at(at(error.span().unwrap_or(0..0), "here"));
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        match quoted.split_first() {
            Some((name, legal)) if message.starts_with("unknown field") => {
                let problem = nearest(name, legal.iter().copied())
                    .map_or(problem.clone(), |near| problem.help(format!("did you mean `{near}`?")));
                problem.help(format!("keys here: {}", legal.join(", ")))
            }
            _ => problem.help("a row is `[[gpu]]` with name and capability, or `[[arch]]` with arch and first-cuda"),
        }
    })?;
    let mut problems = Vec::new();
    let mut refuse = |value: &Spanned<String>, what: &str, example: &str| {
        let message = format!("`{}` is no {what}", value.get_ref());
        problems.push(wrong(message).at(at(value.span(), "not understood")).help(format!("write it like `{example}`")));
    };
    let mut additions = Additions { origin: origin.to_owned(), gpus: Vec::new(), archs: Vec::new() };
    for row in raw.gpu {
        let capability = row.capability.get_ref().parse::<Capability>();
        if super::names::Words::of(row.name.get_ref()).decides_nothing() {
            refuse(&row.name, "product name", "GeForce RTX 7090");
        } else if let Ok(capability) = capability {
            additions.gpus.push((row.name.into_inner(), capability));
        } else {
            refuse(&row.capability, "compute capability", "14.0");
        }
    }
    for row in raw.arch {
        let version = |text: &Spanned<String>| text.get_ref().parse::<CudaVersion>().map(CudaVersion::release);
        let last = row.last_cuda.as_ref().map(|last| version(last).map_err(|_| last));
        match (row.arch.get_ref().parse::<Arch>(), version(&row.first_cuda), last.transpose()) {
            (Ok(arch), Ok(first), Ok(last)) => additions.archs.push((arch, Span { first, last })),
            (Err(_), ..) => refuse(&row.arch, "arch", "14.0"),
            (_, Err(_), _) => refuse(&row.first_cuda, "CUDA release", "14.0"),
            (_, _, Err(last)) => refuse(last, "CUDA release", "14.0"),
        }
    }
    Problems::check(problems).map(|()| additions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_and_every_slip_has_its_place() {
        let text = "[[gpu]]\nname = \"RTX 7090\"\ncapability = \"14.0\"\n\
                    [[arch]]\narch = \"14.0a\"\nfirst-cuda = \"14.1\"\nlast-cuda = \"15.2\"\n";
        let read = parse("gpus.toml", text).unwrap();
        assert_eq!(read.gpus, [("RTX 7090".to_owned(), Capability::new(14, 0))]);
        assert_eq!(read.archs[0].1, Span { first: CudaVersion::new(14, 1), last: Some(CudaVersion::new(15, 2)) });
        let text = "[[gpu]]\nname = \"GPU\"\ncapability = \"1.0\"\n[[gpu]]\nname = \"X9\"\ncapability = \"14\"\n\
                    [[arch]]\narch = \"140\"\nfirst-cuda = \"14.0\"\n[[arch]]\narch = \"14.0\"\nfirst-cuda = \"new\"\n";
        let problems = parse("gpus.toml", text).unwrap_err();
        let places = problems.iter().map(|problem| &text[problem.snippet().unwrap().range.clone()]);
        assert_eq!(places.collect::<Vec<_>>(), ["\"GPU\"", "\"14\"", "\"140\"", "\"new\""]);
        let unknown = parse("gpus.toml", "[[gpu]]\nnames = \"x\"\n").unwrap_err();
        assert_eq!(unknown.iter().next().unwrap().mends()[0], "did you mean `name`?");
        assert!(parse("gpus.toml", "[[gpu]\n").is_err() && parse("gpus.toml", "").unwrap().gpus.is_empty());
    }
}
