//! One question to one server, on a connection of its own.

use std::time::Duration;

use tokio::time;

use super::{Address, FEW, dial::Dialer, info, replies};
use crate::{node::Outcome, scripts::Value, words::Cause};

/// The longest that it may take, with the connection but without the credentials.
const LONGEST: Duration = Duration::from_secs(1);

impl Address {
    /// Connects, asks this, and leaves.
    pub(in crate::node) async fn ask(
        &self,
        name: &'static str,
        words: &[&'static str],
    ) -> Outcome<Value> {
        // The user's function has a limit of its own.
        let mut dialer = Dialer::new(self.clone());
        let dialed = dialer.dial().await.map_err(Cause::Unreachable)?;
        let answer = async {
            let (link, _router) =
                dialer.connect(dialed.config, FEW).await.map_err(Cause::Unreachable)?;
            info::ask(&link, name, words).await.and_then(replies::value)
        };
        time::timeout(LONGEST, answer).await.unwrap_or(Err(Cause::TimedOut(LONGEST)))
    }
}
