//! The colour of a block: a hue wheel of equal lightness, so that no block looks more important than another.

use std::fmt;

/// A colour in sRGB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Colour([u8; 3]);

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [r, g, b] = self.0;
        write!(f, "#{r:02x}{g:02x}{b:02x}")
    }
}

/// Ink for what carries no block.
pub(super) const GREY: Colour = Colour([0x7d, 0x86, 0x90]);

/// The colour of block `block` of `blocks`: block 0 is blue, the others follow round the wheel.
pub(super) fn colour(block: u64, blocks: u64) -> Colour {
    let turn = if blocks == 0 {
        0.0
    } else {
        (block % blocks) as f64 / blocks as f64
    };
    oklch(0.58, 0.155, 255.0 + 360.0 * turn)
}

/// From lightness, chroma and hue (degrees) in Oklab, cutting off what sRGB cannot show.
fn oklch(lightness: f64, chroma: f64, hue: f64) -> Colour {
    let (sin, cos) = hue.to_radians().sin_cos();
    let (a, b) = (chroma * cos, chroma * sin);
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    let linear = [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ];
    Colour(linear.map(|x| {
        let x = x.clamp(0.0, 1.0);
        let encoded = if x <= 0.003_130_8 {
            12.92 * x
        } else {
            1.055 * x.powf(1.0 / 2.4) - 0.055
        };
        (encoded * 255.0).round() as u8
    }))
}
