//! Reduction operators. Their codes travel in frames and never change.

use std::fmt;
use std::str::FromStr;

use crate::{DType, UnknownName};

/// How two elements become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// Sum. Integers wrap.
    Sum,
    /// Product. Integers wrap.
    Prod,
    /// The smaller one; NaN wins, and -0 is smaller than +0.
    Min,
    /// The larger one; NaN wins, and -0 is smaller than +0.
    Max,
    /// Sum divided by the number of ranks; floats only.
    Avg,
    /// An operator that the user registered.
    User(UserOp),
}

/// A registered operator as programs and frames see it: a number, and whether operands may change places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UserOp {
    id: u16,
    commutative: bool,
}

impl UserOp {
    /// The first code of user operators.
    pub const FIRST: u16 = 0x8000;

    /// The operator with this number, counted from 0; `None` when it does not fit.
    pub fn new(number: u16, commutative: bool) -> Option<UserOp> {
        let id = Self::FIRST.checked_add(number)?;
        Some(UserOp { id, commutative })
    }

    /// The number it was made with.
    pub const fn number(self) -> u16 {
        self.id - Self::FIRST
    }
}

impl Op {
    /// The operators that need no registration.
    pub const BUILT_IN: [Op; 5] = [Op::Sum, Op::Prod, Op::Min, Op::Max, Op::Avg];

    /// The code in frames; 0 means "no operator" (broadcast and the like).
    pub const fn code(self) -> u16 {
        match self {
            Op::Sum => 1,
            Op::Prod => 2,
            Op::Min => 3,
            Op::Max => 4,
            Op::Avg => 5,
            Op::User(user) => user.id,
        }
    }

    /// Whether operands may change places.
    pub const fn commutative(self) -> bool {
        match self {
            Op::User(user) => user.commutative,
            _ => true,
        }
    }

    /// Whether the operator exists for this element type. User operators say so at run time.
    pub const fn accepts(self, dtype: DType) -> bool {
        match self {
            Op::Avg => dtype.is_float(),
            _ => true,
        }
    }

    /// The name: `sum`, `prod`, `min`, `max`, `avg`, `user`.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Sum => "sum",
            Op::Prod => "prod",
            Op::Min => "min",
            Op::Max => "max",
            Op::Avg => "avg",
            Op::User(_) => "user",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::User(user) => write!(f, "user{}", user.number()),
            other => f.pad(other.name()),
        }
    }
}

impl FromStr for Op {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::BUILT_IN
            .into_iter()
            .find(|o| o.name() == name)
            .ok_or_else(|| {
                UnknownName::new("operator", name, Self::BUILT_IN.iter().map(|o| o.name()))
            })
    }
}
