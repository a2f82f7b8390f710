//! [`Relays`]: what ranks say, passed on line by line with the rank in front.
//!
//! A line is written whole and by one thread at a time, so that lines of different ranks never mix. One that has no
//! end is ended where a rank stops, or when it has grown to [`LONGEST`].

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::Child;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use unisono_core::Rank;

use super::{Event, Failure, Voice};
use crate::exit::say;
use crate::output::Closed;

/// Bytes of the longest line that is passed on in one piece.
const LONGEST: u64 = 1 << 20;

/// How long to go on listening when all ranks have ended: something they started may hold their pipes for ever.
const ECHO: Duration = Duration::from_secs(2);

/// What the last words of a rank start with.
const LAST_WORDS: &[u8] = b"error: ";

/// The threads that listen.
pub(super) struct Relays {
    voice: Voice,
    events: Sender<Event>,
    sender: Sender<Option<Words>>,
    done: Receiver<Option<Words>>,
    listening: usize,
}

/// The last words of a rank, without `error: `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) rank: Rank,
    pub(super) text: String,
}

/// Where lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sink {
    Stdout,
    Stderr,
}

impl Relays {
    /// Nobody is listened to yet. `events` hears of lines that cannot be written.
    pub(super) fn new(voice: Voice, events: Sender<Event>) -> Relays {
        let (sender, done) = mpsc::channel();
        Relays {
            voice,
            events,
            sender,
            done,
            listening: 0,
        }
    }

    /// Passes on whatever of this rank comes through a pipe.
    ///
    /// # Errors
    /// No thread can be had.
    pub(super) fn listen(&mut self, rank: Rank, child: &mut Child) -> Result<()> {
        if let Some(pipe) = child.stdout.take() {
            self.spawn(rank, pipe, Sink::Stdout)?;
        }
        if let Some(pipe) = child.stderr.take() {
            self.spawn(rank, pipe, Sink::Stderr)?;
        }
        Ok(())
    }

    fn spawn(&mut self, rank: Rank, pipe: impl Read + Send + 'static, sink: Sink) -> Result<()> {
        let keep_back = self.voice == Voice::Bench && sink == Sink::Stderr;
        let (events, done) = (self.events.clone(), self.sender.clone());
        let relay = move || {
            let write = |line: &[u8]| sink.write(rank, line);
            let words = pass_on(pipe, keep_back, write).unwrap_or_else(|error| {
                // Whoever reads stdout decides what this program is for; stderr is only told.
                if sink == Sink::Stdout {
                    let _ = events.send(Event::Unheard(error));
                }
                None
            });
            let _ = done.send(words.map(|text| Words { rank, text }));
        };
        let thread = thread::Builder::new().name(format!("rank {rank} speaks"));
        thread
            .spawn(relay)
            .with_context(|| format!("rank {rank}: no thread"))?;
        self.listening += 1;
        Ok(())
    }

    /// Says how a rank failed, unless whoever runs the job does that.
    pub(super) fn note(&self, failure: &Failure) {
        if self.voice == Voice::Everybody {
            say(&failure.to_string());
        }
    }

    /// Listens to the end; what was kept back.
    pub(super) fn finish(&mut self) -> Vec<Words> {
        let until = Instant::now() + ECHO;
        let mut words = Vec::new();
        for _ in 0..std::mem::take(&mut self.listening) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(said) = self.done.recv_timeout(left) else {
                break;
            };
            words.extend(said);
        }
        words
    }
}

impl Sink {
    fn write(self, rank: Rank, line: &[u8]) -> Result<()> {
        let mut text = format!("[{rank}] ").into_bytes();
        text.extend_from_slice(line);
        text.push(b'\n');
        let written = match self {
            Sink::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(&text).and_then(|()| out.flush())
            }
            Sink::Stderr => io::stderr().write_all(&text),
        };
        match written {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
            other => other.context("cannot write to stdout"),
        }
    }
}

/// Hands every line to `write`, without its end; gives back the last words if they are to be kept back.
fn pass_on(
    pipe: impl Read,
    keep_back: bool,
    mut write: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Option<String>> {
    let mut pipe = BufReader::with_capacity(1 << 16, pipe);
    let (mut line, mut kept): (Vec<u8>, Option<Vec<u8>>) = (Vec::new(), None);
    loop {
        line.clear();
        // A pipe that cannot be read is at its end.
        let read = pipe.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return Ok(kept.map(|words| words_of(&words)));
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if let Some(earlier) = kept.take() {
            write(&earlier)?;
        }
        match keep_back && line.starts_with(LAST_WORDS) {
            true => kept = Some(line.clone()),
            false => write(&line)?,
        }
    }
}

fn words_of(line: &[u8]) -> String {
    let text = line.strip_prefix(LAST_WORDS).unwrap_or(line);
    String::from_utf8_lossy(text).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(said: &str, keep_back: bool) -> (Vec<String>, Option<String>) {
        let mut lines = Vec::new();
        let last = pass_on(said.as_bytes(), keep_back, |line| {
            lines.push(String::from_utf8(line.to_vec()).unwrap());
            Ok(())
        });
        (lines, last.unwrap())
    }

    #[test]
    fn lines_are_passed_on_whole_and_the_last_one_needs_no_end() {
        assert_eq!(
            passed("a\n\nb c\nd", false).0,
            ["a", "", "b c", "d"].map(String::from)
        );
        assert_eq!(passed("", false).0, Vec::<String>::new());
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let long = "x".repeat(LONGEST as usize + 5);
        let lines = passed(&long, false).0;
        let lengths: Vec<usize> = lines.iter().map(String::len).collect();
        assert_eq!(lengths, [LONGEST as usize, 5]);
    }

    #[test]
    fn last_words_are_kept_back_only_where_nothing_follows() {
        let (lines, last) = passed("hello\nerror: one\nmore\nerror: rank 1 was lost\n", true);
        assert_eq!(lines, ["hello", "error: one", "more"].map(String::from));
        assert_eq!(last.as_deref(), Some("rank 1 was lost"));
        assert_eq!(passed("error: x\n", false).1, None);
    }
}
