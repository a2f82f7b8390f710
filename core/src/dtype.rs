//! Element types. The discriminants travel in frames and never change.

use std::fmt;
use std::str::FromStr;

use crate::UnknownName;

/// The type of one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum DType {
    /// Signed 8-bit integer.
    I8 = 0,
    /// Signed 16-bit integer.
    I16 = 1,
    /// Signed 32-bit integer.
    I32 = 2,
    /// Signed 64-bit integer.
    I64 = 3,
    /// Unsigned 8-bit integer.
    U8 = 4,
    /// Unsigned 16-bit integer.
    U16 = 5,
    /// Unsigned 32-bit integer.
    U32 = 6,
    /// Unsigned 64-bit integer.
    U64 = 7,
    /// IEEE 754 binary16.
    F16 = 8,
    /// bfloat16: the upper half of an IEEE 754 binary32.
    BF16 = 9,
    /// IEEE 754 binary32.
    F32 = 10,
    /// IEEE 754 binary64.
    F64 = 11,
}

impl DType {
    /// Every element type, in the order of their codes.
    pub const ALL: [DType; 12] = [
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    /// Whether the type has fractions (and so an average).
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// The code in frames.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The type with this code.
    pub fn from_code(code: u8) -> Option<DType> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The name: `f32`, `bf16`, `u8`, ...
    pub const fn name(self) -> &'static str {
        match self {
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|d| d.name() == name)
            .ok_or_else(|| UnknownName::new("dtype", name, Self::ALL.iter().map(|d| d.name())))
    }
}
