//! Reading the text form back.

use unisono_core::{Collective, Rank};

use crate::{
    Kind, Lane, LaneKind, Location, Operand, Params, Program, Run, Slot, Span, Stage, Wait,
};

/// What does not read as the text form of a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column in bytes, from 1.
    pub column: usize,
    /// What would have been right there.
    pub expected: &'static str,
}

/// The programs that `text` describes, in its order: what `Display` and [`set`](super::set) write.
///
/// Nothing is inferred, and nothing checked beyond the form.
///
/// # Errors
/// [`ParseError`] names the first place that does not read.
pub fn parse(text: &str) -> Result<Vec<Program>, ParseError> {
    let mut header: Option<Program> = None;
    let mut programs: Vec<(Program, Vec<(u64, Lane)>)> = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut r = Reader::new(number, line);
        if line.contains(": ") {
            header = Some(r.header()?);
        } else if line.starts_with("rank ") {
            let header = header
                .clone()
                .ok_or_else(|| r.error("a header before the first rank"))?;
            programs.push((r.rank(header)?, Vec::new()));
        } else {
            let Some((program, lanes)) = programs.last_mut() else {
                return Err(r.error("a header"));
            };
            let mut rows = vec![(number, line)];
            let further = |l: &str| l.starts_with("   ");
            while let Some(row) = lines.next_if(|(_, l)| further(l)) {
                rows.push(row);
            }
            // Read once more for each lane of the group.
            for j in 0..lane(&rows, 0, program)?.2 {
                let (index, lane, _) = lane(&rows, j, program)?;
                lanes.push((index, lane));
            }
        }
    }
    let finish = |(mut program, mut lanes): (Program, Vec<(u64, Lane)>)| {
        lanes.sort_by_key(|(index, _)| *index);
        program.lanes = lanes.into_iter().map(|(_, lane)| lane).collect();
        program
    };
    Ok(programs.into_iter().map(finish).collect())
}

/// Lane `j` of a group: its index, itself, and the size of the group.
fn lane(rows: &[(usize, &str)], j: i64, p: &Program) -> Result<(u64, Lane, i64), ParseError> {
    let mut head = None;
    let mut runs = Vec::new();
    let mut steps = 0;
    for &(number, line) in rows {
        let mut r = Reader::new(number, line);
        r.j = j;
        if head.is_none() {
            r.expect("lane", "`lane`")?;
            let index = r.affine()?.value(0);
            let group = r.times()?;
            head = Some((index, r.lane_kind(p)?, group));
        }
        if !r.done() {
            let run = r.run(p)?;
            steps += run.count;
            runs.push(run);
        }
    }
    let (index, kind, group) = head.expect("a lane has a first row");
    Ok((index as u64, Lane { kind, steps, runs }, group))
}

/// A value at k = 0, and its stride along a run.
struct Value {
    c: i64,
    k: i64,
}

impl Value {
    fn value(&self, modulus: u64) -> i64 {
        if modulus == 0 {
            self.c
        } else {
            self.c.rem_euclid(modulus as i64)
        }
    }
}

/// A place in a line, and the values of the variables j and i there.
struct Reader<'a> {
    number: usize,
    line: &'a str,
    at: usize,
    j: i64,
    i: i64,
}

type Parsed<T> = Result<T, ParseError>;

impl<'a> Reader<'a> {
    fn new(number: usize, line: &'a str) -> Self {
        Reader {
            number,
            line,
            at: 0,
            j: 0,
            i: 0,
        }
    }

    fn error(&self, expected: &'static str) -> ParseError {
        ParseError {
            line: self.number + 1,
            column: self.at + 1,
            expected,
        }
    }

    /// What is left, without leading blanks.
    fn rest(&mut self) -> &'a str {
        let rest = self.line[self.at..].trim_start();
        self.at = self.line.len() - rest.len();
        rest
    }

    fn done(&mut self) -> bool {
        self.rest().is_empty()
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn expect(&mut self, word: &str, expected: &'static str) -> Parsed<()> {
        if self.eat(word) {
            Ok(())
        } else {
            Err(self.error(expected))
        }
    }

    fn number<T: std::str::FromStr>(&mut self) -> Parsed<T> {
        let rest = self.rest();
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let number = rest[..digits].parse().map_err(|_| self.error("a number"))?;
        self.at += digits;
        Ok(number)
    }

    /// ` xN`, 1 where there is none.
    fn times(&mut self) -> Parsed<i64> {
        if self.eat("x") { self.number() } else { Ok(1) }
    }

    /// Terms such as `3`, `-k`, `+2j`.
    fn affine(&mut self) -> Parsed<Value> {
        let mut v = Value { c: 0, k: 0 };
        let mut first = true;
        loop {
            let sign = if self.eat("-") {
                -1
            } else if self.eat("+") || first {
                1
            } else {
                return Ok(v);
            };
            first = false;
            let bare = !self.rest().starts_with(|c: char| c.is_ascii_digit());
            let by = sign * if bare { 1 } else { self.number::<i64>()? };
            if self.eat("k") {
                v.k = v.k.wrapping_add(by);
            } else if self.eat("j") {
                v.c = v.c.wrapping_add(by.wrapping_mul(self.j));
            } else if self.eat("i") {
                v.c = v.c.wrapping_add(by.wrapping_mul(self.i));
            } else if bare {
                return Err(self.error("a number or k, j, i"));
            } else {
                v.c = v.c.wrapping_add(by);
            }
        }
    }

    /// Items with `between` between them; `item xN` stands for N items.
    fn list<T>(&mut self, between: &str, item: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        loop {
            let start = self.at;
            items.push(item(self)?);
            let times = self.times()?;
            let end = self.at;
            for i in 1..times {
                (self.at, self.i) = (start, i);
                items.push(item(self)?);
            }
            (self.at, self.i) = (end, 0);
            if !self.eat(between) {
                return Ok(items);
            }
        }
    }

    fn header(&mut self) -> Parsed<Program> {
        let colon = self.line.rfind(": ").unwrap_or(0);
        let Some((algorithm, collective)) = self.line[..colon].rsplit_once(' ') else {
            return Err(self.error("an algorithm and a collective"));
        };
        let collective = Collective::ALL
            .into_iter()
            .chain([Collective::Send, Collective::Recv])
            .find(|c| c.name() == collective)
            .ok_or_else(|| self.error("a collective"))?;
        self.at = colon + 2;
        let size: Rank = self.number()?;
        self.expect(if size == 1 { "rank" } else { "ranks" }, "ranks")?;
        self.expect(", ", "blocks")?;
        let blocks: u64 = self.number()?;
        self.expect(if blocks == 1 { "block" } else { "blocks" }, "blocks")?;
        let mut program = Program {
            algorithm: algorithm.to_owned(),
            params: Params::default(),
            collective,
            rank: 0,
            size,
            root: 0,
            blocks,
            subs: 1,
            lanes: Vec::new(),
            slots: Vec::new(),
            homeless: Vec::new(),
            commutative: true,
            average: false,
        };
        while self.eat(", ") {
            if self.eat("root ") {
                program.root = self.number()?;
            } else if self.eat("operands in rank order") {
                program.commutative = false;
            } else if self.eat("average") {
                program.average = true;
            } else {
                let n: u32 = self.number()?;
                if self.eat("copies") {
                    program.subs = n;
                } else {
                    self.expect("channels", "copies or channels")?;
                    let channels = n.try_into().map_err(|_| self.error("fewer channels"))?;
                    program.params = Params::default().with_channels(channels);
                }
            }
        }
        if self.done() {
            Ok(program)
        } else {
            Err(self.error("the end of the line"))
        }
    }

    fn rank(&mut self, mut program: Program) -> Parsed<Program> {
        self.expect("rank ", "a rank")?;
        program.rank = self.number()?;
        let list = |r: &mut Self, p: &Program| r.list(", ", |r| Ok(r.span(p, false)?.0));
        if self.eat("scratch like ") {
            let likes = list(self, &program)?;
            program.slots = likes.into_iter().map(|s| Slot { like: s.first }).collect();
        }
        if self.eat("without output home ") {
            program.homeless = list(self, &program)?;
        }
        if self.done() {
            Ok(program)
        } else {
            Err(self.error("the end of the line"))
        }
    }

    fn lane_kind(&mut self, p: &Program) -> Parsed<LaneKind> {
        let peer = |r: &mut Self| Ok(r.affine()?.value(p.size.into()) as Rank);
        let channel = |r: &mut Self| if r.eat("ch ") { r.number() } else { Ok(0) };
        if self.eat("to ") {
            let (peer, channel) = (peer(self)?, channel(self)?);
            Ok(LaneKind::Send { peer, channel })
        } else if self.eat("from ") {
            let (peer, channel) = (peer(self)?, channel(self)?);
            Ok(LaneKind::Recv { peer, channel })
        } else {
            self.expect("local", "`to`, `from` or `local`")?;
            let channel = channel(self)?;
            Ok(LaneKind::Local { channel })
        }
    }

    fn run(&mut self, p: &Program) -> Parsed<Run> {
        self.expect("#", "a step")?;
        let start = self.number()?;
        let count = self.times()? as u64;
        let verbs = [
            ("sync_to", Kind::SyncTo),
            ("sync_from", Kind::SyncFrom),
            ("send ", Kind::Send),
            ("recv_reduce ", Kind::RecvReduce),
            ("recv ", Kind::Recv),
            ("reduce ", Kind::Reduce { finish: false }),
            ("copy ", Kind::Copy),
        ];
        let verb = verbs.into_iter().find(|(verb, _)| self.eat(verb));
        let (_, mut kind) = verb.ok_or_else(|| self.error("what the step does"))?;
        let nothing = Operand {
            span: Span { first: 0, len: 0 },
            stride: 0,
            location: Location::Work,
        };
        let sync = matches!(kind, Kind::SyncTo | Kind::SyncFrom);
        let target = if sync { nothing } else { self.operand(p)? };
        let sources = match self.eat("= ") {
            true => self.list("+ ", |r| r.operand(p))?.into(),
            false => Box::default(),
        };
        if self.eat(", finish") {
            kind = Kind::Reduce { finish: true };
        }
        let waits = match self.eat("after ") {
            true => self.list(", ", Self::wait)?,
            false => Vec::new(),
        };
        let stage = match self.eat("@(") {
            true => Some(self.stage()?),
            false => None,
        };
        if !self.done() {
            return Err(self.error("the end of the line"));
        }
        Ok(Run {
            start,
            count,
            kind,
            target,
            sources,
            waits,
            stage,
        })
    }

    fn operand(&mut self, p: &Program) -> Parsed<Operand> {
        let scratch = self.eat("scratch");
        let location = if scratch || self.eat("work") {
            Location::Work
        } else if self.eat("input") {
            Location::Input
        } else {
            self.expect("mixed(", "a place")?;
            let parts = self.list(", ", |r| {
                let n = r.number()?;
                let work = r.eat("work");
                if !work {
                    r.expect("input", "`work` or `input`")?;
                }
                Ok((n, work))
            })?;
            self.expect(")", "`)`")?;
            Location::Mixed(parts.into())
        };
        let (span, stride) = self.span(p, scratch)?;
        Ok(Operand {
            span,
            stride,
            location,
        })
    }

    fn span(&mut self, p: &Program, scratch: bool) -> Parsed<(Span, i64)> {
        self.expect("[", "`[`")?;
        let first = self.affine()?;
        let len = if self.eat(";") { self.number()? } else { 1 };
        self.expect("]", "`]`")?;
        let (base, modulus) = if scratch {
            (p.data_indices(), 0)
        } else {
            let copy: u64 = if self.eat(".") { self.number()? } else { 0 };
            (copy.wrapping_mul(p.blocks), p.blocks)
        };
        let first_index = base.checked_add_signed(first.value(modulus));
        let first_index = first_index.ok_or_else(|| self.error("an index of 0 or more"))?;
        let span = Span {
            first: first_index,
            len,
        };
        Ok((span, first.k))
    }

    fn wait(&mut self) -> Parsed<Wait> {
        let lane = self.affine()?.value(0);
        let lane = lane.try_into().map_err(|_| self.error("a lane"))?;
        self.expect("#", "`#`")?;
        let step = self.affine()?;
        Ok(Wait {
            lane,
            step: step.c,
            stride: step.k,
            whole: self.eat("*"),
        })
    }

    fn stage(&mut self) -> Parsed<(Stage, Stage)> {
        let hops = self.affine()?;
        self.expect(",", "`,`")?;
        let offset = self.affine()?;
        self.expect(")", "`)`")?;
        let stage = |hops, offset| Stage { hops, offset };
        Ok((stage(hops.c, offset.c), stage(hops.k, offset.k)))
    }
}
