//! What was judged, as values: per file its device code, its fate on each GPU, its ABI, and every finding.
//!
//! Invariant: pure and additive like `report`; text, JSON and JUnit are all made from this, so they cannot disagree.
//! `schemas/verify.schema.json` is generated from here.

use serde::Serialize;

use super::abi::Abi;
use super::fate::Fate;
use crate::domain::problem::{Problem, Problems};
use crate::report::{ErrorMessage, GpuCheck};

/// Version of the document.
pub const SCHEMA: u32 = 1;

/// Everything that was judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Outcome {
    /// Version of this form.
    pub schema: u32,
    /// Whether nothing failed.
    pub ok: bool,
    /// Archs that files must hold, as a list; nothing where none were asked for.
    pub expected: Option<String>,
    /// The driver that was assumed.
    pub driver: Option<String>,
    /// The inputs, in the order named.
    pub inputs: Vec<Input>,
}

/// A wheel, a folder or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Input {
    /// The input as it was named.
    pub file: String,
    /// Whether nothing failed.
    pub ok: bool,
    /// Its files.
    pub files: Vec<File>,
    /// The import check, if it ran.
    pub import: Option<Check>,
    /// The recipe's check on a GPU; nothing where the recipe has none or it was not come to.
    pub gpu_check: Option<GpuCheck>,
    /// Findings that belong to no file.
    pub findings: Vec<Finding>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct File {
    /// The file as people see it.
    pub file: String,
    /// Whether nothing failed.
    pub ok: bool,
    /// Archs found, as an arch list; empty for a file without device code.
    pub found: String,
    /// Number of SASS images (cubins).
    pub cubins: usize,
    /// Number of PTX images.
    pub ptx: usize,
    /// Newest toolkit that made machine code of it, where looked for and told.
    pub toolkit: Option<String>,
    /// Reason of the waiver that applies, if one does.
    pub waived: Option<String>,
    /// How it fares on each GPU that was named.
    pub gpus: Vec<Fate>,
    /// How it links; nothing for a file that is no ELF library.
    pub abi: Option<Abi>,
    /// What was found, errors and warnings.
    pub findings: Vec<Finding>,
}

/// A check that printed something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Check {
    /// Whether it passed.
    pub ok: bool,
    /// What it printed, line by line.
    pub output: Vec<String>,
}

/// What a finding is about; a test case of its own in JUnit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// The file as such: readable, there, whole.
    File,
    /// A wheel's name and metadata against its files.
    Wheel,
    /// Device code against expectations.
    DeviceCode,
    /// Whether a GPU runs it.
    Gpu,
    /// Libraries, symbols and versions.
    Abi,
    /// The import check.
    Import,
    /// The recipe's check on a GPU.
    GpuCheck,
}

impl Topic {
    /// The name for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Wheel => "wheel metadata",
            Self::DeviceCode => "device code",
            Self::Gpu => "GPUs",
            Self::Abi => "ABI",
            Self::Import => "import",
            Self::GpuCheck => "GPU check",
        }
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// It fails the verification.
    Error,
    /// It may hurt.
    Warning,
}

/// One finding, with a stable code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// Whether it fails.
    pub level: Level,
    /// What it is about.
    pub topic: Topic,
    /// What, why and the mend.
    #[serde(flatten)]
    pub message: ErrorMessage,
    /// The same, as the program knows it.
    #[serde(skip)]
    pub problem: Problem,
}

impl Finding {
    /// A finding that fails.
    pub fn error(topic: Topic, problem: Problem) -> Self {
        Self { level: Level::Error, topic, message: ErrorMessage::from(&problem), problem }
    }

    /// A finding that may hurt.
    pub fn warning(topic: Topic, problem: Problem) -> Self {
        Self { level: Level::Warning, ..Self::error(topic, problem) }
    }
}

/// Whether none of the findings fails.
pub fn passes(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.level == Level::Warning)
}

impl Outcome {
    /// Every finding, in order: of each input, first its files', then its own.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.inputs.iter().flat_map(|input| input.files.iter().flat_map(|file| &file.findings).chain(&input.findings))
    }

    /// `Err` with everything that fails.
    ///
    /// # Errors
    /// At least one finding fails.
    pub fn check(&self) -> Result<(), Problems> {
        let fails = self.findings().filter(|finding| finding.level == Level::Error);
        Problems::check(fails.map(|finding| finding.problem.clone()).collect())
    }

    /// Fills in what follows from the findings.
    #[must_use]
    pub fn settled(mut self) -> Self {
        for input in &mut self.inputs {
            for file in &mut input.files {
                file.ok = passes(&file.findings);
            }
            input.ok = passes(&input.findings) && input.files.iter().all(|file| file.ok);
        }
        self.ok = self.inputs.iter().all(|input| input.ok);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_what_the_code_says() {
        crate::schema_check::<Outcome>("schemas/verify.schema.json");
    }
}
