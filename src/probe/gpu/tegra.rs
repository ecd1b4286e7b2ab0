//! The device tree of a Jetson, whose GPU is no PCI device.

use fs_err as fs;

use super::{Answer, Confidence, Device, Method, Roots};
use crate::compat::tegra_by_compatible;

pub(super) fn ask(roots: &Roots) -> Answer {
    let folder = roots.proc.join("device-tree");
    // Both files hold texts that end with NUL.
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let compatible = read("compatible");
    let Some(chip) = compatible.split('\0').find_map(tegra_by_compatible) else {
        return Answer::said("no Tegra");
    };
    let model = read("model").trim_end_matches('\0').trim().to_owned();
    let device = Device {
        index: 0,
        name: Some(if model.is_empty() { chip.name.to_owned() } else { model }),
        uuid: None,
        capability: Some(chip.capability),
        source: Method::DeviceTree,
        confidence: Confidence::Medium,
        mig: Vec::new(),
        visible: true,
    };
    Answer { devices: vec![device], ..Answer::said(format!("a {}", chip.name)) }
}
