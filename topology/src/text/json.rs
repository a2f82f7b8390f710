//! JSON, strictly: each key once, nothing after the end, and a line for every value.
//!
//! `serde_json` tells lines in errors only. It reads a byte at a time and never more than one ahead, so a reader that counts
//! the lines of what it handed out knows where the parser is.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Read};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use super::node::{Entry, Node, Value};
use super::{DEPTH, shown};
use crate::TopologyError;

pub(super) fn parse(text: &str) -> Result<Node, TopologyError> {
    let place = Place::default();
    let bytes = Counted {
        left: text.as_bytes(),
        place: &place,
    };
    let mut parser = serde_json::Deserializer::from_reader(bytes);
    let seed = Seed {
        place: &place,
        depth: 0,
    };
    let node = seed.deserialize(&mut parser).map_err(|e| {
        let own = place.fault.take();
        own.unwrap_or_else(|| fault(&e))
    })?;
    parser.end().map_err(|e| TopologyError::Trailing {
        line: e.line(),
        column: e.column(),
    })?;
    Ok(node)
}

fn fault(e: &serde_json::Error) -> TopologyError {
    let (line, column) = (e.line(), e.column());
    if e.classify() == Category::Eof {
        return TopologyError::Truncated {
            line,
            column,
            language: "JSON",
        };
    }
    let text = e.to_string();
    let reason = text
        .rsplit_once(" at line ")
        .map_or(&text[..], |(reason, _)| reason);
    TopologyError::Syntax {
        line,
        column,
        language: "JSON",
        reason: shown(reason),
    }
}

/// Where the parser is, and what we found wrong ourselves.
#[derive(Default)]
struct Place {
    /// Newlines handed out.
    newlines: Cell<usize>,
    /// Newlines before the last byte that is no white space: the parser looks one byte ahead at the end of a number.
    line: Cell<usize>,
    fault: RefCell<Option<TopologyError>>,
}

impl Place {
    fn line(&self) -> usize {
        self.line.get() + 1
    }
}

struct Counted<'a> {
    left: &'a [u8],
    place: &'a Place,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // One byte at a time, however large the buffer: else the count would run ahead of the parser.
        let (Some((&byte, left)), Some(first)) = (self.left.split_first(), buffer.first_mut())
        else {
            return Ok(0);
        };
        (*first, self.left) = (byte, left);
        match byte {
            b'\n' => self.place.newlines.set(self.place.newlines.get() + 1),
            b' ' | b'\t' | b'\r' => {}
            _ => self.place.line.set(self.place.newlines.get()),
        }
        Ok(1)
    }
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    place: &'a Place,
    depth: usize,
}

impl Seed<'_> {
    fn node<E>(self, value: Value) -> Result<Node, E> {
        let line = self.place.line();
        Ok(Node { line, value })
    }

    /// Stops the parser; the error that counts is kept aside.
    fn stop<E: Error>(self, fault: TopologyError) -> E {
        let stopped = E::custom("stopped");
        *self.place.fault.borrow_mut() = Some(fault);
        stopped
    }

    fn inside<E: Error>(self) -> Result<Self, E> {
        if self.depth == DEPTH {
            let line = self.place.line();
            return Err(self.stop(TopologyError::TooDeep { line, most: DEPTH }));
        }
        let depth = self.depth + 1;
        Ok(Seed { depth, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        self.node(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        self.node(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        self.node(Value::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        self.node(Value::Integer(value.into()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        self.node(Value::Float)
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        self.node(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let inside = self.inside()?;
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element_seed(inside)? {
            nodes.push(node);
        }
        self.node(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let inside = self.inside()?;
        let mut entries = Vec::new();
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let line = self.place.line();
            if !keys.insert(key.clone()) {
                let key = shown(&key);
                return Err(self.stop(TopologyError::DuplicateKey { line, key }));
            }
            let node = map.next_value_seed(inside)?;
            entries.push(Entry { line, key, node });
        }
        self.node(Value::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_lines() {
        let Value::List(list) = parse("[\n1\n,\n \"a\"\n,\n[\n]\n,null ]").unwrap().value else {
            panic!("no list");
        };
        let lines: Vec<_> = list.iter().map(|node| node.line).collect();
        assert_eq!(lines, [2, 4, 7, 8]);
    }

    #[test]
    fn what_serde_json_would_let_pass_is_refused() {
        let fault = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(
            fault("{\"a\": 1,\n\"a\": 2}"),
            "line 2: key `a` stands twice; expected it once"
        );
        assert_eq!(
            fault("[]\n ]"),
            "line 2, column 2: more text after the end of the JSON; expected nothing"
        );
        assert!(fault(&"[".repeat(100_000)).starts_with("line 1: nested more than 64 deep"));
        assert!(matches!(
            parse("[[1,"),
            Err(TopologyError::Truncated { .. })
        ));
        assert!(matches!(
            parse("[1e999]"),
            Err(TopologyError::Syntax { .. })
        ));
        assert!(matches!(parse("[NaN]"), Err(TopologyError::Syntax { .. })));
    }
}
