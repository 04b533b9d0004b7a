//! Servers that are reached by TLS, by a Unix socket, and as users with few rights or with
//! passwords that change.

mod credentials;
mod rights;
mod socket;
mod tls;
