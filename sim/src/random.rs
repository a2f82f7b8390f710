//! Randomness without a state: every number is a function of the seed and of what it is for.
//!
//! So the draw for a message does not depend on the order in which messages of one moment were looked at.

/// A mixed word: every input bit reaches every output bit.
#[inline]
pub(crate) const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A word drawn for `(what, a, b)` under `seed`.
#[inline]
pub(crate) const fn draw(seed: u64, what: u64, a: u64, b: u64) -> u64 {
    mix(mix(mix(mix(seed) ^ what) ^ a) ^ b)
}

/// The same as a number from 0 (inclusive) to 1 (exclusive).
#[inline]
pub(crate) fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// A fingerprint of bytes, eight at a time.
pub(crate) fn fingerprint(bytes: &[u8], mut state: u64) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        state = (state.rotate_left(23) ^ u64::from_le_bytes(eight)).wrapping_mul(PRIME);
    }
    for byte in words.remainder() {
        state = (state.rotate_left(23) ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
    mix(state ^ bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_on_all_they_are_for() {
        let base = draw(1, 2, 3, 4);
        for other in [
            draw(0, 2, 3, 4),
            draw(1, 0, 3, 4),
            draw(1, 2, 0, 4),
            draw(1, 2, 3, 0),
        ] {
            assert_ne!(base, other);
        }
        assert!((0..1000).all(|i| (0.0..1.0).contains(&unit(draw(7, 0, 0, i)))));
    }

    #[test]
    fn a_fingerprint_sees_every_byte_and_the_length() {
        let bytes: Vec<u8> = (0..29).collect();
        let base = fingerprint(&bytes, 0);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_ne!(fingerprint(&other, 0), base, "byte {at}");
        }
        assert_ne!(fingerprint(&bytes[..28], 0), base);
    }
}
