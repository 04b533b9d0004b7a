//! What the engine knows of time, by the library's own file.

#[path = "../../src/clock/moment.rs"]
mod moment;

pub(crate) use moment::Moment;
