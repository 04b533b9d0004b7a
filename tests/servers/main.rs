//! What only real servers can do: fail over, stop, forget, be cut off, speak TLS.

mod cluster;
mod faults;
mod handover;
mod harness;
mod replicas;
mod rubbish;
mod secure;
mod sentinel;
mod survey;
