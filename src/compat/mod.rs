//! Facts about GPUs, toolkits, torch releases and drivers, and the rules that join them.
//!
//! Facts are data files with a source per row (`tables/`), embedded and parsed only when asked for. Pure: nothing here
//! looks at a machine, so the same question has the same answer everywhere.

mod available;
mod driver;
mod gpus;
mod names;
mod retired;
pub mod rules;
mod sccache;
mod series;
pub mod support;
mod table;
mod toolkits;
mod torch;
pub mod user;

pub use available::Available;
pub use driver::DriverVersion;
pub use gpus::{Candidate, Gpu, GpuLookup, PciGpu, examples, gpu_by_name, gpu_by_pci, tegra_by_compatible};
pub use retired::{Retired, retired};
pub use sccache::{SccacheFit, sccache_fit};
pub use toolkits::{PtxIsa, Span, Toolkit, arch_span, cuda_of_driver, newest, toolkit, toolkits};
pub use torch::{HostBound, Torch, families, torch, torch_releases};
