//! The records of `.nv.info` and `.nv.compat`: a format byte, an attribute byte, and a short or a long value.
//!
//! Invariant: a record that does not lie whole in its section ends the walk; unknown attributes are passed over.

use crate::bytes::{u16_at, u32_at};

const FORMAT_LONG: u8 = 4;

pub(super) struct Record<'a> {
    pub(super) attribute: u8,
    pub(super) value: Value<'a>,
}

pub(super) enum Value<'a> {
    Short(u16),
    Long(&'a [u8]),
}

pub(super) struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    pub(super) fn new(section: &'a [u8]) -> Self {
        Self { rest: section }
    }

    /// Whether all of the section was records.
    pub(super) fn is_spent(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let (head, rest) = self.rest.split_at_checked(4)?;
        let short = u16_at(head, 2);
        let (value, rest) = if head[0] == FORMAT_LONG {
            let (data, rest) = rest.split_at_checked(usize::from(short))?;
            (Value::Long(data), rest)
        } else {
            (Value::Short(short), rest)
        };
        self.rest = rest;
        Some(Record { attribute: head[1], value })
    }
}

/// The low byte of a short value.
pub(super) fn short(record: &Record) -> Option<u8> {
    match record.value {
        Value::Short(value) => Some(value.to_le_bytes()[0]),
        Value::Long(_) => None,
    }
}

/// A value that belongs to one symbol: the symbol's index and the value.
pub(super) fn of_symbol(record: &Record) -> Option<(u32, u32)> {
    match record.value {
        Value::Long(data) if data.len() >= 8 => Some((u32_at(data, 0), u32_at(data, 4))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Records, of_symbol, short};

    #[test]
    fn short_and_long_records_stand_in_one_row() {
        let mut records = Records::new(&[2, 9, 1, 0, 4, 0x2f, 8, 0, 11, 0, 0, 0, 24, 0, 0, 0]);
        let first = records.next().unwrap();
        assert_eq!((first.attribute, short(&first)), (9, Some(1)));
        let second = records.next().unwrap();
        assert_eq!((second.attribute, of_symbol(&second)), (0x2f, Some((11, 24))));
        assert!(records.next().is_none() && records.is_spent());
    }

    #[test]
    fn a_record_past_the_end_ends_the_walk() {
        let mut records = Records::new(&[4, 0x2f, 0xff, 0xff, 0, 0]);
        assert!(records.next().is_none() && !records.is_spent());
    }
}
