//! The tree, and what stands in it beside the library.

mod api;
mod deploy;
mod fencing;
mod figures;
mod prometheus;
mod scripts;
mod tidy;
