//! The two exact spellings of an arch, dotted (`8.6`, `9.0a`) and joined (`86`, `90a`), strictly.
//!
//! Invariant: one spelling, one value. No blanks, no leading zero, one digit after the dot, lower-case suffix.
//! What people write more loosely is the business of `parse`.

use super::{Arch, Capability, MAJORS, Variant};

/// `8.6`, `12.0`.
pub(super) fn dotted(text: &str) -> Option<Capability> {
    let (major, minor) = text.split_once('.')?;
    let major: u8 = plain_number(major)?.try_into().ok()?;
    let minor: u8 = plain_number(minor).filter(|_| minor.len() == 1)?.try_into().ok()?;
    MAJORS.contains(&major).then_some(Capability { major, minor })
}

/// `8.6`, `9.0a`, `10.0f`.
pub(super) fn dotted_arch(text: &str) -> Option<Arch> {
    let (number, variant) = split_variant(text);
    Some(Arch { capability: dotted(number)?, variant })
}

/// `86`, `90a`, `120f`. Two digits that begin with 1 are a lost `.0`, never 1.x.
pub(super) fn joined(text: &str) -> Option<Arch> {
    let (number, variant) = split_variant(text);
    let value = plain_number(number)?;
    let legal = number.len() == 3 || (number.len() == 2 && value >= 20);
    Some(Arch { capability: Capability::from_number(value).filter(|_| legal)?, variant })
}

/// The number without its suffix, and the suffix.
pub(super) fn split_variant(text: &str) -> (&str, Variant) {
    if let Some(number) = text.strip_suffix('a') {
        (number, Variant::A)
    } else if let Some(number) = text.strip_suffix('f') {
        (number, Variant::F)
    } else {
        (text, Variant::Plain)
    }
}

/// Digits only, without a leading zero, at most four of them.
fn plain_number(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    let leading = text.len() > 1 && text.starts_with('0');
    if digits && !leading { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_spelling_reads() {
        assert_eq!(dotted("12.0"), Some(Capability::new(12, 0)));
        for wrong in [
            "", ".", "8", "8.", ".6", "8.60", "08.6", "8.6 ", " 8.6", "8,6", "75.0", "0.8", "1.2", "8.6.1", "+8.6",
            "８.6",
        ] {
            assert_eq!(dotted(wrong), None, "{wrong:?}");
        }
        assert_eq!(joined("120f").map(|a| a.to_string()), Some("12.0f".to_owned()));
        for wrong in ["8", "10", "12", "19", "8.6", "860", "1200", "086", "86A", "86x", "a", ""] {
            assert_eq!(joined(wrong), None, "{wrong:?}");
        }
    }
}
