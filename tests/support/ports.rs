//! Ports that stay free between a server's death and its restart.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below every system's ephemeral range: a client's own end can never sit on a port that a dead
/// server wants back. A cluster bus (port + 10000) lies below that range too, and above this one.
const FIRST: u32 = 11_000;
const COUNT: u32 = 10_000;

/// A port of 127.0.0.1 that nobody listens on now and this process has not handed out lately.
///
/// Another process may still take it before the caller listens: the caller then asks again.
pub fn free_port() -> u16 {
    static HANDED_OUT: AtomicU32 = AtomicU32::new(0);
    // Neighbouring process ids start far from each other.
    let start = process::id().wrapping_mul(7919);
    for _ in 0..COUNT {
        let offset = start.wrapping_add(HANDED_OUT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = u16::try_from(FIRST + offset).expect("the range ends below 65536");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port of 127.0.0.1 is free between {FIRST} and {}", FIRST + COUNT - 1);
}
