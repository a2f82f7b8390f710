//! Whether this process is one rank of a group that a launcher started.
//!
//! `UNISONO_RANK`, `UNISONO_SIZE` and `UNISONO_COORDINATOR` belong together: one of them set, even to nothing, means
//! that this process is a rank, and then all three must be there and valid. Each is checked alone first.

use std::ffi::OsString;

use anyhow::{Result, anyhow, bail};
use unisono_core::Rank;

use crate::args::ranks::Worlds;

/// This process as one rank of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launched {
    /// This rank.
    pub(super) rank: Rank,
    /// Number of ranks.
    pub(super) size: Rank,
    /// Where the ranks find each other: `host:port`.
    pub(super) coordinator: String,
}

const RANK: &str = "UNISONO_RANK";
const SIZE: &str = "UNISONO_SIZE";
const COORDINATOR: &str = "UNISONO_COORDINATOR";

impl Launched {
    /// What the environment says; `None` if it says nothing.
    ///
    /// # Errors
    /// A variable is missing or invalid; `--ranks` says something else.
    pub(super) fn from_env(ranks: Option<&Worlds>) -> Result<Option<Launched>> {
        Self::from(|name| std::env::var_os(name), ranks)
    }

    fn from(
        var: impl Fn(&str) -> Option<OsString>,
        ranks: Option<&Worlds>,
    ) -> Result<Option<Launched>> {
        let (rank, size, coordinator) = (var(RANK), var(SIZE), var(COORDINATOR));
        if rank.is_none() && size.is_none() && coordinator.is_none() {
            return Ok(None);
        }
        let launched = Launched {
            rank: number(RANK, rank)?,
            size: match number(SIZE, size)? {
                0 => bail!("{SIZE} is 0: a group has at least 1 rank"),
                size => size,
            },
            coordinator: address(coordinator)?,
        };
        let Launched { rank, size, .. } = launched;
        if rank >= size {
            bail!(
                "{RANK} is {rank}, but {SIZE} is {size}: ranks are 0 to {}",
                size - 1
            );
        }
        match ranks {
            Some(Worlds(all)) if *all != [size] => {
                let asked: Vec<String> = all.iter().map(Rank::to_string).collect();
                bail!(
                    "--ranks {} disagrees with {SIZE}, which is {size}",
                    asked.join(",")
                )
            }
            _ => Ok(Some(launched)),
        }
    }
}

fn text(name: &str, value: Option<OsString>) -> Result<String> {
    let value = value.ok_or_else(|| {
        anyhow!("{name} is not set: {RANK}, {SIZE} and {COORDINATOR} make this process one rank of a group together")
    })?;
    match value.into_string() {
        Ok(text) if text.is_empty() => bail!("{name} is empty"),
        Ok(text) => Ok(text),
        Err(raw) => bail!("{name} is {raw:?}, which is no text"),
    }
}

/// Decimal digits, nothing else.
fn number(name: &str, value: Option<OsString>) -> Result<Rank> {
    let text = text(name, value)?;
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.ok_or_else(|| anyhow!("{name} is {text:?}, it must be a whole number in decimal digits"))
}

/// `host:port` or `[ipv6]:port`.
fn address(value: Option<OsString>) -> Result<String> {
    let text = text(COORDINATOR, value)?;
    let wrong =
        || anyhow!("{COORDINATOR} is {text:?}, it must be host:port with a port of 1 to 65535");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let named = match host.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()),
        None => !host.is_empty() && !host.contains([':', ']', ' ']),
    };
    let digits = port.bytes().all(|b| b.is_ascii_digit());
    let port = port.parse::<u16>().ok().filter(|&p| digits && p > 0);
    match port {
        Some(_) if named => Ok(text),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(set: [Option<&str>; 3]) -> Result<Option<Launched>, String> {
        let at = |name: &str| [RANK, SIZE, COORDINATOR].iter().position(|&n| n == name);
        let var = |name: &str| at(name).and_then(|i| set[i]).map(OsString::from);
        Launched::from(var, None).map_err(|e| e.to_string())
    }

    #[test]
    fn without_variables_nothing_was_launched() {
        assert_eq!(launched([None; 3]), Ok(None));
    }

    #[test]
    fn all_three_make_a_rank() {
        for address in ["10.0.0.1:7000", "host-1.local:1", "[fe80::1]:65535"] {
            let found = launched([Some("1"), Some("4"), Some(address)])
                .unwrap()
                .unwrap();
            assert_eq!(
                (found.rank, found.size, found.coordinator.as_str()),
                (1, 4, address)
            );
        }
    }

    #[test]
    fn the_variable_that_is_wrong_is_named() {
        let good = [Some("0"), Some("2"), Some("h:1")];
        let with = |i: usize, value| {
            let mut set = good;
            set[i] = value;
            set
        };
        let numbers = [
            None,
            Some(""),
            Some("-1"),
            Some("+1"),
            Some(" 1"),
            Some("0x1"),
            Some("4294967296"),
        ];
        for value in numbers {
            assert!(
                launched(with(0, value)).unwrap_err().starts_with(RANK),
                "{value:?}"
            );
            assert!(
                launched(with(1, value)).unwrap_err().starts_with(SIZE),
                "{value:?}"
            );
        }
        let addresses = [
            None,
            Some(""),
            Some("h"),
            Some(":1"),
            Some("h:"),
            Some("h:0"),
            Some("h:65536"),
            Some("::1:5"),
            Some("[x]:5"),
            Some("h:+5"),
        ];
        for value in addresses {
            assert!(
                launched(with(2, value))
                    .unwrap_err()
                    .starts_with(COORDINATOR),
                "{value:?}"
            );
        }
        assert!(launched(with(1, Some("0"))).unwrap_err().starts_with(SIZE));
        assert!(launched(with(0, Some("2"))).unwrap_err().starts_with(RANK));
        // Each is checked alone before they are compared.
        assert!(
            launched([Some("5"), Some("0"), Some("h:1")])
                .unwrap_err()
                .starts_with(SIZE)
        );
        assert!(
            launched([Some("5"), Some("2"), Some("h")])
                .unwrap_err()
                .starts_with(COORDINATOR)
        );
    }

    #[test]
    fn ranks_must_agree_with_the_size() {
        let var = |name: &str| {
            Some(OsString::from(if name == COORDINATOR {
                "h:1"
            } else if name == SIZE {
                "2"
            } else {
                "0"
            }))
        };
        assert!(Launched::from(var, Some(&Worlds(vec![2]))).is_ok());
        let error = Launched::from(var, Some(&Worlds(vec![2, 3]))).unwrap_err();
        assert!(error.to_string().contains("UNISONO_SIZE"), "{error}");
    }
}
