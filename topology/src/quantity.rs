//! Times and rates as people write them: `5us`, `5GB/s`.
//!
//! Exact in both directions: what is printed reads back as the same number of nanoseconds or bytes per second. Rates count in
//! powers of 1000, as cables are sold.
//!
//! ```
//! use std::time::Duration;
//! use unisono_topology::{Rate, format_time, parse_time};
//!
//! assert_eq!(parse_time("0.5us")?, Duration::from_nanos(500));
//! assert_eq!(format_time(Duration::from_nanos(250_000)), "250us");
//! assert_eq!("5GB/s".parse::<Rate>()?, Rate::new(5_000_000_000));
//! assert_eq!(Rate::new(1_170_000_000).to_string(), "1.17GB/s");
//! # Ok::<(), unisono_topology::QuantityError>(())
//! ```

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::text::shown;

/// Bytes per second, one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// So fast that it takes no time: what a cost that was not stated comes to.
    pub const UNLIMITED: Rate = Rate(0);

    /// So many bytes per second; 0 is [`Rate::UNLIMITED`].
    pub const fn new(bytes_per_second: u64) -> Rate {
        Rate(bytes_per_second)
    }

    /// Bytes per second; 0 for [`Rate::UNLIMITED`].
    pub const fn bytes_per_second(self) -> u64 {
        self.0
    }

    /// Whether it takes no time.
    pub const fn is_unlimited(self) -> bool {
        self.0 == 0
    }
}

/// What is wrong with a time or a rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {what}: {fault}; expected {expected}")]
pub struct QuantityError {
    /// `time` or `rate`.
    pub what: &'static str,
    /// As it was given.
    pub text: String,
    /// What is wrong with it.
    pub fault: QuantityFault,
    /// What was expected, with an example.
    pub expected: &'static str,
}

/// What is wrong with a number or its unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityFault {
    /// No digits at the front: `fast`, `nan`, nothing.
    #[error("it does not start with a number")]
    NoNumber,
    /// A minus sign.
    #[error("it is negative")]
    Negative,
    /// Digits alone.
    #[error("it has no unit")]
    NoUnit,
    /// Another unit than those known.
    #[error("unknown unit `{unit}`")]
    UnknownUnit {
        /// What stands after the number.
        unit: String,
    },
    /// Finer than a nanosecond or a byte per second.
    #[error("it is finer than {least}")]
    TooFine {
        /// The smallest step.
        least: &'static str,
    },
    /// More than any cluster has.
    #[error("it is more than {most}")]
    TooLarge {
        /// The largest that is taken.
        most: &'static str,
    },
    /// A rate of nothing: no data would ever arrive.
    #[error("it is zero")]
    Zero,
}

/// What makes one kind of quantity.
struct Kind {
    what: &'static str,
    expected: &'static str,
    /// Smallest first, in smallest steps.
    units: &'static [(&'static str, u64)],
    least: &'static str,
    most: (u64, &'static str),
}

const TIME: Kind = Kind {
    what: "time",
    expected: "a number with ns, us, ms or s, such as 5us",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ],
    least: "a nanosecond",
    most: (3_600_000_000_000, "an hour"),
};

const RATE: Kind = Kind {
    what: "rate",
    expected: "bytes per second in powers of 1000: B/s, kB/s, MB/s, GB/s or TB/s, such as 5GB/s",
    units: &[
        ("B/s", 1),
        ("kB/s", 1_000),
        ("MB/s", 1_000_000),
        ("GB/s", 1_000_000_000),
        ("TB/s", 1_000_000_000_000),
    ],
    least: "a byte per second",
    most: (1_000_000_000_000_000, "1000TB/s"),
};

/// Reads a time: digits, perhaps with a decimal point, and `ns`, `us`, `ms` or `s`.
///
/// # Errors
/// [`QuantityError`], also for times above an hour or finer than a nanosecond.
pub fn parse_time(text: &str) -> Result<Duration, QuantityError> {
    TIME.parse(text).map(Duration::from_nanos)
}

/// Writes a time in the largest unit that needs no more than three decimals; below a nanosecond is cut off.
pub fn format_time(time: Duration) -> String {
    TIME.format(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl FromStr for Rate {
    type Err = QuantityError;

    /// Reads `5GB/s`, or `unlimited`.
    fn from_str(text: &str) -> Result<Rate, QuantityError> {
        if text.trim() == "unlimited" {
            return Ok(Rate::UNLIMITED);
        }
        match RATE.parse(text)? {
            0 => Err(RATE.error(text, QuantityFault::Zero)),
            rate => Ok(Rate(rate)),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            return f.write_str("unlimited");
        }
        f.write_str(&RATE.format(self.0))
    }
}

impl Kind {
    fn error(&self, text: &str, fault: QuantityFault) -> QuantityError {
        QuantityError {
            what: self.what,
            text: shown(text),
            fault,
            expected: self.expected,
        }
    }

    fn parse(&self, text: &str) -> Result<u64, QuantityError> {
        self.read(text.trim())
            .map_err(|fault| self.error(text, fault))
    }

    /// Exact: digits are counted in the smallest step, never through a float.
    fn read(&self, text: &str) -> Result<u64, QuantityFault> {
        let too_large = QuantityFault::TooLarge { most: self.most.1 };
        if text.starts_with('-') {
            return Err(QuantityFault::Negative);
        }
        let digits_end = |s: &str| s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
        let (whole, rest) = text.split_at(digits_end(text));
        let (fraction, unit) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits_end(rest)),
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(QuantityFault::NoNumber);
        }
        let unit = unit.trim();
        // k and K are the same here: a rate is never counted in powers of 1024.
        let unit = if unit == "KB/s" { "kB/s" } else { unit };
        let scale = match self.units.iter().find(|(name, _)| *name == unit) {
            Some((_, scale)) => u128::from(*scale),
            None if unit.is_empty() => return Err(QuantityFault::NoUnit),
            None => {
                return Err(QuantityFault::UnknownUnit { unit: shown(unit) });
            }
        };
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if whole.len() > 20 {
            return Err(too_large);
        }
        if fraction.len() > 12 {
            return Err(QuantityFault::TooFine { least: self.least });
        }
        let number = |digits: &str| {
            digits
                .bytes()
                .fold(0u128, |n, digit| n * 10 + u128::from(digit - b'0'))
        };
        let parts = 10u128.pow(fraction.len() as u32);
        if !(number(fraction) * scale).is_multiple_of(parts) {
            return Err(QuantityFault::TooFine { least: self.least });
        }
        let value = number(whole) * scale + number(fraction) * scale / parts;
        match u64::try_from(value) {
            Ok(value) if value <= self.most.0 => Ok(value),
            _ => Err(too_large),
        }
    }

    fn format(&self, value: u64) -> String {
        let (name, scale) = self
            .units
            .iter()
            .rev()
            .find(|&&(_, scale)| value >= scale && value.is_multiple_of((scale / 1000).max(1)))
            .unwrap_or(&self.units[0]);
        let thousandths = value % scale * 1000 / scale;
        let mut digits = (value / scale).to_string();
        if thousandths > 0 {
            digits.push_str(format!(".{thousandths:03}").trim_end_matches('0'));
        }
        digits + name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_printed_and_read_exactly() {
        for ns in [
            0,
            1,
            999,
            1_000,
            1_001,
            1_500,
            12_345_678,
            250_000,
            3_600_000_000_000,
        ] {
            let time = Duration::from_nanos(ns);
            assert_eq!(parse_time(&format_time(time)).unwrap(), time, "{ns}");
        }
        for rate in [
            1,
            999,
            1_000,
            1_234_567,
            5_000_000_000,
            1_170_000_000,
            1_000_000_000_000_000,
        ] {
            let rate = Rate::new(rate);
            assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }
        assert_eq!("unlimited".parse::<Rate>().unwrap(), Rate::UNLIMITED);
        assert_eq!(format_time(Duration::from_nanos(1_500)), "1.5us");
        assert_eq!(Rate::new(1_234_567).to_string(), "1234.567kB/s");
    }

    #[test]
    fn rates_count_in_powers_of_1000() {
        assert_eq!("1kB/s".parse::<Rate>().unwrap(), Rate::new(1000));
        assert_eq!("1KB/s".parse::<Rate>().unwrap(), Rate::new(1000));
        assert_eq!("2.5 MB/s".parse::<Rate>().unwrap(), Rate::new(2_500_000));
        assert_eq!(".5GB/s".parse::<Rate>().unwrap(), Rate::new(500_000_000));
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        use QuantityFault as F;
        let time = |text: &str| parse_time(text).unwrap_err().fault;
        let rate = |text: &str| text.parse::<Rate>().unwrap_err().fault;
        for text in ["", "us", "nan", "inf", "fast", "+5us", ".us", "∞"] {
            assert_eq!(time(text), F::NoNumber, "{text}");
        }
        assert_eq!(time("-5us"), F::Negative);
        assert_eq!(time("5"), F::NoUnit);
        assert_eq!(time("5h"), F::UnknownUnit { unit: "h".into() });
        assert_eq!(
            time("5e3us"),
            F::UnknownUnit {
                unit: "e3us".into()
            }
        );
        assert!(matches!(time("0.5ns"), F::TooFine { .. }));
        assert!(matches!(time("0.0000000000000000001s"), F::TooFine { .. }));
        assert!(matches!(time("3601s"), F::TooLarge { .. }));
        let huge = "9".repeat(1000) + "s";
        assert!(matches!(time(&huge), F::TooLarge { .. }));
        assert_eq!(rate("0GB/s"), F::Zero);
        assert_eq!(
            rate("40Gb/s"),
            F::UnknownUnit {
                unit: "Gb/s".into()
            }
        );
        assert_eq!(rate("5GB"), F::UnknownUnit { unit: "GB".into() });
        assert!(matches!(rate("1000000TB/s"), F::TooLarge { .. }));
    }
}
