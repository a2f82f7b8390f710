//! World sizes: `4`, `2..9` (both ends), `2,4,8`.

use std::str::FromStr;

use unisono_core::Rank;

/// More ranks than this are a slip of the finger.
pub(crate) const MOST: Rank = 65_536;

/// A list of world sizes, each at least 1, in the order in which they were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Worlds(pub(crate) Vec<Rank>);

impl FromStr for Worlds {
    type Err = String;

    fn from_str(text: &str) -> Result<Worlds, String> {
        let mut all = Vec::new();
        for item in text.split(',') {
            match item.split_once("..") {
                None => all.push(world(item)?),
                Some((a, b)) => {
                    let (a, b) = (world(a)?, world(b)?);
                    if a > b {
                        return Err(format!("{a}..{b} is empty: the first number is the larger"));
                    }
                    all.extend(a..=b);
                }
            }
        }
        Ok(Worlds(all))
    }
}

/// One world size.
pub(crate) fn world(text: &str) -> Result<Rank, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "`{text}` is no number of ranks; write a number, a range as in 2..9 (both ends included) or a list"
        ));
    }
    match text.parse::<Rank>() {
        Ok(0) => Err("a world has at least 1 rank".to_owned()),
        Ok(n) if n <= MOST => Ok(n),
        _ => Err(format!("{text} ranks are too many: at most {MOST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!("2..5".parse(), Ok(Worlds(vec![2, 3, 4, 5])));
        assert_eq!("8,1,2..3".parse(), Ok(Worlds(vec![8, 1, 2, 3])));
    }

    #[test]
    fn a_world_has_at_least_one_rank() {
        for bad in [
            "0",
            "0..3",
            "",
            "-2",
            "two",
            "5..2",
            "2..",
            "4294967296",
            "1e3",
        ] {
            assert!(bad.parse::<Worlds>().is_err(), "{bad}");
        }
    }
}
