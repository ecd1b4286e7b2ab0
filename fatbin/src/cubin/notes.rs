//! The two notes that cubins of newer toolkits carry: the tool's name and command line, and the toolkit's version.
//!
//! Invariant: a note that does not have the expected shape tells nothing. Old cubins keep the version in the ELF header
//! instead, see `identity.rs`.

use crate::bytes::{text, u16_at, u32_at};
use crate::toolkit::{Producer, Toolkit};

/// Offsets of texts stand before the texts themselves.
const TEXTS: usize = 24;

/// The maker, from the first note of `.note.nv.tkinfo`.
pub(super) fn tool(section: &[u8]) -> Option<Producer> {
    let note = description(section)?;
    let texts = note.get(TEXTS..)?;
    let text_of = |field: usize| {
        let offset = usize::try_from(u32_at(note, field)).ok().filter(|&offset| offset != 0)?;
        Some(text(texts.get(offset..)?).trim().to_owned()).filter(|text| !text.is_empty())
    };
    Some(Producer {
        tool: text_of(8),
        toolkit: text_of(12).and_then(|banner| Toolkit::from_banner(&banner)),
        options: text_of(20),
    })
}

/// The toolkit, from `.note.nv.cuinfo`.
pub(super) fn toolkit(section: &[u8]) -> Option<Toolkit> {
    let note = description(section)?;
    Toolkit::from_tenths(u32::from(u16_at(note, 4)))
}

/// What the first note of a section says.
fn description(section: &[u8]) -> Option<&[u8]> {
    let size = |at| usize::try_from(u32_at(section, at)).ok();
    let start = size(0)?.checked_next_multiple_of(4)?.checked_add(12)?;
    section.get(start..)?.get(..size(4)?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn odd_notes_tell_nothing() {
        for section in [&[][..], &[0xff; 40], &[0; 12], &[4, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert!(super::tool(section).is_none());
            assert!(super::toolkit(section).is_none());
        }
    }
}
