//! The device code of one file, as the rules need it: which images the driver can load, in which groups they stand.
//!
//! A fatbin holds the images of one translation unit, and the driver picks among those alone: a kernel does not start
//! on a GPU because another source was compiled for it. So fatbins with the same images are counted as one group.
//! Relocatable device code is counted apart: no GPU runs it before a device link.

use std::collections::BTreeMap;

use fatbin::{Contents, Entry, Extractor, Kind, Limits, Listing, Options};

use super::regular;
use super::site::ExtensionFile;
use crate::compat::PtxIsa;
use crate::compat::rules::{Code, Image};
use crate::domain::arch::{Arch, ArchSet, Form};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::domain::version::CudaVersion;

/// Section of device code that still needs a device link.
const RELOCATABLE: &str = "__nv_relfatbin";
/// Images of one arch whose maker is looked at; a file rarely has several.
const SAMPLES: usize = 3;

/// Fatbins with the same images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What each of them holds.
    pub images: Vec<Image>,
    /// How many there are.
    pub count: usize,
}

/// The device code of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The file, as people see it.
    pub file: String,
    /// The file, as globs match it.
    pub inner: String,
    /// Whether `inner` is the whole path inside a wheel; else a glob may match any end of it.
    pub in_wheel: bool,
    /// Archs and forms that the driver can load.
    pub archs: ArchSet,
    /// SASS images.
    pub cubins: usize,
    /// PTX images.
    pub ptx: usize,
    /// The images by fatbin.
    pub groups: Vec<Group>,
    /// Images that need a device link first.
    pub relocatable: usize,
    /// Images of a kind that no driver loads as it is, such as LTO code.
    pub other: Vec<String>,
    /// The newest toolkit that made machine code here, where looked for and told.
    pub toolkit: Option<CudaVersion>,
    /// What was odd about the file; such a file may hold more than was seen.
    pub oddities: Vec<String>,
    /// Why the file may hold more than was seen; empty where all of it was read.
    pub hidden: Vec<String>,
}

/// How far to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Headers only.
    Headers,
    /// A few images of each arch too, for the toolkit that made them.
    Makers,
}

impl Found {
    /// Whether a glob of a recipe names this file.
    pub fn is_named(&self, glob: &globset::GlobMatcher) -> bool {
        if glob.is_match(&self.inner) {
            return true;
        }
        let ends = self.inner.match_indices('/').map(|(at, _)| &self.inner[at + 1..]);
        !self.in_wheel && ends.into_iter().any(|end| glob.is_match(end))
    }
}

/// Reads the device code of a file that people know as `label`.
///
/// # Errors
/// A file that cannot be opened or is no format that can hold device code.
pub fn read(file: &ExtensionFile, label: &str, depth: Depth) -> Result<Found, Problem> {
    let unreadable = |why: String| {
        let message = format!("{label} cannot be read as a library");
        Problem::new("cuwright::verify::unreadable_file", Exit::Verify, message)
            .why(why)
            .help("build again; a file cut short means that the disk was full or the linker was killed")
    };
    let opened = regular::open(&file.path, label)?;
    let listing = fatbin::list(opened.file(), &Options::default()).map_err(|error| unreadable(error.to_string()))?;
    let mut found = of_listing(&listing);
    label.clone_into(&mut found.file);
    found.inner.clone_from(&file.name);
    if depth == Depth::Makers {
        let mut extractor = Extractor::new(opened.file(), Limits::default());
        let makers = makers(&listing, &mut extractor);
        found.toolkit = makers.values().max().copied();
        let images = found.groups.iter_mut().flat_map(|group| &mut group.images);
        for image in images.filter(|image| image.code == Code::Sass) {
            image.toolkit = makers.get(&image.arch).copied();
        }
    }
    Ok(found)
}

fn of_listing(listing: &Listing) -> Found {
    let mut found = Found::default();
    let mut fatbins: BTreeMap<u64, Vec<Image>> = BTreeMap::new();
    for entry in listing.images() {
        if entry.section.as_deref() == Some(RELOCATABLE) {
            found.relocatable += 1;
            continue;
        }
        let Some(code) = code_of(entry) else {
            let other = entry.kind.to_string();
            if !found.other.contains(&other) {
                found.other.push(other);
            }
            continue;
        };
        let form = if code == Code::Sass { Form::SASS } else { Form::PTX };
        found.cubins += usize::from(form.sass);
        found.ptx += usize::from(form.ptx);
        let Some(arch) = arch_of(entry) else {
            found.oddities.push(format!("an image names the arch {}, which is none", entry.arch));
            continue;
        };
        found.archs.insert(arch, form);
        let mut image = Image::new(arch, code);
        if code == Code::Ptx {
            let version = entry.code_version;
            let part = |number: u16| u8::try_from(number).ok();
            let isa = part(version.major).zip(part(version.minor));
            image.ptx_isa = isa.map(|(major, minor)| PtxIsa { major, minor });
        }
        // A bare cubin stands in no fatbin and is a group of its own.
        fatbins.entry(entry.fatbin.unwrap_or(entry.offset)).or_default().push(image);
    }
    for mut images in fatbins.into_values() {
        images.sort_by_key(|image| (image.code, image.arch, image.ptx_isa));
        images.dedup();
        match found.groups.iter_mut().find(|group| group.images == images) {
            Some(group) => group.count += 1,
            None => found.groups.push(Group { images, count: 1 }),
        }
    }
    let said = listing.diagnostics.iter().take(3).map(ToString::to_string);
    if listing.complete {
        found.oddities.extend(said);
    } else {
        found.hidden.extend(said);
    }
    found
}

fn code_of(entry: &Entry) -> Option<Code> {
    match entry.kind {
        Kind::Elf | Kind::Cubin => Some(Code::Sass),
        Kind::Ptx => Some(Code::Ptx),
        _ => None,
    }
}

fn arch_of(entry: &Entry) -> Option<Arch> {
    Arch::from_joined(&format!("{}{}", entry.arch.number, entry.arch.suffix.as_str()))
}

/// The newest maker among a few images of each arch; an image that does not unpack tells nothing.
fn makers<R: fatbin::ReadAt>(listing: &Listing, extractor: &mut Extractor<R>) -> BTreeMap<Arch, CudaVersion> {
    let mut by_arch: BTreeMap<Arch, Vec<&Entry>> = BTreeMap::new();
    for entry in listing.images().filter(|entry| code_of(entry) == Some(Code::Sass)) {
        if let Some(arch) = arch_of(entry) {
            by_arch.entry(arch).or_default().push(entry);
        }
    }
    let mut makers = BTreeMap::new();
    for (arch, entries) in by_arch {
        let step = entries.len().div_ceil(SAMPLES).max(1);
        let told = entries.iter().step_by(step).filter_map(|entry| {
            let Contents::Cubin(cubin) = extractor.inspect(entry).ok()?.contents else { return None };
            let toolkit = cubin.producer.toolkit?;
            Some(CudaVersion::new(toolkit.major, toolkit.minor))
        });
        if let Some(newest) = told.max() {
            makers.insert(arch, newest);
        }
    }
    makers
}

/// A file with the given archs in one fatbin, for tests of the judges.
#[cfg(test)]
pub(crate) fn sample(file: &str, archs: &str) -> Found {
    let archs: ArchSet = if archs.is_empty() { ArchSet::new() } else { archs.parse().unwrap() };
    let sass = archs.real().map(|arch| Image::new(arch, Code::Sass));
    let images: Vec<Image> = sass.chain(archs.virtuals().map(|arch| Image::new(arch, Code::Ptx))).collect();
    Found {
        file: file.into(),
        inner: file.into(),
        in_wheel: true,
        cubins: archs.real().count(),
        ptx: archs.virtuals().count(),
        groups: if images.is_empty() { vec![] } else { vec![Group { images, count: 1 }] },
        archs,
        ..Found::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(name: &str) -> Found {
        let path = camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("fatbin/tests/vectors").join(name);
        read(&ExtensionFile { name: name.to_owned(), path }, name, Depth::Makers).unwrap()
    }

    #[test]
    fn images_carry_their_arch_their_ptx_version_and_their_maker() {
        let found = vector("v02_sm75_86_ptx86.o");
        assert_eq!((found.archs.to_string().as_str(), found.cubins, found.ptx), ("7.5;8.6+PTX", 2, 1));
        assert_eq!(found.groups.len(), 1);
        let ptx = found.groups[0].images.iter().find(|image| image.code == Code::Ptx).unwrap();
        assert_eq!(ptx.ptx_isa.unwrap().to_string(), "9.0");
        assert_eq!(found.toolkit.unwrap().release().to_string(), "13.0");
    }

    #[test]
    fn code_that_needs_a_device_link_is_not_counted() {
        let found = vector("v13_rdc.o");
        assert!(found.archs.is_empty() && found.relocatable > 0);
        let found = vector("v22_lto90.o");
        assert!(found.archs.is_empty() && found.relocatable + found.other.len() > 0);
    }

    #[test]
    fn a_glob_matches_an_end_of_a_bare_path_but_the_whole_path_in_a_wheel() {
        let glob = globset::Glob::new("mmcv/_ext*.so").unwrap().compile_matcher();
        let mut found = sample("build/lib/mmcv/_ext.cpython-311.so", "9.0");
        assert!(!found.is_named(&glob));
        found.in_wheel = false;
        assert!(found.is_named(&glob));
        found.inner = "build/lib/xmmcv/_ext.so".into();
        assert!(!found.is_named(&glob));
    }
}
