//! The algorithms that can be named.

use std::sync::OnceLock;

use unisono_core::UnknownName;
use unisono_program::Registry;

/// All built-in algorithms.
pub(crate) fn algorithms() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(unisono::registry)
}

/// `name`, if there is such an algorithm.
///
/// # Errors
/// The names that are known.
pub(crate) fn known(name: &str) -> Result<String, UnknownName> {
    algorithms().find(name).map(|a| a.name().to_owned())
}
