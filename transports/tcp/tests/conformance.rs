//! The suite that every transport passes, over real connections.

mod common;

use unisono_contract::conformance;

#[test]
fn the_contract_is_kept() {
    for (name, property) in conformance::PROPERTIES {
        let began = std::time::Instant::now();
        property(&common::connect);
        println!("{name}: {:?}", began.elapsed());
    }
}

#[test]
fn the_contract_is_kept_over_ipv6() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("SKIPPED: no IPv6 loopback here");
        return;
    }
    let address = "[::1]:0".parse().ok();
    let make = |size| common::connect_at(size, address);
    conformance::order(&make);
    conformance::sizes(&make);
    conformance::peer_death(&make);
}
