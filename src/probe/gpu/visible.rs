//! `CUDA_VISIBLE_DEVICES`, read as the CUDA runtime reads it.
//!
//! Indexes, ids of GPUs or MIG instances, or a unique start of one; the list ends at the first entry that is none of
//! these. What it hides stays hidden: a value that matches nothing never falls back to all GPUs.

use super::{Device, Fault};

/// Marks what is visible; returns what to tell the user, and a fault if nothing is left.
pub(super) fn apply(devices: &mut [Device], value: &str, order: Option<&str>) -> (Vec<String>, Option<Fault>) {
    if devices.is_empty() {
        return (Vec::new(), None);
    }
    let mut notes = Vec::new();
    let mut chosen = Vec::new();
    let mut by_index = false;
    let entries: Vec<&str> = value.split(',').map(str::trim).collect();
    for (position, entry) in entries.iter().enumerate() {
        let Some(at) = find(devices, entry) else {
            if position > 0 {
                let rest = entries[position..].join(",");
                notes.push(format!("CUDA_VISIBLE_DEVICES: CUDA stops at `{entry}`, so `{rest}` counts for nothing"));
            }
            break;
        };
        by_index |= entry.bytes().all(|b| b.is_ascii_digit());
        chosen.push(at);
    }
    for (at, device) in devices.iter_mut().enumerate() {
        device.visible = chosen.contains(&at);
    }
    if chosen.is_empty() {
        let fault = if value.trim().is_empty() { Fault::HidesAll } else { Fault::MatchesNone(value.to_owned()) };
        return (notes, Some(fault));
    }
    let hidden = devices.iter().filter(|device| !device.visible).count();
    if hidden > 0 {
        notes.push(format!("CUDA_VISIBLE_DEVICES={value} hides {hidden} of {} GPUs", devices.len()));
    }
    let mixed = devices.iter().any(|device| device.capability != devices[0].capability);
    if by_index && hidden > 0 && mixed && order != Some("PCI_BUS_ID") {
        notes.push(
            "CUDA numbers the fastest GPU first unless CUDA_DEVICE_ORDER=PCI_BUS_ID: an index may mean another GPU there"
                .to_owned(),
        );
    }
    (notes, None)
}

fn find(devices: &[Device], entry: &str) -> Option<usize> {
    if !entry.is_empty() && entry.bytes().all(|b| b.is_ascii_digit()) {
        let index: u32 = entry.parse().ok()?;
        return devices.iter().position(|device| device.index == index);
    }
    if let Some(rest) = entry.strip_prefix("MIG-GPU-") {
        // The older spelling: the GPU's id, then instance numbers.
        let gpu = format!("GPU-{}", rest.split('/').next().unwrap_or_default());
        return devices.iter().position(|device| device.uuid.as_deref() == Some(&gpu) && !device.mig.is_empty());
    }
    if entry.starts_with("MIG-") {
        return unique(devices.iter().enumerate().flat_map(|(at, d)| d.mig.iter().map(move |id| (at, id))), entry);
    }
    if entry.starts_with("GPU-") {
        return unique(devices.iter().enumerate().filter_map(|(at, d)| Some((at, d.uuid.as_ref()?))), entry);
    }
    None
}

/// The one whose id is `start` or alone begins with it.
fn unique<'d>(ids: impl Iterator<Item = (usize, &'d String)>, start: &str) -> Option<usize> {
    let mut matching = ids.filter(|(_, id)| id.starts_with(start));
    let (at, _) = matching.next()?;
    matching.next().is_none().then_some(at)
}
