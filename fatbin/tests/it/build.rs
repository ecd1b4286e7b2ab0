//! Makes containers byte by byte, with every field open to lies.
//!
//! Nothing here is checked: tests ask for what no honest tool writes.

use std::iter::repeat_n;

fn pad(bytes: &mut Vec<u8>, to: usize) {
    let more = bytes.len().next_multiple_of(to) - bytes.len();
    bytes.extend(repeat_n(0, more));
}

/// One entry of a fatbin, or one record of a concatenated entry.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) kind: u16,
    pub(crate) arch: u32,
    pub(crate) flags: u64,
    pub(crate) name: &'static str,
    /// `None` for no options block.
    pub(crate) options: Option<&'static str>,
    /// Replaces the options block; its offset goes where theirs would.
    pub(crate) table: Option<Vec<u8>>,
    pub(crate) payload: Vec<u8>,
    pub(crate) compressed: u32,
    pub(crate) uncompressed: u64,
    /// Lies about the header size.
    pub(crate) header_size: Option<u32>,
    /// Lies about the payload size.
    pub(crate) size: Option<u64>,
}

impl Entry {
    pub(crate) fn new(kind: u16, arch: u32, payload: &[u8]) -> Self {
        Self {
            kind,
            arch,
            flags: 0x11,
            name: "",
            options: None,
            table: None,
            payload: payload.to_vec(),
            compressed: 0,
            uncompressed: 0,
            header_size: None,
            size: None,
        }
    }

    fn head(&self, header_size: u32, size: u64, options: u32) -> Vec<u8> {
        let name = if self.name.is_empty() { 0 } else { 64 };
        let mut bytes = Vec::new();
        bytes.extend(self.kind.to_le_bytes());
        bytes.extend(0x0101_u16.to_le_bytes());
        bytes.extend(header_size.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(self.compressed.to_le_bytes());
        bytes.extend(options.to_le_bytes());
        bytes.extend([8, 0, 1, 0]);
        bytes.extend(self.arch.to_le_bytes());
        bytes.extend(u32::to_le_bytes(name));
        bytes.extend(length(self.name.as_bytes()).to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(self.uncompressed.to_le_bytes());
        bytes
    }

    /// Texts behind the 64 bytes, and the offset of the options block.
    fn tail(&self) -> (Vec<u8>, u32) {
        let mut tail = Vec::new();
        if !self.name.is_empty() {
            tail.extend(self.name.as_bytes());
            tail.push(0);
            pad(&mut tail, 8);
        }
        let offset = 64 + length(&tail);
        if let Some(table) = &self.table {
            tail.extend(table);
        } else if let Some(options) = self.options {
            tail.extend((offset + 8).to_le_bytes());
            tail.extend(length(options.as_bytes()).to_le_bytes());
            tail.extend(options.as_bytes());
            tail.push(0);
        } else {
            return (tail, 0);
        }
        pad(&mut tail, 8);
        (tail, offset)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (tail, options) = self.tail();
        let mut payload = self.payload.clone();
        pad(&mut payload, 8);
        let size = self.size.unwrap_or(payload.len() as u64);
        let mut bytes = self.head(self.header_size.unwrap_or(64 + length(&tail)), size, options);
        bytes.extend(tail);
        bytes.extend(payload);
        bytes
    }

    /// As a record of a concatenated entry: the image lies at `offset` of the blob and has `size` bytes.
    pub(crate) fn record(&self, offset: u32, size: u64) -> Vec<u8> {
        let (tail, options) = self.tail();
        let mut bytes = self.head(offset, size, options);
        bytes.extend(tail);
        bytes
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("small")
}

/// The table of a concatenated entry.
pub(crate) fn table(records: &[Vec<u8>]) -> Vec<u8> {
    let records_size: usize = records.iter().map(Vec::len).sum();
    let mut bytes = Vec::new();
    bytes.extend(u32::try_from(records.len()).expect("few").to_le_bytes());
    bytes.extend(u32::try_from(records_size + 8).expect("small").to_le_bytes());
    bytes.extend(records.concat());
    bytes
}

/// A fatbin of `entries`.
pub(crate) fn fatbin(entries: &[Entry]) -> Vec<u8> {
    let body: Vec<u8> = entries.iter().flat_map(Entry::bytes).collect();
    fatbin_of(&body, body.len() as u64)
}

/// A fatbin with a given body that declares `size`.
pub(crate) fn fatbin_of(body: &[u8], size: u64) -> Vec<u8> {
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    bytes.extend(size.to_le_bytes());
    bytes.extend(body);
    bytes
}

/// An LZ4 block that holds `bytes` as literals.
pub(crate) fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes.len();
    if rest < 15 {
        return [&[u8::try_from(rest).expect("below 15") << 4], bytes].concat();
    }
    let mut block = vec![0xf0];
    rest -= 15;
    while rest >= 255 {
        block.push(255);
        rest -= 255;
    }
    block.push(u8::try_from(rest).expect("below 255"));
    block.extend(bytes);
    block
}

/// One member of a static archive; `name` is what stands in the header's first 16 bytes.
pub(crate) fn member(name: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = member_header(name, data.len() as u64);
    bytes.extend(data);
    if !data.len().is_multiple_of(2) {
        bytes.push(b'\n');
    }
    bytes
}

/// The header of a member that declares `size`.
pub(crate) fn member_header(name: &str, size: u64) -> Vec<u8> {
    format!("{name:16}{:12}{:6}{:6}{:8}{size:<10}`\n", 0, 0, 0, 644).into_bytes()
}

/// An ELF for x86-64 with the given sections (name, type, bytes) and a matching table at its end.
pub(crate) fn elf(sections: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut bytes = vec![0; 64];
    let mut table = vec![0; 64];
    let mut add = |names_at: usize, kind: u32, offset: usize, size: usize| {
        let mut header = vec![0; 64];
        header[0..4].copy_from_slice(&u32::try_from(names_at).expect("small").to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&(offset as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
        table.extend(header);
    };
    for (name, kind, data) in sections {
        pad(&mut bytes, 8);
        add(names.len(), *kind, bytes.len(), data.len());
        names.extend(name.as_bytes());
        names.push(0);
        bytes.extend(*data);
    }
    add(0, 3, bytes.len(), names.len());
    bytes.extend(&names);
    pad(&mut bytes, 8);
    let (table_at, count) = (bytes.len() as u64, u16::try_from(table.len() / 64).expect("few"));
    bytes.extend(table);
    bytes[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    bytes[16..20].copy_from_slice(&[1, 0, 62, 0]);
    bytes[40..48].copy_from_slice(&table_at.to_le_bytes());
    bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
    bytes[58..60].copy_from_slice(&64_u16.to_le_bytes());
    bytes[60..62].copy_from_slice(&count.to_le_bytes());
    bytes[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    bytes
}

/// A section table and bodies as Windows files have them, `at` being the offset of the file header.
fn coff(at: usize, sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0x64, 0x86];
    bytes.extend(u16::try_from(sections.len()).expect("few").to_le_bytes());
    bytes.extend([0; 16]);
    let start = at + 20 + 40 * sections.len();
    let mut bodies: Vec<u8> = Vec::new();
    for (name, data) in sections {
        let mut header = [0; 40];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[16..20].copy_from_slice(&length(data).to_le_bytes());
        header[20..24].copy_from_slice(&u32::try_from(start + bodies.len()).expect("small").to_le_bytes());
        bytes.extend(header);
        bodies.extend(*data);
    }
    bytes.extend(bodies);
    bytes
}

/// A Windows DLL without code of its own.
pub(crate) fn pe(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; 0x80];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c] = 0x80;
    bytes.extend(b"PE\0\0");
    bytes.extend(coff(0x84, sections));
    bytes
}

/// A Windows object file whose section names stand in its string table.
pub(crate) fn coff_object(name: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = coff(0, &[("/4", data)]);
    let strings = length(&bytes);
    bytes[8..12].copy_from_slice(&strings.to_le_bytes());
    bytes.extend((length(name.as_bytes()) + 5).to_le_bytes());
    bytes.extend(name.as_bytes());
    bytes.push(0);
    bytes
}
