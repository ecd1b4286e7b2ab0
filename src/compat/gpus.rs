//! Which compute capability a product name or a PCI device id stands for.
//!
//! The answer is a capability, a list of candidates, or the nearest names: never a guess.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::names::Words;
use super::retired::{self, Retired};
use super::series::{self, Series};
use super::table;
use crate::domain::arch::Capability;

const GPUS: &str = include_str!("tables/gpus.tsv");
const VIRTUAL: &str = include_str!("tables/vgpu.tsv");
const PCI: &str = include_str!("tables/pci.tsv");
const TEGRA: &str = include_str!("tables/tegra.tsv");

/// A product and what it can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gpu {
    /// The product's name, without the vendor.
    pub name: &'static str,
    /// Its compute capability.
    pub capability: Capability,
}

/// A product that a name could mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The product's name.
    pub name: &'static str,
    /// What it can run; several where chips of different capability carry the name.
    pub capabilities: Vec<Capability>,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuLookup {
    /// One capability.
    Found(Gpu),
    /// Products of different capability.
    Ambiguous(Vec<Candidate>),
    /// A series of more than one capability: a product for each, lowest first.
    Several(Vec<Gpu>),
    /// A product or generation that no toolkit of the table compiles for.
    Retired(Retired),
    /// No product of the tables; the nearest names.
    Unknown(Vec<&'static str>),
}

/// A device of the PCI table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciGpu {
    /// The product's name.
    pub name: &'static str,
    /// The chip.
    pub chip: &'static str,
    /// Its capability, where published.
    pub capability: Option<Capability>,
}

struct Row {
    words: Words,
    candidate: Candidate,
}

static PHYSICAL_ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| table::rows(GPUS).filter_map(|row| read(&row)).collect());
static VIRTUAL_ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| table::rows(VIRTUAL).filter_map(|row| read(&row)).collect());

static USER_ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let own = super::user::installed().map(|own| own.gpus.as_slice()).unwrap_or_default();
    own.iter()
        .map(|(name, capability)| Row {
            words: Words::of(name),
            candidate: Candidate { name, capabilities: vec![*capability] },
        })
        .collect()
});

/// Products that are bought, the user's own first.
fn physical() -> impl Iterator<Item = &'static Row> {
    USER_ROWS.iter().chain(PHYSICAL_ROWS.iter())
}

fn read(row: &[&'static str]) -> Option<Row> {
    let [name, capabilities, ..] = *row else { return None };
    let capabilities: Option<Vec<Capability>> = capabilities.split('|').map(|c| c.parse().ok()).collect();
    Some(Row { words: Words::of(name), candidate: Candidate { name, capabilities: capabilities? } })
}

/// Finds a product. Case, dashes, a missing vendor or line, and memory sizes do not matter.
pub fn gpu_by_name(name: &str) -> GpuLookup {
    let query = Words::of(name);
    if query.is_empty() {
        return GpuLookup::Unknown(Vec::new());
    }
    let loose = |query: &Words| decide(physical().filter(|row| query.names(&row.words)));
    let virtual_gpu = |base: &str| {
        let query = Words::of(base);
        decide(VIRTUAL_ROWS.iter().filter(|row| query.names(&row.words)))
    };
    decide(USER_ROWS.iter().filter(|row| row.words == query))
        .or_else(|| decide(PHYSICAL_ROWS.iter().filter(|row| row.words == query)))
        .or_else(|| loose(&query))
        .or_else(|| virtual_gpu(without_profile(name)?))
        .or_else(|| of_chip(&series::chip(&query)?))
        .or_else(|| of_series(&Series::of(&query)?))
        .or_else(|| retired::by_name(&query).map(GpuLookup::Retired))
        .or_else(|| query.without_surplus().and_then(|query| loose(&query)))
        .unwrap_or_else(|| GpuLookup::Unknown(nearest(&query)))
}

/// The capability of a chip, by the devices that carry it.
fn of_chip(chip: &str) -> Option<GpuLookup> {
    let row = table::rows(PCI).find(|row| row.get(2) == Some(&chip))?;
    let [_, capability, chip, ..] = *row else { return None };
    Some(GpuLookup::Found(Gpu { name: chip, capability: capability.parse().ok()? }))
}

/// One product for each capability of a series.
fn of_series(series: &Series) -> Option<GpuLookup> {
    let mut gpus: Vec<Gpu> = Vec::new();
    for candidate in PHYSICAL_ROWS.iter().filter(|row| series.holds(&row.words)).map(|row| &row.candidate) {
        for capability in &candidate.capabilities {
            if gpus.iter().all(|gpu| gpu.capability != *capability) {
                gpus.push(Gpu { name: candidate.name, capability: *capability });
            }
        }
    }
    gpus.sort_by_key(|gpu| gpu.capability);
    match *gpus.as_slice() {
        [] => None,
        [gpu] => Some(GpuLookup::Found(gpu)),
        _ => Some(GpuLookup::Several(gpus)),
    }
}

/// Finds a device of vendor 10de.
pub fn gpu_by_pci(device: u16) -> Option<PciGpu> {
    let key = format!("{device:04x}");
    let row = table::rows(PCI).find(|row| row.first() == Some(&key.as_str()))?;
    let [_, capability, chip, name, ..] = *row else { return None };
    Some(PciGpu { name, chip, capability: capability.parse().ok() })
}

/// Finds a Tegra by a name of its device tree, such as `nvidia,tegra234`.
pub fn tegra_by_compatible(compatible: &str) -> Option<Gpu> {
    let row = table::rows(TEGRA).find(|row| row.first() == Some(&compatible))?;
    let [_, capability, name, ..] = *row else { return None };
    Some(Gpu { name, capability: capability.parse().ok()? })
}

/// Well-known products, one for each capability that people still meet.
pub fn examples() -> Vec<Gpu> {
    const NAMES: [&str; 21] = [
        "Tesla K80",
        "Tesla M60",
        "Tesla P100",
        "GeForce GTX 1080",
        "Tesla V100",
        "T4",
        "A100",
        "GeForce RTX 3090",
        "A10",
        "Jetson AGX Orin",
        "GeForce RTX 4090",
        "L40S",
        "H100",
        "H200",
        "B200",
        "B300",
        "Thor",
        "GeForce RTX 5090",
        "RTX PRO 6000",
        "DGX Spark",
        "Jetson AGX Xavier",
    ];
    let known = |name: &'static str| match gpu_by_name(name) {
        GpuLookup::Found(gpu) => Some(Gpu { name, ..gpu }),
        _ => None,
    };
    let mut gpus: Vec<Gpu> = NAMES.iter().filter_map(|name| known(name)).collect();
    gpus.sort_by_key(|gpu| gpu.capability);
    gpus
}

fn decide(rows: impl Iterator<Item = &'static Row>) -> Option<GpuLookup> {
    let found: Vec<&Candidate> = rows.map(|row| &row.candidate).collect();
    let capabilities: BTreeSet<Capability> = found.iter().flat_map(|c| c.capabilities.iter().copied()).collect();
    let first = found.first()?;
    let mut capabilities = capabilities.into_iter();
    match (capabilities.next(), capabilities.next()) {
        (Some(capability), None) => Some(GpuLookup::Found(Gpu { name: first.name, capability })),
        _ => Some(GpuLookup::Ambiguous(found.into_iter().cloned().collect())),
    }
}

/// `A40` of `A40-48Q`, `GRID A100` of `GRID A100-1-5C`: the name in front of a vGPU profile.
fn without_profile(name: &str) -> Option<&str> {
    let mut base = name.trim();
    while let Some((front, _)) = base.rsplit_once('-').filter(|(_, last)| is_profile(last)) {
        base = front;
    }
    (base.len() < name.trim().len()).then_some(base)
}

/// `48Q`, `5C`, `1`, `2B4`.
fn is_profile(part: &str) -> bool {
    let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < part.len() && rest.bytes().all(|b| b.is_ascii_alphanumeric()) && rest.len() <= 2
}

fn nearest(query: &Words) -> Vec<&'static str> {
    let essence = query.essence();
    // Among names that are equally far, the one that shares the query's other words (`RTX`) was meant.
    let mut near: Vec<(usize, usize, &'static str)> = physical()
        .map(|row| {
            let distance = strsim::damerau_levenshtein(&essence, &row.words.essence());
            (distance, query.missing_in(&row.words), row.candidate.name)
        })
        .filter(|(distance, _, name)| *distance <= 1 + essence.len().min(name.len()) / 4)
        .collect();
    near.sort_unstable_by_key(|(distance, missing, name)| (*distance, *missing, name.len(), *name));
    near.into_iter().map(|(_, _, name)| name).take(3).collect()
}

#[cfg(test)]
mod tests;
