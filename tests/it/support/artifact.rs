//! Files to judge, made on the spot: fatbins with any archs, libraries that hold them, wheels.

use std::io::{Read as _, Write as _};
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

/// One image for the device code of a file: `sm_86`, `sm_90a`, `compute_80`; PTX of ISA 8.0.
pub fn fatbin(images: &[&str]) -> Vec<u8> {
    let mut entries = Vec::new();
    for image in images {
        let (kind, minor, major, name) = match image.strip_prefix("compute_") {
            Some(name) => (1u16, 0u16, 8u16, name),
            None => (2, 7, 1, image.strip_prefix("sm_").unwrap()),
        };
        let number: u32 = name.trim_end_matches(['a', 'f']).parse().unwrap();
        let suffix = match name.as_bytes().last() {
            Some(b'a') => 0x10_0000u64,
            Some(b'f') => 0x20_0000,
            _ => 0,
        };
        let mut header = vec![0u8; 64];
        header[0..2].copy_from_slice(&kind.to_le_bytes());
        header[2..4].copy_from_slice(&0x0101u16.to_le_bytes());
        header[4..8].copy_from_slice(&64u32.to_le_bytes());
        header[8..16].copy_from_slice(&8u64.to_le_bytes());
        header[24..26].copy_from_slice(&minor.to_le_bytes());
        header[26..28].copy_from_slice(&major.to_le_bytes());
        header[28..32].copy_from_slice(&number.to_le_bytes());
        header[40..48].copy_from_slice(&(0x11 | suffix).to_le_bytes());
        entries.extend(header);
        entries.extend([0u8; 8]);
    }
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    bytes.extend((entries.len() as u64).to_le_bytes());
    bytes.extend(entries);
    bytes
}

/// A shared library to be linked by the system's compiler.
#[derive(Default)]
pub struct Library<'a> {
    /// C source.
    pub source: &'a str,
    /// Fatbins, each a list of images.
    pub fatbins: &'a [&'a [&'a str]],
    /// Further arguments of the link.
    pub link: &'a [&'a str],
}

impl Library<'_> {
    /// Links it as `path`.
    pub fn write(&self, path: &Utf8Path) -> Utf8PathBuf {
        let folder = path.parent().unwrap();
        fs_err::create_dir_all(folder).unwrap();
        let work = tempfile::tempdir().unwrap();
        let work = Utf8Path::from_path(work.path()).unwrap();
        fs_err::write(work.join("a.c"), self.source).unwrap();
        let code: Vec<u8> = self.fatbins.iter().flat_map(|images| fatbin(images)).collect();
        let mut assembly = String::new();
        if !code.is_empty() {
            fs_err::write(work.join("code.fatbin"), code).unwrap();
            assembly = format!(".section .nv_fatbin,\"a\"\n.balign 8\n.incbin \"{work}/code.fatbin\"\n");
        }
        assembly.push_str(".section .note.GNU-stack,\"\",@progbits\n");
        fs_err::write(work.join("b.s"), assembly).unwrap();
        let linked = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-w", "-o", path.as_str()])
            .args([work.join("a.c"), work.join("b.s")])
            .args(self.link)
            .output()
            .unwrap();
        assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
        path.to_owned()
    }
}

/// A wheel of the given members, with the metadata that its name calls for unless they bring some.
pub fn wheel(path: &Utf8Path, members: &[(&str, &[u8])]) -> Utf8PathBuf {
    let mut zip = zip::ZipWriter::new(fs_err::File::create(path).unwrap());
    let described = members.iter().any(|(name, _)| name.contains(".dist-info/"));
    let parts: Vec<&str> = path.file_stem().unwrap().split('-').collect();
    if let ([name, version, tag @ ..], false) = (parts.as_slice(), described) {
        let texts = [
            ("METADATA", format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")),
            ("WHEEL", format!("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {}\n", tag.join("-"))),
        ];
        for (file, text) in texts {
            let inner = format!("{name}-{version}.dist-info/{file}");
            zip.start_file(inner, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
    }
    for (name, bytes) in members {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
    path.to_owned()
}

/// Gives a wheel another package name, in its file name, its `.dist-info` and its `METADATA`; the old file goes.
pub fn rename(from: &Utf8Path, package: &str) -> Utf8PathBuf {
    let (old, rest) = from.file_name().unwrap().split_once('-').unwrap();
    let to = from.with_file_name(format!("{package}-{rest}"));
    let mut archive = zip::ZipArchive::new(fs_err::File::open(from).unwrap()).unwrap();
    let mut members = Vec::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).unwrap();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        let name = member.name().unwrap().into_owned();
        if let Some(folder) = name.strip_prefix(old).filter(|rest| rest.contains(".dist-info/")) {
            if name.ends_with("/METADATA") {
                let text = String::from_utf8(bytes).unwrap();
                let line = text.lines().find(|line| line.starts_with("Name: ")).unwrap();
                bytes = text.replacen(line, &format!("Name: {package}"), 1).into_bytes();
            }
            members.push((format!("{package}{folder}"), bytes));
        } else {
            members.push((name, bytes));
        }
    }
    let parts: Vec<(&str, &[u8])> = members.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    fs_err::remove_file(from).unwrap();
    wheel(&to, &parts)
}
