//! [`Card`]: where a rank listens, as bytes that control carries to its peers.
//!
//! ```text
//! "uTCP" | version u8 | addresses u8 | port u16 | per address: family u8 (4, 6), 16 bytes, scope u32
//! ```
//! Little endian; an IPv4 address fills the first four of its 16 bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

const MAGIC: &[u8; 4] = b"uTCP";
const VERSION: u8 = 1;
const HEAD: usize = 8;
const ENTRY: usize = 21;

/// Where a rank listens: one port at one or more addresses, the best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Card {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let port = self.addresses.first().map_or(0, SocketAddr::port);
        let mut bytes = Vec::with_capacity(HEAD + ENTRY * self.addresses.len());
        bytes.extend_from_slice(MAGIC);
        bytes.push(VERSION);
        bytes.push(self.addresses.len() as u8);
        bytes.extend_from_slice(&port.to_le_bytes());
        for address in &self.addresses {
            let (family, octets, scope) = match address {
                SocketAddr::V4(v4) => {
                    let mut octets = [0; 16];
                    octets[..4].copy_from_slice(&v4.ip().octets());
                    (4, octets, 0)
                }
                SocketAddr::V6(v6) => (6, v6.ip().octets(), v6.scope_id()),
            };
            bytes.push(family);
            bytes.extend_from_slice(&octets);
            bytes.extend_from_slice(&scope.to_le_bytes());
        }
        bytes
    }

    /// Reads a card; the error tells what is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (head, entries) = bytes
            .split_first_chunk::<HEAD>()
            .ok_or("it is too short for a tcp card")?;
        let [m0, m1, m2, m3, version, count, low, high] = *head;
        if [m0, m1, m2, m3] != *MAGIC {
            return Err("it is no tcp card".into());
        }
        if version != VERSION {
            return Err(format!("it has version {version}, here is {VERSION}"));
        }
        let port = u16::from_le_bytes([low, high]);
        if port == 0 || count == 0 || entries.len() != usize::from(count) * ENTRY {
            return Err("it is damaged".into());
        }
        let addresses = entries
            .chunks_exact(ENTRY)
            .map(|entry| address(entry, port).ok_or_else(|| "it is damaged".into()))
            .collect::<Result<_, String>>()?;
        Ok(Self { addresses })
    }
}

fn address(entry: &[u8], port: u16) -> Option<SocketAddr> {
    let (family, rest) = entry.split_first()?;
    let (octets, scope) = rest.split_first_chunk::<16>()?;
    let scope = u32::from_le_bytes(*scope.first_chunk()?);
    match family {
        4 => {
            let v4: [u8; 4] = *octets.first_chunk()?;
            Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(v4)), port))
        }
        6 => {
            let v6 = Ipv6Addr::from(*octets);
            Some(SocketAddr::V6(SocketAddrV6::new(v6, port, 0, scope)))
        }
        _ => None,
    }
}

/// `address` as it is reached from `here`. The scope of a link-local address is a number of the
/// machine that uses it, so it is ours that counts.
pub(crate) fn as_seen_from(here: Option<SocketAddr>, address: SocketAddr) -> SocketAddr {
    match (here, address) {
        (Some(SocketAddr::V6(here)), SocketAddr::V6(mut there))
            if there.ip().is_unicast_link_local() && here.scope_id() != 0 =>
        {
            there.set_scope_id(here.scope_id());
            SocketAddr::V6(there)
        }
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Card {
        let v6: Ipv6Addr = "fe80::1".parse().unwrap();
        Card {
            addresses: vec![
                "192.0.2.7:5000".parse().unwrap(),
                SocketAddr::V6(SocketAddrV6::new(v6, 5000, 0, 3)),
            ],
        }
    }

    #[test]
    fn a_card_survives_the_way() {
        assert_eq!(Card::decode(&card().encode()), Ok(card()));
    }

    #[test]
    fn any_cut_or_extended_card_is_refused() {
        let bytes = card().encode();
        for cut in 0..bytes.len() {
            assert!(Card::decode(&bytes[..cut]).is_err(), "{cut} bytes");
        }
        assert!(Card::decode(&[&bytes[..], &[0]].concat()).is_err());
        let mut other = bytes.clone();
        other[4] = 9;
        let error = Card::decode(&other).unwrap_err();
        assert_eq!(error, "it has version 9, here is 1");
    }

    #[test]
    fn the_scope_of_a_link_is_that_of_the_one_who_dials() {
        let there = card().addresses[1];
        let here: SocketAddr = "[fe80::2%7]:0".parse().unwrap();
        let seen = as_seen_from(Some(here), there);
        assert_eq!(seen, "[fe80::1%7]:5000".parse().unwrap());
        assert_eq!(as_seen_from(None, there), there);
        let global: SocketAddr = "[2001:db8::1]:1".parse().unwrap();
        assert_eq!(as_seen_from(Some(here), global), global);
    }
}
