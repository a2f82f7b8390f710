//! [`Coordinator`]: where ranks meet, understood from its text alone.
//!
//! A wrong address is refused before any socket is opened, with advice where there is some:
//!
//! ```
//! use unisono_control::Coordinator;
//!
//! for good in ["node7:5000", "10.0.0.7:5000", "[fe80::1%eth0]:5000", "file:///shared/rendezvous"] {
//!     assert_eq!(good.parse::<Coordinator>().unwrap().to_string(), good);
//! }
//! let error = "::1:5000".parse::<Coordinator>().unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "coordinator \"::1:5000\": an IPv6 address needs brackets: [ADDRESS]:PORT"
//! );
//! ```

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;

/// Where the ranks of a group meet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Coordinator {
    /// Rank 0 listens here, the others connect.
    Address {
        /// The host.
        host: Host,
        /// The port, not 0.
        port: u16,
    },
    /// Rank 0 writes where it listens into this file, the others read it.
    File(PathBuf),
}

/// A host as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// An address.
    Ip(IpAddr),
    /// An IPv6 address that means something only on one interface.
    Scoped {
        /// The address.
        ip: Ipv6Addr,
        /// The interface, by name or number.
        scope: String,
    },
    /// A name, to be looked up.
    Name(String),
}

/// Why a text is no coordinator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("coordinator {text:?}: {reason}")]
pub struct AddressError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub reason: AddressFault,
}

/// What is wrong with the text of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressFault {
    /// Nothing there.
    #[error("it is empty; write HOST:PORT")]
    Empty,
    /// Only a host.
    #[error("the port is missing; write HOST:PORT")]
    NoPort,
    /// Port 0.
    #[error("port 0 cannot be connected to")]
    PortZero,
    /// A port that is no number from 1 to 65535.
    #[error("port {port:?} is not a number from 1 to 65535")]
    Port {
        /// The port as written.
        port: String,
    },
    /// Only a port.
    #[error("the host is missing; write HOST:PORT")]
    NoHost,
    /// An IPv6 address without brackets.
    #[error("an IPv6 address needs brackets: [ADDRESS]:PORT")]
    Brackets,
    /// A bracket without its partner, or something behind it that is no port.
    #[error("brackets must stand around the address: [ADDRESS]:PORT")]
    Unbalanced,
    /// Brackets around something else than an IPv6 address.
    #[error("{inside:?} is not an IPv6 address")]
    NotV6 {
        /// What the brackets enclose.
        inside: String,
    },
    /// A scope that is no interface name or number.
    #[error("{scope:?} is not the name or number of an interface")]
    Scope {
        /// The scope as written.
        scope: String,
    },
    /// Digits and dots that are no IPv4 address.
    #[error("{host:?} is not an IPv4 address")]
    NotV4 {
        /// The host as written.
        host: String,
    },
    /// A name with impossible characters or lengths.
    #[error("{host:?} is not a host name")]
    Name {
        /// The host as written.
        host: String,
    },
    /// `file:` without a path.
    #[error("the path is missing; write file:///PATH")]
    NoPath,
    /// `file://host/path`.
    #[error("a file is on this machine: write file:///PATH, with three slashes")]
    FileHost,
}

impl FromStr for Coordinator {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let parsed = match text.strip_prefix("file:") {
            Some(path) => parse_file(path),
            None => parse_address(text),
        };
        parsed.map_err(|reason| AddressError {
            text: text.to_owned(),
            reason,
        })
    }
}

fn parse_file(path: &str) -> Result<Coordinator, AddressFault> {
    let path = match path.strip_prefix("//") {
        Some(local) if local.is_empty() || local.starts_with('/') => local,
        Some(_) => return Err(AddressFault::FileHost),
        None => path,
    };
    if path.is_empty() || path.ends_with('/') || path.contains('\0') {
        return Err(AddressFault::NoPath);
    }
    Ok(Coordinator::File(PathBuf::from(path)))
}

fn parse_address(text: &str) -> Result<Coordinator, AddressFault> {
    if text.is_empty() {
        return Err(AddressFault::Empty);
    }
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (inside, behind) = rest.split_once(']').ok_or(AddressFault::Unbalanced)?;
        let host = parse_v6(inside)?;
        match behind.strip_prefix(':') {
            Some(port) => (host, port),
            None if behind.is_empty() => return Err(AddressFault::NoPort),
            None => return Err(AddressFault::Unbalanced),
        }
    } else {
        let (host, port) = text.rsplit_once(':').ok_or(AddressFault::NoPort)?;
        if host.contains(':') {
            return Err(AddressFault::Brackets);
        }
        (parse_host(host)?, port)
    };
    let port = parse_port(port)?;
    Ok(Coordinator::Address { host, port })
}

fn parse_v6(inside: &str) -> Result<Host, AddressFault> {
    let (ip, scope) = match inside.split_once('%') {
        Some((ip, scope)) => (ip, Some(scope)),
        None => (inside, None),
    };
    let ip: Ipv6Addr = ip.parse().map_err(|_| AddressFault::NotV6 {
        inside: inside.to_owned(),
    })?;
    match scope {
        None => Ok(Host::Ip(IpAddr::V6(ip))),
        Some(scope) if is_interface(scope) => Ok(Host::Scoped {
            ip,
            scope: scope.to_owned(),
        }),
        Some(scope) => Err(AddressFault::Scope {
            scope: scope.to_owned(),
        }),
    }
}

fn parse_host(host: &str) -> Result<Host, AddressFault> {
    if host.is_empty() {
        return Err(AddressFault::NoHost);
    }
    if let Ok(ip) = host.parse::<Ipv4Addr>() {
        return Ok(Host::Ip(IpAddr::V4(ip)));
    }
    if host.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(AddressFault::NotV4 {
            host: host.to_owned(),
        });
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let good_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    if name.len() > 253 || !name.split('.').all(good_label) {
        return Err(AddressFault::Name {
            host: host.to_owned(),
        });
    }
    Ok(Host::Name(host.to_owned()))
}

fn parse_port(port: &str) -> Result<u16, AddressFault> {
    if port.is_empty() {
        return Err(AddressFault::NoPort);
    }
    // Digits only: `parse` alone would take a sign.
    let number = if port.bytes().all(|b| b.is_ascii_digit()) {
        port.parse::<u16>().ok()
    } else {
        None
    };
    match number {
        Some(0) => Err(AddressFault::PortZero),
        Some(port) => Ok(port),
        None => Err(AddressFault::Port {
            port: port.to_owned(),
        }),
    }
}

/// Whether the text can name a network interface.
pub(crate) fn is_interface(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b'%' | b'[' | b']'))
}

impl fmt::Display for Coordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Coordinator::Address { host, port } => match host {
                Host::Ip(IpAddr::V4(ip)) => write!(f, "{ip}:{port}"),
                Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]:{port}"),
                Host::Scoped { ip, scope } => write!(f, "[{ip}%{scope}]:{port}"),
                Host::Name(name) => write!(f, "{name}:{port}"),
            },
            Coordinator::File(path) => {
                let slashes = if path.is_absolute() { "//" } else { "" };
                write!(f, "file:{slashes}{}", path.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> AddressFault {
        let error = text.parse::<Coordinator>().unwrap_err();
        assert!(!error.to_string().contains('\n'));
        assert!(error.to_string().contains(&format!("{text:?}")));
        error.reason
    }

    #[test]
    fn every_form_reads_and_prints_the_same() {
        for text in [
            "localhost:5000",
            "node-7.cluster_a.example:1",
            "example.org.:65535",
            "127.0.0.1:5000",
            "[::1]:5000",
            "[fe80::1%eth0]:5000",
            "[fe80::1%2]:80",
            "file:///tmp/meet",
            "file:meet/here",
        ] {
            assert_eq!(text.parse::<Coordinator>().unwrap().to_string(), text);
        }
        assert_eq!(
            "file:/tmp/meet".parse::<Coordinator>().unwrap(),
            Coordinator::File(PathBuf::from("/tmp/meet"))
        );
    }

    #[test]
    fn a_port_is_there_and_in_range() {
        for text in ["localhost", "10.0.0.1", "[::1]", "localhost:", "[::1]:"] {
            assert_eq!(fault(text), AddressFault::NoPort, "{text}");
        }
        assert_eq!(fault("localhost:0"), AddressFault::PortZero);
        assert_eq!(fault("[::1]:000"), AddressFault::PortZero);
        for port in ["65536", "70000", "99999999999", "+80", "-1", "http", " 80"] {
            let text = format!("localhost:{port}");
            let port = port.to_owned();
            assert_eq!(fault(&text), AddressFault::Port { port }, "{text}");
        }
    }

    #[test]
    fn bare_v6_is_told_to_use_brackets() {
        for text in ["::1:5000", "fe80::1%eth0:5000", "::1", "2001:db8::7:5000"] {
            assert_eq!(fault(text), AddressFault::Brackets, "{text}");
        }
        assert_eq!(fault("[::1:5000"), AddressFault::Unbalanced);
        assert_eq!(fault("[::1]5000"), AddressFault::Unbalanced);
    }

    #[test]
    fn hosts_are_addresses_or_names() {
        assert_eq!(fault(""), AddressFault::Empty);
        assert_eq!(fault(":5000"), AddressFault::NoHost);
        for text in ["256.1.1.1:5000", "1.2.3:5000", "7:5000"] {
            assert!(matches!(fault(text), AddressFault::NotV4 { .. }), "{text}");
        }
        for text in ["[]:5000", "[127.0.0.1]:5000", "[host]:5000", "[::g]:5000"] {
            assert!(matches!(fault(text), AddressFault::NotV6 { .. }), "{text}");
        }
        for text in ["[fe80::1%]:5000", "[fe80::1%a b]:5", "[fe80::1%a/b]:5"] {
            assert!(matches!(fault(text), AddressFault::Scope { .. }), "{text}");
        }
        for text in [
            "a b:5000",
            "http//x:80",
            "a..b:80",
            "ho\u{308}st:80",
            " host:80",
        ] {
            assert!(matches!(fault(text), AddressFault::Name { .. }), "{text}");
        }
    }

    #[test]
    fn a_file_has_a_path_on_this_machine() {
        for text in ["file:", "file://", "file:///", "file:/tmp/"] {
            assert_eq!(fault(text), AddressFault::NoPath, "{text}");
        }
        assert_eq!(fault("file://host/path"), AddressFault::FileHost);
    }
}
