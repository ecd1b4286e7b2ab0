//! Which torch, CUDA and Python go together: the rows of `combinations.toml`, and the choice among them.
//!
//! Invariant: pure. Wheels hold nvcc from CUDA 13.0 on only, so no row can be older.

use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};
use serde::Deserialize;

use crate::domain::{exit::Exit, problem::Problem, version::CudaVersion};

const TABLE: &str = include_str!("combinations.toml");

/// One set that is known to go together.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Combination {
    /// torch release.
    pub torch: String,
    /// CUDA release of torch and nvcc.
    pub cuda: CudaVersion,
    /// Release of the `cuda-toolkit` package.
    pub toolkit: String,
    /// Further requirements that keep the set together.
    pub pins: Vec<String>,
    /// Pythons that have wheels.
    pub python: VersionSpecifiers,
    /// How the row was checked.
    pub source: String,
}

impl Combination {
    /// What to ask the index for.
    pub fn requirements(&self) -> Vec<String> {
        [vec![format!("torch=={}", self.torch), toolkit(&self.toolkit)], self.pins.clone()].concat()
    }
}

/// The toolkit alone, of one release.
pub fn toolkit_of(release: CudaVersion) -> String {
    let known = rows().unwrap_or_default().into_iter().find(|row| row.cuda == release);
    toolkit(&known.map_or_else(|| format!("{release}.*"), |row| row.toolkit))
}

fn toolkit(version: &str) -> String {
    format!("cuda-toolkit[nvcc,cccl,cudart,crt,nvvm]=={version}")
}

/// Ranges that a choice must satisfy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// torch releases.
    pub torch: VersionSpecifiers,
    /// CUDA releases.
    pub cuda: VersionSpecifiers,
}

/// All rows, the most trusted first.
pub fn rows() -> Result<Vec<Combination>, Problem> {
    #[derive(Deserialize)]
    struct Table {
        row: Vec<Combination>,
    }
    let broken = |error| Problem::new("cuwright::bug", Exit::Bug, format!("combinations.toml is broken: {error}"));
    toml::from_str::<Table>(TABLE).map(|table| table.row).map_err(broken)
}

/// The first row that satisfies `wanted` on this Python.
pub fn choose(wanted: &Wanted, python: &str) -> Result<Combination, Problem> {
    let rows = rows()?;
    let fits = |range: &VersionSpecifiers, version: &str| Version::from_str(version).is_ok_and(|v| range.contains(&v));
    let mut losing = Vec::new();
    for row in &rows {
        let mut reasons = Vec::new();
        if !fits(&wanted.torch, &row.torch) {
            reasons.push(format!("torch is wanted {}", shown(&wanted.torch)));
        }
        if !fits(&wanted.cuda, &row.cuda.to_string()) {
            reasons.push(format!("CUDA is wanted {}", shown(&wanted.cuda)));
        }
        if !fits(&row.python, python) {
            reasons.push(format!("it needs Python {}", shown(&row.python)));
        }
        if reasons.is_empty() {
            return Ok(row.clone());
        }
        losing.push((row, reasons));
    }
    Err(refusal(wanted, python, &losing))
}

/// Every row in a few words, those of one CUDA release together.
pub fn summary() -> Vec<String> {
    let mut groups: Vec<(CudaVersion, Vec<String>)> = Vec::new();
    for row in rows().unwrap_or_default() {
        match groups.iter_mut().find(|(cuda, _)| *cuda == row.cuda) {
            Some((_, torches)) => torches.push(row.torch),
            None => groups.push((row.cuda, vec![row.torch])),
        }
    }
    groups.iter().map(|(cuda, torches)| format!("wheels have CUDA {cuda} with torch {}", torches.join(", "))).collect()
}

/// The oldest CUDA release whose nvcc is in wheels.
pub const OLDEST_NVCC: CudaVersion = CudaVersion::new(13, 0);

fn refusal(wanted: &Wanted, python: &str, losing: &[(&Combination, Vec<String>)]) -> Problem {
    let only_python: Vec<&Combination> = losing
        .iter()
        .filter(|(_, reasons)| reasons.len() == 1 && reasons[0].starts_with("it needs Python"))
        .map(|(row, _)| *row)
        .collect();
    if let [first, ..] = only_python[..] {
        let message = format!("no wheels of a fitting torch exist for Python {python}");
        let problem = Problem::new("cuwright::provision::no_combination", Exit::Toolchain, message);
        let says = |row: &&Combination| format!("torch {} needs Python {}", row.torch, shown(&row.python));
        return only_python
            .iter()
            .map(says)
            .fold(problem, Problem::why)
            .help(format!("name a Python within {} with `--python`", shown(&first.python)));
    }
    let (torch, cuda) = (shown(&wanted.torch), shown(&wanted.cuda));
    let message = format!("no known set of wheels has torch {torch} with CUDA {cuda} for Python {python}");
    let problem = Problem::new("cuwright::provision::no_combination", Exit::Toolchain, message);
    summary()
        .into_iter()
        .fold(problem, Problem::why)
        .help("widen `torch` or `cuda` in the recipe, or choose with `--torch` and `--cuda`")
}

/// A range as people say it: `12.8` for `==12.8.*`.
pub fn shown(range: &VersionSpecifiers) -> String {
    let text = range.to_string();
    let one = text.strip_prefix("==").filter(|rest| !rest.contains(','));
    match one {
        _ if range.is_empty() => "of any release".to_owned(),
        Some(one) => one.trim_end_matches(".*").to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::requirement::range;

    fn wanted(torch: &str, cuda: &str) -> Wanted {
        Wanted { torch: range(torch).unwrap(), cuda: range(cuda).unwrap() }
    }

    #[test]
    fn open_ranges_get_the_most_trusted_row() {
        let row = choose(&wanted(">=2.0", ">=11.8"), "3.11.7").unwrap();
        assert_eq!((row.torch.as_str(), row.cuda), ("2.11.0", CudaVersion::new(13, 0)));
        assert_eq!(row.requirements(), ["torch==2.11.0", "cuda-toolkit[nvcc,cccl,cudart,crt,nvvm]==13.0.2"]);
        assert_eq!(choose(&wanted("", "13.2"), "3.12.0").unwrap().torch, "2.15.0");
        assert_eq!(choose(&wanted("", ""), "3.15.0").unwrap().torch, "2.15.0");
    }

    #[test]
    fn a_refusal_names_ranges_rows_and_the_losing_side() {
        let too_old = choose(&wanted(">=2.0", ""), "3.9.18").unwrap_err();
        assert_eq!(too_old.message(), "no wheels of a fitting torch exist for Python 3.9.18");
        let old_cuda = choose(&wanted("", "12.8"), "3.11.7").unwrap_err();
        assert_eq!(
            old_cuda.message(),
            "no known set of wheels has torch of any release with CUDA 12.8 for Python 3.11.7"
        );
        assert_eq!(old_cuda.evidence(), summary());
    }

    #[test]
    fn every_row_has_a_source_and_parses() {
        for row in rows().unwrap() {
            assert!(row.source.len() > 20 && row.cuda >= OLDEST_NVCC, "{row:?}");
            for requirement in row.requirements() {
                assert!(requirement.parse::<crate::domain::requirement::Requirement>().is_ok());
            }
        }
    }
}
