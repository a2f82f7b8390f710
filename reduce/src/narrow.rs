//! `f16` and `bf16` to `f32` and back, in integer arithmetic that compilers turn into vector code.
//!
//! Widening is exact; narrowing rounds to nearest, ties to even. Both give the bits that `half`
//! gives, which takes 10 to 80 times as long. NaN stays NaN and is quiet after narrowing.

/// The bits of `f32` below its sign.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// Infinity of `f32`, without sign; everything above is NaN.
const INFINITY: u32 = 0x7f80_0000;

/// `bf16` is the upper half of `f32`.
#[inline(always)]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest `bf16`.
#[inline(always)]
pub(crate) fn f32_to_bf16(value: f32) -> u16 {
    (round_to_bf16(value) >> 16) as u16
}

/// The nearest `bf16` in the upper half, and nothing of use in the lower.
#[inline(always)]
fn round_to_bf16(value: f32) -> u32 {
    let bits = value.to_bits();
    // Just under half a unit, and a little more where the result would be odd. The carry out of
    // the largest finite number makes infinity.
    let odd = (bits >> 16) & 1;
    let rounded = bits.wrapping_add(0x7fff + odd);
    // Rounding would turn some NaN into zero: keep it, with the quiet bit set.
    let quiet = bits | 0x0040_0000;
    if value.is_nan() { quiet } else { rounded }
}

/// Two `bf16` in one word, combined by `f`: without moving them to lanes of 32 bits and back,
/// which would be half of the work.
#[inline(always)]
pub(crate) fn on_bf16_pairs(a: u32, b: u32, f: impl Fn(f32, f32) -> f32) -> u32 {
    const UPPER: u32 = 0xffff_0000;
    let lower = f(f32::from_bits(a << 16), f32::from_bits(b << 16));
    let upper = f(f32::from_bits(a & UPPER), f32::from_bits(b & UPPER));
    (round_to_bf16(lower) >> 16) | (round_to_bf16(upper) & UPPER)
}

/// Exponents of `f32` have this much more bias than those of `f16`.
const REBIAS: u32 = (127 - 15) << 23;

/// The exact value of an `f16`.
#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    // Signed, since those are the comparisons which vector units have.
    let magnitude = i32::from(bits & 0x7fff);
    let shifted = (magnitude as u32) << 13;
    // Below 2^-14 an f16 counts units of 2^-24.
    let small = (magnitude as f32 * f32::from_bits((127 - 24) << 23)).to_bits();
    let normal = shifted + REBIAS;
    let infinite = shifted | INFINITY;
    let finite = if magnitude < 0x0400 { small } else { normal };
    let unsigned = if magnitude < 0x7c00 { finite } else { infinite };
    f32::from_bits(sign | unsigned)
}

/// The nearest `f16`.
#[inline(always)]
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    let sign = (value.to_bits() >> 16) & 0x8000;
    let magnitude = value.to_bits() & MAGNITUDE;
    let signed = magnitude as i32;
    // 2^-14 and up: round off 13 bits of fraction. Too large is infinity.
    let odd = (magnitude >> 13) & 1;
    let rounded = magnitude.wrapping_sub(REBIAS).wrapping_add(0x0fff + odd) >> 13;
    let normal = if signed < 0x4780_0000 {
        rounded
    } else {
        0x7c00
    };
    // Below: in [0.5, 1) the unit of f32 is 2^-24, the same as that of small f16, so that this
    // addition does the rounding.
    let small = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0.5f32.to_bits());
    let number = if signed < 0x3880_0000 { small } else { normal };
    let quiet = 0x7e00 | ((magnitude >> 13) & 0x03ff);
    let unsigned = if signed > INFINITY as i32 {
        quiet
    } else {
        number
    };
    (sign | unsigned) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn widening_gives_the_bits_of_half() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16_to_f32(bits), f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan());
            let (ours, theirs) = (bf16_to_f32(bits), bf16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan());
        }
    }

    /// Every sign, exponent and upper fraction, with the lower bits that decide ties.
    #[test]
    fn narrowing_gives_the_bits_of_half() {
        for upper in 0..=u16::MAX {
            for lower in [
                0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x3000, 0x7fff, 0x8000, 0x8001,
                0xf000, 0xffff,
            ] {
                let value = f32::from_bits(u32::from(upper) << 16 | lower);
                let (ours, theirs) = (f16::from_bits(f32_to_f16(value)), f16::from_f32(value));
                assert!(
                    ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
                    "{value:e}: {ours:?} {theirs:?}"
                );
                let (ours, theirs) = (bf16::from_bits(f32_to_bf16(value)), bf16::from_f32(value));
                assert!(
                    ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
                    "{value:e}: {ours:?} {theirs:?}"
                );
            }
        }
    }
}
