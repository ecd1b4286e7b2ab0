//! The matrix of a recipe: axes of archs, torch, CUDA and Python, and the cells that they span.
//!
//! The product of the axes, with the axes of `zip` walked in step; what an entry of `exclude` matches is taken out;
//! every entry of `include` adds a cell as it stands. Invariant: cells come in the order of the axes as written, none
//! twice. Whether anything can be built for a cell is not judged here.

use serde::Serialize;

use super::raw::{RawCell, RawMatrix};
use super::resolve::Judge;
use crate::domain::arch::{ArchSet, Origin, parse_list};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, nearest};
use crate::domain::release::Versioned;

/// More cells than this are taken for a mistake.
const MOST: usize = 1000;

/// What may differ between cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// An arch list.
    Arch,
    /// A torch release or range.
    Torch,
    /// A CUDA release or range.
    Cuda,
    /// A Python.
    Python,
}

impl Axis {
    /// Every axis; the last one varies fastest.
    pub const ALL: [Self; 4] = [Self::Arch, Self::Torch, Self::Cuda, Self::Python];

    /// Its key in a recipe, and its flag without the dashes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arch => "arch",
            Self::Torch => "torch",
            Self::Cuda => "cuda",
            Self::Python => "python",
        }
    }
}

/// One value for each axis, or none where the axis is left open. Values stand in the order of [`Axis::ALL`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cell([Option<String>; 4]);

impl Cell {
    /// The value of an axis.
    pub fn get(&self, axis: Axis) -> Option<&str> {
        self.0[axis as usize].as_deref()
    }

    /// The same cell with a value.
    #[must_use]
    pub fn with(mut self, axis: Axis, value: impl Into<String>) -> Self {
        self.0[axis as usize] = Some(value.into());
        self
    }

    /// Whether every axis is left open.
    pub fn is_open(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// A short name of letters that every file system takes: `arch8.6_9.0+PTX-torch2.11.0`.
    pub fn slug(&self) -> String {
        let part = |axis: Axis| {
            let value = self.get(axis)?;
            let value = arch_set(axis, value).map_or_else(|| value.to_owned(), |set| set.to_string());
            let plain = |c: char| if c.is_ascii_alphanumeric() || ".+".contains(c) { c } else { '_' };
            let value: String = value.chars().map(plain).take(60).collect();
            Some(format!("{}{value}", if axis == Axis::Python { "py" } else { axis.name() }))
        };
        Axis::ALL.into_iter().filter_map(part).collect::<Vec<_>>().join("-")
    }

    /// For people: `arch 8.6;9.0, torch 2.11.0`.
    pub fn words(&self) -> String {
        let words = Axis::ALL.into_iter().filter_map(|axis| Some(format!("{} {}", axis.name(), self.get(axis)?)));
        words.collect::<Vec<_>>().join(", ")
    }

    /// Whether this cell has every value that `pattern` names.
    fn matches(&self, pattern: &Self) -> bool {
        Axis::ALL.into_iter().all(|axis| match (pattern.get(axis), self.get(axis)) {
            (None, _) => true,
            (Some(wanted), Some(value)) => same(axis, wanted, value),
            (Some(_), None) => false,
        })
    }
}

fn arch_set(axis: Axis, value: &str) -> Option<ArchSet> {
    value.parse().ok().filter(|_| axis == Axis::Arch)
}

/// Whether two values of an axis mean the same; arch lists have many spellings.
fn same(axis: Axis, one: &str, other: &str) -> bool {
    one.trim() == other.trim() || arch_set(axis, one).is_some_and(|set| Some(set) == arch_set(axis, other))
}

/// Axes with their values, and the exceptions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Matrix {
    /// The values of each axis, in the order of [`Axis::ALL`].
    axes: [Vec<String>; 4],
    /// Axes that are walked in step.
    zip: Vec<Axis>,
    /// Cells that are added.
    include: Vec<Cell>,
    /// Cells that are taken out.
    exclude: Vec<Cell>,
}

/// The cells of a matrix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cells {
    /// In order, none twice.
    pub cells: Vec<Cell>,
    /// Entries of `exclude` that match nothing.
    pub idle: Vec<Cell>,
}

impl Matrix {
    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.axes.iter().all(Vec::is_empty) && self.include.is_empty()
    }

    /// The same matrix with other values for an axis, as from the command line; no values change nothing.
    #[must_use]
    pub fn with_axis(mut self, axis: Axis, values: &[String]) -> Self {
        if !values.is_empty() {
            self.axes[axis as usize] = values.to_vec();
        }
        self
    }

    /// The cells.
    ///
    /// # Errors
    /// Axes of `zip` with different numbers of values, which the command line can bring about; too many cells.
    pub fn cells(&self) -> Result<Cells, Problem> {
        let zipped: Vec<(Axis, usize)> = self.zip.iter().map(|axis| (*axis, self.axes[*axis as usize].len())).collect();
        if let Some(((one, few), (other, many))) = uneven(&zipped) {
            return Err(Problem::new(
                "cuwright::matrix::uneven_zip",
                Exit::Usage,
                format!("`{}` and `{}` go in step and have {few} and {many} values", one.name(), other.name()),
            )
            .help("give both the same number of values, or take them out of `matrix.zip`"));
        }
        let mut cells = vec![Cell::default()];
        let mut zip_done = false;
        for axis in Axis::ALL {
            let group = if self.zip.contains(&axis) { self.zip.as_slice() } else { &[axis] };
            let length = self.axes[axis as usize].len();
            if length == 0 || (group.len() > 1 && std::mem::replace(&mut zip_done, true)) {
                continue;
            }
            if cells.len().saturating_mul(length) > MOST {
                return Err(Problem::new(
                    "cuwright::matrix::too_many",
                    Exit::Usage,
                    format!("the matrix has more than {MOST} cells"),
                )
                .help("shorten its axes, walk some in step with `zip`, or build it in parts"));
            }
            let step = |cell: &Cell, index: usize| {
                group.iter().fold(cell.clone(), |cell, axis| {
                    let value = self.axes[*axis as usize][index].clone();
                    cell.with(*axis, value)
                })
            };
            cells = cells.iter().flat_map(|cell| (0..length).map(move |index| step(cell, index))).collect();
        }
        cells.retain(|cell| !cell.is_open());
        let idle = self.exclude.iter().filter(|pattern| !cells.iter().any(|cell| cell.matches(pattern)));
        let idle = idle.cloned().collect();
        cells.retain(|cell| !self.exclude.iter().any(|pattern| cell.matches(pattern)));
        cells.extend(self.include.iter().cloned());
        let mut found = Cells { cells: Vec::new(), idle };
        for cell in cells {
            if !found.cells.iter().any(|known| known.matches(&cell) && cell.matches(known)) {
                found.cells.push(cell);
            }
        }
        Ok(found)
    }
}

/// The first two axes of a group with different numbers of values.
fn uneven(group: &[(Axis, usize)]) -> Option<((Axis, usize), (Axis, usize))> {
    let first = *group.first()?;
    group.iter().find(|(_, length)| *length != first.1).map(|other| (first, *other))
}

/// Judges a matrix as written.
pub(super) fn resolve(judge: &mut Judge<'_>, raw: &RawMatrix) -> Matrix {
    let written = [&raw.arch, &raw.torch, &raw.cuda, &raw.python];
    let mut matrix = Matrix::default();
    for (axis, values) in Axis::ALL.into_iter().zip(written) {
        for value in values {
            judge.matrix_value(axis, value);
            let known = &mut matrix.axes[axis as usize];
            if known.iter().any(|known| same(axis, known, value.get_ref())) {
                let message = format!("`{}` stands twice in `matrix.{}`", value.get_ref(), axis.name());
                judge.refuse(value, "again", message, "name each value once");
            }
            known.push(value.get_ref().clone());
        }
    }
    for name in &raw.zip {
        let axis = Axis::ALL.into_iter().find(|axis| axis.name() == name.get_ref());
        let length = axis.map(|axis| matrix.axes[axis as usize].len());
        let first = matrix.zip.first().map(|first| (*first, matrix.axes[*first as usize].len()));
        let names = Axis::ALL.map(Axis::name);
        match (axis, length, first) {
            (Some(axis), Some(0), _) => {
                let message = format!("`matrix.zip` names `{}`, which has no values", axis.name());
                judge.refuse(name, "no such axis here", message, "give the axis values, or take it out of `zip`");
            }
            (Some(axis), Some(length), Some((first, wanted))) if length != wanted => {
                let message = format!(
                    "`{}` and `{}` go in step and have {wanted} and {length} values",
                    first.name(),
                    axis.name()
                );
                judge.refuse(name, "another number of values", message, "give both the same number of values");
            }
            (Some(axis), _, _) if matrix.zip.contains(&axis) => {
                let message = format!("`{}` stands twice in `matrix.zip`", axis.name());
                judge.refuse(name, "again", message, "name each axis once");
            }
            (Some(axis), _, _) => matrix.zip.push(axis),
            (None, _, _) => {
                let message = format!("`{}` is no axis", name.get_ref());
                let help = match nearest(name.get_ref(), names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("axes: {}", names.join(", ")),
                };
                judge.refuse(name, "unknown axis", message, &help);
            }
        }
    }
    if let [alone] = raw.zip.as_slice() {
        let message = "`matrix.zip` names one axis alone".to_owned();
        judge.refuse(alone, "in step with what?", message, "name two axes or more, or leave `zip` out");
    }
    matrix.include = raw.include.iter().filter_map(|cell| entry(judge, "include", cell)).collect();
    matrix.exclude = raw.exclude.iter().filter_map(|cell| entry(judge, "exclude", cell)).collect();
    matrix
}

fn entry(judge: &mut Judge<'_>, list: &str, raw: &toml::Spanned<RawCell>) -> Option<Cell> {
    let RawCell { arch, torch, cuda, python } = raw.get_ref();
    let mut cell = Cell::default();
    for (axis, value) in Axis::ALL.into_iter().zip([arch, torch, cuda, python]) {
        if let Some(value) = value {
            judge.matrix_value(axis, value);
            cell = cell.with(axis, value.get_ref().clone());
        }
    }
    if cell.is_open() {
        let message = format!("an entry of `matrix.{list}` names no axis");
        judge.refuse_at(raw.span(), "empty", message, "write it like `{ arch = \"9.0\", torch = \"2.11.0\" }`");
        return None;
    }
    Some(cell)
}

/// What is wrong with a value of an axis: a few words and a mend.
///
/// # Errors
/// Always the first thing that is wrong.
pub fn check_value(axis: Axis, value: &str) -> Result<(), (String, String)> {
    match axis {
        Axis::Arch => match parse_list(&Origin::recipe("matrix.arch"), value) {
            Ok(items) if items.is_empty() => {
                Err(("it names no arch".to_owned(), "write a list like `8.6;9.0+PTX`".to_owned()))
            }
            Ok(_) => Ok(()),
            Err(problems) => {
                let first = problems.iter().next();
                let help = first.and_then(|problem| problem.mends().first().cloned());
                let help = help.unwrap_or_else(|| "write a list like `8.6;9.0+PTX`".to_owned());
                Err((first.map(ToString::to_string).unwrap_or_default(), help))
            }
        },
        Axis::Torch | Axis::Cuda => if axis == Axis::Cuda { Versioned::Cuda } else { Versioned::Torch }
            .range(value)
            .map(|_| ())
            .map_err(|why| (why, "write a release or a range: `13.0`, `\">=2.6,<3\"`".to_owned())),
        Axis::Python if value.trim().is_empty() => {
            Err(("it is empty".to_owned(), "write a version like `3.12`, or a path".to_owned()))
        }
        Axis::Python => Ok(()),
    }
}

#[cfg(test)]
mod tests;
