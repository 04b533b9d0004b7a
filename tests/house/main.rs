//! The tree, and what stands in it beside the library.

mod api;
mod book;
mod deploy;
mod fencing;
mod figures;
mod pictures;
mod prometheus;
mod readme;
mod release;
mod scripts;
mod texts;
mod tidy;
