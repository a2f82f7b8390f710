//! The tree of values, and the questions that readers ask of it.

use crate::error::Kind;
use crate::{TopologyError, text::shown};

/// A value and the line where it ends (JSON) or begins (TOML).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    /// Read only to say that it does not belong here.
    Float,
    Date,
    Text(String),
    List(Vec<Node>),
    Object(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) line: usize,
    pub(crate) key: String,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn kind(&self) -> Kind {
        match &self.value {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Integer(_) | Value::Float => Kind::Number,
            Value::Date => Kind::Date,
            Value::Text(_) => Kind::Text,
            Value::List(_) => Kind::List,
            Value::Object(_) => Kind::Object,
        }
    }

    pub(crate) fn wrong(&self, place: &str, expected: &'static str) -> TopologyError {
        TopologyError::WrongType {
            line: self.line,
            place: place.to_owned(),
            found: self.kind(),
            expected,
        }
    }

    pub(crate) fn text(&self, place: &str, expected: &'static str) -> Result<&str, TopologyError> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong(place, expected)),
        }
    }

    pub(crate) fn list(
        &self,
        place: &str,
        expected: &'static str,
    ) -> Result<&[Node], TopologyError> {
        match &self.value {
            Value::List(list) => Ok(list),
            _ => Err(self.wrong(place, expected)),
        }
    }

    /// A whole number of `least` to `most`.
    pub(crate) fn number(
        &self,
        place: &str,
        expected: &'static str,
        (least, most): (u64, u64),
    ) -> Result<u64, TopologyError> {
        match self.value {
            Value::Integer(n) if (i128::from(least)..=i128::from(most)).contains(&n) => {
                Ok(n as u64)
            }
            Value::Integer(number) => Err(TopologyError::OutOfRange {
                line: self.line,
                place: place.to_owned(),
                number,
                least,
                most,
            }),
            _ => Err(self.wrong(place, expected)),
        }
    }

    pub(crate) fn texts(
        &self,
        place: &str,
        expected: &'static str,
    ) -> Result<Vec<&str>, TopologyError> {
        let list = self.list(place, expected)?.iter().enumerate();
        list.map(|(i, node)| node.text(&format!("{place}[{i}]"), expected))
            .collect()
    }

    pub(crate) fn object<'a>(
        &'a self,
        place: &str,
        expected: &'static str,
    ) -> Result<Object<'a>, TopologyError> {
        match &self.value {
            Value::Object(entries) => Ok(Object {
                line: self.line,
                place: place.to_owned(),
                entries,
            }),
            _ => Err(self.wrong(place, expected)),
        }
    }
}

/// An object and where it stands.
pub(crate) struct Object<'a> {
    pub(crate) line: usize,
    place: String,
    entries: &'a [Entry],
}

impl<'a> Object<'a> {
    pub(crate) fn find(&self, key: &str) -> Option<&'a Node> {
        let entry = self.entries.iter().find(|entry| entry.key == key);
        entry.map(|entry| &entry.node)
    }

    pub(crate) fn need(
        &self,
        key: &'static str,
        expected: &'static str,
    ) -> Result<&'a Node, TopologyError> {
        self.find(key).ok_or_else(|| TopologyError::MissingKey {
            line: self.line,
            place: self.name(),
            key,
            expected,
        })
    }

    /// The path to the value of a key.
    pub(crate) fn path(&self, key: &str) -> String {
        match self.place.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.place),
        }
    }

    /// Refuses every other key.
    pub(crate) fn only(&self, known: &'static [&'static str]) -> Result<(), TopologyError> {
        let other = |entry: &&Entry| !known.contains(&entry.key.as_str());
        match self.entries.iter().find(other) {
            None => Ok(()),
            Some(entry) => Err(TopologyError::UnknownKey {
                line: entry.line,
                place: self.name(),
                key: shown(&entry.key),
                known,
            }),
        }
    }

    fn name(&self) -> String {
        match self.place.is_empty() {
            true => "the file".to_owned(),
            false => self.place.clone(),
        }
    }
}
