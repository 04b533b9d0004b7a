//! What operators see of locks, and end by force, whatever the kind.

mod clear;
mod end;
mod look;
