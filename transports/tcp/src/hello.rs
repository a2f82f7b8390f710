//! [`Hello`]: the first 32 bytes on a connection, by which members know each other.
//!
//! The rank that dials says who it is and which channel this becomes; the rank that listens
//! answers with a hello of its own. Whoever says anything else, or nothing in time, is a stranger.

use unisono_core::Rank;

/// Bytes of a hello.
pub(crate) const BYTES: usize = 32;
const MAGIC: &[u8; 8] = b"unisono\n";
/// Changes with anything that is said on a connection.
const VERSION: u16 = 1;

/// Who speaks to whom, in which group, about which channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) nonce: u64,
    pub(crate) from: Rank,
    pub(crate) to: Rank,
    pub(crate) channel: u16,
}

impl Hello {
    /// What the other end says to this.
    pub(crate) fn answer(self) -> Self {
        Self {
            from: self.to,
            to: self.from,
            ..self
        }
    }

    /// `"unisono\n"`, nonce u64, from u32, to u32, channel u16, version u16, zeros.
    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.nonce.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.from.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.to.to_le_bytes());
        bytes[24..26].copy_from_slice(&self.channel.to_le_bytes());
        bytes[26..28].copy_from_slice(&VERSION.to_le_bytes());
        bytes
    }

    /// `None`: whoever said this is no member, or not of this version.
    pub(crate) fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let (nonce, rest) = bytes.strip_prefix(MAGIC)?.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (to, rest) = rest.split_first_chunk()?;
        let (channel, rest) = rest.split_first_chunk()?;
        let (version, zeros) = rest.split_first_chunk()?;
        let known = u16::from_le_bytes(*version) == VERSION && zeros == [0; 4];
        known.then(|| Self {
            nonce: u64::from_le_bytes(*nonce),
            from: Rank::from_le_bytes(*from),
            to: Rank::from_le_bytes(*to),
            channel: u16::from_le_bytes(*channel),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_survives_the_way_and_nothing_else_is_one() {
        let hello = Hello {
            nonce: 0x0123_4567_89ab_cdef,
            from: 7,
            to: 3,
            channel: 1,
        };
        let bytes = hello.encode();
        assert_eq!(Hello::decode(&bytes), Some(hello));
        assert_eq!(hello.answer().answer(), hello);
        // Neither another magic, nor another version, nor bytes without meaning.
        for place in (0..8).chain(26..BYTES) {
            let mut other = bytes;
            other[place] ^= 1;
            assert_eq!(Hello::decode(&other), None, "byte {place}");
        }
    }
}
