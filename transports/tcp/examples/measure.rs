//! Measures two endpoints over loopback, each in a thread of its own: the round trip of 64 bytes,
//! and a stream of 64 MiB in messages of 512 KiB, one way and both ways.
//!
//! `cargo run --release -p unisono-tcp --example measure [SECONDS]`

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use unisono_contract::{
    Completions, Direction, Endpoint, Frame, Host, Lease, LinkError, Local, Piece, Port, Ready,
    SystemHost, Time, Token, Transport, WaitSet,
};
use unisono_tcp::Tcp;

type Failure = Box<dyn std::error::Error + Send + Sync>;
const SEGMENT: usize = 512 << 10;
const STREAM: usize = 64 << 20;

fn main() -> Result<(), Failure> {
    let seconds = std::env::args().nth(1).map_or(Ok(1.0), |s| s.parse())?;
    let time = Duration::from_secs_f64(seconds);
    let (zero, one) = connect()?;
    let other = thread::spawn(move || run(Driver::new(one), 0, time));
    run(Driver::new(zero), 1, time)?;
    other.join().map_err(|_| "a rank panicked")??;
    bare(time)
}

/// The same round trip on bare sockets, spinning without end: what there is to reach.
fn bare(time: Duration) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let dialed = TcpStream::connect(listener.local_addr()?)?;
    let (accepted, _) = listener.accept()?;
    let rounds = (time.as_micros() as u64 / 15).max(1000);
    let exchange = move |mut stream: TcpStream, first: bool| {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut times = Vec::with_capacity(rounds as usize);
        let mut message = [0; 128]; // As many bytes as the endpoint puts on the wire.
        let until = Instant::now() + time;
        'rounds: for _ in 0..rounds {
            let began = Instant::now();
            if began > until {
                break; // Spinners that share a core take for ever.
            }
            if first && stream.write_all(&message).is_err() {
                break;
            }
            while let Err(error) = stream.read_exact(&mut message) {
                match error.kind() {
                    std::io::ErrorKind::WouldBlock => std::hint::spin_loop(),
                    std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset => {
                        break 'rounds;
                    }
                    _ => return Err(error),
                }
            }
            if !first && stream.write_all(&message).is_err() {
                break;
            }
            times.push(began.elapsed());
        }
        times.sort_unstable();
        Ok::<_, std::io::Error>(times)
    };
    let other = thread::spawn(move || exchange(accepted, false));
    tell("bare spinning round trip", &exchange(dialed, true)?);
    other.join().map_err(|_| "a thread panicked")??;
    Ok(())
}

/// Tells the quantiles of sorted times.
fn tell(what: &str, times: &[Duration]) {
    let at = |share: f64| times.get((share * (times.len().max(1) - 1) as f64) as usize);
    if let (Some(p50), Some(p99)) = (at(0.5), at(0.99)) {
        println!("{what}: p50 {p50:?}, p99 {p99:?}");
    }
}

type End = Box<dyn Endpoint>;

fn connect() -> Result<(End, End), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = |rank| Local {
        rank,
        size: 2,
        address: None,
        channels: 2,
        nonce: 1,
        deadline: Duration::from_secs(5),
    };
    runtime.block_on(async {
        let zero = Tcp::new().listen(&local(0)).await?;
        let one = Tcp::new().listen(&local(1)).await?;
        let cards = [zero.card(), one.card()];
        let there = cards.clone();
        let one = tokio::spawn(async move { one.connect(&there).await });
        let zero = zero.connect(&cards).await?;
        Ok::<_, Failure>((zero, one.await??))
    })
}

fn run(mut driver: Driver, peer: u32, time: Duration) -> Result<(), Failure> {
    let port = driver.endpoint.port(peer, 0).ok_or("no port")?;
    round_trips(&mut driver, port, peer, time)?;
    for both in [false, true] {
        stream(&mut driver, port, peer, both, time)?;
    }
    Ok(())
}

fn round_trips(driver: &mut Driver, port: Port, peer: u32, time: Duration) -> Result<(), Failure> {
    let (out, into) = (Lease::new(vec![1u8; 64]), Lease::new(vec![0u8; 64]));
    let rounds = (time.as_micros() as u64 / 15).max(1000);
    let mut times = Vec::with_capacity(rounds as usize);
    for round in 0..rounds {
        let began = Instant::now();
        if peer == 1 {
            driver.send(port, round, &[out.piece()])?;
        }
        driver.recv(port, round, &[into.piece()])?;
        driver.received(1)?;
        if peer == 0 {
            driver.send(port, round, &[out.piece()])?;
        }
        times.push(began.elapsed());
    }
    driver.sent(rounds)?;
    times.sort_unstable();
    if peer == 1 {
        tell("64 B round trip", &times);
    }
    Ok(())
}

/// Streams until the time is up; both ranks count the same rounds.
fn stream(
    driver: &mut Driver,
    port: Port,
    peer: u32,
    both: bool,
    time: Duration,
) -> Result<(), Failure> {
    let (out, into) = (Lease::new(vec![1u8; STREAM]), Lease::new(vec![0u8; STREAM]));
    let (sends, receives) = (both || peer == 1, both || peer == 0);
    let segments = (STREAM / SEGMENT) as u64;
    let rounds = (time.as_millis() as u64 / 100).max(3);
    let mut best = Duration::MAX;
    for round in 0..rounds {
        let began = Instant::now();
        driver.reset();
        let (mut to_send, mut to_receive) = (0..segments, 0..segments);
        let mut wanted = 0;
        if sends {
            wanted += segments;
        }
        if receives {
            wanted += segments;
        }
        let mut done = 0;
        // Eight in flight each way.
        let mut credit = [8u64; 2];
        while done < wanted {
            while sends && credit[0] > 0 {
                let Some(segment) = to_send.next() else { break };
                credit[0] -= 1;
                driver.send(port, round << 32 | segment, &[cut(&out.piece(), segment)])?;
            }
            while receives && credit[1] > 0 {
                let Some(segment) = to_receive.next() else {
                    break;
                };
                credit[1] -= 1;
                driver.recv(port, round << 32 | segment, &[cut(&into.piece(), segment)])?;
            }
            for direction in driver.next()? {
                done += 1;
                credit[usize::from(direction == Direction::Recv)] += 1;
            }
        }
        best = best.min(began.elapsed());
    }
    // The sender of one way ends earlier than its receiver: the receiver tells.
    if (both && peer == 1) || (!both && peer == 0) {
        println!(
            "64 MiB {}: {best:?}, {:.2} GB/s per direction",
            if both { "both ways" } else { "one way" },
            STREAM as f64 / best.as_secs_f64() / 1e9
        );
    }
    Ok(())
}

fn cut(piece: &Piece, segment: u64) -> Piece {
    let start = segment as usize * SEGMENT;
    piece.slice(start..start + SEGMENT)
}

/// Posts and waits as an engine's driver does.
struct Driver {
    endpoint: End,
    host: SystemHost,
    set: WaitSet,
    done: Completions,
    sent: u64,
    received: u64,
}

impl Driver {
    fn new(endpoint: End) -> Self {
        Self {
            endpoint,
            host: SystemHost::new(2),
            set: WaitSet::new(),
            done: Completions::new(),
            sent: 0,
            received: 0,
        }
    }

    fn reset(&mut self) {
        (self.sent, self.received) = (0, 0);
    }

    fn send(&mut self, port: Port, sequence: u64, data: &[Piece]) -> Result<(), Failure> {
        let frame = frame(sequence, data);
        Ok(self.endpoint.post_send(port, &frame, data, Token(0))?)
    }

    fn recv(&mut self, port: Port, sequence: u64, into: &[Piece]) -> Result<(), Failure> {
        let frame = frame(sequence, into);
        Ok(self.endpoint.post_recv(port, &frame, into, Token(0))?)
    }

    /// Waits for a receive.
    fn received(&mut self, count: u64) -> Result<(), Failure> {
        while self.received < count {
            self.next()?;
        }
        self.received -= count;
        Ok(())
    }

    /// Waits until so many sends have completed.
    fn sent(&mut self, count: u64) -> Result<(), Failure> {
        while self.sent < count {
            self.next()?;
        }
        Ok(())
    }

    /// Waits for completions.
    fn next(&mut self) -> Result<Vec<Direction>, LinkError> {
        let began = self.host.now();
        let until = began + Duration::from_secs(10);
        self.endpoint.poll(&mut self.done)?;
        let has_waited = self.done.is_empty();
        while self.done.is_empty() {
            self.endpoint.poll(&mut self.done)?;
            if self.done.is_empty() && self.host.now().since(began) >= self.host.spin_budget() {
                self.park(until)?;
            }
        }
        if has_waited {
            self.host.waited(self.host.now().since(began));
        }
        let directions: Vec<_> = self.done.drain(..).map(|done| done.direction).collect();
        let sent = directions
            .iter()
            .filter(|direction| **direction == Direction::Send)
            .count() as u64;
        self.sent += sent;
        self.received += directions.len() as u64 - sent;
        Ok(directions)
    }

    fn park(&mut self, until: Time) -> Result<(), LinkError> {
        self.set.clear();
        if let Ready::Wait = self.endpoint.wait_on(&mut self.set)? {
            self.endpoint.poll(&mut self.done)?;
            if self.done.is_empty() {
                self.host.park(&mut self.set, until);
            }
        }
        Ok(())
    }
}

fn frame(sequence: u64, pieces: &[Piece]) -> Frame {
    Frame {
        length: pieces.iter().map(Piece::len).sum::<usize>() as u64,
        sequence,
        message: 1,
        ..Frame::default()
    }
}
