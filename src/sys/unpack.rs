//! How much an archive may unpack to: bytes, members, and the length and depth of their names.
//!
//! Counted while it streams, so that an archive made to fill a disk is refused early and costs little memory.

use std::io::{self, Read};

/// Most bytes, whatever the archive's size.
pub const BYTES: u64 = 16 << 30;
/// Most members, links and folders included.
pub const MEMBERS: usize = 500_000;
/// Longest name of a member, in bytes. Linux itself ends at 4,096 for a whole path.
const NAME: usize = 2_000;
/// Deepest nesting of folders.
const DEPTH: usize = 100;
/// Most bytes out of one byte in. Deflate ends at 1,032; real sources and wheels stay below 100.
const RATIO: u64 = 300;
/// Up to this many bytes the ratio does not count, as small archives may have long runs of blanks.
const RATIO_FROM: u64 = 256 << 20;

/// What is left of the limits of one archive.
#[derive(Debug)]
pub struct Room {
    most: u64,
    left: u64,
    members: usize,
}

impl Room {
    /// Of an archive of this many bytes.
    pub fn of(packed: u64) -> Self {
        let most = BYTES.min(RATIO_FROM.max(packed.saturating_mul(RATIO)));
        Self { most, left: most, members: MEMBERS }
    }

    /// Takes one more member with this name.
    ///
    /// # Errors
    /// Too many members, or a name that is too long, too deep, or holds a control character; says which.
    pub fn member(&mut self, name: &str) -> Result<(), String> {
        self.members = self.members.checked_sub(1).ok_or_else(|| format!("it has more than {MEMBERS} members"))?;
        if name.len() > NAME || name.bytes().filter(|byte| *byte == b'/').count() > DEPTH {
            let shown: String = name.chars().take(100).collect();
            return Err(format!("the name `{shown}…` is longer than {NAME} bytes or {DEPTH} folders"));
        }
        if name.chars().any(char::is_control) {
            return Err(format!("the name {name:?} holds a control character"));
        }
        Ok(())
    }

    /// A reader of one member that ends with an error, not with a part, where the archive's bytes are used up.
    pub fn reader<R: Read>(&mut self, member: R) -> Counted<'_, R> {
        Counted { room: self, member }
    }
}

/// A member whose bytes count.
#[derive(Debug)]
pub struct Counted<'a, R> {
    room: &'a mut Room,
    member: R,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.member.read(buffer)?;
        let room = &mut *self.room;
        room.left = room.left.checked_sub(count as u64).ok_or_else(|| {
            io::Error::other(format!("it unpacks to more than {} MiB, far beyond its size", room.most >> 20))
        })?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_kept() {
        let mut room = Room::of(10);
        let zeros = io::repeat(0).take(RATIO_FROM + 1);
        assert!(io::copy(&mut room.reader(zeros), &mut io::sink()).unwrap_err().to_string().contains("256 MiB"));
        assert_eq!(Room::of(1 << 40).most, BYTES);
        assert_eq!(Room::of(RATIO_FROM).most, BYTES);
        let mut room = Room::of(10);
        assert!(room.member("a/b.py").is_ok());
        assert!(room.member(&"d/".repeat(DEPTH + 1)).is_err());
        assert!(room.member(&"d".repeat(NAME + 1)).is_err());
        assert!(room.member("new\nline").is_err());
        room.members = 0;
        assert!(room.member("one more").is_err());
    }
}
