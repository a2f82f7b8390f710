//! Rendezvous by file: rank 0 writes where it listens, the others read it.
//!
//! ```text
//! unisono rendezvous 1
//! job training
//! nonce 5d0c6a3f90b1e274
//! address 10.0.0.7:40123
//! address 127.0.0.1:40123
//! ```
//!
//! The file appears whole: it is written beside its place and renamed. One that an earlier group has left behind is
//! replaced; who still follows it finds another nonce, or nobody, and looks again.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Bytes of a file that are looked at.
const LIMIT: usize = 64 * 1024;
const TITLE: &str = "unisono rendezvous 1";

/// Where a group meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meeting {
    pub(super) job: String,
    /// Never 0.
    pub(super) nonce: u64,
    /// To be tried in this order.
    pub(super) addresses: Vec<SocketAddr>,
}

/// A file that rank 0 has written; it goes with this.
#[derive(Debug)]
pub(super) struct Published {
    path: PathBuf,
    meeting: Meeting,
}

impl Published {
    pub(super) fn write(path: &Path, meeting: Meeting) -> io::Result<Self> {
        let mut text = format!(
            "{TITLE}\njob {}\nnonce {:016x}\n",
            meeting.job, meeting.nonce
        );
        for address in &meeting.addresses {
            text += &format!("address {address}\n");
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{:016x}", meeting.nonce));
        let beside = PathBuf::from(beside);
        let path = path.to_owned();
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&beside);
            return Err(error);
        }
        Ok(Self { path, meeting })
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        // Another group may have replaced it.
        if matches!(read(&self.path), Ok(Some(meeting)) if meeting == self.meeting) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What the file says; `None`: nothing that can be understood.
///
/// # Errors
/// There is no file, or it cannot be read.
pub(super) fn read(path: &Path) -> io::Result<Option<Meeting>> {
    use std::io::Read;

    let mut text = String::new();
    let mut file = fs::File::open(path)?.take(LIMIT as u64);
    match file.read_to_string(&mut text) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error),
        Ok(_) => Ok(parse(&text)),
    }
}

fn parse(text: &str) -> Option<Meeting> {
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return None;
    }
    let job = lines.next()?.strip_prefix("job ")?.to_owned();
    let nonce = lines.next()?.strip_prefix("nonce ")?;
    let nonce = u64::from_str_radix(nonce, 16).ok().filter(|n| *n != 0)?;
    let addresses = lines.map(|line| line.strip_prefix("address ")?.parse().ok());
    let addresses: Vec<SocketAddr> = addresses.collect::<Option<_>>()?;
    (!addresses.is_empty()).then_some(Meeting {
        job,
        nonce,
        addresses,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meeting(job: &str, nonce: u64) -> Meeting {
        Meeting {
            job: job.to_owned(),
            nonce,
            addresses: vec![
                "10.0.0.7:40123".parse().unwrap(),
                "[2001:db8::7]:40123".parse().unwrap(),
            ],
        }
    }

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("unisono-file-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_goes_with_its_writer() {
        let path = place("round");
        for job in ["", "two words"] {
            let published = Published::write(&path, meeting(job, 7)).unwrap();
            assert_eq!(read(&path).unwrap(), Some(meeting(job, 7)));
            drop(published);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_later_group_replaces_the_file_and_keeps_it() {
        let path = place("later");
        let early = Published::write(&path, meeting("a", 1)).unwrap();
        let late = Published::write(&path, meeting("a", 2)).unwrap();
        drop(early);
        assert_eq!(read(&path).unwrap().unwrap().nonce, 2);
        drop(late);
    }

    #[test]
    fn what_is_no_meeting_is_not_understood() {
        let path = place("wrong");
        let whole = "unisono rendezvous 1\njob \nnonce 1\naddress 1.2.3.4:5\n";
        fs::write(&path, whole).unwrap();
        assert!(read(&path).unwrap().is_some());
        for text in [
            "",
            "unisono rendezvous 2\njob \nnonce 1\naddress 1.2.3.4:5\n",
            "unisono rendezvous 1\njob \nnonce 0\naddress 1.2.3.4:5\n",
            "unisono rendezvous 1\njob \nnonce 1\n",
            "unisono rendezvous 1\njob \nnonce 1\naddress nowhere\n",
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap(), None, "{text:?}");
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert_eq!(read(&path).unwrap(), None);
        fs::remove_file(&path).unwrap();
        assert!(read(&path).is_err());
    }

    #[test]
    fn a_place_that_cannot_be_written_leaves_nothing_behind() {
        let path = place("nodir").join("file");
        assert!(Published::write(&path, meeting("a", 1)).is_err());
    }
}
