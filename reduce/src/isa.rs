//! What a machine can do beyond the portable: convert `f16` in hardware.
//!
//! Instruction sets are passed to the loops as zero-sized tokens. A token can only be had where
//! the instructions exist, so its methods are safe.

use crate::narrow::{f16_to_f32, f32_to_f16};

/// Elements converted at a time.
pub(crate) const STEP: usize = 16;

/// An instruction set, as far as the loops call it by name. All else is up to the compiler.
pub(crate) trait Isa: Copy {
    /// Whether the two methods are faster than plain loops.
    const CONVERTS_F16: bool;
    fn widen_f16(self, from: &[[u8; 2]; STEP]) -> [f32; STEP];
    fn narrow_f16(self, from: &[f32; STEP]) -> [[u8; 2]; STEP];
}

/// Whatever the target of the build guarantees.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Isa for Portable {
    const CONVERTS_F16: bool = false;

    #[inline(always)]
    fn widen_f16(self, from: &[[u8; 2]; STEP]) -> [f32; STEP] {
        from.map(|raw| f16_to_f32(u16::from_ne_bytes(raw)))
    }

    #[inline(always)]
    fn narrow_f16(self, from: &[f32; STEP]) -> [[u8; 2]; STEP] {
        from.map(|value| f32_to_f16(value).to_ne_bytes())
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    //! AVX2 with F16C: every x86-64 server since 2013.

    use super::{Isa, STEP};
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps,
        _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
    };

    /// Proof that AVX2 and F16C are there.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(());

    impl Avx2 {
        /// Callable from code that is compiled for these features, and nowhere else.
        #[target_feature(enable = "avx2,f16c")]
        #[inline]
        pub(crate) fn new() -> Avx2 {
            Avx2(())
        }

        /// Whether this machine has the features.
        pub(crate) fn detected() -> bool {
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c")
        }
    }

    impl Isa for Avx2 {
        const CONVERTS_F16: bool = true;

        #[inline(always)]
        fn widen_f16(self, from: &[[u8; 2]; STEP]) -> [f32; STEP] {
            let mut to = [0.0; STEP];
            // SAFETY: the token proves the features; the offsets 0 and 8 leave 8 elements of 16
            // in both arrays, and the instructions ask for no alignment.
            unsafe {
                let source = from.as_ptr();
                let target = to.as_mut_ptr();
                for i in (0..STEP).step_by(8) {
                    let narrow = _mm_loadu_si128(source.add(i).cast());
                    _mm256_storeu_ps(target.add(i), _mm256_cvtph_ps(narrow));
                }
            }
            to
        }

        #[inline(always)]
        fn narrow_f16(self, from: &[f32; STEP]) -> [[u8; 2]; STEP] {
            let mut to = [[0; 2]; STEP];
            // SAFETY: as above.
            unsafe {
                let source = from.as_ptr();
                let target = to.as_mut_ptr();
                for i in (0..STEP).step_by(8) {
                    let wide = _mm256_loadu_ps(source.add(i));
                    let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide);
                    _mm_storeu_si128(target.add(i).cast(), narrow);
                }
            }
            to
        }
    }
}
