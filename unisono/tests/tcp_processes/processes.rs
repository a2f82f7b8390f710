//! Starting ranks, listening to them, and seeing to it that none stays behind.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Set in the processes that are ranks.
const PART: &str = "UNISONO_TEST_PART";
const ARGUMENT: &str = "UNISONO_TEST_ARGUMENT";
const LIFE: &str = "UNISONO_TEST_LIFE";
/// What stands in front of what a rank has to say, somewhere in a line.
const SAYS: &str = "says: ";

/// The part of this process, if it is a rank. One that hangs ends itself.
pub(crate) fn part() -> Option<String> {
    let part = std::env::var(PART).ok()?;
    let life = std::env::var(LIFE).unwrap().parse().unwrap();
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(life));
        eprintln!("a rank hangs and ends itself");
        std::process::exit(99);
    });
    Some(part)
}

/// What the part was asked in particular.
pub(crate) fn argument() -> String {
    std::env::var(ARGUMENT).unwrap()
}

/// Tells the test.
pub(crate) fn say(words: impl std::fmt::Display) {
    let words = format!("{SAYS}{words}\n");
    std::io::stdout().write_all(words.as_bytes()).unwrap();
}

/// A place to meet that no other job has: a file.
pub(crate) fn file() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (id, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(format!("unisono-processes-{id}-{next}"))
}

/// A port of this machine that was free a moment ago, and that systems do not give to somebody who asks for any.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id() * 131;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (0..1000)
        .map(|_| 10_000 + ((first + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000) as u16)
        .find(is_free)
        .expect("a free port")
}

/// One process.
pub(crate) struct Rank {
    pub(crate) process: Child,
    output: BufReader<ChildStdout>,
    /// Closed to tell the rank to end, where its part listens.
    pub(crate) input: Option<ChildStdin>,
}

/// What may differ between two ways to start a rank.
pub(crate) struct Start<'a> {
    pub(crate) part: &'a str,
    pub(crate) argument: &'a str,
    /// Further variables.
    pub(crate) variables: &'a [(&'a str, &'a str)],
    /// What runs this program, such as `strace -c`; empty: nothing.
    pub(crate) wrapper: &'a [OsString],
    /// Seconds until a rank ends itself.
    pub(crate) life: u32,
}

impl<'a> Start<'a> {
    pub(crate) fn new(part: &'a str, argument: &'a str) -> Self {
        Self {
            part,
            argument,
            variables: &[],
            wrapper: &[],
            life: 120,
        }
    }

    /// Starts `rank` of a group of `size` that meets at `coordinator`.
    pub(crate) fn rank(&self, rank: u32, size: u32, coordinator: &str) -> Rank {
        let this = std::env::current_exe().unwrap();
        let mut command = match self.wrapper {
            [] => Command::new(this),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(this);
                command
            }
        };
        let mut process = command
            .args(["--exact", "a_rank", "--nocapture", "--test-threads=1"])
            .env(PART, self.part)
            .env(ARGUMENT, self.argument)
            .env(LIFE, self.life.to_string())
            .env("UNISONO_RANK", rank.to_string())
            .env("UNISONO_SIZE", size.to_string())
            .env("UNISONO_COORDINATOR", coordinator)
            .env("UNISONO_JOB", "processes")
            .env("UNISONO_TIMEOUT", "60")
            .env_remove("UNISONO_CHECK")
            .env_remove("UNISONO_IFACE")
            .envs(self.variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let input = process.stdin.take();
        Rank {
            process,
            output,
            input,
        }
    }
}

impl Rank {
    /// The next thing that the rank says; `None` when it has ended.
    pub(crate) fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if let Some((_, words)) = line.trim_end().split_once(SAYS) {
                return Some(words.to_owned());
            }
            line.clear();
        }
        None
    }

    /// Waits until it says `words`.
    pub(crate) fn says(&mut self, words: &str) {
        assert_eq!(self.next().as_deref(), Some(words));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Everything it still says, and how it ends.
    pub(crate) fn end(mut self) -> (Vec<String>, ExitStatus) {
        let said = std::iter::from_fn(|| self.next()).collect();
        (said, self.process.wait().unwrap())
    }

    /// The same of one that ends well.
    pub(crate) fn done(self) -> Vec<String> {
        let (said, status) = self.end();
        assert!(status.success(), "{status}, it said {said:?}");
        said
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        // In vain if it has ended and been waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The processes of one group, in rank order.
pub(crate) struct Job {
    pub(crate) ranks: Vec<Rank>,
    place: PathBuf,
}

impl Job {
    /// `size` ranks that play `part`.
    pub(crate) fn start(part: &str, argument: &str, size: u32) -> Job {
        Self::start_with(&Start::new(part, argument), size)
    }

    pub(crate) fn start_with(start: &Start<'_>, size: u32) -> Job {
        let place = file();
        let coordinator = format!("file:{}", place.display());
        let ranks = (0..size).map(|rank| start.rank(rank, size, &coordinator));
        Job {
            ranks: ranks.collect(),
            place,
        }
    }

    /// What each rank says until it ends, which it does well.
    pub(crate) fn done(mut self) -> Vec<Vec<String>> {
        self.ranks.drain(..).map(Rank::done).collect()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.place);
    }
}
