//! The tree, and what stands in it beside the library.

mod book;
mod deploy;
mod fencing;
mod prometheus;
mod release;
mod scripts;
mod tidy;
mod tree;
