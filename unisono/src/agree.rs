//! Full check: what all ranks are about to do is compared before anything is touched.

use unisono_contract::memory::{lend, lend_shared};
use unisono_contract::{Field, Opening};
use unisono_control::{Cause, Kind, Operation};
use unisono_core::{Collective, DType, Rank};

use crate::launch::Memory;
use crate::plans::{Spec, Tuning};
use crate::state::value;
use crate::{Error, Group};

const BYTES: usize = 32;

impl Group {
    /// Compares `spec` with what all other ranks call; every rank finds the same difference.
    pub(crate) fn agree(&self, spec: &Spec) -> Result<(), Error> {
        let mine = self.opening(spec)?.encode();
        let mut all = vec![0u8; BYTES * self.size() as usize];
        let exchange = Spec {
            collective: Collective::AllGather,
            count: BYTES as u64,
            dtype: DType::U8,
            op: None,
            root: 0,
        };
        lend_shared(&mine, |input| {
            lend(&mut all, |output| {
                let memory = Memory { input, output };
                let tuning = Tuning::default();
                let ticket = self
                    .shared
                    .submit(exchange, &tuning, memory.input, memory.output)?;
                self.finish(Some(ticket))
            })
        })?;
        let rows = all.chunks_exact(BYTES).map(|row| match row.try_into() {
            Ok(row) => Opening::decode(row),
            Err(_) => unreachable!("rows are as long as openings"),
        });
        let mut rows = rows.zip(0..);
        let Some((first, _)) = rows.next() else {
            return Ok(());
        };
        match rows.find_map(|(row, rank)| difference(&first, &row).map(|d| (rank, d))) {
            None => Ok(()),
            Some((rank, difference)) => Err(self.disagree(spec, &first, rank, difference)),
        }
    }

    fn opening(&self, spec: &Spec) -> Result<Opening, Error> {
        let choice = self.shared.lock().plans.choose(*spec, &self.tuning)?;
        let name = choice.algorithm.name().bytes();
        let hash = name.fold(choice.segments, |h, b| h.wrapping_mul(31) ^ u64::from(b));
        Ok(Opening {
            collective: spec.collective.code(),
            dtype: spec.dtype.code(),
            op: spec.op.map_or(0, |op| op.code()),
            root: if spec.collective.is_rooted() {
                spec.root
            } else {
                0
            },
            count: spec.count,
            plan: hash.wrapping_mul(31) ^ u64::from(choice.params.channels),
        })
    }

    fn disagree(&self, spec: &Spec, first: &Opening, rank: Rank, found: Difference) -> Error {
        let (field, mine, theirs) = found;
        let name = Collective::name_of_code(first.collective).unwrap_or(spec.collective.name());
        let mut core = self.shared.lock();
        let sequence = core.next_sequence();
        let cause = Cause::new(
            0,
            Some(Operation { name, sequence }),
            Kind::Mismatch {
                rank,
                field: field.to_string(),
                mine: value(field, mine),
                theirs: value(field, theirs),
            },
        );
        core.fail_with(cause)
    }
}

type Difference = (Field, u64, u64);

fn difference(a: &Opening, b: &Opening) -> Option<Difference> {
    [
        (Field::Collective, a.collective.into(), b.collective.into()),
        (Field::Dtype, a.dtype.into(), b.dtype.into()),
        (Field::Op, a.op.into(), b.op.into()),
        (Field::Root, a.root.into(), b.root.into()),
        (Field::Count, a.count, b.count),
        (Field::Plan, a.plan, b.plan),
    ]
    .into_iter()
    .find(|(_, a, b)| a != b)
}
