//! What an ELF file says about linking: needed libraries, versions, search paths, undefined and exported symbols.
//!
//! Invariant: positioned reads of the dynamic tables only, so a library of 450 MB costs as much as its symbols. A file
//! that is no 64-bit ELF, or one without dynamic tables, has no linkage: that is a value.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, SectionTable, Sym as _, SymbolTable, VersionTable};
use object::{Endianness, ReadCache, ReadRef};

type Header = FileHeader64<Endianness>;

/// A symbol that the file expects from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Undefined {
    /// Its name as linked.
    pub name: String,
    /// The library that its version names, where it has one: the loader looks nowhere else for it.
    pub library: Option<String>,
    /// That version.
    pub version: Option<String>,
}

/// How a file is linked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Linkage {
    /// `e_machine`.
    pub machine: u16,
    /// Its own name for the loader.
    pub soname: Option<String>,
    /// Libraries it needs.
    pub needed: Vec<String>,
    /// RUNPATH, else RPATH, as written.
    pub search: Vec<String>,
    /// Versions it asks for, by library.
    pub versions: BTreeMap<String, Vec<String>>,
    /// Symbols that must be found, or loading fails.
    pub undefined: Vec<Undefined>,
    /// Whether it brings a libstdc++ of its own and exports it.
    pub own_libstdcxx: bool,
    /// Name of the Python module it defines (`PyInit_…`).
    pub module: Option<String>,
}

/// `std::locale::classic()`: defined by libstdc++ alone, never by what is compiled against its headers.
const LIBSTDCXX: &[u8] = b"_ZNSt6locale7classicEv";

/// The machine's name in wheel tags.
pub(super) fn machine_name(machine: u16) -> Option<&'static str> {
    match machine {
        62 => Some("x86_64"),
        183 => Some("aarch64"),
        21 => Some("ppc64le"),
        22 => Some("s390x"),
        243 => Some("riscv64"),
        _ => None,
    }
}

/// Reads everything about a file's linkage; `None` where there is none.
pub(super) fn read(path: &Utf8Path) -> Option<Linkage> {
    with_tables(path, |tables| {
        let mut linkage = tables.libraries()?;
        tables.symbols(&mut linkage).ok()?;
        Some(linkage)
    })
}

/// Reads the libraries and search paths alone.
pub(super) fn read_libraries(path: &Utf8Path) -> Option<Linkage> {
    with_tables(path, |tables| {
        let linkage = tables.libraries()?;
        Some(linkage)
    })
}

/// Calls `seen` with every symbol that a library exports.
pub(super) fn exports(path: &Utf8Path, mut seen: impl FnMut(&[u8])) -> Option<()> {
    with_tables(path, |tables| {
        for symbol in tables.dynsym.iter().filter(|symbol| !symbol.is_undefined(tables.endian)) {
            if let Ok(name) = tables.dynsym.symbol_name(tables.endian, symbol) {
                seen(name);
            }
        }
        Some(())
    })
}

struct Tables<'data, R: ReadRef<'data>> {
    endian: Endianness,
    data: R,
    machine: u16,
    sections: SectionTable<'data, Header, R>,
    dynsym: SymbolTable<'data, Header, R>,
}

fn with_tables<T>(
    path: &Utf8Path,
    use_it: impl FnOnce(&Tables<'_, &ReadCache<std::fs::File>>) -> Option<T>,
) -> Option<T> {
    let cache = ReadCache::new(fs_err::File::open(path).ok()?.into_file());
    let header = Header::parse(&cache).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &cache).ok()?;
    let dynsym = sections.symbols(endian, &cache, elf::SHT_DYNSYM).ok()?;
    let machine = header.e_machine(endian);
    use_it(&Tables { endian, data: &cache, machine: machine.0, sections, dynsym })
}

impl<'data, R: ReadRef<'data>> Tables<'data, R> {
    fn libraries(&self) -> Option<Linkage> {
        let mut linkage = Linkage { machine: self.machine, ..Linkage::default() };
        let (entries, index) = self.sections.dynamic(self.endian, self.data).ok()??;
        let strings = self.sections.strings(self.endian, self.data, index).ok()?;
        let mut rpath = Vec::new();
        for entry in entries {
            let tag = entry.d_tag(self.endian);
            if tag == elf::DT_NULL {
                break;
            }
            if ![elf::DT_NEEDED, elf::DT_SONAME, elf::DT_RUNPATH, elf::DT_RPATH].contains(&tag) {
                continue;
            }
            let offset = u32::try_from(entry.val(self.endian)).ok()?;
            let Ok(text) = strings.get(offset) else { continue };
            let text = String::from_utf8_lossy(text).into_owned();
            let paths = || text.split(':').filter(|path| !path.is_empty()).map(str::to_owned).collect();
            if tag == elf::DT_NEEDED {
                linkage.needed.push(text);
            } else if tag == elf::DT_SONAME {
                linkage.soname = Some(text);
            } else if tag == elf::DT_RUNPATH {
                linkage.search = paths();
            } else {
                rpath = paths();
            }
        }
        if linkage.search.is_empty() {
            linkage.search = rpath;
        }
        Some(linkage)
    }

    fn symbols(&self, linkage: &mut Linkage) -> object::Result<()> {
        let versions: Option<VersionTable<'data, Header>> = self.sections.versions(self.endian, self.data)?;
        self.needed_versions(linkage)?;
        for (index, symbol) in self.dynsym.enumerate() {
            let Ok(name) = self.dynsym.symbol_name(self.endian, symbol) else { continue };
            if name.is_empty() {
                continue;
            }
            let strong = symbol.st_bind() == elf::STB_GLOBAL;
            if !symbol.is_undefined(self.endian) {
                linkage.own_libstdcxx |= name == LIBSTDCXX;
                if let Some(module) = name.strip_prefix(b"PyInit_") {
                    linkage.module.get_or_insert_with(|| String::from_utf8_lossy(module).into_owned());
                }
            } else if strong && symbol.is_undefined(self.endian) {
                let version = versions.as_ref().and_then(|versions| {
                    let index = versions.version_index(self.endian, index);
                    versions.version(index.index()).ok().flatten()
                });
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                linkage.undefined.push(Undefined {
                    name: text(name),
                    library: version.and_then(object::read::elf::Version::file).map(text),
                    version: version.map(|version| text(version.name())),
                });
            }
        }
        Ok(())
    }

    fn needed_versions(&self, linkage: &mut Linkage) -> object::Result<()> {
        let Some((mut needs, link)) = self.sections.gnu_verneed(self.endian, self.data)? else { return Ok(()) };
        let strings = self.sections.strings(self.endian, self.data, link)?;
        while let Some((need, mut names)) = needs.next()? {
            let file = String::from_utf8_lossy(need.file(self.endian, strings)?).into_owned();
            let versions = linkage.versions.entry(file).or_default();
            while let Some(name) = names.next()? {
                versions.push(String::from_utf8_lossy(name.name(self.endian, strings)?).into_owned());
            }
            versions.sort();
        }
        Ok(())
    }
}

/// A search path with `$ORIGIN` replaced by the folder of the file that holds it.
pub(super) fn expand(path: &str, file: &Utf8Path) -> Utf8PathBuf {
    let folder = file.parent().unwrap_or(Utf8Path::new("/"));
    Utf8PathBuf::from(path.replace("${ORIGIN}", folder.as_str()).replace("$ORIGIN", folder.as_str()))
}
