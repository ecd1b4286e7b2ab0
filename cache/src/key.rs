//! The name of an entry: a sha256, always spelled as 64 lower-case hex digits.
//!
//! Invariant: one key has one spelling, so that it can be a folder name and be compared as text.
//! What is hashed is decided by the caller; see `json` for how a value becomes bytes.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

const DIGITS: usize = 64;

/// A sha256 that names an entry or vouches for a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(String);

impl Key {
    /// The whole key in hex.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve digits: enough for a person, not for a path.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }

    /// The name of the lock that the one builder of this key holds.
    pub fn lock_name(&self) -> String {
        format!("{}{self}", crate::layout::KEY_LOCK_PREFIX)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Key {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for Key {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        if text.len() == DIGITS && is_lower_hex(&text) { Ok(Self(text)) } else { Err(Error::BadKey { text }) }
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0
    }
}

/// The sha256 of `bytes`.
pub fn digest(bytes: &[u8]) -> Key {
    finish(Sha256::new_with_prefix(bytes))
}

pub(crate) fn finish(hasher: Sha256) -> Key {
    Key(hex::encode(hasher.finalize()))
}

pub(crate) fn check_prefix(text: &str) -> Result<()> {
    if (1..=DIGITS).contains(&text.len()) && is_lower_hex(text) {
        Ok(())
    } else {
        Err(Error::BadPrefix { text: text.to_owned() })
    }
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_the_published_sha256_of_abc() {
        assert_eq!(digest(b"abc").as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_key_survives_display_and_parse() {
        let key = digest(b"anything");
        assert_eq!(key.to_string().parse::<Key>().unwrap(), key);
        assert!(key.to_string().starts_with(key.short()));
        assert_eq!(key.short().len(), 12);
    }

    #[test]
    fn only_64_lower_case_hex_digits_are_a_key() {
        let good = "a".repeat(64);
        assert!(good.parse::<Key>().is_ok());
        for bad in [
            "",
            "abc",
            &good[1..],
            &good.to_uppercase(),
            &format!("{good}a"),
            &format!("{}g", &good[1..]),
            &format!("{}é", &good[2..]),
            &format!("{}/", &good[1..]),
        ] {
            assert!(matches!(bad.parse::<Key>(), Err(Error::BadKey { text }) if text == bad), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_bad_key_inside_json_is_an_error() {
        assert!(serde_json::from_str::<Key>("\"../../etc\"").is_err());
    }
}
