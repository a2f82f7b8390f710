//! Text to a tree of values that know their lines.
//!
//! One tree for JSON and TOML, so that our own format is read once. The parsers are those of `serde_json` and `toml`; what
//! they do not refuse by themselves (keys that stand twice, text after the end) is refused here.

mod json;
mod node;
mod toml;

pub(crate) use node::{Node, Object, Value};

use crate::TopologyError;

/// Lists within lists that are followed; the formats need five.
const DEPTH: usize = 64;

/// The value of a text, and whether it was TOML.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Node, bool), TopologyError> {
    // What some editors put in front of UTF-8.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|e| TopologyError::NotUtf8 {
        offset: e.valid_up_to(),
    })?;
    match looks_like(text) {
        None => Err(TopologyError::Empty),
        Some(Language::Json) => Ok((json::parse(text)?, false)),
        Some(Language::Toml) => Ok((toml::parse(text)?, true)),
    }
}

#[derive(Debug, PartialEq)]
enum Language {
    Json,
    Toml,
}

/// By the first characters: `{`, `"` and numbers are JSON; names and comments are TOML; `[` is TOML if a table's name follows.
fn looks_like(text: &str) -> Option<Language> {
    let text = text.trim_start();
    let word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let json_word = |w: &str| ["null", "true", "false"].contains(&w);
    match text.chars().next()? {
        '[' => {
            let inner = text.strip_prefix("[[").unwrap_or(&text[1..]);
            let name = &inner[..inner.find(|c| !word(c)).unwrap_or(inner.len())];
            let closed = inner[name.len()..].starts_with(']');
            let table = closed && name.starts_with(|c: char| c.is_ascii_alphabetic());
            match table && !json_word(name) {
                true => Some(Language::Toml),
                false => Some(Language::Json),
            }
        }
        '#' | '\'' => Some(Language::Toml),
        c if c.is_ascii_alphabetic() || c == '_' => match json_word(text.trim_end()) {
            true => Some(Language::Json),
            false => Some(Language::Toml),
        },
        _ => Some(Language::Json),
    }
}

/// A text as it may stand in a message of one line.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 80;
    let mut shown: String = text
        .chars()
        .take(MOST)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(MOST).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_by_the_first_characters() {
        use Language::{Json, Toml};
        for text in [
            "[]", "[[null]]", " [ [", "{}", "\"x\"", "3", "null", "[[nu", "[null]", "-", "[[",
            "[\"a\"]",
        ] {
            assert_eq!(looks_like(text), Some(Json), "{text}");
        }
        for text in ["ranks = 1", "# x", "[rdma]", "[[links]]", "true = 1", "_x"] {
            assert_eq!(looks_like(text), Some(Toml), "{text}");
        }
        assert_eq!(looks_like(" \n "), None);
    }

    #[test]
    fn shown_text_is_one_short_line() {
        assert_eq!(shown("a\nb"), "a\\nb");
        assert_eq!(shown(&"x".repeat(200)).len(), 83);
    }
}
