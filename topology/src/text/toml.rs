//! TOML: what `toml` parses, with a line for every value.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::node::{Entry, Node, Value};
use super::{DEPTH, shown};
use crate::TopologyError;

pub(super) fn parse(text: &str) -> Result<Node, TopologyError> {
    let lines = Lines::new(text);
    let table = DeTable::parse(text).map_err(|e| fault(&e, text, &lines))?;
    let line = lines.of(table.span().start).0;
    let value = Value::Object(lines.entries(table.get_ref(), DEPTH)?);
    Ok(Node { line, value })
}

/// The parser tells its faults apart by words only; tests hold us to them, and other words make a fault of syntax.
fn fault(e: &toml::de::Error, text: &str, lines: &Lines) -> TopologyError {
    let at = e.span().map_or(0, |span| span.start);
    let (line, column) = lines.of(at);
    let message = e.message();
    if message.starts_with("duplicate key") {
        let key = e.span().and_then(|span| text.get(span)).unwrap_or_default();
        let key = shown(key.trim_matches(['[', ']', '"', '\'']));
        return TopologyError::DuplicateKey { line, key };
    }
    if message.contains("recursion") {
        return TopologyError::TooDeep { line, most: DEPTH };
    }
    if at >= text.trim_end().len() {
        return TopologyError::Truncated {
            line,
            column,
            language: "TOML",
        };
    }
    TopologyError::Syntax {
        line,
        column,
        language: "TOML",
        reason: shown(message),
    }
}

/// Where lines begin.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn new(text: &str) -> Lines {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines {
            starts: std::iter::once(0).chain(after).collect(),
        }
    }

    /// Line and column of a byte, from 1.
    fn of(&self, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|&start| start <= at);
        (line, at - self.starts[line - 1] + 1)
    }

    fn entries(&self, table: &DeTable<'_>, depth: usize) -> Result<Vec<Entry>, TopologyError> {
        table
            .iter()
            .map(|(key, value)| {
                Ok(Entry {
                    line: self.of(key.span().start).0,
                    key: key.get_ref().to_string(),
                    node: self.node(value, depth)?,
                })
            })
            .collect()
    }

    fn node(&self, value: &Spanned<DeValue<'_>>, depth: usize) -> Result<Node, TopologyError> {
        let line = self.of(value.span().start).0;
        let Some(inside) = depth.checked_sub(1) else {
            return Err(TopologyError::TooDeep { line, most: DEPTH });
        };
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(n) => {
                i128::from_str_radix(n.as_str(), n.radix()).map_or(Value::Float, Value::Integer)
            }
            DeValue::Float(_) => Value::Float,
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(_) => Value::Date,
            DeValue::Array(list) => {
                let nodes = list.iter().map(|value| self.node(value, inside));
                Value::List(nodes.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => Value::Object(self.entries(table, inside)?),
        };
        Ok(Node { line, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_line() {
        let fault = |text: &str| parse(text).unwrap_err();
        assert!(matches!(
            fault("a = 1\na = 2"),
            TopologyError::DuplicateKey { line: 2, key } if key == "a"
        ));
        assert!(matches!(
            fault("a = 1\nb ="),
            TopologyError::Truncated { line: 2, .. }
        ));
        assert!(matches!(
            fault("a = 1\nb = [1,"),
            TopologyError::Truncated { line: 2, .. }
        ));
        assert!(matches!(
            fault("a = x\nb = 1"),
            TopologyError::Syntax { line: 1, .. }
        ));
    }

    #[test]
    fn depth_is_bounded_however_it_is_written() {
        let deep = |n: usize| {
            [
                format!("a = {}", "[".repeat(n)),
                format!("a = {}{}", "[".repeat(n), "]".repeat(n)),
                format!("a = {}", "{a=".repeat(n)),
                format!("{}a = 1", "a.".repeat(n)),
                format!("[{}a]", "a.".repeat(n)),
                format!("[[{}a]]", "a.".repeat(n)),
                format!("x = {{{}a = 1}}", "a . ".repeat(n)),
            ]
        };
        for n in [100, 1000, 10_000, 200_000] {
            for text in deep(n) {
                let fault = parse(&text).unwrap_err();
                assert!(
                    matches!(fault, TopologyError::TooDeep { .. }),
                    "{n}, {}: {fault}",
                    &text[..20]
                );
            }
        }
    }

    #[test]
    fn numbers_beyond_128_bits_are_still_numbers() {
        let node = parse(&format!("a = {}", "9".repeat(60)));
        if let Ok(node) = node {
            let Value::Object(entries) = node.value else {
                panic!("no table");
            };
            assert_eq!(entries[0].node.value, Value::Float);
        }
    }
}
