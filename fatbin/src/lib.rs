//! Reads the GPU code that NVIDIA's tools put into host files, without a CUDA toolkit and without a GPU.
//!
//! Two levels. [`list`] walks headers only: it says which images a shared object, static library, `.fatbin`, `.cubin` or
//! Windows DLL holds, for which architecture, packed how, in time that depends on the number of images and not on the
//! size of the file. [`Extractor`] reads one image deep: it unpacks it within [`Limits`] and tells its kernels with their
//! registers, stack and memory, or the version and target of its PTX.
//!
//! ```
//! use fatbin::{Contents, Extractor, Kind, Limits, Options};
//!
//! let bytes: &[u8] = include_bytes!("../tests/vectors/v03_sm90_90a_ptx90a.o");
//! let listing = fatbin::list(bytes, &Options::default())?;
//! let archs: Vec<String> = listing.entries.iter().map(|entry| format!("{} {}", entry.kind, entry.arch)).collect();
//! assert_eq!(archs, ["elf sm_90", "ptx sm_90a", "elf sm_90a"]);
//!
//! let mut extractor = Extractor::new(bytes, Limits::default());
//! let inspection = extractor.inspect(&listing.entries[0])?;
//! let Contents::Cubin(cubin) = inspection.contents else { panic!("an elf entry holds a cubin") };
//! assert_eq!(cubin.kernels[1].name, "vec_add");
//! assert_eq!(cubin.kernels[1].registers, Some(12));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What to expect of broken files
//!
//! Unknown kinds of image are listed, not fatal. A truncated or hostile file gives the part that is whole, and a
//! [`Diagnostic`] for the rest; [`Listing::complete`] says whether code may be missing. Nothing here panics on any
//! input, memory is bounded by [`Options`] and [`Limits`], and time grows in proportion to the bytes that are there.
//!
//! # What is deliberately not here
//!
//! No files are opened and no archives other than `ar` are unpacked: hand over anything that is [`ReadAt`], such as a
//! `std::fs::File`, a `Vec<u8>` or a member of a wheel. There is no disassembler. LTO IR is listed but stays opaque.

#![forbid(unsafe_code)]

mod arch;
mod bytes;
mod collect;
mod container;
mod cubin;
mod decompress;
mod deep;
mod diagnostic;
mod entry;
mod error;
mod extract;
mod header;
mod lazy;
mod listing;
mod ptx;
mod reader;
mod scan;
mod source;
mod toolkit;
mod walk;

pub use arch::{Arch, ParseArchError, Suffix};
pub use cubin::{Cubin, Function};
pub use deep::inspect_all;
pub use diagnostic::{Diagnostic, Problem};
pub use entry::{CodeVersion, Compression, Entry, FoundBy, Host, Image, Kind, Payload};
pub use error::{Error, ExtractError};
pub use extract::{Contents, Extractor, Inspection, Limits};
pub use listing::{Format, Listing, Options, list};
pub use ptx::Ptx;
pub use reader::ReadAt;
pub use toolkit::{Producer, Toolkit};
