//! Names that stand for several products: a chip (`GA102`) and a product series (`RTX 40 series`).
//!
//! A series is every `GeForce` product of the table whose number begins alike. It may hold chips of different
//! capability (one RTX 3050 is an Ada chip), so the answer is a list, one product for each capability.

use super::names::Words;

/// The chip that a query names, in upper case: `GA102`, `AD104`, `GK110B`.
pub(super) fn chip(query: &Words) -> Option<String> {
    let [word] = query.all() else { return None };
    let rest = word.strip_prefix(|c: char| c.is_ascii_alphabetic())?;
    let letters = rest.bytes().take_while(u8::is_ascii_lowercase).count();
    let digits = rest[letters..].bytes().take_while(u8::is_ascii_digit).count();
    // At most one letter follows the number of a chip: GK110B.
    let tail = &rest[letters + digits..];
    let chip = letters == 1 && digits == 3 && tail.len() <= 1 && tail.bytes().all(|b| b.is_ascii_lowercase());
    chip.then(|| word.to_uppercase())
}

/// Which numbers of products a series holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Series {
    /// How the number begins: `40`, `9`.
    prefix: String,
    /// How many digits the number has.
    digits: usize,
    /// `rtx`, `gtx`; `None` where the query names no line.
    line: Option<String>,
}

impl Series {
    /// Reads `RTX 40 series`, `40-series`, `RTX 40xx`, `GTX 900 series`; `None` for every other name.
    pub(super) fn of(query: &Words) -> Option<Self> {
        let marked = query.all().iter().any(|word| word == "series");
        let rest: Vec<&str> =
            query.all().iter().map(String::as_str).filter(|word| !["series", "geforce"].contains(word)).collect();
        let (line, number) = match *rest.as_slice() {
            [number] => (None, number),
            [line @ ("rtx" | "gtx"), number] => (Some(line.to_owned()), number),
            _ => return None,
        };
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (prefix, digits) = match number.strip_suffix("xx") {
            Some(prefix) if prefix.len() == 2 => (prefix, 4),
            Some(prefix) if prefix.len() == 1 => (prefix, 3),
            None if marked && number.len() == 2 => (number, 4),
            None if marked && number.len() == 3 => (number.strip_suffix("00")?, 3),
            _ => return None,
        };
        all_digits(prefix).then(|| Self { prefix: prefix.to_owned(), digits, line })
    }

    /// Whether a product of the table belongs to it.
    pub(super) fn holds(&self, row: &Words) -> bool {
        let words = row.all();
        let numbered =
            |word: &String| word.len() == self.digits && word.starts_with(&self.prefix) && word.parse::<u16>().is_ok();
        words.iter().any(|word| word == "geforce")
            && self.line.as_ref().is_none_or(|line| words.contains(line))
            && words.iter().any(numbered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_and_series_are_told_from_products() {
        let chip = |name: &str| chip(&Words::of(name));
        assert_eq!(chip("ga102").as_deref(), Some("GA102"));
        assert_eq!(chip("GK110B").as_deref(), Some("GK110B"));
        for product in ["GB10", "GB200 NVL72", "A100", "GH200 480GB", "RTX 4090", "GT 730"] {
            assert_eq!(chip(product), None, "{product}");
        }
        let series = |name: &str| Series::of(&Words::of(name));
        for name in ["RTX 40 series", "rtx-40-series", "GeForce RTX 40 Series", "RTX 40xx", "RTX40 series"] {
            let series = series(name).unwrap_or_else(|| panic!("{name}"));
            assert!(series.holds(&Words::of("GeForce RTX 4070 Ti")), "{name}");
            assert!(!series.holds(&Words::of("Quadro RTX 4000")), "{name}");
        }
        assert!(series("GTX 900 series").unwrap().holds(&Words::of("GeForce GTX 980")));
        for name in ["RTX 4090", "series", "RTX 4000 series", "A series", "40", "xx"] {
            assert_eq!(series(name), None, "{name}");
        }
    }
}
