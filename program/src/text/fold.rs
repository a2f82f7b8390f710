//! Folding evenly advancing items of the text form into one, as runs fold evenly advancing steps.
//!
//! An item is a row of tokens. Items fold when they have the same words and each number advances by a constant from
//! one to the next: `recv scratch[0]`, `recv scratch[1]`, ... become `recv scratch[j]`.

use std::borrow::Cow;
use std::fmt::Write;

/// `c + k*by[0] + j*by[1] + i*by[2]`, modulo `modulus` unless that is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Affine {
    c: i64,
    by: [i64; 3],
    modulus: u64,
}

const NAMES: [char; 3] = ['k', 'j', 'i'];

impl Affine {
    pub(super) fn number(c: i64, modulus: u64) -> Affine {
        Affine {
            c,
            by: [0; 3],
            modulus,
        }
    }

    pub(super) fn with(mut self, variable: usize, stride: i64) -> Affine {
        self.by[variable] = stride;
        self
    }

    /// What takes `self` to `next`: the representative nearest to zero.
    fn step(&self, next: &Affine) -> Option<i64> {
        if self.by != next.by || self.modulus != next.modulus {
            return None;
        }
        Some(self.centred(next.c - self.c))
    }

    fn centred(&self, d: i64) -> i64 {
        let m = self.modulus as i64;
        if m == 0 {
            return d;
        }
        let d = d.rem_euclid(m);
        if d * 2 > m { d - m } else { d }
    }

    fn write(&self, out: &mut String) {
        let mut empty = true;
        for (by, name) in self.by.iter().zip(NAMES) {
            let sign = match by {
                0 => continue,
                _ if *by < 0 => "-",
                _ if empty && self.c == 0 => "",
                _ => "+",
            };
            if empty && self.c != 0 {
                let _ = write!(out, "{}", self.c);
            }
            empty = false;
            out.push_str(sign);
            if by.abs() != 1 {
                let _ = write!(out, "{}", by.abs());
            }
            out.push(name);
        }
        if empty {
            let _ = write!(out, "{}", self.c);
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Text(Cow<'static, str>),
    Number(Affine),
    /// The next cell of a row.
    Cell,
    /// The end of a row.
    Row,
}

impl From<Affine> for Token {
    fn from(a: Affine) -> Token {
        Token::Number(a)
    }
}

/// `count` items, of which `tokens` is the first with the advance of its numbers.
pub(super) struct Group {
    pub(super) tokens: Vec<Token>,
    pub(super) count: usize,
}

/// Fewer items than this stay as they are: they are easier to read one by one.
const FEWEST: usize = 5;

/// Folds `items` over `variable`; items may repeat in periods of up to `longest`.
pub(super) fn fold(items: &[Vec<Token>], variable: usize, longest: usize) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut at = 0;
    while at < items.len() {
        let best = (1..=longest)
            .map(|period| (repeats(&items[at..], period), period))
            .filter(|(count, _)| *count >= FEWEST)
            .max_by_key(|(count, period)| (count * period, std::cmp::Reverse(*period)));
        let (count, period) = best.unwrap_or((1, 1));
        for first in at..at + period {
            let tokens = match items.get(first + period).filter(|_| count > 1) {
                Some(second) => advancing(&items[first], second, variable),
                None => items[first].clone(),
            };
            groups.push(Group { tokens, count });
        }
        at += count * period;
    }
    groups
}

/// How often the first `period` items repeat with a constant advance.
fn repeats(items: &[Vec<Token>], period: usize) -> usize {
    if items.len() < 2 * period || (0..period).any(|i| !alike(&items[i], &items[i + period])) {
        return 1;
    }
    let mut count = 2;
    while items.len() >= (count + 1) * period
        && (0..period).all(|i| {
            let now = &items[count * period + i];
            continues(
                &items[i],
                &items[period + i],
                &items[(count - 1) * period + i],
                now,
            )
        })
    {
        count += 1;
    }
    count
}

fn alike(a: &[Token], b: &[Token]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| match (a, b) {
            (Token::Number(a), Token::Number(b)) => a.step(b).is_some(),
            _ => a == b,
        })
}

/// Whether `now` follows `last` as `second` follows `first`.
fn continues(first: &[Token], second: &[Token], last: &[Token], now: &[Token]) -> bool {
    let ends = first.iter().zip(second).zip(last);
    alike(last, now)
        && ends.zip(now).all(
            |(((first, second), last), now)| match (first, second, last, now) {
                (Token::Number(f), Token::Number(s), Token::Number(l), Token::Number(n)) => {
                    f.step(s) == l.step(n)
                }
                _ => true,
            },
        )
}

fn advancing(first: &[Token], second: &[Token], variable: usize) -> Vec<Token> {
    let pairs = first.iter().zip(second);
    pairs
        .map(|(a, b)| match (a, b) {
            (Token::Number(a), Token::Number(b)) => {
                Token::Number(a.with(variable, a.step(b).unwrap_or(0)))
            }
            _ => a.clone(),
        })
        .collect()
}

/// The tokens as one text.
pub(super) fn plain(tokens: &[Token]) -> String {
    let mut out = String::new();
    for token in tokens {
        match token {
            Token::Text(s) => out.push_str(s),
            Token::Number(a) => a.write(&mut out),
            Token::Cell | Token::Row => out.push(' '),
        }
    }
    out
}

/// Adds the rows and cells of `tokens`.
pub(super) fn rows(tokens: &[Token], rows: &mut Vec<Vec<String>>) {
    let mut row = vec![String::new()];
    for token in tokens {
        let cell = row.last_mut().expect("a row has a cell");
        match token {
            Token::Text(s) => cell.push_str(s),
            Token::Number(a) => a.write(cell),
            Token::Cell => row.push(String::new()),
            Token::Row => {
                rows.push(std::mem::replace(&mut row, vec![String::new()]));
            }
        }
    }
}
