//! One arch in any tool's spelling: prefix, number, suffix, form. A slip gets the legal form nearest to it.
//!
//! Works on text only, never through floating point, so no digit is lost or made up.

use super::{Fault, LOST_ZERO, MALFORMED};
use crate::domain::arch::{Arch, Form, literal};

/// How the kind of code was written in front of the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    None,
    Real,
    Virtual,
}

/// How it was written behind the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suffix {
    None,
    PlusPtx,
    Real,
    Virtual,
}

/// Whether a lower-case word is meant as an arch rather than a name.
pub(super) fn looks_like_one(lower: &str) -> bool {
    let (prefix, body) = split_prefix(lower);
    prefix != Prefix::None || body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// Reads `word`, whose lower-case form is `lower`.
pub(super) fn read(word: &str, lower: &str) -> Result<(Arch, Form), Fault> {
    let (prefix, rest) = split_prefix(lower);
    let (body, suffix) = split_suffix(rest);
    let Some(arch) = number(prefix, body) else { return Err(fault(word, prefix, body, suffix)) };
    let form = match (prefix, suffix) {
        (Prefix::None | Prefix::Real, Suffix::None) | (Prefix::None, Suffix::Real) => Form::SASS,
        (Prefix::None | Prefix::Real, Suffix::PlusPtx) => Form::BOTH,
        (Prefix::None, Suffix::Virtual) | (Prefix::Virtual, Suffix::None) => Form::PTX,
        (Prefix::Real, Suffix::Real | Suffix::Virtual) | (Prefix::Virtual, _) => return Err(mixed(word, arch, suffix)),
    };
    Ok((arch, form))
}

fn split_prefix(lower: &str) -> (Prefix, &str) {
    for (name, prefix) in [("sm", Prefix::Real), ("compute", Prefix::Virtual)] {
        let Some(rest) = lower.strip_prefix(name) else { continue };
        if let Some(body) = rest.strip_prefix(['_', '-']) {
            return (prefix, body);
        }
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            return (prefix, rest);
        }
    }
    (Prefix::None, lower)
}

fn split_suffix(rest: &str) -> (&str, Suffix) {
    let named = [("+ptx", Suffix::PlusPtx), ("-real", Suffix::Real), ("-virtual", Suffix::Virtual)];
    named
        .iter()
        .find_map(|(name, suffix)| rest.strip_suffix(name).map(|body| (body, *suffix)))
        .unwrap_or((rest, Suffix::None))
}

/// Compilers write no dot behind `sm_`; everyone else may write either.
fn number(prefix: Prefix, body: &str) -> Option<Arch> {
    let dotted = if prefix == Prefix::None { literal::dotted_arch(body) } else { None };
    dotted.or_else(|| literal::joined(body))
}

fn mixed(word: &str, arch: Arch, suffix: Suffix) -> Fault {
    let help = match suffix {
        Suffix::PlusPtx => format!("write `{arch}+PTX` for machine code and PTX, `{}` for PTX alone", arch.compute()),
        _ => format!("write `{arch}` for machine code, `{}` for PTX alone, `{arch}+PTX` for both", arch.compute()),
    };
    Fault {
        code: MALFORMED,
        message: format!("`{word}` says twice what kind of code to build"),
        label: "prefix and suffix".to_owned(),
        why: None,
        help,
    }
}

fn fault(word: &str, prefix: Prefix, body: &str, suffix: Suffix) -> Fault {
    // `8.6PTX` and `8.6-ptx`: the plus sign was forgotten, and what it asks for must not be lost with it.
    let (body, suffix) = match body.strip_suffix("ptx").filter(|_| suffix == Suffix::None) {
        Some(rest) => (rest.trim_end_matches(['+', '-', '_']), Suffix::PlusPtx),
        None => (body, suffix),
    };
    lost_zero(word, body, suffix).unwrap_or_else(|| {
        let digits = body.bytes().take_while(u8::is_ascii_digit).count();
        let (label, help) = if digits >= 4 {
            let help = "write a product by name, such as `rtx-4090`, and an arch as `8.6`".to_owned();
            ("too long for an arch", help)
        } else if let Some(form) = nearest(prefix, body, suffix) {
            ("not an arch", format!("did you mean `{form}`?"))
        } else {
            ("not an arch", "write an arch like `8.6`, `9.0a` or `8.6+PTX`".to_owned())
        };
        Fault {
            code: MALFORMED,
            message: format!("`{word}` is no arch"),
            label: label.to_owned(),
            why: Some("an arch is a generation, a dot and one digit, then perhaps `a` or `f`".to_owned()),
            help,
        }
    })
}

/// `8`, `10` and `12` are what number-typed YAML and TOML leave of `8.0`, `10.0` and `12.0`.
fn lost_zero(word: &str, body: &str, suffix: Suffix) -> Option<Fault> {
    let (digits, variant) = literal::split_variant(body);
    let lost = digits.bytes().all(|b| b.is_ascii_digit())
        && match digits.len() {
            1 => true,
            2 => digits.starts_with('1'),
            _ => false,
        };
    let meant = literal::dotted(&format!("{digits}.0")).filter(|_| lost)?;
    let ptx = if suffix == Suffix::PlusPtx { "+PTX" } else { "" };
    Some(Fault {
        code: LOST_ZERO,
        message: format!("`{word}` has lost its minor digit"),
        label: "no minor digit".to_owned(),
        why: Some("YAML and TOML read an unquoted 8.0 as a number and drop the zero".to_owned()),
        help: format!("did you mean `{meant}{}{ptx}`? quote it in YAML and TOML", variant.suffix()),
    })
}

/// The longest legal beginning of the number, in the spelling that was used; else the dot moved.
fn nearest(prefix: Prefix, body: &str, suffix: Suffix) -> Option<String> {
    let compact: String = body.chars().filter(|c| *c != '.').collect();
    let cut = |text: &str| text.char_indices().rev().map(|(at, c)| text[..at + c.len_utf8()].to_owned()).collect();
    let mut tries: Vec<String> = cut(body);
    if body.ends_with('.') {
        tries.insert(0, format!("{body}0"));
    } else if body.starts_with("1.") {
        tries.insert(0, format!("{compact}.0"));
    }
    tries.extend::<Vec<String>>(cut(&compact));
    let arch = tries.iter().find_map(|text| literal::dotted_arch(text).or_else(|| literal::joined(text)))?;
    let form = match prefix {
        Prefix::None => arch.to_string(),
        Prefix::Real => arch.sm(),
        Prefix::Virtual => arch.compute(),
    };
    Some(if suffix == Suffix::PlusPtx { format!("{form}+PTX") } else { form })
}
