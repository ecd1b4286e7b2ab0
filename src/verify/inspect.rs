//! The GPU code of one file as values: every entry, the bytes per arch, and on request every kernel.
//!
//! Invariant: the listing reads headers only. Kernels are counted where that is cheap, since it means unpacking, and
//! listed where they are asked for. Text and JSON are both made from here; `schemas/inspect.schema.json` too.

use std::collections::BTreeMap;

use camino::Utf8Path;
use fatbin::{Contents, Entry, Extractor, Inspection, Kind, Limits, Listing, Options};
use serde::Serialize;

use super::regular;
use super::site::ExtensionFile;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::sys::machine;

/// Unpacked bytes up to which kernels are counted without being asked for: a moment's work.
const CHEAP: u64 = 32 << 20;

/// The GPU code of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Inspected {
    /// The file as people see it.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// What it is: `elf`, `cubin`, `archive`, `thin-archive`, `fatbin`, `pe` or `coff`.
    pub format: String,
    /// Whether damage or a limit may hide code.
    pub complete: bool,
    /// What each arch takes.
    pub archs: Vec<Share>,
    /// Every entry, in the order of the file.
    pub entries: Vec<Row>,
    /// What was odd.
    pub diagnostics: Vec<String>,
}

/// What the images of one arch take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Share {
    /// `sm_86` for machine code, `compute_86` for PTX and code for later compilation.
    pub arch: String,
    /// Number of images.
    pub images: usize,
    /// Bytes when unpacked.
    pub unpacked: u64,
    /// Bytes of the file that the file would be smaller without it; a share of the blob for concatenated images.
    pub saves: u64,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// Its number, which extracted files carry.
    pub index: usize,
    /// The archive member that holds it.
    pub member: Option<String>,
    /// The section that holds it.
    pub section: Option<String>,
    /// Its place in the file.
    pub offset: u64,
    /// `elf`, `ptx`, `nvvm` and the like.
    pub kind: String,
    /// Its arch, such as `sm_90a`.
    pub arch: String,
    /// PTX version, or ABI of machine code.
    pub code_version: String,
    /// How it is packed.
    pub compression: String,
    /// Bytes in the file.
    pub stored_bytes: u64,
    /// Bytes when unpacked.
    pub bytes: u64,
    /// Name of its source, where recorded.
    pub identifier: Option<String>,
    /// Whether it holds debug information.
    pub debug: bool,
    /// Whether it is cut off.
    pub truncated: bool,
    /// Toolkit that made it, if it was read and tells.
    pub toolkit: Option<String>,
    /// Number of kernels, if it was read.
    pub kernel_count: Option<usize>,
    /// Its kernels, if they were asked for.
    pub kernels: Option<Vec<Kernel>>,
    /// Why it could not be read.
    pub error: Option<String>,
}

/// One kernel. PTX tells names only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Kernel {
    /// Its name as linked.
    pub name: String,
    /// What it takes, of machine code.
    pub resources: Option<Resources>,
}

/// What a kernel takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Resources {
    /// Registers per thread, if recorded.
    pub registers: Option<u32>,
    /// Stack per thread in bytes.
    pub stack: u32,
    /// Static shared memory per block in bytes, as NVIDIA's tools show it.
    pub shared: u64,
    /// The part of it that the system keeps for itself.
    pub shared_reserved: u64,
    /// Bytes of constant bank 0.
    pub constant: u64,
    /// Local memory per thread in bytes, without the stack.
    pub local: u64,
    /// Bytes of machine code.
    pub code: u64,
}

/// How far to look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish<'a> {
    /// List every kernel.
    pub kernels: bool,
    /// Search sections where no loader looks, too.
    pub scan_all: bool,
    /// Write every image into this folder.
    pub extract: Option<&'a Utf8Path>,
}

/// Reads a file that people know as `label`, and extracts what is wished.
///
/// # Errors
/// A file that cannot be read, and an image that cannot be written; an image that does not unpack is told in its row.
pub fn inspect(file: &ExtensionFile, label: &str, wish: Wish<'_>) -> Result<Inspected, Problem> {
    let unreadable = |why: String| {
        Problem::new("cuwright::verify::unreadable_file", Exit::Verify, format!("{label} cannot be read"))
            .why(why)
            .help("files that can hold GPU code are ELF, PE, static archives, fatbins, cubins and wheels")
    };
    let opened = regular::open(&file.path, label)?;
    let options = Options::default().scan_all(wish.scan_all);
    let listing = fatbin::list(opened.file(), &options).map_err(|error| unreadable(error.to_string()))?;
    let unpacked: u64 = listing.images().map(Entry::unpacked_size).fold(0, u64::saturating_add);
    let deep = (wish.kernels || unpacked <= CHEAP).then(|| {
        let threads = usize::try_from(machine::cores()).unwrap_or(1);
        fatbin::inspect_all(opened.file(), &listing.entries, Limits::default(), threads)
    });
    let mut rows: Vec<Row> = listing.entries.iter().enumerate().map(|(index, entry)| row(index, entry)).collect();
    for (row, inspection) in rows.iter_mut().zip(deep.into_iter().flatten()) {
        match inspection {
            Ok(inspection) => fill(row, inspection, wish.kernels),
            Err(error) => row.error = Some(error.to_string()),
        }
    }
    if let Some(folder) = wish.extract {
        let mut extractor = Extractor::new(opened.file(), Limits::default());
        extract(&listing, &mut extractor, folder, &mut rows)?;
    }
    Ok(Inspected {
        file: label.to_owned(),
        bytes: opened.metadata().map(|meta| meta.len()).unwrap_or_default(),
        format: serde_json::to_value(listing.format)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default(),
        complete: listing.complete,
        archs: shares(&listing),
        entries: rows,
        diagnostics: listing.diagnostics.iter().map(ToString::to_string).collect(),
    })
}

fn row(index: usize, entry: &Entry) -> Row {
    Row {
        index,
        member: entry.member.as_deref().map(str::to_owned),
        section: entry.section.as_deref().map(str::to_owned),
        offset: entry.offset,
        kind: entry.kind.to_string(),
        arch: name(entry),
        code_version: entry.code_version.to_string(),
        compression: entry.compression.to_string(),
        stored_bytes: if entry.image.is_some() { 0 } else { entry.payload.stored_size },
        bytes: entry.unpacked_size(),
        identifier: entry.identifier.clone(),
        debug: entry.debug,
        truncated: entry.truncated,
        toolkit: None,
        kernel_count: None,
        kernels: None,
        error: None,
    }
}

/// `sm_86` for machine code, `compute_86` for what is compiled later, nothing for a wrapper.
fn name(entry: &Entry) -> String {
    match entry.kind {
        Kind::Concatenated => "-".to_owned(),
        Kind::Elf | Kind::Cubin => entry.arch.to_string(),
        _ => entry.arch.to_virtual(),
    }
}

fn fill(row: &mut Row, inspection: Inspection, list: bool) {
    let kernels: Vec<Kernel> = match inspection.contents {
        Contents::Cubin(cubin) => {
            row.toolkit = cubin.producer.toolkit.map(|toolkit| toolkit.to_string());
            let resources = |function: &fatbin::Function| Resources {
                registers: function.registers,
                stack: function.stack,
                shared: function.shared,
                shared_reserved: function.shared_reserved,
                constant: function.constant,
                local: function.local,
                code: function.code_size,
            };
            let kernel =
                |function: fatbin::Function| Kernel { resources: Some(resources(&function)), name: function.name };
            cubin.kernels.into_iter().map(kernel).collect()
        }
        Contents::Ptx(ptx) => {
            row.toolkit = ptx.toolkit.map(|toolkit| toolkit.to_string());
            ptx.kernels.into_iter().map(|name| Kernel { name, resources: None }).collect()
        }
        _ => return,
    };
    row.kernel_count = Some(kernels.len());
    row.kernels = list.then_some(kernels);
}

/// Bytes per arch, in the order of the archs' numbers, machine code first.
fn shares(listing: &Listing) -> Vec<Share> {
    let mut shares: BTreeMap<(u32, bool, String), Share> = BTreeMap::new();
    for entry in listing.images() {
        let name = name(entry);
        let key = (entry.arch.number, name.starts_with("compute"), name.clone());
        let share = shares.entry(key).or_insert(Share { arch: name, images: 0, unpacked: 0, saves: 0 });
        share.images += 1;
        share.unpacked = share.unpacked.saturating_add(entry.unpacked_size());
        share.saves = share.saves.saturating_add(saves(entry));
    }
    shares.into_values().collect()
}

/// Bytes of the file that belong to an image: header and payload, or its share of a blob.
fn saves(entry: &Entry) -> u64 {
    let payload = &entry.payload;
    match entry.image {
        Some(image) => {
            let whole = u128::from(payload.uncompressed_size.max(1));
            let part = u128::from(image.size) * u128::from(payload.stored_size) / whole;
            u64::try_from(part).unwrap_or(payload.stored_size).min(payload.stored_size)
        }
        None => payload.stored_size.saturating_add(payload.offset.saturating_sub(entry.offset)),
    }
}

fn extract<R: fatbin::ReadAt>(
    listing: &Listing,
    extractor: &mut Extractor<R>,
    folder: &Utf8Path,
    rows: &mut [Row],
) -> Result<(), Problem> {
    let unwritable = |error: &std::io::Error| {
        Problem::new("cuwright::usage::unwritable_file", Exit::Usage, format!("{folder} cannot be written to"))
            .why(error.to_string())
            .help("name a folder that is yours with `--extract`")
    };
    fs_err::create_dir_all(folder).map_err(|error| unwritable(&error))?;
    for (entry, row) in listing.entries.iter().zip(rows).filter(|(entry, _)| entry.kind != Kind::Concatenated) {
        let suffix = match entry.kind {
            Kind::Elf | Kind::Cubin => "cubin",
            Kind::Ptx | Kind::RelocatablePtx => "ptx",
            Kind::Nvvm => "ltoir",
            Kind::TileIr => "tileir",
            _ => "bin",
        };
        match extractor.bytes(entry) {
            Ok(bytes) => {
                let path = folder.join(format!("{:04}.{}.{suffix}", row.index, row.arch));
                fs_err::write(path, bytes).map_err(|error| unwritable(&error))?;
            }
            Err(error) => row.error = Some(error.to_string()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_what_the_code_says() {
        crate::schema_check::<Vec<Inspected>>("schemas/inspect.schema.json");
    }

    #[test]
    fn what_dropping_an_arch_saves_adds_up_to_the_code() {
        let folder = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("fatbin/tests/vectors");
        for name in ["v02_sm75_86_ptx86.o", "v17_a.fatbin", "v18_sm90a.cubin", "v16_lib.a"] {
            let file = ExtensionFile { name: name.to_owned(), path: folder.join(name) };
            let inspected = inspect(&file, name, Wish::default()).unwrap();
            let saved: u64 = inspected.archs.iter().map(|share| share.saves).sum();
            let stored: u64 = inspected.entries.iter().map(|row| row.stored_bytes).sum();
            assert!(saved >= stored && saved <= inspected.bytes, "{name}: {saved} {stored} {}", inspected.bytes);
            assert!(inspected.entries.iter().all(|row| row.kernel_count.is_some() && row.kernels.is_none()), "{name}");
        }
    }
}
