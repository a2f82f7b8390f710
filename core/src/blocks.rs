//! Cutting a count of elements, in 64 bits and without overflow.

use std::ops::Range;

use crate::Collective;

/// `count` elements in `parts` balanced blocks: block i is `i*count/parts .. (i+1)*count/parts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cut {
    count: u64,
    parts: u64,
    quotient: u64,
    remainder: u64,
}

impl Cut {
    /// A cut of `count` elements into `parts` blocks (`parts` 0 counts as 1; at most 2^32).
    pub const fn new(count: u64, parts: u64) -> Cut {
        let parts = if parts == 0 { 1 } else { parts };
        Cut {
            count,
            parts,
            quotient: count / parts,
            remainder: count % parts,
        }
    }

    /// First element of block `i`; `i` may be `parts`, giving the end of the last one.
    #[inline]
    pub const fn start(&self, i: u64) -> u64 {
        // i*count/parts with count = q*parts + r: no product exceeds 64 bits while parts <= 2^32.
        if self.remainder == 0 {
            i * self.quotient
        } else {
            i * self.quotient + i * self.remainder / self.parts
        }
    }

    /// Elements of block `i`.
    #[inline]
    pub const fn len(&self, i: u64) -> u64 {
        if self.remainder == 0 {
            self.quotient
        } else {
            self.start(i + 1) - self.start(i)
        }
    }

    /// Whether there is nothing to cut.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Elements of blocks `first .. first + len`, wrapping at the last block.
    #[inline]
    pub const fn span(&self, first: u64, len: u64) -> u64 {
        let end = first + len;
        if end <= self.parts {
            self.start(end) - self.start(first)
        } else {
            self.count - self.start(first) + self.start(end - self.parts)
        }
    }

    /// The elements of block `i`.
    pub const fn range(&self, i: u64) -> Range<u64> {
        self.start(i)..self.start(i + 1)
    }

    /// How many elements are cut.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Into how many blocks.
    pub const fn parts(&self) -> u64 {
        self.parts
    }
}

/// Elements of segment `segment` of `segments` of a message of `elements` elements of `element_bytes` bytes each.
///
/// The cuts are `s * elements / segments`, rounded up to multiples of 64 bytes: they are monotone, the last segment ends
/// at `elements`, the first is empty only if the message is, and none is longer than its exact share plus 64 bytes.
/// Both ends of a message, the evaluator and the engine cut by this function.
///
/// ```
/// use unisono_core::blocks::segment_range;
///
/// // 100 f32 in 4 segments: 25 elements each, but cut at multiples of 16 elements.
/// let cuts: Vec<_> = (0..4).map(|s| segment_range(100, 4, 4, s)).collect();
/// assert_eq!(cuts, [0..32, 32..64, 64..80, 80..100]);
/// ```
#[inline]
pub fn segment_range(elements: u64, element_bytes: u64, segments: u64, segment: u64) -> Range<u64> {
    if segments <= 1 {
        return 0..elements;
    }
    let (quotient, remainder) = (elements / segments, elements % segments);
    let unit = (64 / element_bytes.max(1)).max(1);
    let at = |s: u64| match s {
        0 => 0,
        s if s >= segments => elements,
        s => {
            // No product exceeds 64 bits while there are fewer than 2^32 segments.
            let exact = s * quotient + (s * remainder).div_ceil(segments);
            (exact.div_ceil(unit) * unit).min(elements)
        }
    };
    at(segment)..at(segment + 1)
}

/// The sizes of every block of one call, in elements.
///
/// `blocks` is what the algorithm asked for (or the rows of a table), `subs` the number of independent copies
/// (channels and parts) that each block is cut into again. The index of sub-block `s` of block `b` is
/// `s * blocks + b`; indices from `blocks * subs` on are private scratch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    vector: bool,
    blocks: u64,
    subs: u64,
    outer: Cut,
    row: Cut,
}

impl Shape {
    /// Shape of a call of `collective` with `count` elements (of the vector, or of one row).
    pub fn new(collective: Collective, count: u64, blocks: u64, subs: u32) -> Shape {
        let subs = u64::from(subs.max(1));
        let vector = collective.cuts_a_vector();
        Shape {
            vector,
            blocks,
            subs,
            outer: Cut::new(count, blocks),
            row: Cut::new(count, subs),
        }
    }

    /// Number of blocks in each copy.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Number of copies.
    pub const fn subs(&self) -> u64 {
        self.subs
    }

    /// The first index that is private scratch.
    pub const fn data_indices(&self) -> u64 {
        self.blocks * self.subs
    }

    /// First element of block `b` (0..=blocks) in a buffer that holds all of them.
    #[inline]
    pub const fn block_start(&self, b: u64) -> u64 {
        if self.vector {
            self.outer.start(b)
        } else {
            b * self.outer.count()
        }
    }

    /// Elements of whole block `b`.
    #[inline]
    pub const fn block_len(&self, b: u64) -> u64 {
        if self.vector {
            self.outer.len(b)
        } else {
            self.outer.count()
        }
    }

    /// The elements of sub-block `sub` of `block`, counted from the start of that block.
    #[inline]
    pub const fn within(&self, sub: u64, block: u64) -> Range<u64> {
        if self.subs == 1 {
            0..self.block_len(block)
        } else if self.vector {
            Cut::new(self.outer.len(block), self.subs).range(sub)
        } else {
            self.row.range(sub)
        }
    }

    /// Elements of the data index `index`.
    #[inline]
    pub const fn len(&self, index: u64) -> u64 {
        if self.subs == 1 {
            return self.block_len(index);
        }
        let range = self.within(index / self.blocks, index % self.blocks);
        range.end - range.start
    }

    /// Whether no block has any element.
    pub const fn is_empty(&self) -> bool {
        self.outer.is_empty() || self.blocks == 0
    }

    /// Elements of `len` consecutive blocks from data index `first`, wrapping inside the copy that `first` is in.
    #[inline]
    pub const fn span(&self, first: u64, len: u64) -> u64 {
        if self.subs == 1 {
            return if !self.vector {
                len * self.outer.count()
            } else if len == 1 {
                self.outer.len(first)
            } else {
                self.outer.span(first, len)
            };
        }
        if !self.vector {
            return len * self.row.len(first / self.blocks);
        }
        let (sub, block) = (first / self.blocks, first % self.blocks);
        let (mut sum, mut k) = (0, 0);
        while k < len {
            let range = self.within(sub, (block + k) % self.blocks);
            sum += range.end - range.start;
            k += 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_tile_the_message_at_multiples_of_64_bytes() {
        for bytes in [1, 2, 4, 8] {
            let unit = 64 / bytes;
            for elements in [0, 1, 15, 16, 17, 100, 1000, 4096, 5_000_003, u64::MAX / 64] {
                for segments in 1..9 {
                    let mut at = 0;
                    for s in 0..segments {
                        let r = segment_range(elements, bytes, segments, s);
                        assert!(
                            r.start == at && r.end >= at,
                            "{elements} {bytes} {segments} {s}"
                        );
                        assert!(r.end.is_multiple_of(unit) || r.end == elements);
                        assert!(r.end - r.start <= elements / segments + unit);
                        assert!(
                            s > 0 || elements == 0 || r.end > 0,
                            "message 0 carries data"
                        );
                        at = r.end;
                    }
                    assert_eq!(at, elements);
                }
            }
        }
    }
}
