//! [`Ask`]: one collective with phantom payload, checked.

use unisono::{Collective, Error, Group, Op, PieceCall, owned};
use unisono_core::Rank;

use crate::cluster::Cluster;
use crate::phantom::{Phantoms, Value};
use crate::report::Outcome;

/// A collective to run with phantom payload: no memory behind it, whatever its size.
///
/// ```
/// use unisono_sim::{Ask, Cluster, Collective, DType, Op, PieceCall};
///
/// // 8 GiB on each of 16 ranks.
/// let call = PieceCall::new(Collective::AllReduce, 1 << 31, DType::F32).op(Op::Sum);
/// let outcome = Cluster::mesh(16).collective(&Ask::new(call).algorithm("ring"));
/// let (right, report) = outcome.into_result()?;
/// assert!(right.iter().all(|right| matches!(right, Ok(true))));
/// assert_eq!(report.bytes(), 2 * 15 << 33);
/// # Ok::<(), unisono_sim::SimError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
#[must_use = "a question is answered by Cluster::collective"]
pub struct Ask {
    /// What to run.
    pub call: PieceCall,
    /// By which algorithm; `None`: the one that would be chosen.
    pub algorithm: Option<String>,
    /// In so many segments; `None`: as many as would be chosen.
    pub segments: Option<u64>,
    /// So many times, one after the other.
    pub rounds: u32,
}

impl Ask {
    /// One round of `call`, algorithm and segments as they would be chosen.
    pub fn new(call: PieceCall) -> Ask {
        Ask {
            call,
            algorithm: None,
            segments: None,
            rounds: 1,
        }
    }

    /// By this algorithm.
    pub fn algorithm(mut self, name: &str) -> Ask {
        self.algorithm = Some(name.to_owned());
        self
    }

    /// In so many segments.
    pub fn segments(mut self, segments: u64) -> Ask {
        self.segments = Some(segments);
        self
    }

    /// So many times.
    pub fn rounds(mut self, rounds: u32) -> Ask {
        self.rounds = rounds;
        self
    }
}

impl Cluster {
    /// Runs a collective with phantom payload on every rank. Each rank gives whether its result is right: the fingerprint
    /// says that every byte holds every contribution it should, once.
    pub fn collective(&self, ask: &Ask) -> Outcome<Result<bool, Error>> {
        self.run_phantom(|group, phantoms| async move {
            let mut group = group;
            if let Some(name) = &ask.algorithm {
                group = group.with_algorithm(name)?;
            }
            if let Some(segments) = ask.segments {
                group = group.with_segments(segments);
            }
            let mut right = true;
            for _ in 0..ask.rounds {
                right &= round(&group, &phantoms, ask.call).await?;
            }
            Ok(right)
        })
    }
}

async fn round(group: &Group, phantoms: &Phantoms, call: PieceCall) -> Result<bool, Error> {
    if call.collective == Collective::Barrier {
        group.start(owned::barrier()).await?;
        return Ok(true);
    }
    let side = Sides::new(group, call);
    let input = phantoms.alloc(side.input)?;
    let output = match side.in_place {
        true => input,
        false => phantoms.alloc(side.output)?,
    };
    phantoms.fill(input, phantoms.contribution(group.rank()));
    group.start_pieces(call, input, output).await?;
    let right = side.expected(group, phantoms).all(|(start, value)| {
        let row = output.slice(start..start + side.row);
        phantoms.value(row) == Some(value)
    });
    phantoms.free(input);
    phantoms.free(output);
    Ok(right)
}

/// What a rank gives and gets, in bytes.
struct Sides {
    call: PieceCall,
    input: usize,
    output: usize,
    /// What is checked at once.
    row: usize,
    in_place: bool,
    at_root: bool,
}

impl Sides {
    fn new(group: &Group, call: PieceCall) -> Sides {
        use Collective as C;
        let row = call.count as usize * call.dtype.size();
        let table = row * group.size() as usize;
        let at_root = group.rank() == call.root;
        let only = |needed: bool, bytes: usize| if needed { bytes } else { 0 };
        let (input, output) = match call.collective {
            C::ReduceScatter => (table, row),
            C::AllGather => (row, table),
            C::Gather => (row, only(at_root, table)),
            C::Scatter => (only(at_root, table), row),
            C::AllToAll => (table, table),
            C::Reduce => (row, only(at_root, row)),
            _ => (row, row),
        };
        Sides {
            call,
            input,
            output,
            row,
            in_place: matches!(call.collective, C::AllReduce | C::Broadcast),
            at_root,
        }
    }

    /// Where in the output a row begins, and what it must hold.
    fn expected<'a>(
        &'a self,
        group: &'a Group,
        phantoms: &'a Phantoms,
    ) -> Box<dyn Iterator<Item = (usize, Value)> + 'a> {
        use Collective as C;
        let (me, p, row) = (group.rank() as usize, group.size(), self.row);
        let of = |rank: Rank| phantoms.contribution(rank);
        let sum = || {
            let all = (1..p).fold(of(0), |sum, rank| sum.plus(of(rank)));
            match self.call.op {
                Some(Op::Avg) => all.finished(),
                _ => all,
            }
        };
        let rows = (0..p).map(move |rank| (rank, rank as usize * row));
        match self.call.collective {
            C::AllReduce => Box::new([(0, sum())].into_iter()),
            C::ReduceScatter => Box::new([(0, sum().at((me * row) as u64))].into_iter()),
            C::Broadcast => Box::new([(0, of(self.call.root))].into_iter()),
            C::Scatter => {
                let value = of(self.call.root).at((me * row) as u64);
                Box::new([(0, value)].into_iter())
            }
            C::Reduce if self.at_root => Box::new([(0, sum())].into_iter()),
            C::Reduce => Box::new([].into_iter()),
            C::Gather if !self.at_root => Box::new([].into_iter()),
            C::AllToAll => Box::new(rows.map(move |(r, at)| (at, of(r).at((me * row) as u64)))),
            _ => Box::new(rows.map(move |(r, at)| (at, of(r)))),
        }
    }
}
