//! What has to be asked before each connection: where the server is, and with which credentials.

use std::{sync::Arc, time::Duration};

use fred::types::config::Config;
use tokio::time;

use super::{
    Address,
    address::server_at,
    identity::Met,
    link::{CONNECTING, Link, Router},
    sentinel::{Lookout, Primary},
};
use crate::{
    clock::{Clock, Moment},
    voter::Identity,
};

/// Between two questions to the sentinels while a connection stands.
const INTERVAL: Duration = Duration::from_secs(1);
/// For how long scripts leave by a connection that no majority of the sentinels confirms.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest that connecting may take, however far away the server is.
const LONGEST_CONNECTING: Duration = Duration::from_secs(4);
/// Sentinels tell each other of a failover every two seconds; once that may be lost.
const TOLD: Duration = Duration::from_secs(4);

/// Finds out how to connect, anew each time.
pub(super) struct Dialer {
    address: Address,
    lookout: Option<Lookout>,
    /// How often the server was found to be a replica.
    demotions: u64,
    /// Whom it met last, and the tenure that was told last of that one.
    latest: Option<(String, Option<String>)>,
    /// How long the next attempt to connect may take.
    patience: Duration,
    /// How many messages may wait on the connection.
    backlog: usize,
}

/// Whom a majority of the sentinels named, and when they were asked.
#[derive(Clone)]
pub(super) struct Named {
    primary: Primary,
    asked: Moment,
}

impl Named {
    /// Until when scripts may leave to it, unless it is named again.
    pub(super) fn trusted_until(&self) -> Moment {
        self.asked + PATIENCE
    }
}

impl Dialer {
    pub(super) fn new(address: Address, backlog: usize) -> Self {
        let lookout =
            address.sentinels.as_ref().map(|sentinels| Lookout::new(Arc::clone(sentinels)));
        Self { address, lookout, demotions: 0, latest: None, patience: CONNECTING, backlog }
    }

    /// Connects, to whom the sentinels name where there are any. A server that is too far away for
    /// the time that it had gets more the next time.
    pub(super) async fn connect(&mut self) -> Result<(Arc<Link>, Router, Option<Named>), Arc<str>> {
        let (config, primary) = self.dial().await?;
        let started = Clock::System.now();
        let connected = Link::connected(config, self.patience, self.backlog).await;
        let took = Clock::System.now().since(started);
        if connected.is_ok() || took >= self.patience {
            self.patience = (2 * took).clamp(CONNECTING, LONGEST_CONNECTING);
        }
        connected.map(|(link, router)| (link, router, primary))
    }

    /// What the next connection is made with, and whom the sentinels name.
    pub(super) async fn dial(&mut self) -> Result<(Config, Option<Named>), Arc<str>> {
        let mut config = self.address.secured.fresh().await?;
        let asked = Clock::System.now();
        let primary = match &mut self.lookout {
            Some(lookout) => Some(Named { primary: lookout.ask().await?, asked }),
            None => None,
        };
        if let Some(Named { primary: Primary { host, port, .. }, .. }) = &primary {
            config.server = server_at(host, *port);
        }
        if let Some(provider) = &self.address.provider {
            let credentials = provider.ask(self.address.label()).await?;
            (config.username, config.password) = (credentials.user, Some(credentials.password));
        }
        Ok((config, primary))
    }

    /// The server was found to be a replica.
    pub(super) fn demoted(&mut self) {
        self.demotions += 1;
    }

    /// Who a server is since it last became a primary, for whoever keeps account of what it may
    /// have forgotten: another with each promotion. As one that sentinels name it is as young as
    /// its promotion, what it has on disk need not be what its predecessor had, and clients that
    /// did not hear of the promotion counted what that one granted until their patience ended.
    pub(super) fn since_promotion(
        &mut self,
        Met { identity, tenure, .. }: &mut Met,
        named: Option<&Named>,
    ) -> Identity {
        if let Some(Named { primary, .. }) = named {
            identity.age = identity.age.min(primary.tenure);
            identity.durable = false;
            if primary.epoch > 0 {
                identity.overlap = TOLD + PATIENCE;
            }
        }
        let promotions = self.demotions + named.map_or(0, |named| named.primary.epoch);
        let mut told = identity.clone();
        if promotions > 0 {
            // Not in the other, by which two voters are known to be one server.
            told.run_id = format!("{}/{promotions}", identity.run_id);
        }
        // A server forgets its tenure, and goes on all the same.
        let former = self.latest.take().filter(|(run_id, _)| *run_id == identity.run_id);
        let tenure = tenure.clone().or_else(|| former?.1);
        if let Some(tenure) = &tenure {
            told.run_id = format!("{}/{tenure}", told.run_id);
        }
        self.latest = Some((identity.run_id.clone(), tenure));
        told
    }

    /// Completes, with the reason, when the connection to this primary is to be given up because
    /// the sentinels name another one, or because no majority of them says anything any more: a
    /// primary that is cut off from them with this client may have a successor that others use.
    pub(super) async fn superseded(&mut self, link: &Link, named: Option<Named>) -> Arc<str> {
        let (Some(lookout), Some(mut named)) = (&mut self.lookout, named) else {
            return std::future::pending().await;
        };
        loop {
            time::sleep(INTERVAL).await;
            let asked = Clock::System.now();
            match lookout.ask().await {
                Ok(primary) if primary.is_same(&named.primary) => {
                    named.asked = asked;
                    link.trust_until(named.trusted_until());
                }
                Ok(other) => return format!("the sentinels name {other} now").into(),
                Err(why) if Clock::System.now() >= named.trusted_until() => return why,
                Err(_) => {}
            }
        }
    }
}
