//! Questions to one server, on a connection of their own.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{
    Address,
    dial::Dialer,
    info,
    link::{CONNECTING, Link, NO_BACKLOG, Router},
    replies,
};
use crate::{proto::Cause, scripts::Value, voter::Outcome};

/// The longest time for a connection, without that for the credentials; and for an answer.
const LONGEST: Duration = Duration::from_secs(1);

/// A connection for questions. It is never made again.
#[derive(Debug)]
pub(in crate::voter) struct Inquirer {
    pub(in crate::voter) address: Address,
    link: Arc<Link>,
    _router: Router,
}

impl Inquirer {
    pub(in crate::voter) async fn connect(address: Address) -> Outcome<Self> {
        // The user's function has a limit of its own.
        let mut dialer = Dialer::new(address.clone(), NO_BACKLOG);
        let (config, _) = dialer.dial().await.map_err(Cause::Unreachable)?;
        let connected = Link::connected(config, CONNECTING, NO_BACKLOG);
        let connected = time::timeout(LONGEST, connected).await;
        let connected =
            connected.unwrap_or_else(|_| Err(format!("no connection within {LONGEST:?}").into()));
        let (link, router) = connected.map_err(Cause::Unreachable)?;
        Ok(Self { address, link, _router: router })
    }

    pub(in crate::voter) async fn ask(
        &self,
        name: &'static str,
        words: &[&'static str],
    ) -> Outcome<Value> {
        let answer = async { info::ask(&self.link, name, words).await.and_then(replies::value) };
        time::timeout(LONGEST, answer).await.unwrap_or(Err(Cause::TimedOut(LONGEST)))
    }

    /// What one setting of the server is; nothing where it does not tell.
    pub(in crate::voter) async fn setting(&self, name: &'static str) -> Option<String> {
        time::timeout(LONGEST, info::setting(&self.link, name)).await.ok()?.ok()?
    }
}
