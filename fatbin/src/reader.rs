//! The one door to the outside: positioned reads from something with a size.
//!
//! Invariant: an implementation needs no shared cursor, so one reader can serve many threads. Opening files, and
//! looking into zip archives such as wheels, is left to the caller.

use std::io;

/// Something that can be read at any position, such as a file or bytes in memory.
pub trait ReadAt {
    /// The size in bytes.
    ///
    /// A size larger than what [`ReadAt::read_at`] delivers does no harm: the missing part counts as truncated.
    ///
    /// # Errors
    /// Whatever the medium reports.
    fn size(&self) -> io::Result<u64>;

    /// Reads into `buffer` from `offset` bytes after the start, and returns how many bytes were read.
    ///
    /// Fewer bytes than asked for are fine; 0 means that `offset` is at or past the end.
    ///
    /// # Errors
    /// Whatever the medium reports; [`io::ErrorKind::Interrupted`] is tried again.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl<R: ReadAt + ?Sized> ReadAt for &R {
    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, buffer)
    }
}

impl ReadAt for [u8] {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        self.as_slice().size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(offset, buffer)
    }
}

#[cfg(unix)]
impl ReadAt for std::fs::File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }
}

/// Windows moves the file's cursor along with a positioned read; nothing here relies on the cursor.
#[cfg(windows)]
impl ReadAt for std::fs::File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::ReadAt;

    #[test]
    fn a_read_past_the_end_is_empty_and_one_across_it_is_short() {
        let bytes: &[u8] = b"abcdef";
        let mut buffer = [0; 4];
        assert_eq!(bytes.read_at(4, &mut buffer).unwrap(), 2);
        assert_eq!(&buffer[..2], b"ef");
        assert_eq!(bytes.read_at(6, &mut buffer).unwrap(), 0);
        assert_eq!(bytes.read_at(u64::MAX, &mut buffer).unwrap(), 0);
    }
}
