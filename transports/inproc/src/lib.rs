//! Under construction.
#![cfg_attr(loom, allow(dead_code))]
mod ring;
mod sync;
