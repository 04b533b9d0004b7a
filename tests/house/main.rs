//! The tree, and what stands in it beside the library.

mod address;
mod book;
mod deploy;
mod fencing;
mod prometheus;
mod readme;
mod release;
mod scripts;
mod tidy;
