//! Sizes in bytes: `4`, `64K`, `1M..1G`, `1,3,5K`.
//!
//! K, M and G are powers of 1024 (`KiB`, `KB` and lower case mean the same). `a..b` includes both ends and steps by
//! powers of two from a: `3K..20K` is 3K, 6K, 12K and 20K.

use std::str::FromStr;

/// A list of sizes in bytes, in the order in which they were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<u64>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Sizes, String> {
        let mut all = Vec::new();
        for item in text.split(',') {
            match item.split_once("..") {
                None => all.push(size(item)?),
                Some((a, b)) => doubling(size(a)?, size(b)?, &mut all)?,
            }
        }
        Ok(Sizes(all))
    }
}

/// a, 2a, 4a, ... up to b, and b.
fn doubling(a: u64, b: u64, all: &mut Vec<u64>) -> Result<(), String> {
    if a > b {
        return Err(format!("{a}..{b} is empty: the first size is the larger"));
    }
    let mut next = Some(a);
    while let Some(size) = next.filter(|&size| size < b) {
        all.push(size);
        next = size.max(1).checked_mul(if size == 0 { 1 } else { 2 });
    }
    all.push(b);
    Ok(())
}

/// One size.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(not_a_size(text)),
    };
    if number.is_empty() {
        return Err(not_a_size(text));
    }
    number
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(factor))
        .ok_or_else(|| format!("`{text}` does not fit into 64 bits"))
}

fn not_a_size(text: &str) -> String {
    format!(
        "`{text}` is no size; sizes are whole numbers with K, M or G (1024-based), as in 64K, 1M..1G or 4,1K"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Vec<u64> {
        text.parse::<Sizes>().unwrap().0
    }

    #[test]
    fn units_are_powers_of_1024() {
        assert_eq!(
            sizes("4,1K,2M,3G,5KiB,1b,7kb"),
            [4, 1024, 2 << 20, 3 << 30, 5 * 1024, 1, 7 * 1024]
        );
    }

    #[test]
    fn ranges_double_from_the_first_and_include_both_ends() {
        assert_eq!(sizes("4..64"), [4, 8, 16, 32, 64]);
        assert_eq!(sizes("3K..20K"), [3 << 10, 6 << 10, 12 << 10, 20 << 10]);
        assert_eq!(sizes("0..4"), [0, 1, 2, 4]);
        assert_eq!(sizes("7..7"), [7]);
        assert_eq!(sizes("1..2,8"), [1, 2, 8]);
        assert_eq!(*sizes("1..17179869183G").last().unwrap(), 17179869183 << 30);
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for bad in [
            "",
            "K",
            "-1",
            "1.5K",
            "4..2",
            "1T",
            "4,",
            "99999999999G",
            "18446744073709551616",
            "1..2..3",
            "+4",
        ] {
            assert!(bad.parse::<Sizes>().is_err(), "{bad}");
        }
    }
}
