//! Ports that stay free between a server's death and its restart.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Below every system's ephemeral range: a client's own end can never sit on a port that a dead
/// server wants back. A cluster bus (port + 10000) lies below that range too, and above this one.
const FIRST: u16 = 11_000;
/// Ports are shared out by the hundred, so that a port which a test leaves free for a moment is
/// taken by no other process.
const BLOCK: u16 = 100;
const BLOCKS: u16 = 100;

static OURS: Mutex<Ours> = Mutex::new(Ours { blocks: Vec::new(), handed_out: 0 });

/// The blocks of this process.
struct Ours {
    /// Whoever listens at a block's first port has the block, until its process ends.
    blocks: Vec<(u16, TcpListener)>,
    handed_out: usize,
}

/// A port of 127.0.0.1 that nobody listens on now. Neither this process nor another one that asks
/// here gets it again before all others have been used.
pub fn free_port() -> u16 {
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..u32::from(BLOCK) * u32::from(BLOCKS) {
        let port = ours.next();
        if listen(port).is_some() {
            return port;
        }
    }
    panic!("no port of 127.0.0.1 is free between {FIRST} and {}", FIRST + BLOCK * BLOCKS - 1);
}

impl Ours {
    /// From a new block when all ports of ours have been handed out; where no block is left, ours
    /// once more.
    fn next(&mut self) -> u16 {
        let usable = usize::from(BLOCK - 1);
        if self.handed_out == self.blocks.len() * usable {
            match claim() {
                Some(block) => self.blocks.push(block),
                None => self.handed_out = 0,
            }
        }
        let at = self.handed_out;
        self.handed_out += 1;
        let (first, _) = self.blocks.get(at / usable).expect("there is a block for each process");
        // The first port is the one that shows whose the block is.
        first + 1 + u16::try_from(at % usable).expect("a block is small")
    }
}

/// A block that nobody has.
fn claim() -> Option<(u16, TcpListener)> {
    let firsts = (0..BLOCKS).map(|block| FIRST + block * BLOCK);
    firsts.into_iter().find_map(|first| Some((first, listen(first)?)))
}

fn listen(port: u16) -> Option<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()
}
