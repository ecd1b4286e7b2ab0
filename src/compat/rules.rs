//! Whether code built for one arch runs on a GPU with a driver: as it is, after compiling by the driver, or not.
//!
//! Invariant: pure rules over numbers, stricter rather than kinder where NVIDIA does not promise. Whether a *file*
//! holds an image is not known here.

use super::toolkits::{PtxIsa, toolkit};
use crate::domain::arch::{Arch, ArchSet, Capability, Variant};
use crate::domain::version::CudaVersion;

/// What a piece of GPU code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// Machine code.
    Sass,
    /// PTX.
    Ptx,
}

/// A piece of GPU code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// What it was compiled for.
    pub arch: Arch,
    /// Machine code or PTX.
    pub code: Code,
    /// The toolkit that made it, where known.
    pub toolkit: Option<CudaVersion>,
    /// Version of the PTX text, where known; decides more exactly than the toolkit.
    pub ptx_isa: Option<PtxIsa>,
}

impl Image {
    /// An image of an unknown toolkit.
    pub fn new(arch: Arch, code: Code) -> Self {
        Self { arch, code, toolkit: None, ptx_isa: None }
    }
}

/// How code starts on a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runs {
    /// As it is.
    Natively,
    /// After the driver has compiled it, which makes the first start slow.
    ByJit {
        /// The reason.
        why: String,
    },
    /// Not at all.
    No {
        /// The reason.
        why: String,
    },
}

impl Runs {
    /// Whether it starts.
    pub fn starts(&self) -> bool {
        !matches!(self, Self::No { .. })
    }
}

/// GPUs on a Jetson or another Tegra: code is compatible neither among them nor with other GPUs.
const TEGRA: [u16; 8] = [32, 53, 62, 72, 87, 88, 101, 110];

/// Families of `f` code. A GPU outside is a family of its own.
const FAMILIES: [&[u16]; 2] = [&[100, 103, 107], &[120, 121]];

/// The two numbers of one chip, and the release that renamed it.
pub const THOR: (Capability, Capability, CudaVersion) =
    (Capability::new(10, 1), Capability::new(11, 0), CudaVersion::new(13, 0));

/// Whether `image` runs on a GPU of capability `gpu` under a driver for CUDA `driver`; without one it is taken as new.
pub fn runs(image: &Image, gpu: Capability, driver: Option<CudaVersion>) -> Runs {
    let verdict = match image.code {
        Code::Sass => code_runs(image.arch, gpu).and_then(|()| driver_loads(image, driver)),
        Code::Ptx => ptx_compiles(image.arch, gpu).and_then(|()| driver_compiles(image, driver)),
    };
    match (verdict, image.code) {
        (Err(why), _) => Runs::No { why },
        (Ok(()), Code::Sass) => Runs::Natively,
        (Ok(()), Code::Ptx) => {
            Runs::ByJit { why: format!("the driver compiles {} for {gpu} at first start", image.arch.compute()) }
        }
    }
}

/// The best that a set of archs, built by one toolkit, offers a GPU, and the member that offers it.
pub fn best(
    set: &ArchSet,
    toolkit: Option<CudaVersion>,
    gpu: Capability,
    driver: Option<CudaVersion>,
) -> (Runs, Option<Image>) {
    let images = set.iter().rev().flat_map(|(arch, form)| {
        let image = move |code| Image { arch, code, toolkit, ptx_isa: None };
        [form.sass.then(|| image(Code::Sass)), form.ptx.then(|| image(Code::Ptx))].into_iter().flatten()
    });
    best_of(images, gpu, driver)
}

/// The best of some images: the nearest machine code, else the nearest PTX, else why not.
pub fn best_of(
    images: impl IntoIterator<Item = Image>,
    gpu: Capability,
    driver: Option<CudaVersion>,
) -> (Runs, Option<Image>) {
    let mut images: Vec<Image> = images.into_iter().collect();
    // The nearest first: machine code before PTX, the highest number that starts, specific before plain.
    images.sort_by_key(|image| (image.code, std::cmp::Reverse(image.arch)));
    let mut refusals = Vec::new();
    for image in images {
        match runs(&image, gpu, driver) {
            Runs::No { why } => refusals.push((image, why)),
            starts => return (starts, Some(image)),
        }
    }
    // One reason is enough where the arch itself fits and only the driver does not.
    let near = refusals.iter().find(|(image, _)| match image.code {
        Code::Sass => code_runs(image.arch, gpu).is_ok(),
        Code::Ptx => ptx_compiles(image.arch, gpu).is_ok(),
    });
    let why = match near {
        Some((_, why)) => why.clone(),
        None => no_image(&refusals, gpu),
    };
    (Runs::No { why }, None)
}

fn no_image(refusals: &[(Image, String)], gpu: Capability) -> String {
    match refusals {
        [] => "there is no GPU code".to_owned(),
        [(_, why)] => why.clone(),
        _ if refusals.iter().all(|(image, _)| image.arch.capability > gpu) => {
            format!("everything is for GPUs later than {gpu}")
        }
        _ => format!("no machine code for {}.x up to {gpu}, and no PTX that {gpu} can use", gpu.major),
    }
}

/// Whether a GPU executes machine code of `arch`.
pub fn code_runs(arch: Arch, gpu: Capability) -> Result<(), String> {
    let built = arch.capability;
    if built == gpu {
        return Ok(());
    }
    if (built, gpu) == (THOR.0, THOR.1) || (built, gpu) == (THOR.1, THOR.0) {
        let release = THOR.2;
        return Err(format!(
            "{built} and {gpu} are the same chip, renamed in CUDA {release}: build with its name there"
        ));
    }
    match arch.variant {
        Variant::A => Err(format!("{} runs on {built} exactly, not on {gpu}", arch.sm())),
        Variant::F if same_family(built, gpu) && built <= gpu => Ok(()),
        Variant::F => Err(format!("{} runs within its family from {built} on, and {gpu} is not there", arch.sm())),
        Variant::Plain if is_tegra(built) || is_tegra(gpu) => {
            let tegra = if is_tegra(gpu) { gpu } else { built };
            Err(format!("{tegra} is a Tegra part: its code runs on no other GPU, nor other code on it"))
        }
        Variant::Plain if built.major != gpu.major => {
            Err(format!("{} code runs on {}.x only, not on {gpu}", arch.sm(), built.major))
        }
        Variant::Plain if built > gpu => Err(format!("{} code does not run on the earlier {gpu}", arch.sm())),
        Variant::Plain => Ok(()),
    }
}

/// Whether PTX of `arch` can be compiled for a GPU.
pub fn ptx_compiles(arch: Arch, gpu: Capability) -> Result<(), String> {
    let (built, name) = (arch.capability, arch.compute());
    match arch.variant {
        Variant::A if built == gpu => Ok(()),
        Variant::A => Err(format!("{name} compiles for {built} exactly, not for {gpu}")),
        Variant::F if same_family(built, gpu) && built <= gpu => Ok(()),
        Variant::F => Err(format!("{name} compiles within its family from {built} on, and {gpu} is not there")),
        Variant::Plain if built <= gpu => Ok(()),
        Variant::Plain => Err(format!("{name} does not compile for the earlier {gpu}")),
    }
}

/// Whether a driver of one CUDA release starts programs of another: newer ones always, older ones within a major.
pub fn driver_starts(built: CudaVersion, driver: CudaVersion) -> Result<(), String> {
    let (built, driver) = (built.release(), driver.release());
    if driver >= built || (driver.major == built.major && built.major >= 11) {
        return Ok(());
    }
    let floor = toolkit(built).and_then(|toolkit| toolkit.minimum_driver.as_ref());
    let floor = floor.map(|floor| format!(" (at least {floor})")).unwrap_or_default();
    Err(format!("the driver is for CUDA {driver}, and a program of CUDA {built} needs a newer one{floor}"))
}

/// Tegra parts, by number.
pub fn is_tegra(capability: Capability) -> bool {
    TEGRA.contains(&capability.number())
}

fn same_family(one: Capability, other: Capability) -> bool {
    one == other || FAMILIES.iter().any(|f| f.contains(&one.number()) && f.contains(&other.number()))
}

fn driver_loads(image: &Image, driver: Option<CudaVersion>) -> Result<(), String> {
    match (image.toolkit, driver) {
        (Some(built), Some(driver)) => driver_starts(built, driver),
        _ => Ok(()),
    }
}

/// PTX needs a driver that knows its version; minor-version compatibility does not help here.
fn driver_compiles(image: &Image, driver: Option<CudaVersion>) -> Result<(), String> {
    let Some(driver) = driver.map(CudaVersion::release) else { return Ok(()) };
    driver_loads(image, Some(driver))?;
    let made = image.toolkit.map(CudaVersion::release);
    let isa = image.ptx_isa.or_else(|| made.and_then(toolkit).map(|toolkit| toolkit.ptx));
    let knows = toolkit(driver).map(|toolkit| toolkit.ptx);
    let refused = match (isa, knows, made) {
        (Some(isa), Some(knows), _) => isa > knows,
        (_, _, Some(made)) => made > driver,
        _ => false,
    };
    if !refused {
        return Ok(());
    }
    let what = match (isa, made) {
        (Some(isa), Some(made)) => format!("PTX {isa} of CUDA {made}"),
        (Some(isa), None) => format!("PTX {isa}"),
        (None, made) => format!("PTX of CUDA {}", made.unwrap_or(driver)),
    };
    Err(format!("{what} is newer than the driver, which is for CUDA {driver}: ship machine code, or update the driver"))
}

#[cfg(test)]
mod tests;
