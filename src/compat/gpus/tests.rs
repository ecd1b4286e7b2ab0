//! What the tables of products answer to the names that people write.

use super::*;

fn found(name: &str) -> String {
    match gpu_by_name(name) {
        GpuLookup::Found(gpu) => gpu.capability.to_string(),
        GpuLookup::Ambiguous(candidates) => {
            let all: BTreeSet<Capability> = candidates.iter().flat_map(|c| c.capabilities.clone()).collect();
            all.iter().map(Capability::to_string).collect::<Vec<_>>().join("|")
        }
        GpuLookup::Several(gpus) => gpus.iter().map(|gpu| gpu.capability.to_string()).collect::<Vec<_>>().join("+"),
        GpuLookup::Retired(retired) => format!("until {}", retired.last),
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
        for spelling in [name.to_owned(), format!("NVIDIA {name}"), name.to_lowercase(), dashed, name.to_uppercase()] {
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
fn chips_series_and_retired_products_have_answers_of_their_own() {
    for (name, want) in [
        ("GA102", "8.6"),
        ("ad102", "8.9"),
        ("GB202", "12.0"),
        ("GR100", "10.7"),
        ("Rubin", "10.7"),
        ("R200", "10.7"),
        ("RTX 40 series", "8.9"),
        ("RTX 50-series", "12.0"),
        ("RTX 20 series", "7.5+8.6"),
        ("GTX 16 series", "7.5"),
        ("Fermi", "until 8.0"),
        ("8800 GTX", "until 6.5"),
        ("Tesla C1060", "until 6.5"),
    ] {
        assert_eq!(found(name), want, "{name}");
    }
    assert!(found("RTX 30 series").starts_with("8.6"));
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
    for wrong in ["Failed", "", "NVIDIA", "Failed to initialize NVML: Driver/library version mismatch", "GPU", "rtx"] {
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
