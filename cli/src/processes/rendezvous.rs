//! [`Rendezvous`]: where the ranks of a job on this machine meet.

use std::ffi::{OsStr, OsString};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// A place in the file system that is there as long as this value, and that nobody else can look into.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    directory: TempDir,
}

impl Rendezvous {
    /// A fresh directory for temporary files.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new() -> Result<Rendezvous> {
        let directory = tempfile::Builder::new().prefix("unisono-").tempdir();
        let directory = directory.context("no directory for the ranks to meet in")?;
        Ok(Rendezvous { directory })
    }

    /// As `UNISONO_COORDINATOR` has it: a file that rank 0 will write.
    pub(crate) fn coordinator(&self) -> OsString {
        let mut text = OsString::from("file:");
        let path = self.directory.path();
        if path.is_absolute() {
            text.push(OsStr::new("//"));
        }
        text.push(path.join("rendezvous"));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_control::Coordinator;

    #[test]
    fn the_place_is_a_coordinator_and_goes_away() {
        let rendezvous = Rendezvous::new().unwrap();
        let coordinator = rendezvous.coordinator().into_string().unwrap();
        let Coordinator::File(path) = coordinator.parse().unwrap() else {
            panic!("{coordinator} is no file");
        };
        let directory = path.parent().unwrap().to_owned();
        assert!(directory.is_dir() && !path.exists());
        drop(rendezvous);
        assert!(!directory.exists());
    }
}
