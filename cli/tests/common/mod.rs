//! Runs the program and looks at how it ends.
#![allow(dead_code)]

use assert_cmd::Command;
use serde_json::Value;

/// How one run ended.
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program, in an environment in which no launcher has left anything.
pub(crate) fn unisono() -> Command {
    let mut command = Command::cargo_bin("unisono").expect("the program is built with its tests");
    for name in [
        "RANK",
        "SIZE",
        "COORDINATOR",
        "JOB",
        "TIMEOUT",
        "CHECK",
        "IFACE",
    ] {
        command.env_remove(format!("UNISONO_{name}"));
    }
    command
}

/// Runs it with arguments that are separated by spaces.
pub(crate) fn run(arguments: &str) -> Ended {
    end(unisono().args(arguments.split_whitespace()))
}

pub(crate) fn end(command: &mut Command) -> Ended {
    let output = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
    Ended {
        status: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

impl Ended {
    /// It ended with 0 and had nothing to complain about.
    #[track_caller]
    pub(crate) fn done(self) -> Ended {
        assert_eq!((self.status, self.stderr.as_str()), (Some(0), ""));
        self
    }

    /// It was refused or failed, and the last line on stderr says each of `words`.
    #[track_caller]
    pub(crate) fn refused(self, words: &[&str]) -> Ended {
        self.ended(1, words)
    }

    /// It was called wrongly, and the last line on stderr says each of `words`.
    #[track_caller]
    pub(crate) fn usage(self, words: &[&str]) -> Ended {
        let ended = self.ended(2, words);
        assert_eq!(ended.stdout, "");
        ended
    }

    #[track_caller]
    fn ended(self, status: i32, words: &[&str]) -> Ended {
        let last = self.stderr.lines().last().unwrap_or_default();
        assert_eq!(self.status, Some(status), "{}", self.stderr);
        for word in words {
            assert!(last.contains(word), "no {word:?} in {last:?}");
        }
        self
    }

    /// Stdout as JSON, one object per line.
    #[track_caller]
    pub(crate) fn objects(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }

    /// The last line of stdout.
    pub(crate) fn last(&self) -> &str {
        self.stdout.lines().last().unwrap_or_default()
    }
}

/// One field of every object, as numbers.
pub(crate) fn numbers(objects: &[Value], field: &str) -> Vec<u64> {
    let number = |o: &Value| o[field].as_u64().expect(field);
    objects.iter().map(number).collect()
}

/// Names that unknown ones are answered with.
pub(crate) const ALGORITHMS: [&str; 11] = [
    "ring",
    "ring-bidir",
    "mesh-oneshot",
    "mesh-twoshot",
    "mesh-direct",
    "tree",
    "tree-centre",
    "butterfly-doubling",
    "butterfly-halving",
    "butterfly-circulant",
    "dissemination",
];
