//! The program `quorate`, driven as its users drive it, against real servers.
//!
//! `tests/run cli` builds the program first, and says where it is. The processes of a command are
//! looked for in `/proc`.

#![cfg(target_os = "linux")]

mod agent;
mod bench;
mod break_hold;
mod codes;
#[cfg(feature = "full")]
mod container;
mod deploy;
mod doctor;
mod full_pipe;
mod listen;
mod losses;
mod once;
mod processes;
mod program;
mod quarantine;
mod rolled;
mod screen;
mod settings;
mod signals;
mod status;
mod takeovers;
mod terminal;
mod tickets;
mod trees;
mod try_out;
mod upgrade;
mod voters;
