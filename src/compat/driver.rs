//! Driver versions, such as 535.161.08, compared by number.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A driver's version on Linux.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverVersion {
    numbers: Vec<u16>,
    text: String,
}

impl DriverVersion {
    /// The branch: the first number.
    pub fn branch(&self) -> u16 {
        self.numbers.first().copied().unwrap_or_default()
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for DriverVersion {
    type Err = ();

    /// Two to four numbers; nothing else is a version, so no error text ever becomes one.
    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim();
        let part = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten();
        let numbers: Option<Vec<u16>> = text.split('.').map(part).collect();
        let numbers = numbers.filter(|n| (2..=4).contains(&n.len()) && n[0] >= 100).ok_or(())?;
        Ok(Self { numbers, text: text.to_owned() })
    }
}

impl Serialize for DriverVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DriverVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|()| serde::de::Error::custom(format!("`{text}` is no driver version")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_compare_by_number_and_texts_are_refused() {
        let driver = |text: &str| text.parse::<DriverVersion>();
        assert!(driver("535.161.08").unwrap() > driver("535.54.03").unwrap());
        assert!(driver("580.65.06").unwrap() < driver("1000.1").unwrap());
        assert_eq!(driver(" 535.161.08\n").unwrap().to_string(), "535.161.08");
        for wrong in ["", "535", "Failed to initialize NVML", "N/A", "[N/A]", "12.4", "535.x"] {
            assert!(driver(wrong).is_err(), "{wrong}");
        }
    }
}
