//! Which compute capability a product name or a PCI device id stands for.
//!
//! The answer is a capability, a list of candidates, or the nearest names: never a guess.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::names::Words;
use super::table;
use crate::domain::arch::Capability;

const GPUS: &str = include_str!("tables/gpus.tsv");
const VIRTUAL: &str = include_str!("tables/vgpu.tsv");
const PCI: &str = include_str!("tables/pci.tsv");
const TEGRA: &str = include_str!("tables/tegra.tsv");

/// A product and what it can run.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        .or_else(|| query.without_surplus().and_then(|query| loose(&query)))
        .unwrap_or_else(|| GpuLookup::Unknown(nearest(&query)))
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
mod tests {
    use super::*;

    fn found(name: &str) -> String {
        match gpu_by_name(name) {
            GpuLookup::Found(gpu) => gpu.capability.to_string(),
            GpuLookup::Ambiguous(candidates) => {
                let all: BTreeSet<Capability> = candidates.iter().flat_map(|c| c.capabilities.clone()).collect();
                all.iter().map(Capability::to_string).collect::<Vec<_>>().join("|")
            }
            GpuLookup::Unknown(near) => format!("? {}", near.join(", ")),
        }
    }

    #[test]
    fn every_table_reads_whole() {
        table::tests::is_well_formed(GPUS, 1);
        table::tests::is_well_formed(VIRTUAL, 1);
        table::tests::is_well_formed(PCI, 1);
        table::tests::is_well_formed(TEGRA, 1);
        assert!(table::rows(TEGRA).all(|row| tegra_by_compatible(row[0]).is_some()));
        assert_eq!(PHYSICAL_ROWS.len(), table::rows(GPUS).count());
        assert_eq!(VIRTUAL_ROWS.len(), table::rows(VIRTUAL).count());
    }

    #[test]
    fn every_row_resolves_to_its_capability_however_it_is_written() {
        for row in table::rows(GPUS) {
            let (name, want) = (row[0], row[1]);
            let dashed = name.to_lowercase().replace(' ', "-");
            for spelling in
                [name.to_owned(), format!("NVIDIA {name}"), name.to_lowercase(), dashed, name.to_uppercase()]
            {
                assert_eq!(found(&spelling), want, "{spelling}");
            }
        }
    }

    #[test]
    fn every_virtual_gpu_resolves_with_a_profile() {
        for row in table::rows(VIRTUAL) {
            for profile in ["-4Q", "-48A", "-1-5C", "-8"] {
                assert_eq!(found(&format!("NVIDIA {}{profile}", row[0])), row[1], "{}{profile}", row[0]);
            }
        }
    }

    #[test]
    fn no_name_means_two_capabilities_unless_marked() {
        let mut by_words: std::collections::BTreeMap<String, BTreeSet<&str>> = std::collections::BTreeMap::new();
        for row in table::rows(GPUS) {
            by_words.entry(format!("{:?}", Words::of(row[0]))).or_default().insert(row[1]);
        }
        for (words, capabilities) in by_words {
            assert_eq!(capabilities.len(), 1, "{words}: {capabilities:?}");
        }
    }

    #[test]
    fn leaving_out_optional_words_is_never_wrong() {
        // Each row, shortened to what decides it, must list every capability that the short form could mean.
        for row in PHYSICAL_ROWS.iter() {
            let answer = found(&row.words.essence());
            let all = row.candidate.capabilities.iter().all(|c| answer.split('|').any(|a| a == c.to_string()));
            assert!(all || answer.starts_with('?'), "{}: {answer}", row.candidate.name);
        }
    }

    #[test]
    fn people_s_spellings_resolve() {
        for (name, want) in [
            ("h100", "9.0"),
            ("H100 80GB", "9.0"),
            ("NVIDIA H100 80GB HBM3", "9.0"),
            ("h100-sxm", "9.0"),
            ("A100", "8.0"),
            ("A100 80GB", "8.0"),
            ("a100-40gb", "8.0"),
            ("Tesla A100", "8.0"),
            ("A30", "8.0"),
            ("A10", "8.6"),
            ("A10G", "8.6"),
            ("A40", "8.6"),
            ("A2", "8.6"),
            ("A400", "8.6"),
            ("A4000", "8.6"),
            ("RTX 4090", "8.9"),
            ("rtx-4090", "8.9"),
            ("RTX4090", "8.9"),
            ("RTX 4090 24GB", "8.9"),
            ("4090", "8.9"),
            ("GeForce RTX 4090 Laptop GPU", "8.9"),
            ("rtx 3080 ti", "8.6"),
            ("3080ti", "8.6"),
            ("RTX 2050", "8.6"),
            ("RTX 2000 Ada", "8.9"),
            ("RTX 6000 Ada", "8.9"),
            ("Quadro RTX 6000", "7.5"),
            ("RTX A6000", "8.6"),
            ("RTX PRO 6000", "12.0"),
            ("RTX 8000", "7.5"),
            ("t4", "7.5"),
            ("v100", "7.0"),
            ("V100 32GB", "7.0"),
            ("p100", "6.0"),
            ("P40", "6.1"),
            ("k80", "3.7"),
            ("K40", "3.5"),
            ("gtx 1080 ti", "6.1"),
            ("1080ti", "6.1"),
            ("orin", "8.7"),
            ("Jetson Orin Nano", "8.7"),
            ("jetson-agx-orin", "8.7"),
            ("xavier", "7.2"),
            ("Jetson Thor", "11.0"),
            ("thor", "11.0"),
            ("jetson nano", "5.3"),
            ("tx2", "6.2"),
            ("b200", "10.0"),
            ("GB200", "10.0"),
            ("b300", "10.3"),
            ("gb10", "12.1"),
            ("dgx spark", "12.1"),
            ("rtx 5090", "12.0"),
            ("RTX 5060", "12.0"),
            ("L4", "8.9"),
            ("l40s", "8.9"),
            ("h20", "9.0"),
            ("gh200", "9.0"),
            ("TITAN V", "7.0"),
            ("titan rtx", "7.5"),
            ("TITAN Xp", "6.1"),
            ("NVIDIA A40-48Q", "8.6"),
            ("GRID T4-2B4", "7.5"),
            ("A100-40C", "8.0"),
        ] {
            assert_eq!(found(name), want, "{name}");
        }
    }

    #[test]
    fn a_name_that_does_not_decide_lists_what_it_could_mean() {
        for (name, want) in [
            ("RTX 6000", "7.5|8.9|12.0"),
            ("RTX 4000", "7.5|8.9|12.0"),
            ("titan x", "5.2|6.1"),
            ("GT 730", "2.1|3.0|3.5"),
            ("GeForce GTX 750", "5.0|5.2"),
        ] {
            assert_eq!(found(name), want, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_ones() {
        assert!(found("rtx 4091").contains("RTX 4090"), "{}", found("rtx 4091"));
        assert!(found("RTX 5O90").starts_with("? GeForce RTX 5090"), "{}", found("RTX 5O90"));
        for wrong in
            ["Failed", "", "NVIDIA", "Failed to initialize NVML: Driver/library version mismatch", "GPU", "rtx"]
        {
            assert!(found(wrong).starts_with('?'), "{wrong}: {}", found(wrong));
        }
    }

    #[test]
    fn pci_ids_resolve_and_unpublished_chips_stay_unknown() {
        assert_eq!(gpu_by_pci(0x2335).unwrap().capability, Some(Capability::new(9, 0)));
        assert_eq!(gpu_by_pci(0x0001), None);
        let rows: Vec<_> = table::rows(PCI).collect();
        assert!(rows.iter().any(|row| row[1] == "?"));
        for row in rows {
            let device = u16::from_str_radix(row[0], 16).unwrap();
            let gpu = gpu_by_pci(device).unwrap();
            assert_eq!(gpu.capability.map_or("?".to_owned(), |c| c.to_string()), row[1]);
        }
    }

    #[test]
    fn examples_are_all_known() {
        assert_eq!(examples().len(), 21);
    }
}
