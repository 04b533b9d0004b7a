//! Servers that are reached by TLS, by a Unix socket, and as users with few rights or with
//! passwords that change; and addresses in parts.

mod address;
mod credentials;
mod rights;
mod socket;
mod tls;
