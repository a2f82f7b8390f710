//! Addresses of this machine and of the coordinator, as sockets want them.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::Arc;

use if_addrs::{Interface, get_if_addrs};
use tokio::net::{TcpListener, lookup_host};
use unisono_core::Rank;

use crate::address::{Coordinator, Host};
use crate::refusal::JoinError;

/// Ranks that may knock before rank 0 has opened the door to the first.
const BACKLOG: i32 = 1024;

/// The addresses behind a host.
pub(super) async fn resolve(host: &Host, port: u16) -> io::Result<Vec<SocketAddr>> {
    let found: Vec<SocketAddr> = match host {
        Host::Ip(ip) => return Ok(vec![SocketAddr::new(*ip, port)]),
        Host::Scoped { ip, scope } => match scope.parse() {
            Ok(number) => return Ok(vec![SocketAddrV6::new(*ip, port, 0, number).into()]),
            Err(_) => lookup_host((format!("{ip}%{scope}"), port))
                .await?
                .collect(),
        },
        Host::Name(name) => lookup_host((name.as_str(), port)).await?.collect(),
    };
    if found.is_empty() {
        return Err(io::Error::other("the name has no address"));
    }
    Ok(found)
}

/// Listens where `coordinator` says; by file: at any port.
pub(super) async fn listen(coordinator: &Coordinator) -> Result<Vec<TcpListener>, JoinError> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => JoinError::PortInUse {
            coordinator: coordinator.to_string(),
        },
        _ => JoinError::Listen {
            coordinator: coordinator.to_string(),
            error: Arc::new(error),
        },
    };
    match coordinator {
        Coordinator::File(_) => Ok(vec![listen_anywhere(0).map_err(refused)?]),
        Coordinator::Address { host, port } => {
            let addresses = resolve(host, *port).await.map_err(refused)?;
            // A machine often knows its own name as an address that only itself can reach.
            let everywhere = match host {
                Host::Name(name) => {
                    !name.contains("localhost") && addresses.iter().all(|a| a.ip().is_loopback())
                }
                _ => false,
            };
            if everywhere {
                return Ok(vec![listen_anywhere(*port).map_err(refused)?]);
            }
            listen_at(&addresses).map_err(refused)
        }
    }
}

/// Listens at each address that is this machine's, at least at one.
fn listen_at(addresses: &[SocketAddr]) -> io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    let mut refused = None;
    for &address in addresses {
        match bind(address, true) {
            Ok(listener) => listeners.push(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(error) if listeners.is_empty() => Err(error),
        _ => Ok(listeners),
    }
}

/// Listens at all addresses of this machine, of both families where it has both.
fn listen_anywhere(port: u16) -> io::Result<TcpListener> {
    match bind((Ipv6Addr::UNSPECIFIED, port).into(), false) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            bind(([0, 0, 0, 0], port).into(), true)
        }
        bound => bound,
    }
}

fn bind(address: SocketAddr, one_family: bool) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};

    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(one_family)?;
    }
    // Connections of an earlier group that the kernel still remembers do not hold the port.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

/// The address that peers are told: of the interface asked for, or `seen`.
pub(super) fn own_address(
    rank: Rank,
    iface: Option<&str>,
    seen: Option<SocketAddr>,
) -> Result<Option<SocketAddr>, JoinError> {
    let Some(iface) = iface else {
        return Ok(seen);
    };
    let refused = |reason: String| JoinError::Interface {
        rank,
        iface: iface.to_owned(),
        reason,
    };
    let all = get_if_addrs().map_err(|error| refused(error.to_string()))?;
    let mut mine: Vec<&Interface> = all.iter().filter(|i| i.name == iface).collect();
    if mine.is_empty() {
        let mut names: Vec<&str> = all.iter().map(|i| i.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let names = names.join(", ");
        return Err(refused(format!("there is none; there are {names}")));
    }
    // The family that reached the coordinator, then addresses that mean something elsewhere.
    let family = |i: &Interface| seen.is_some_and(|seen| seen.is_ipv4() != i.ip().is_ipv4());
    mine.sort_by_key(|i| (family(i), i.is_link_local(), i.ip().is_ipv6()));
    Ok(mine.first().map(|i| socket_address(i)))
}

/// All addresses under which peers may reach `port` here, the most useful first.
pub(super) fn all_addresses(iface: Option<&str>, port: u16) -> Vec<SocketAddr> {
    let mut all = get_if_addrs().unwrap_or_default();
    // Scopes are numbered differently elsewhere.
    all.retain(|i| !i.is_link_local() && iface.is_none_or(|name| i.name == name));
    all.sort_by_key(|i| (i.is_loopback(), i.ip().is_ipv6()));
    let mut addresses: Vec<SocketAddr> = all.iter().map(socket_address).collect();
    if addresses.is_empty() {
        addresses.push(([127, 0, 0, 1], 0).into());
    }
    addresses.iter_mut().for_each(|a| a.set_port(port));
    addresses
}

fn socket_address(interface: &Interface) -> SocketAddr {
    match interface.ip() {
        IpAddr::V6(ip) if interface.is_link_local() => {
            SocketAddrV6::new(ip, 0, 0, interface.index.unwrap_or_default()).into()
        }
        ip => SocketAddr::new(ip, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_asked_for_gives_the_address() {
        let seen = Some(([10, 0, 0, 1], 0).into());
        assert_eq!(own_address(1, None, seen).unwrap(), seen);
        let all = get_if_addrs().unwrap();
        let Some(loopback) = all.iter().find(|i| i.is_loopback() && i.ip().is_ipv4()) else {
            return; // A machine without a loopback interface.
        };
        let address = own_address(1, Some(&loopback.name), seen).unwrap().unwrap();
        assert!(address.ip().is_loopback() && address.is_ipv4());
        let error = own_address(1, Some("nosuch0"), seen).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("rank 1: network interface nosuch0:"),
            "{text}"
        );
        assert!(text.contains(&loopback.name), "{text}");
    }

    #[test]
    fn loopback_is_the_last_resort() {
        let addresses = all_addresses(None, 7);
        assert!(addresses.iter().all(|a| a.port() == 7));
        let first_loopback = addresses.iter().position(|a| a.ip().is_loopback());
        let last_other = addresses.iter().rposition(|a| !a.ip().is_loopback());
        if let (Some(loopback), Some(other)) = (first_loopback, last_other) {
            assert!(loopback > other);
        }
    }
}
