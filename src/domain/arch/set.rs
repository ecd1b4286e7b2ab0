//! A set of archs, each with what is built for it: machine code, PTX, or both.
//!
//! Invariant: no arch has an empty form. The text form is canonical (`7.5;8.6+PTX;compute_90`) and reads back to the
//! same set; it is what locks, keys and JSON hold.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Arch, Item, NotAnArch, Origin, parse_list};

/// What is built for an arch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Form {
    /// Machine code, which runs as it is.
    pub sass: bool,
    /// PTX, which the driver compiles for later GPUs.
    pub ptx: bool,
}

impl Form {
    /// Machine code alone.
    pub const SASS: Self = Self { sass: true, ptx: false };
    /// PTX alone.
    pub const PTX: Self = Self { sass: false, ptx: true };
    /// Machine code and PTX.
    pub const BOTH: Self = Self { sass: true, ptx: true };

    /// Everything that either holds.
    #[must_use]
    pub const fn merge(self, other: Self) -> Self {
        Self { sass: self.sass || other.sass, ptx: self.ptx || other.ptx }
    }
}

/// Archs and their forms, in one order.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchSet(BTreeMap<Arch, Form>);

impl ArchSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds to what is built for `arch`; an empty form adds nothing.
    pub fn insert(&mut self, arch: Arch, form: Form) {
        if form.sass || form.ptx {
            let slot = self.0.entry(arch).or_insert(form);
            *slot = slot.merge(form);
        }
    }

    /// Adds PTX of the highest plain arch, so that GPUs later than every member can start too.
    #[must_use]
    pub fn with_highest_ptx(mut self) -> Self {
        let highest = self.0.keys().rev().find(|arch| arch.variant == super::Variant::Plain).copied();
        if let Some(arch) = highest {
            self.insert(arch, Form::PTX);
        }
        self
    }

    /// Everything that either set holds.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        for (arch, form) in other.iter() {
            self.insert(arch, form);
        }
        self
    }

    /// The members for which `keep` says yes.
    #[must_use]
    pub fn filter(&self, mut keep: impl FnMut(Arch, Form) -> bool) -> Self {
        self.iter().filter(|&(arch, form)| keep(arch, form)).collect()
    }

    /// Archs and forms, in canonical order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Arch, Form)> + '_ {
        self.0.iter().map(|(arch, form)| (*arch, *form))
    }

    /// The archs that get machine code, in order.
    pub fn real(&self) -> impl DoubleEndedIterator<Item = Arch> + '_ {
        self.iter().filter(|(_, form)| form.sass).map(|(arch, _)| arch)
    }

    /// The archs that get PTX, in order.
    pub fn virtuals(&self) -> impl DoubleEndedIterator<Item = Arch> + '_ {
        self.iter().filter(|(_, form)| form.ptx).map(|(arch, _)| arch)
    }

    /// What is built for `arch`.
    pub fn get(&self, arch: Arch) -> Option<Form> {
        self.0.get(&arch).copied()
    }

    /// The member with the highest number.
    pub fn highest(&self) -> Option<Arch> {
        self.0.last_key_value().map(|(arch, _)| *arch)
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of archs.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<(Arch, Form)> for ArchSet {
    fn from_iter<I: IntoIterator<Item = (Arch, Form)>>(items: I) -> Self {
        let mut set = Self::new();
        for (arch, form) in items {
            set.insert(arch, form);
        }
        set
    }
}

impl fmt::Display for ArchSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (arch, form)) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            match (form.sass, form.ptx) {
                (true, true) => write!(f, "{separator}{arch}+PTX")?,
                (true, false) => write!(f, "{separator}{arch}")?,
                (false, _) => write!(f, "{separator}{}", arch.compute())?,
            }
        }
        Ok(())
    }
}

impl FromStr for ArchSet {
    type Err = NotAnArch;

    /// Reads a list of literal archs. Families, GPU names and `native` need facts and are refused here.
    fn from_str(text: &str) -> Result<Self, NotAnArch> {
        let refuse = || NotAnArch(text.to_owned());
        let items = parse_list(&Origin::argument("arch list"), text).map_err(|_| refuse())?;
        items
            .into_iter()
            .map(|spanned| match spanned.item {
                Item::Arch(arch, form) => Ok((arch, form)),
                _ => Err(refuse()),
            })
            .collect()
    }
}

impl Serialize for ArchSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ArchSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::{Capability, Variant};
    use super::*;

    /// Any set that the grammar can spell.
    pub(in super::super) fn sets() -> impl Strategy<Value = ArchSet> {
        proptest::collection::vec((20u16..=299, 0u8..3, 1u8..4), 0..12).prop_map(|rows| {
            rows.into_iter()
                .map(|(number, variant, form)| {
                    let capability = Capability::from_number(number).expect("in range");
                    let variant = [Variant::Plain, Variant::A, Variant::F][usize::from(variant)];
                    (Arch { capability, variant }, Form { sass: form & 1 != 0, ptx: form & 2 != 0 })
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn the_text_reads_back_to_the_same_set(set in sets()) {
            prop_assert_eq!(set.to_string().parse::<ArchSet>().unwrap(), set);
        }

        #[test]
        fn order_and_repetition_do_not_matter(set in sets(), seed in any::<u64>()) {
            let text = set.to_string();
            let mut items: Vec<&str> = text.split(';').collect();
            let shift = usize::try_from(seed % 97).unwrap() % items.len();
            items.rotate_left(shift);
            items.extend_from_within(..shift.min(items.len()));
            prop_assert_eq!(items.join(" ,; ").parse::<ArchSet>().unwrap(), set);
        }
    }

    #[test]
    fn plain_and_ptx_of_one_arch_merge() {
        let set: ArchSet = "8.6+PTX 7.5;8.6".parse().unwrap();
        assert_eq!(set.to_string(), "7.5;8.6+PTX");
        assert_eq!("sm_80,compute_80".parse::<ArchSet>().unwrap().to_string(), "8.0+PTX");
    }

    #[test]
    fn highest_ptx_skips_variants_that_run_nowhere_else() {
        let set: ArchSet = "8.0;9.0;9.0a".parse().unwrap();
        assert_eq!(set.with_highest_ptx().to_string(), "8.0;9.0+PTX;9.0a");
    }
}
