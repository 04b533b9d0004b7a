//! One question to one server, on a connection of its own.

use std::time::Duration;

use fred::types::config::{Server, ServerConfig};
use tokio::time;

use super::{Address, FEW, address::named, identity, link::Link, replies};
use crate::{node::Outcome, scripts::Value, words::Cause};

/// The longest that it may take, with the connection.
const LONGEST: Duration = Duration::from_secs(1);

impl Address {
    /// The same way to log in, at another server.
    pub(in crate::node) fn at(&self, host: &str, port: u16) -> Self {
        let server = named(Server::new(host.to_owned(), port), host);
        let server = ServerConfig::Centralized { server };
        self.with_server(format!("{host}:{port}").into(), server)
    }

    /// Connects, asks this, and leaves.
    pub(in crate::node) async fn ask(
        &self,
        name: &'static str,
        words: &[&'static str],
    ) -> Outcome<Value> {
        let link = Link::once(self, FEW);
        let mut router = link.connect();
        let answer = async { identity::ask(&link, name, words).await.and_then(replies::value) };
        tokio::select! {
            biased;
            answer = time::timeout(LONGEST, answer) => {
                answer.unwrap_or(Err(Cause::TimedOut(LONGEST)))
            }
            () = router.ended() => Err(Cause::Unreachable(link.trouble())),
        }
    }
}
