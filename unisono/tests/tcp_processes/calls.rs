//! System calls of a warm exchange, counted by `strace`.
//!
//! Each of two ranks runs under `strace -c -f`, once with few operations and once with many. What the second needs more
//! than the first is what the operations need: joining and leaving cancel out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::process::{Command, Stdio};

use unisono::{Group, Op};

use crate::processes::{Rank, Start, argument, file};

const FEW: u64 = 500;
const MANY: u64 = 4500;

pub(crate) fn rank() {
    let operations: u64 = argument().parse().unwrap();
    let g = Group::from_env().unwrap();
    let mut x = [1f32; 16]; // 64 B
    for _ in 0..operations {
        g.all_reduce(&mut x, Op::Max).unwrap();
    }
    g.close().unwrap();
}

type Counts = BTreeMap<String, u64>;

/// Calls by name of each rank.
fn counted(operations: u64) -> Vec<Counts> {
    let place = file();
    let coordinator = format!("file:{}", place.display());
    let tables = [0, 1].map(|rank| place.with_extension(format!("calls{rank}")));
    let argument = operations.to_string();
    let ranks: Vec<Rank> = (0..2)
        .zip(&tables)
        .map(|(rank, table)| {
            let mut wrapper = ["strace", "-c", "-f", "-o"].map(OsString::from).to_vec();
            wrapper.push(table.into());
            let mut start = Start::new("calls", &argument);
            start.wrapper = &wrapper;
            start.rank(rank, 2, &coordinator)
        })
        .collect();
    ranks.into_iter().for_each(|rank| drop(rank.done()));
    let _ = fs::remove_file(place);
    let read = tables.iter().map(|table| {
        let counts = parse(&fs::read_to_string(table).unwrap());
        let _ = fs::remove_file(table);
        counts
    });
    read.collect()
}

/// The table of `strace -c`: time, seconds, microseconds a call, calls, errors if any, name.
fn parse(table: &str) -> Counts {
    let rows = table.lines().filter_map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let calls = fields.get(3)?.parse().ok()?;
        Some((fields.last()?.to_string(), calls))
    });
    rows.filter(|(name, _)| name != "total").collect()
}

/// Whether ranks can be traced here.
fn can_trace() -> bool {
    let mut command = Command::new("strace");
    let command = command.args(["-c", "-f", "-o", "/dev/null", "true"]);
    let ended = command.stderr(Stdio::null()).status();
    ended.is_ok_and(|status| status.success())
}

#[test]
fn a_warm_exchange_of_64_bytes_is_one_send_a_few_receives_and_no_futex() {
    if !can_trace() {
        eprintln!("SKIPPED: strace is not installed, or may not trace here");
        return;
    }
    let (few, many) = (counted(FEW), counted(MANY));
    for (rank, (few, many)) in few.iter().zip(&many).enumerate() {
        // So many calls in the operations that the longer run had more.
        let more = |names: &[&str]| -> u64 {
            let of = |counts: &Counts| -> u64 {
                names.iter().filter_map(|name| counts.get(*name)).sum()
            };
            of(many).saturating_sub(of(few))
        };
        let operations = MANY - FEW;
        let sends = more(&["sendto", "sendmsg", "sendmmsg", "write", "writev"]);
        let receives = more(&["recvfrom", "recvmsg", "recvmmsg", "read", "readv"]);
        let waits = more(&["poll", "ppoll", "epoll_wait", "epoll_pwait", "select"]);
        let futexes = more(&["futex"]);
        println!(
            "rank {rank}: {sends} sends, {receives} receives, {waits} waits, {futexes} futexes in {operations}"
        );
        // Each control thread says every half second that it lives, in either run, and has its own ways.
        let few = operations / 50;
        assert!(sends.abs_diff(operations) <= few, "{sends} sends");
        // The one that finds the message comes after some that find nothing: spinning ends after 50 us, and a traced call
        // takes more than 5.
        assert!(receives <= 10 * operations, "{receives} receives");
        assert!(waits <= 2 * operations, "{waits} waits");
        assert!(futexes <= few, "{futexes} futexes");
    }
}
