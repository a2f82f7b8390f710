//! Addresses that somebody can connect to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::text::shown;

/// A host and a port: `127.0.0.1:5000`, `[::1]:5000`, `node7:5000`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// The IP address or name, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, never 0.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Why nobody can connect to an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressFault {
    /// Nothing there.
    #[error("it is empty")]
    Empty,
    /// An address without a port where one is needed.
    #[error("it has no port; expected address:port, such as {example}")]
    NoPort {
        /// The same with a port.
        example: String,
    },
    /// Port 0 means "any", which only the listener knows.
    #[error("port 0 cannot be connected to; expected 1 to 65535")]
    PortZero,
    /// A port that is no number of 1 to 65535.
    #[error("port `{port}` is out of range; expected 1 to 65535")]
    BadPort {
        /// As it was given.
        port: String,
    },
    /// A port where none belongs.
    #[error("it has a port; expected the address alone, such as {host}")]
    Port {
        /// The same without it.
        host: String,
    },
    /// `::1:5000` may be an address or an address and a port.
    #[error("an IPv6 address with a port needs brackets, such as {advice}")]
    NoBrackets {
        /// The same with brackets.
        advice: String,
    },
    /// Brackets that do not match or hold no IPv6 address.
    #[error("its brackets hold no IPv6 address; expected [address]:port, such as [::1]:5000")]
    BadBrackets,
    /// `0.0.0.0`, `::` or `*`.
    #[error("a wildcard can be listened on but not connected to; expected the address of one host")]
    Wildcard,
    /// An address of many hosts.
    #[error("it is a multicast or broadcast address; expected the address of one host")]
    NotOneHost,
    /// Neither an IP address nor a host name.
    #[error("`{host}` is neither an IP address nor a host name")]
    BadHost {
        /// What stands before the port.
        host: String,
    },
}

/// Reads an address with its port.
pub(crate) fn parse_address(text: &str) -> Result<Address, AddressFault> {
    if text.is_empty() {
        return Err(AddressFault::Empty);
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or(AddressFault::BadBrackets)?;
        if without_zone(host).parse::<Ipv6Addr>().is_err() {
            return Err(AddressFault::BadBrackets);
        }
        return match rest.strip_prefix(':') {
            Some(port) => address(host, port),
            None if rest.is_empty() => Err(no_port(text)),
            None => Err(AddressFault::BadBrackets),
        };
    }
    match text.rsplit_once(':') {
        None => {
            parse_host(text)?;
            Err(no_port(text))
        }
        Some((host, port)) if host.contains(':') => Err(no_brackets(text, host, port)),
        Some((host, port)) => address(host, port),
    }
}

/// Reads an address that has no port: an IP address or a host name.
pub(crate) fn parse_host(text: &str) -> Result<(), AddressFault> {
    if text.is_empty() {
        return Err(AddressFault::Empty);
    }
    if text == "*" {
        return Err(AddressFault::Wildcard);
    }
    if let Ok(ip) = without_zone(text).parse::<IpAddr>() {
        return one_host(ip);
    }
    if text.contains(':')
        && let Ok(address) = parse_address(text)
    {
        return Err(AddressFault::Port { host: address.host });
    }
    // What consists of digits and dots alone was meant as an IP address.
    let numbers = text.bytes().all(|c| c.is_ascii_digit() || c == b'.');
    let name = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
    if numbers || text.len() > 253 || !text.bytes().all(name) || text.starts_with(['-', '.']) {
        return Err(AddressFault::BadHost { host: shown(text) });
    }
    Ok(())
}

fn address(host: &str, port: &str) -> Result<Address, AddressFault> {
    parse_host(host)?;
    if port.is_empty() {
        return Err(no_port(host));
    }
    // u16's own parser would take a plus sign.
    let digits = port.bytes().all(|c| c.is_ascii_digit());
    match port.parse() {
        Ok(0) if digits => Err(AddressFault::PortZero),
        Ok(port) if digits => Ok(Address {
            host: canonical(host),
            port,
        }),
        _ => Err(AddressFault::BadPort { port: shown(port) }),
    }
}

/// One way to write each host, so that the same one is found when it is named twice.
fn canonical(host: &str) -> String {
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.to_string(),
        Err(_) => host.to_ascii_lowercase(),
    }
}

fn one_host(ip: IpAddr) -> Result<(), AddressFault> {
    let ip = ip.to_canonical();
    if ip.is_unspecified() {
        Err(AddressFault::Wildcard)
    } else if ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
        Err(AddressFault::NotOneHost)
    } else {
        Ok(())
    }
}

/// `fe80::1%en0` is an address of the interface en0.
fn without_zone(text: &str) -> &str {
    match text.split_once('%') {
        Some((ip, zone)) if !zone.is_empty() && ip.contains(':') => ip,
        _ => text,
    }
}

fn no_port(text: &str) -> AddressFault {
    let bare = text.trim_matches(['[', ']']);
    let example = match bare.contains(':') {
        true => format!("[{bare}]:5000"),
        false => format!("{bare}:5000"),
    };
    AddressFault::NoPort { example }
}

fn no_brackets(text: &str, host: &str, port: &str) -> AddressFault {
    let is_ip = |text: &str| without_zone(text).parse::<Ipv6Addr>().is_ok();
    let digits = !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit());
    if digits && is_ip(host) {
        AddressFault::NoBrackets {
            advice: format!("[{host}]:{port}"),
        }
    } else if is_ip(text) {
        no_port(text)
    } else {
        AddressFault::BadHost { host: shown(host) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_connected_to_is_taken() {
        for text in [
            "127.0.0.1:5000",
            "[::1]:5001",
            "node-7.local:65535",
            "[fe80::1%en0]:1",
        ] {
            assert_eq!(parse_address(text).unwrap().to_string(), text);
        }
        assert_eq!(parse_address("[0:0::1]:5"), parse_address("[::1]:5"));
        assert_eq!(parse_address("Node:5"), parse_address("node:5"));
        for text in ["10.0.0.1", "::1", "node", "fe80::1%en0"] {
            assert_eq!(parse_host(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn each_fault_is_told_apart() {
        use AddressFault as F;
        let fault = |text: &str| parse_address(text).unwrap_err();
        assert_eq!(fault(""), F::Empty);
        assert_eq!(
            fault("127.0.0.1"),
            F::NoPort {
                example: "127.0.0.1:5000".into()
            }
        );
        assert_eq!(
            fault("127.0.0.1:"),
            F::NoPort {
                example: "127.0.0.1:5000".into()
            }
        );
        assert_eq!(
            fault("[::1]"),
            F::NoPort {
                example: "[::1]:5000".into()
            }
        );
        assert_eq!(fault("10.0.0.1:0"), F::PortZero);
        for port in [
            "70000",
            "65536",
            "x",
            "-1",
            "+5",
            "99999999999999999999",
            " 5",
        ] {
            assert_eq!(
                fault(&format!("10.0.0.1:{port}")),
                F::BadPort { port: port.into() }
            );
        }
        for text in [
            "0.0.0.0:5000",
            "[::]:5000",
            "*:5000",
            "[::ffff:0.0.0.0]:5000",
        ] {
            assert_eq!(fault(text), F::Wildcard, "{text}");
        }
        assert_eq!(fault("224.0.0.1:5000"), F::NotOneHost);
        assert_eq!(fault("255.255.255.255:5000"), F::NotOneHost);
        assert_eq!(
            fault("::1:5000"),
            F::NoBrackets {
                advice: "[::1]:5000".into()
            }
        );
        assert_eq!(
            fault("fe80::1:70000"),
            F::NoBrackets {
                advice: "[fe80::1]:70000".into()
            }
        );
        assert_eq!(fault("[::1:5000"), F::BadBrackets);
        assert_eq!(fault("[node]:5000"), F::BadBrackets);
        assert_eq!(
            fault("300.0.0.1:5000"),
            F::BadHost {
                host: "300.0.0.1".into()
            }
        );
        assert_eq!(fault("a b:5000"), F::BadHost { host: "a b".into() });
        assert_eq!(fault("a:b:5000"), F::BadHost { host: "a:b".into() });
        assert_eq!(
            parse_host("10.0.0.1:80"),
            Err(F::Port {
                host: "10.0.0.1".into()
            })
        );
        assert_eq!(parse_host("0.0.0.0"), Err(F::Wildcard));
    }
}
