//! Every algorithm of the workspace, with every call that it supports.

#[path = "../../../checks.rs"]
mod checks;

use std::fmt;
use std::sync::Arc;

use checks::roots;
use unisono_core::{Collective, Rank};
use unisono_program::{Algorithm, Context, Program, Registry, build_all};

/// All algorithms that come with the workspace.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::new();
    unisono_ring::register(&mut registry);
    unisono_mesh::register(&mut registry);
    unisono_tree::register(&mut registry);
    unisono_butterfly::register(&mut registry);
    unisono_dissemination::register(&mut registry);
    registry
}

/// What the operator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operator {
    /// Operands may change places; also where nothing is reduced.
    Commutative,
    /// Operands stay in rank order.
    InOrder,
    /// Operands may change places, and the result is divided by the number of ranks.
    Average,
}

/// The operators worth telling apart.
fn operators(collective: Collective) -> &'static [Operator] {
    use Operator::{Average, Commutative, InOrder};
    match collective.reduces() {
        true => &[Commutative, InOrder, Average],
        false => &[Commutative],
    }
}

/// One call of one algorithm that supports it.
pub(crate) struct Call {
    pub(crate) algorithm: Arc<dyn Algorithm>,
    pub(crate) operator: Operator,
    pub(crate) context: Context,
}

impl Call {
    /// The programs of all ranks.
    pub(crate) fn programs(&self) -> Vec<Arc<Program>> {
        build_all(&*self.algorithm, &self.context).unwrap_or_else(|e| panic!("{self}: {e}"))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, cx) = (self.algorithm.name(), &self.context);
        let (collective, p, root) = (cx.collective(), cx.size(), cx.root());
        let operator = self.operator;
        write!(f, "{name} {collective} p={p} root={root} {operator:?}")
    }
}

/// Every call on `p` linked ranks that some algorithm supports.
pub(crate) fn calls(p: Rank) -> Vec<Call> {
    let mut calls = Vec::new();
    for algorithm in registry().iter() {
        for collective in Collective::ALL {
            for root in roots(collective, p) {
                for &operator in operators(collective) {
                    let context = Context::full(collective, 0, p)
                        .with_root(root)
                        .with_commutative(operator != Operator::InOrder)
                        .with_average(operator == Operator::Average);
                    if algorithm.supports(&context).is_ok() {
                        calls.push(Call {
                            algorithm: Arc::clone(algorithm),
                            operator,
                            context,
                        });
                    }
                }
            }
        }
    }
    calls
}
