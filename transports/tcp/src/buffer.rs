//! A byte buffer whose places agree with positions in a stream, and windows of gather lists.

use smallvec::SmallVec;
use unisono_contract::{Piece, Revoked};

use crate::wire::ALIGN;

/// Pieces of a gather list.
pub(crate) const PIECES: usize = 8;

/// A gather list in place: posting it allocates nothing.
pub(crate) type Pieces = SmallVec<[Piece; PIECES]>;

/// Bytes between two cursors. When it is empty it starts again, at a place that agrees mod 64 with
/// the position in the stream: the kernel's copies are twice as fast so.
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    capacity: usize,
    /// Place of the first byte whose address is a multiple of 64.
    base: usize,
    start: usize,
    end: usize,
}

impl Buffer {
    /// Room for `capacity` bytes, whatever the position. Its memory comes with the first
    /// [`restart`](Self::restart).
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            bytes: Box::default(),
            capacity,
            base: 0,
            start: 0,
            end: 0,
        }
    }

    /// Empties the buffer; the next byte has `position` in the stream.
    #[inline]
    pub(crate) fn restart(&mut self, position: u64) {
        if self.bytes.is_empty() {
            self.bytes = vec![0; self.capacity + 2 * ALIGN].into_boxed_slice();
            let over = self.bytes.as_ptr().addr() % ALIGN;
            self.base = (ALIGN - over) % ALIGN;
        }
        self.start = self.base + (position % ALIGN as u64) as usize;
        self.end = self.start;
    }

    /// What is in it.
    #[inline]
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Drops `bytes` at the front.
    #[inline]
    pub(crate) fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len());
        self.start += bytes;
    }

    /// Room behind the end.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.end..]
    }

    /// Takes `bytes` of the room as filled.
    #[inline]
    pub(crate) fn extend(&mut self, bytes: usize) {
        debug_assert!(self.end + bytes <= self.bytes.len());
        self.end += bytes;
    }

    /// Moves what is in it to the front, when little room is left; places agree as before.
    pub(crate) fn make_room(&mut self, bytes: usize) {
        if self.bytes.len() - self.end < bytes {
            let front = self.base + (self.start - self.base) % ALIGN;
            self.bytes.copy_within(self.start..self.end, front);
            self.end = front + self.len();
            self.start = front;
        }
    }
}

/// The bytes `from..from + bytes` of a gather list, as a gather list.
pub(crate) fn window(pieces: &[Piece], mut from: usize, mut bytes: usize) -> Pieces {
    let mut window = Pieces::new();
    for piece in pieces {
        if from >= piece.len() {
            from -= piece.len();
            continue;
        }
        if bytes == 0 {
            break;
        }
        let take = bytes.min(piece.len() - from);
        window.push(piece.slice(from..from + take));
        (from, bytes) = (0, bytes - take);
    }
    window
}

/// Copies `bytes` to the position `from` of a gather list.
pub(crate) fn scatter(bytes: &[u8], into: &[Piece], mut from: usize) -> Result<(), Revoked> {
    let mut left = bytes;
    for piece in into {
        if from >= piece.len() {
            from -= piece.len();
            continue;
        }
        if left.is_empty() {
            break;
        }
        let (now, later) = left.split_at(left.len().min(piece.len() - from));
        piece.write(|room| room[from..from + now.len()].copy_from_slice(now))?;
        (from, left) = (0, later);
    }
    Ok(())
}

/// Copies a gather list to the front of `room`.
pub(crate) fn gather(pieces: &[Piece], room: &mut [u8]) -> Result<(), Revoked> {
    let mut at = 0;
    for piece in pieces {
        piece.read(|bytes| room[at..at + bytes.len()].copy_from_slice(bytes))?;
        at += piece.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_contract::memory::{lend, lend_shared};

    #[test]
    fn places_agree_with_positions() {
        let mut buffer = Buffer::new(1024);
        for position in [0, 1, 63, 64, 1000] {
            buffer.restart(position);
            assert!(buffer.room().len() >= 1024);
            let address = buffer.room().as_ptr().addr() as u64;
            assert_eq!(address % 64, position % 64);
        }
    }

    #[test]
    fn making_room_keeps_bytes_and_agreement() {
        let mut buffer = Buffer::new(256);
        buffer.restart(5);
        buffer.room()[..240].copy_from_slice(&[7; 240]);
        buffer.extend(240);
        buffer.consume(200);
        let place = buffer.filled().as_ptr().addr() % 64;
        buffer.make_room(128);
        assert!(buffer.room().len() >= 128);
        assert_eq!(buffer.filled(), [7; 40]);
        assert_eq!(buffer.filled().as_ptr().addr() % 64, place);
    }

    #[test]
    fn windows_and_copies_cross_the_cuts_of_a_list() {
        let source: Vec<u8> = (0..100).collect();
        lend_shared(&source, |source| {
            let list = [
                source.slice(0..10),
                source.slice(10..10),
                source.slice(10..37),
                source.slice(37..100),
            ];
            for (from, bytes) in [(0, 100), (5, 10), (10, 27), (36, 2), (99, 1), (100, 0)] {
                let mut copy = vec![0; bytes];
                gather(&window(&list, from, bytes), &mut copy).unwrap();
                assert!(copy.iter().map(|b| usize::from(*b)).eq(from..from + bytes));
            }
        });
        let mut target = [0u8; 20];
        lend(&mut target, |target| {
            let list = [target.slice(0..3), target.slice(3..9), target.slice(9..20)];
            scatter(&[1; 8], &list, 2).unwrap();
        });
        assert_eq!(target[..2], [0; 2]);
        assert_eq!(target[2..10], [1; 8]);
        assert_eq!(target[10..], [0; 10]);
    }
}
