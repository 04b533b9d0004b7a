//! A cluster of real servers.
