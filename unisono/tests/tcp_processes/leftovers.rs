//! Several groups in one process, together and one after the other: what they leave behind.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use unisono::{Group, Op, owned};

use crate::processes::{Job, argument, file, say};

/// Sockets that this process has open.
pub(crate) fn sockets() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap();
    let links = links
        .flatten()
        .filter_map(|fd| fs::read_link(fd.path()).ok());
    links
        .filter(|link| link.to_string_lossy().starts_with("socket:"))
        .count()
}

pub(crate) fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// What this process has computed so far, in hundredths of a second.
pub(crate) fn computed() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    let times = fields.skip(11).take(2);
    times.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// A value of `/proc/self/status` in KiB: `VmRSS`, `VmHWM`.
pub(crate) fn memory(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What `look` sees once it is `fine`, or after five seconds: a thread that was joined may take a moment to disappear.
pub(crate) fn settled<T>(look: impl Fn() -> T, fine: impl Fn(&T) -> bool) -> T {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let now = look();
        if fine(&now) || Instant::now() > until {
            return now;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Sockets and threads before a group is made.
#[derive(Debug, PartialEq)]
pub(crate) struct Before(usize, usize);

impl Before {
    pub(crate) fn now() -> Before {
        Before(sockets(), threads())
    }

    /// Nothing of the group that is gone now is left.
    #[track_caller]
    pub(crate) fn nothing_is_left(&self) {
        let fine = |now: &Before| now.0 <= self.0 && now.1 <= self.1;
        assert_eq!(settled(Before::now, fine), *self, "sockets and threads");
    }
}

/// A group of threads over real connections, what it is for, and its end.
fn one_life(size: u32, round: usize) {
    let place = file();
    let coordinator = format!("file:{}", place.display());
    thread::scope(|s| {
        for rank in 0..size {
            let coordinator = &coordinator;
            s.spawn(move || {
                let builder = Group::builder().rank(rank).size(size);
                let g = builder.coordinator(coordinator).join().unwrap();
                let mut x = vec![1f32; 10_000];
                g.all_reduce(&mut x, Op::Sum).unwrap();
                block_on(g.start(owned::all_reduce(x, Op::Sum))).unwrap();
                match round % 4 {
                    // One leaves while the others wait for him.
                    0 if rank == 1 => drop(g),
                    0 => drop(g.barrier().unwrap_err()),
                    // A handle is left behind.
                    1 => {
                        drop(g.start(owned::all_reduce(vec![1u8; 1000], Op::Max)));
                        g.close().unwrap();
                    }
                    2 => g.close().unwrap(),
                    _ => g.barrier().unwrap(),
                }
            });
        }
    });
    let _ = fs::remove_file(place);
}

pub(crate) fn many_groups() {
    let lives: usize = argument().parse().unwrap();
    (0..20).for_each(|round| one_life(3, round));
    let look = || (descriptors(), threads());
    // Until all that is going has gone.
    let before = settled(look, |_| false);
    let resident = memory("VmRSS");
    (0..lives).for_each(|round| one_life(3, round));
    let after = settled(look, |now| now.0 <= before.0 && now.1 <= before.1);
    assert_eq!(after, before, "descriptors and threads");
    let grown = memory("VmRSS").saturating_sub(resident);
    assert!(grown < 4 << 10, "grown by {grown} KiB in {lives} lives");
    say(format_args!("grown by {grown} KiB"));
}

#[test]
fn two_hundred_groups_leave_descriptors_threads_and_memory_where_they_were() {
    println!("{:?}", Job::start("groups", "200", 1).done());
}

/// Two groups at once, the ranks of the second in the opposite order; the second fails.
pub(crate) fn two_groups() {
    let one = Group::from_env().unwrap();
    let (me, p) = (one.rank(), one.size());
    let builder = Group::builder().rank(p - 1 - me).size(p).job("second");
    let two = builder.coordinator(argument()).join().unwrap();
    thread::scope(|s| {
        for g in [&one, &two] {
            s.spawn(move || {
                for k in 0..200u32 {
                    let mut x = vec![g.rank() + k; 1 + 50 * k as usize];
                    g.all_reduce(&mut x, Op::Sum).unwrap();
                    assert!(x.iter().all(|v| *v == p * k + p * (p - 1) / 2));
                }
            });
        }
    });
    // In one thread, one in the middle of the other.
    let first = one.start(owned::all_gather(vec![one.rank()], vec![9; 3]));
    let second = two.start(owned::all_gather(vec![two.rank()], vec![9; 3]));
    assert_eq!(block_on(second).unwrap().1, [0, 1, 2]);
    assert_eq!(block_on(first).unwrap().1, [0, 1, 2]);
    // A failure reaches also those who are still in an operation before it: nobody is, after this.
    one.barrier().unwrap();
    let mut x = vec![1u8; 1000 + usize::from(two.rank() == 1)];
    let failed = two.all_reduce(&mut x, Op::Sum).and_then(|()| two.barrier());
    let failed = failed.unwrap_err().to_string();
    assert!(failed.starts_with("ranks disagree on count"), "{failed}");
    let mut x = [1u64];
    one.all_reduce(&mut x, Op::Sum).unwrap();
    assert_eq!(x, [u64::from(p)]);
    drop(two);
    one.close().unwrap();
}

#[test]
fn two_groups_in_one_process_do_not_know_each_other() {
    let place = file();
    let coordinator = format!("file:{}", place.display());
    Job::start("two", &coordinator, 3).done();
    let _ = fs::remove_file(place);
}
