//! The GPUs of this machine and their compute capability, each with how it is known.
//!
//! Asked in this order until one answers: NVML, `nvidia-smi`, PCI ids (work without a driver), the device tree of a
//! Jetson; names by the table where only a name is known. Every step leaves a record. Error text never becomes an arch.

mod fault;
mod nvml;
mod pci;
mod report;
mod smi;
mod tegra;
mod visible;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

pub use fault::Fault;
pub use report::{Report, archs_of};

use crate::compat::{DriverVersion, GpuLookup, gpu_by_name};
use crate::domain::arch::{Arch, ArchSet, Capability, Form};
use crate::domain::problem::Problem;
use crate::domain::version::CudaVersion;
use crate::sys::{Env, env_vars};
use crate::targets::{Detected, no_target};

/// A way to learn about GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The driver's library.
    Nvml,
    /// The driver's program.
    NvidiaSmi,
    /// PCI ids and the table.
    Pci,
    /// The device tree of a Jetson.
    DeviceTree,
    /// Product names and the table.
    Name,
}

impl Method {
    /// Every way, in the order of asking.
    pub const ALL: [Self; 5] = [Self::Nvml, Self::NvidiaSmi, Self::Pci, Self::DeviceTree, Self::Name];

    /// The name in flags and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nvml => "nvml",
            Self::NvidiaSmi => "nvidia-smi",
            Self::Pci => "pci",
            Self::DeviceTree => "device-tree",
            Self::Name => "name",
        }
    }

    /// The name for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Nvml => "NVML",
            Self::NvidiaSmi => "nvidia-smi",
            Self::Pci => "the PCI id",
            Self::DeviceTree => "the device tree",
            Self::Name => "the product name",
        }
    }
}

/// How sure a capability is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// By the product name, which can lie on virtual machines.
    Low,
    /// By a hardware id and the table.
    Medium,
    /// The driver says so.
    High,
}

impl Confidence {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Number in PCI bus order.
    pub index: u32,
    /// Product name.
    pub name: Option<String>,
    /// The driver's id of it.
    pub uuid: Option<String>,
    /// Compute capability, where known.
    pub capability: Option<Capability>,
    /// How the capability is known.
    pub source: Method,
    /// How sure that is.
    pub confidence: Confidence,
    /// Ids of its MIG instances, which share its capability.
    pub mig: Vec<String>,
    /// Whether `CUDA_VISIBLE_DEVICES` lets programs use it.
    pub visible: bool,
}

/// One way that was tried, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The way.
    pub method: Method,
    /// What came of it, in a few words.
    pub outcome: String,
}

/// What is known about the GPUs of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detection {
    /// All GPUs found, visible or not.
    pub devices: Vec<Device>,
    /// The driver's version.
    pub driver: Option<DriverVersion>,
    /// The newest CUDA that the driver supports.
    pub cuda_driver: Option<CudaVersion>,
    /// What was tried, in order.
    pub steps: Vec<Step>,
    /// What the user should know although it works.
    pub notes: Vec<String>,
    /// What is broken.
    pub fault: Option<Fault>,
    /// Value of `CUDA_VISIBLE_DEVICES`, where set.
    pub visible_devices: Option<String>,
}

impl Detection {
    /// The GPUs that count: visible and of known capability.
    pub fn usable(&self) -> impl Iterator<Item = (&Device, Capability)> {
        self.devices.iter().filter(|device| device.visible).filter_map(|device| Some((device, device.capability?)))
    }

    /// Machine code for every GPU that counts.
    pub fn archs(&self) -> ArchSet {
        self.usable().map(|(_, capability)| (Arch::plain(capability), Form::SASS)).collect()
    }

    /// Why no GPU counts; `None` if one does.
    pub fn problem(&self) -> Option<Problem> {
        if self.usable().next().is_some() {
            return None;
        }
        Some(match &self.fault {
            Some(fault) => fault.problem(),
            None => no_target(&Detected { notes: self.evidence(), ..Detected::default() }),
        })
    }

    /// Everything tried, a line a step.
    pub fn evidence(&self) -> Vec<String> {
        let steps = self.steps.iter().map(|step| format!("{}: {}", step.method.label(), step.outcome));
        steps.chain(self.notes.iter().cloned()).collect()
    }
}

impl From<&Detection> for Detected {
    fn from(detection: &Detection) -> Self {
        let evidence = |device: &Device| {
            let name = device.name.as_deref().unwrap_or("an unnamed GPU");
            format!("{name}, from {}", device.source.label())
        };
        Self {
            gpus: detection.usable().map(|(device, capability)| (capability, evidence(device))).collect(),
            notes: detection.evidence(),
            problem: detection.problem(),
        }
    }
}

/// Where to look; only tests look elsewhere.
#[derive(Debug, Clone)]
pub struct Roots {
    /// Where sysfs is mounted.
    pub sysfs: Utf8PathBuf,
    /// Where procfs is mounted.
    pub proc: Utf8PathBuf,
    /// Names or paths of the NVML library, tried in order.
    pub nvml: Vec<String>,
    /// Where `nvidia-smi` lies if not on `PATH`.
    pub smi: Vec<Utf8PathBuf>,
    /// The operating system.
    pub os: &'static str,
}

impl Default for Roots {
    fn default() -> Self {
        let wsl = "/usr/lib/wsl/lib";
        Self {
            sysfs: "/sys".into(),
            proc: "/proc".into(),
            nvml: vec!["libnvidia-ml.so.1".to_owned(), format!("{wsl}/libnvidia-ml.so.1")],
            smi: vec![format!("{wsl}/nvidia-smi").into()],
            os: std::env::consts::OS,
        }
    }
}

/// What one way gave.
#[derive(Debug, Default)]
struct Answer {
    devices: Vec<Device>,
    driver: Option<DriverVersion>,
    cuda: Option<CudaVersion>,
    notes: Vec<String>,
    fault: Option<Fault>,
    outcome: String,
}

impl Answer {
    fn said(outcome: impl Into<String>) -> Self {
        Self { outcome: outcome.into(), ..Self::default() }
    }
}

/// Looks at this machine.
pub fn detect(env: &Env) -> Detection {
    detect_with(env, &Roots::default(), None)
}

/// Looks below `roots`, in one way only if `only` names it.
pub fn detect_with(env: &Env, roots: &Roots, only: Option<Method>) -> Detection {
    let mut found = Detection::default();
    if roots.os == "macos" {
        found.fault = Some(Fault::MacOs);
        return found;
    }
    let methods = match only {
        Some(Method::Name) => vec![Method::Nvml, Method::NvidiaSmi, Method::Pci],
        Some(one) => vec![one],
        None => vec![Method::Nvml, Method::NvidiaSmi, Method::Pci, Method::DeviceTree],
    };
    for method in methods {
        let answer = match method {
            Method::Nvml => nvml::ask(roots),
            Method::NvidiaSmi => smi::ask(env, roots),
            Method::Pci => pci::ask(roots),
            Method::DeviceTree | Method::Name => tegra::ask(roots),
        };
        found.steps.push(Step { method, outcome: answer.outcome });
        found.notes.extend(answer.notes);
        found.driver = found.driver.or(answer.driver);
        found.cuda_driver = found.cuda_driver.or(answer.cuda);
        found.fault = found.fault.or(answer.fault);
        found.devices = answer.devices;
        if !found.devices.is_empty() {
            break;
        }
    }
    if only == Some(Method::Name) {
        found.devices.iter_mut().for_each(by_name);
    }
    finish(&mut found, env, roots);
    found
}

/// Capability by the name table; a name that does not decide leaves it unknown.
fn by_name(device: &mut Device) {
    device.source = Method::Name;
    device.confidence = Confidence::Low;
    device.capability = match device.name.as_deref().map(gpu_by_name) {
        Some(GpuLookup::Found(gpu)) => Some(gpu.capability),
        _ => None,
    };
}

fn finish(found: &mut Detection, env: &Env, roots: &Roots) {
    let kernel = kernel_driver(&roots.proc);
    if found.driver.is_none() {
        found.driver = kernel.as_deref().and_then(|version| version.parse().ok());
    }
    if let Some(Fault::DriverLibraryMismatch { kernel: slot, .. }) = &mut found.fault {
        *slot = slot.take().or(kernel);
    }
    if found.devices.is_empty() && is_wsl(&roots.proc) && matches!(found.fault, None | Some(Fault::NotLoaded)) {
        found.fault = Some(Fault::Wsl);
    }
    for device in found.devices.iter().filter(|device| device.capability.is_none()) {
        let name = device.name.as_deref().unwrap_or("without a name");
        found.notes.push(format!("GPU {} ({name}): its compute capability is not known", device.index));
    }
    // An empty value hides every GPU, so this reads past `Env::get`, which takes it as unset.
    let value = env.variables().get(env_vars::CUDA_VISIBLE_DEVICES).cloned();
    if let Some(value) = &value {
        let order = env.get(env_vars::CUDA_DEVICE_ORDER);
        let (notes, fault) = visible::apply(&mut found.devices, value, order);
        found.notes.extend(notes);
        found.fault = fault.or(found.fault.take());
    }
    found.visible_devices = value;
    let usable = found.usable().next().is_some();
    if let Some(problem) = found.fault.as_ref().filter(|_| usable).map(Fault::problem) {
        found.notes.push(problem.message().to_owned());
    }
}

/// The loaded kernel module's version.
fn kernel_driver(proc: &Utf8Path) -> Option<String> {
    let text = fs::read_to_string(proc.join("driver/nvidia/version")).ok()?;
    let version = |word: &&str| word.parse::<DriverVersion>().is_ok();
    text.lines().next()?.split_whitespace().find(version).map(str::to_owned)
}

fn is_wsl(proc: &Utf8Path) -> bool {
    fs::read_to_string(proc.join("version")).is_ok_and(|text| text.to_lowercase().contains("microsoft"))
}

#[cfg(test)]
mod tests;
