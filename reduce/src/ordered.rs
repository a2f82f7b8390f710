//! Minimum and maximum of `f16` and `bf16` without leaving 16 bits.
//!
//! Floats lie in sign and magnitude. Flipping the magnitude of the negative ones gives integers in
//! the same order, -0 just below +0. NaN becomes the integer that wins everywhere, so that min and
//! max of integers do all the rest: half the work of going through `f32`, on every machine.

use crate::lane::Lane;

/// The bits of a 16-bit float as an integer in the same order.
///
/// `INFINITY`: the bits of infinity, above which magnitudes are NaN. `NAN`: what NaN becomes, the
/// least or the largest integer.
pub(crate) struct Ordered<const INFINITY: u16, const NAN: i16>;

/// For the minimum of `f16`.
pub(crate) type MinF16 = Ordered<0x7c00, { i16::MIN }>;
/// For the maximum of `f16`.
pub(crate) type MaxF16 = Ordered<0x7c00, { i16::MAX }>;
/// For the minimum of `bf16`.
pub(crate) type MinBf16 = Ordered<0x7f80, { i16::MIN }>;
/// For the maximum of `bf16`.
pub(crate) type MaxBf16 = Ordered<0x7f80, { i16::MAX }>;

/// Flips the magnitude of negative ones; its own inverse. Both integers for NaN come back as NaN.
#[inline(always)]
fn flip(bits: u16) -> u16 {
    bits ^ ((bits as i16 >> 15) as u16 >> 1)
}

impl<const INFINITY: u16, const NAN: i16> Lane for Ordered<INFINITY, NAN> {
    type Raw = [u8; 2];
    type Acc = i16;

    #[inline(always)]
    fn load(raw: [u8; 2]) -> i16 {
        let bits = u16::from_ne_bytes(raw);
        // Signed, since that is the comparison which vector units have.
        let is_nan = (bits & 0x7fff) as i16 > INFINITY as i16;
        if is_nan { NAN } else { flip(bits) as i16 }
    }

    #[inline(always)]
    fn store(value: i16) -> [u8; 2] {
        flip(value as u16).to_ne_bytes()
    }
}
