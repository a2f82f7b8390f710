//! Groups on this machine's loopback, over a transport that only exchanges cards.
#![allow(dead_code)] // Each test file uses its part.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use unisono_contract::{ConnectError, Endpoint, Listening, Local, Transport, null};
use unisono_control::{Cause, Control, Coordinator, JoinError, Network, Settings};
use unisono_core::Rank;

/// A transport that checks what control gives it, and connects nothing.
#[derive(Debug, Default)]
pub(crate) struct Dummy {
    /// This rank cannot listen.
    pub(crate) deaf: Option<Rank>,
    /// This rank cannot connect.
    pub(crate) stuck: Option<Rank>,
    /// This rank takes for ever to connect.
    pub(crate) slow: Option<Rank>,
}

#[derive(Debug)]
struct Ear {
    local: Local,
    stuck: bool,
    slow: bool,
}

#[async_trait]
impl Transport for Dummy {
    fn name(&self) -> &'static str {
        "dummy"
    }

    async fn listen(&self, local: &Local) -> Result<Box<dyn Listening>, ConnectError> {
        if self.deaf == Some(local.rank) {
            return Err(unsupported("it is deaf"));
        }
        if local.size > 1 {
            let address = local.address.expect("the coordinator was reached");
            assert!(address.ip().is_loopback() || !address.ip().is_unspecified());
            assert_eq!(address.port(), 0);
        }
        Ok(Box::new(Ear {
            local: local.clone(),
            stuck: self.stuck == Some(local.rank),
            slow: self.slow == Some(local.rank),
        }))
    }
}

fn unsupported(reason: &str) -> ConnectError {
    ConnectError::Unsupported {
        transport: "dummy",
        reason: reason.to_owned(),
    }
}

fn card(rank: Rank, nonce: u64) -> Vec<u8> {
    format!("{rank} {nonce}").into_bytes()
}

#[async_trait]
impl Listening for Ear {
    fn card(&self) -> Vec<u8> {
        card(self.local.rank, self.local.nonce)
    }

    async fn connect(
        self: Box<Self>,
        cards: &[Vec<u8>],
    ) -> Result<Box<dyn Endpoint>, ConnectError> {
        let expected = (0..self.local.size).map(|rank| card(rank, self.local.nonce));
        assert_eq!(cards, expected.collect::<Vec<_>>());
        if self.stuck {
            return Err(unsupported("it is stuck"));
        }
        if self.slow {
            std::future::pending::<()>().await;
        }
        let mut ends = null::Net::new(1, null::Policy::instant());
        Ok(Box::new(ends.remove(0)))
    }
}

/// A port of this machine that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A coordinator on loopback that was free a moment ago.
pub(crate) fn coordinator() -> Coordinator {
    format!("127.0.0.1:{}", free_port()).parse().unwrap()
}

/// Rank `rank` of `size`, at `coordinator`, with a time that a test can wait for.
pub(crate) fn settings(rank: Rank, size: Rank, coordinator: &Coordinator) -> Settings {
    let mut settings = Settings::new(rank, size, coordinator.clone());
    settings.timeout = Duration::from_secs(20);
    settings
}

pub(crate) type Started = Result<Network, JoinError>;

/// Starts all of these at once, each in a thread of its own; gives their results in order.
pub(crate) fn start_all(all: Vec<Settings>, transport: Dummy) -> Vec<Started> {
    let transport: Arc<dyn Transport> = Arc::new(transport);
    let start = |settings| {
        let transport = transport.clone();
        thread::spawn(move || Network::start(settings, transport).map(|(network, _)| network))
    };
    let threads: Vec<_> = all.into_iter().map(start).collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

/// A group of `size`, in rank order.
pub(crate) fn group(size: Rank) -> Vec<Network> {
    group_at(size, coordinator)
}

/// A group of `size` at one of these places: another one if somebody else was faster at the port.
pub(crate) fn group_at(size: Rank, place: impl Fn() -> Coordinator) -> Vec<Network> {
    for _ in 0..5 {
        let place = place();
        let mut all: Vec<Settings> = (0..size).map(|r| settings(r, size, &place)).collect();
        all.iter_mut()
            .for_each(|s| s.timeout = Duration::from_secs(10));
        let started: Result<Vec<Network>, JoinError> =
            start_all(all, Dummy::default()).into_iter().collect();
        match started {
            Ok(group) => return group,
            Err(JoinError::PortInUse { .. } | JoinError::Unreachable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no free port");
}

/// The error that all of these have, once.
pub(crate) fn common_error(started: &[Started]) -> String {
    let texts: Vec<String> = started
        .iter()
        .map(|started| match started {
            Ok(_) => "joined".to_owned(),
            Err(error) => error.to_string(),
        })
        .collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:#?}");
    assert!(!texts[0].contains('\n'));
    texts[0].clone()
}

/// Waits for the failure of a group.
pub(crate) fn cause(control: &dyn Control, patience: Duration) -> Option<Cause> {
    let until = Instant::now() + patience;
    loop {
        let key = control.event().listen();
        let cause = control.aborted();
        let left = until.saturating_duration_since(Instant::now());
        if cause.is_some() || left.is_zero() {
            return cause;
        }
        control.event().wait(key, Some(left));
    }
}

/// The failure that all of these have.
pub(crate) fn common_cause<'a>(group: impl IntoIterator<Item = &'a Network>) -> Cause {
    let causes: Vec<Option<Cause>> = group
        .into_iter()
        .map(|network| cause(network, Duration::from_secs(5)))
        .collect();
    assert!(causes.iter().all(|cause| *cause == causes[0]), "{causes:?}");
    causes[0].clone().expect("a failure within five seconds")
}
