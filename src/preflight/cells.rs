//! Cells of a matrix that nothing can satisfy, and the constraint that is to blame.
//!
//! A cell stays if some torch and some toolkit of the tables, within what the cell and the recipe ask for, go with one
//! another, with its Python and with its archs. Invariant: pure, no network; what the tables do not know is never held
//! against a cell, since they are always older than what is out there.

use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};

use crate::compat::support::{self, Compiler};
use crate::compat::{self, Toolkit, Torch};
use crate::domain::arch::dialect::Consumer;
use crate::domain::arch::{Arch, ArchSet};
use crate::domain::release::Versioned;
use crate::recipe::matrix::{Axis, Cell};
use crate::recipe::{Recipe, ToolchainNeeds};
use crate::targets;

/// What can be wrong with a combination. The order is that in which blame is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// A value of the cell against the recipe's range of the same thing.
    Range(Axis),
    TorchPython,
    TorchCuda,
    ArchTorch,
    ArchToolkit,
}

const RULES: [Rule; 7] = [
    Rule::Range(Axis::Torch),
    Rule::Range(Axis::Cuda),
    Rule::Range(Axis::Python),
    Rule::TorchPython,
    Rule::TorchCuda,
    Rule::ArchTorch,
    Rule::ArchToolkit,
];

/// What a cell leaves open: rows of the tables, or one unknown where a value is in none.
struct Question<'a> {
    cell: &'a Cell,
    needs: &'a ToolchainNeeds,
    torches: Vec<Option<&'static Torch>>,
    toolkits: Vec<Option<&'static Toolkit>>,
    archs: Option<ArchSet>,
    /// Whether torch's own list of archs binds the build.
    bound_by_torch: bool,
}

/// Why nothing can satisfy a cell; `None` where something may.
pub fn unsatisfiable(recipe: &Recipe, cell: &Cell) -> Option<String> {
    let question = Question {
        cell,
        needs: &recipe.toolchain,
        torches: torches(cell.get(Axis::Torch), &recipe.toolchain.torch),
        toolkits: toolkits(cell.get(Axis::Cuda), &recipe.toolchain.cuda),
        // Words that hang on this machine or on a toolkit say nothing before one is chosen.
        archs: cell.get(Axis::Arch).and_then(|list| targets::literal("matrix.arch", list).ok()).map(|set| known(&set)),
        bound_by_torch: recipe.build.archs.has(Consumer::Torch),
    };
    if question.satisfiable(&[]) {
        return None;
    }
    // The constraint without which it would work is the one to blame.
    let alone = RULES.into_iter().filter(|rule| question.satisfiable(&[*rule]));
    let mut reasons: Vec<String> = alone.filter_map(|rule| question.reason(rule)).collect();
    if reasons.is_empty() {
        let others = |rule: Rule| RULES.into_iter().filter(|other| *other != rule).collect::<Vec<_>>();
        let hopeless = RULES.into_iter().filter(|rule| !question.satisfiable(&others(*rule)));
        reasons = hopeless.filter_map(|rule| question.reason(rule)).collect();
    }
    if reasons.is_empty() {
        reasons = RULES.into_iter().filter_map(|rule| question.reason(rule)).collect();
    }
    Some(if reasons.is_empty() { format!("nothing goes with {}", cell.words()) } else { reasons.join("; ") })
}

/// Archs that some table knows; others are used as written.
fn known(set: &ArchSet) -> ArchSet {
    set.filter(|arch, _| compat::arch_span(arch).is_some())
}

/// Rows that a value stands for; without a value, rows within the recipe's range.
fn torches(asked: Option<&str>, own: &str) -> Vec<Option<&'static Torch>> {
    if let Some(release) = asked.and_then(|text| Versioned::Torch.release(text).ok()) {
        return vec![compat::torch(&release)];
    }
    let range = wanted(Versioned::Torch, asked, own);
    let rows = compat::torch_releases().iter().filter(|row| within(range.as_ref(), row.version));
    or_unknown(rows.map(Some).collect())
}

fn toolkits(asked: Option<&str>, own: &str) -> Vec<Option<&'static Toolkit>> {
    if let Some(release) = asked.and_then(|text| Versioned::Cuda.release(text).ok()) {
        return vec![release.parse().ok().and_then(compat::toolkit)];
    }
    let range = wanted(Versioned::Cuda, asked, own);
    let rows = compat::toolkits().iter().filter(|row| within(range.as_ref(), &row.release.to_string()));
    or_unknown(rows.map(Some).collect())
}

fn wanted(product: Versioned, asked: Option<&str>, own: &str) -> Option<VersionSpecifiers> {
    asked.map_or_else(|| VersionSpecifiers::from_str(own).ok(), |text| product.range(text).ok())
}

/// The one version that a cell names on an axis.
fn named(axis: Axis, value: &str) -> Option<String> {
    match axis {
        Axis::Torch => Versioned::Torch.release(value).ok(),
        Axis::Cuda => Versioned::Cuda.release(value).ok(),
        Axis::Python => Version::from_str(value.trim()).is_ok().then(|| value.trim().to_owned()),
        Axis::Arch => None,
    }
}

/// A range without rows may be served by what is newer than the tables.
fn or_unknown<T>(rows: Vec<Option<T>>) -> Vec<Option<T>> {
    if rows.is_empty() { vec![None] } else { rows }
}

fn within(range: Option<&VersionSpecifiers>, version: &str) -> bool {
    range.is_none_or(|range| Version::from_str(version).is_ok_and(|version| range.contains(&version)))
}

impl Question<'_> {
    /// Whether some torch with some toolkit breaks no rule but those in `without`.
    fn satisfiable(&self, without: &[Rule]) -> bool {
        let keeps = |torch: Option<&Torch>, toolkit: Option<&Toolkit>| {
            RULES.iter().filter(|rule| !without.contains(rule)).all(|rule| self.holds(*rule, torch, toolkit))
        };
        self.torches.iter().any(|torch| self.toolkits.iter().any(|toolkit| keeps(*torch, *toolkit)))
    }

    fn holds(&self, rule: Rule, torch: Option<&Torch>, toolkit: Option<&Toolkit>) -> bool {
        match rule {
            Rule::Range(axis) => self.in_range(axis, torch),
            Rule::TorchPython => match (torch, self.python()) {
                (Some(torch), Some(python)) => torch.pythons.contains(&python.as_str()),
                _ => true,
            },
            Rule::TorchCuda => match (torch, toolkit) {
                (Some(torch), Some(toolkit)) if torch.refuses_other_major => {
                    majors(torch).contains(&toolkit.release.major)
                }
                _ => true,
            },
            Rule::ArchTorch => match (torch, &self.archs) {
                (Some(torch), Some(set)) if self.bound_by_torch => {
                    support::refused_by_torch(&archs(set), Some(torch.version), None).is_empty()
                }
                _ => true,
            },
            Rule::ArchToolkit => match (toolkit, &self.archs) {
                (Some(toolkit), Some(set)) => {
                    support::against_compiler(set, Compiler::release(toolkit.release)).is_empty()
                }
                _ => true,
            },
        }
    }

    fn in_range(&self, axis: Axis, torch: Option<&Torch>) -> bool {
        let Some(value) = self.cell.get(axis).and_then(|value| named(axis, value)) else { return true };
        let range = VersionSpecifiers::from_str(self.range(axis)).ok();
        // `2.11` stands for its releases, and the table knows one of them.
        let version = match torch {
            Some(torch) if axis == Axis::Torch && value.split('.').count() < 3 => torch.version,
            _ => value.as_str(),
        };
        within(range.as_ref(), version)
    }

    fn range(&self, axis: Axis) -> &str {
        match axis {
            Axis::Torch => &self.needs.torch,
            Axis::Cuda => &self.needs.cuda,
            Axis::Python => &self.needs.python,
            Axis::Arch => "",
        }
    }

    /// `3.11`, where the cell names a version and not a path.
    fn python(&self) -> Option<String> {
        let mut parts = self.cell.get(Axis::Python)?.trim().split('.');
        let (major, minor) = (parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?);
        Some(format!("{major}.{minor}"))
    }

    /// What a rule says where every row breaks it, by the newest row.
    fn reason(&self, rule: Rule) -> Option<String> {
        let torch = self.torches.iter().flatten().next_back();
        let toolkit = self.toolkits.iter().flatten().next_back();
        if self.holds(rule, torch.copied(), toolkit.copied()) {
            return None;
        }
        match rule {
            Rule::Range(axis) => Some(format!(
                "the recipe wants {} {}, and the cell has {}",
                axis.name(),
                self.range(axis),
                self.cell.get(axis).unwrap_or_default()
            )),
            Rule::TorchPython => {
                let torch = torch?;
                let (first, last) = (torch.pythons.first()?, torch.pythons.last()?);
                Some(format!(
                    "torch {} has wheels for Python {first} to {last}, not for {}",
                    torch.version,
                    self.python()?
                ))
            }
            Rule::TorchCuda => {
                let torch = torch?;
                let majors: Vec<String> = majors(torch).iter().map(ToString::to_string).collect();
                Some(format!(
                    "torch {} is made for CUDA {}, and refuses a toolkit of another major such as {}",
                    torch.version,
                    majors.join(" and "),
                    toolkit?.release
                ))
            }
            Rule::ArchTorch => {
                let problems = support::against_torch(self.archs.as_ref()?, torch?.version, None);
                problems.first().map(ToString::to_string)
            }
            Rule::ArchToolkit => {
                let problems = support::against_compiler(self.archs.as_ref()?, Compiler::release(toolkit?.release));
                let problem = problems.first()?;
                let why = problem.evidence().last().map(|why| format!(" ({why})")).unwrap_or_default();
                Some(format!("{problem}{why}"))
            }
        }
    }
}

fn archs(set: &ArchSet) -> Vec<Arch> {
    set.iter().map(|(arch, _)| arch).collect()
}

/// CUDA majors that a torch release has wheels for.
fn majors(torch: &Torch) -> Vec<u16> {
    let of =
        |variant: &&str| variant.strip_prefix("cu").and_then(|digits| digits.get(..digits.len() - 1)?.parse().ok());
    let mut majors: Vec<u16> = torch.variants.iter().filter_map(of).chain([torch.cuda.major]).collect();
    majors.sort_unstable();
    majors.dedup();
    majors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(values: [&str; 4]) -> Cell {
        let named = Axis::ALL.into_iter().zip(values).filter(|(_, value)| !value.is_empty());
        named.fold(Cell::default(), |cell, (axis, value)| cell.with(axis, value))
    }

    fn verdict(values: [&str; 4], change: impl FnOnce(&mut Recipe)) -> String {
        let mut recipe = crate::recipe::sample();
        change(&mut recipe);
        unsatisfiable(&recipe, &cell(values)).unwrap_or_else(|| "may work".to_owned())
    }

    #[test]
    fn each_constraint_names_itself() {
        let says = |values| verdict(values, |_| {});
        let shown = [
            says(["8.6;9.0+PTX", "2.11.0", "13.0", "3.11"]),
            says(["", "2.11.0", "", "3.9"]),
            says(["", "2.8.0", "13.0", ""]),
            says(["11.0", "2.8.0", "", ""]),
            says(["7.0", "", "13.0", ""]),
            says(["12.0", "2.11.0", "12.6", ""]),
            says(["7.0", "2.15.0", "", ""]),
            says(["11.0", "2.8.0", "12.8", "3.15"]),
            verdict(["", "2.5.1", "", ""], |recipe| recipe.toolchain.torch = ">=2.6".into()),
            verdict(["", "", "11.8", ""], |recipe| recipe.toolchain.cuda = ">=12".into()),
            verdict(["", "", "", "3.8"], |recipe| recipe.toolchain.python = ">=3.9".into()),
        ];
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn what_no_table_knows_is_not_held_against_a_cell() {
        for values in [
            ["9.0", "99.0", "", "3.99"],
            ["9.0", "2.11.0", "99.0", ""],
            ["native", "2.11.0", "13.0", "/usr/bin/python3"],
            ["99.0", "2.11.0", "13.0", ""],
            ["", ">=99", "", ""],
            ["all-major", "", "", ""],
        ] {
            assert_eq!(verdict(values, |_| {}), "may work", "{values:?}");
        }
    }

    #[test]
    fn torchs_list_binds_only_who_reads_it() {
        let values = ["8.8", "2.11.0", "13.0", ""];
        assert_ne!(verdict(values, |_| {}), "may work");
        assert_eq!(verdict(values, |recipe| recipe.build.archs.consumers = vec![Consumer::Cmake]), "may work");
    }
}
