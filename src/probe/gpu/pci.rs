//! PCI ids from sysfs: works without any driver, and also shows GPUs that a container may not use.

use camino::Utf8Path;
use fs_err as fs;

use super::{Answer, Confidence, Device, Method, Roots};
use crate::compat::gpu_by_pci;

const VENDOR: &str = "0x10de";
/// VGA and 3D controllers; a card's audio and USB functions share the vendor.
const CLASSES: [&str; 2] = ["0x0300", "0x0302"];

pub(super) fn ask(roots: &Roots) -> Answer {
    let folder = roots.sysfs.join("bus/pci/devices");
    let Ok(entries) = folder.read_dir_utf8() else { return Answer::said("no PCI bus") };
    let mut addresses: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_owned()).collect();
    addresses.sort_unstable();
    let mut answer = Answer::default();
    for address in addresses {
        let Some(id) = gpu_id(&folder.join(&address)) else { continue };
        let known = gpu_by_pci(id);
        if known.is_none() {
            answer.notes.push(format!("the GPU at {address} (10de:{id:04x}) is in no table"));
        }
        answer.devices.push(Device {
            index: u32::try_from(answer.devices.len()).unwrap_or(u32::MAX),
            name: known.as_ref().map(|gpu| gpu.name.to_owned()),
            uuid: None,
            capability: known.and_then(|gpu| gpu.capability),
            source: Method::Pci,
            confidence: Confidence::Medium,
            mig: Vec::new(),
            visible: true,
        });
    }
    answer.outcome = match answer.devices.len() {
        0 => "no NVIDIA GPU".to_owned(),
        count => format!("{count} GPUs of the machine, whether or not this process may use them"),
    };
    answer
}

/// The device id, if this is an NVIDIA GPU.
fn gpu_id(device: &Utf8Path) -> Option<u16> {
    let read = |name: &str| fs::read_to_string(device.join(name)).ok();
    let vendor = read("vendor")?;
    let class = read("class")?;
    if vendor.trim() != VENDOR || !CLASSES.iter().any(|known| class.trim().starts_with(known)) {
        return None;
    }
    u16::from_str_radix(read("device")?.trim().strip_prefix("0x")?, 16).ok()
}
