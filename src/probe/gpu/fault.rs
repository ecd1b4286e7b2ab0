//! The known ways in which a machine's GPUs cannot be asked, each with its own mend.

use crate::domain::exit::Exit;
use crate::domain::problem::Problem;

/// What keeps GPUs from being known or used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The driver's kernel module and its libraries are of different versions.
    DriverLibraryMismatch {
        /// Version of the module.
        kernel: Option<String>,
        /// Version of the library.
        library: Option<String>,
    },
    /// The kernel module is not loaded.
    NotLoaded,
    /// This user may not talk to the driver.
    NoPermission,
    /// The driver answers, and there is no GPU.
    NoDevices,
    /// A GPU stopped answering.
    Lost,
    /// WSL without a usable driver on the Windows side.
    Wsl,
    /// macOS, where there is no CUDA.
    MacOs,
    /// `CUDA_VISIBLE_DEVICES` is empty.
    HidesAll,
    /// `CUDA_VISIBLE_DEVICES` names nothing that is here.
    MatchesNone(String),
    /// Something else that the driver said.
    Other(String),
}

impl Fault {
    /// The problem to show if no target is known without a GPU.
    pub fn problem(&self) -> Problem {
        let new = |code, message: String| Problem::new(code, Exit::NoTarget, message);
        let problem = match self {
            Self::DriverLibraryMismatch { kernel, library } => {
                let message = "the NVIDIA driver is half updated: driver-library-mismatch".to_owned();
                let version = |v: &Option<String>| v.clone().unwrap_or_else(|| "of unknown version".to_owned());
                new("cuwright::detect::driver_library_mismatch", message)
                    .why(format!("kernel module {}, library {}", version(kernel), version(library)))
                    .help("reboot, or unload and reload the nvidia kernel modules")
            }
            Self::NotLoaded => {
                new("cuwright::detect::driver_not_loaded", "the NVIDIA driver is installed but not loaded".to_owned())
                    .help("load it (`modprobe nvidia`), and see `dmesg` if that fails")
            }
            Self::NoPermission => {
                new("cuwright::detect::no_permission", "this user may not talk to the NVIDIA driver".to_owned())
                    .why("/dev/nvidia* and /dev/nvidiactl must be readable and writable")
                    .help("in a container, start it with `--gpus all`; else check the groups of /dev/nvidia*")
            }
            Self::NoDevices => new("cuwright::detect::no_devices", "the driver knows no GPU".to_owned())
                .help("in a container or a batch job, ask for a GPU when starting it"),
            Self::Lost => new("cuwright::detect::gpu_lost", "the GPU stopped answering".to_owned())
                .help("see `dmesg` for Xid lines; a reset or reboot brings it back"),
            Self::Wsl => new("cuwright::detect::wsl", "WSL sees no NVIDIA GPU".to_owned())
                .why("under WSL the driver is the one of Windows")
                .help("install or update the NVIDIA driver in Windows, never inside WSL, and run `wsl --shutdown`"),
            Self::MacOs => new("cuwright::detect::macos", "there is no CUDA on macOS".to_owned())
                .why("GPUs of a Mac are used through MPS, which needs no CUDA extension")
                .help("build on a Linux machine instead (`ssh HOST cuwright build …`), and name the targets with `--arch`"),
            Self::HidesAll => {
                new("cuwright::detect::none_visible", "CUDA_VISIBLE_DEVICES is empty and hides every GPU".to_owned())
                    .help("unset CUDA_VISIBLE_DEVICES, or name the targets with `--arch`")
            }
            Self::MatchesNone(value) => {
                new("cuwright::detect::none_visible", format!("CUDA_VISIBLE_DEVICES matches no GPU here: `{value}`"))
                    .help("correct or unset CUDA_VISIBLE_DEVICES, or name the targets with `--arch`")
            }
            Self::Other(text) => new("cuwright::detect::driver_error", "the NVIDIA driver reports an error".to_owned())
                .why(text.clone()),
        };
        problem.help("a build needs no GPU: `--arch` or `--gpu` names the targets")
    }

    /// Reads what the driver's tools print when they fail.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        let says = |part: &str| lower.contains(part);
        if says("version mismatch") {
            let library = text.lines().find_map(|line| line.split_once("library version:"));
            let library = library.map(|(_, version)| version.trim().to_owned());
            Some(Self::DriverLibraryMismatch { kernel: None, library })
        } else if says("couldn't communicate with the nvidia driver") || says("driver not loaded") {
            Some(Self::NotLoaded)
        } else if says("insufficient permissions") {
            Some(Self::NoPermission)
        } else if says("no devices were found") {
            Some(Self::NoDevices)
        } else if says("gpu is lost") || says("fallen off the bus") {
            Some(Self::Lost)
        } else {
            None
        }
    }
}
