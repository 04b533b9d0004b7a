//! What has to be asked before each connection: where the server is, and with which credentials.

use std::{sync::Arc, time::Duration};

use fred::types::config::Config;
use tokio::time;

use super::{
    Address,
    address::server_at,
    identity::Met,
    sentinel::{Lookout, Primary},
};
use crate::{clock::Clock, node::Identity};

/// Between two questions to the sentinels while a connection stands.
const INTERVAL: Duration = Duration::from_secs(1);
/// For how long a connection stands although no majority of the sentinels confirms it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Finds out how to connect, anew each time.
#[derive(Debug)]
pub(super) struct Dialer {
    address: Address,
    lookout: Option<Lookout>,
    /// How often the server was found to be a replica.
    demotions: u64,
    /// Whom it met last, and the tenure that was told last of that one.
    latest: Option<(String, Option<String>)>,
}

/// What one connection is made with.
pub(super) struct Dialed {
    pub(super) config: Config,
    /// Whom the sentinels name, where there are any.
    pub(super) primary: Option<Primary>,
}

impl Dialer {
    pub(super) fn new(address: Address) -> Self {
        let lookout = address.sentinels().map(|sentinels| Lookout::new(Arc::clone(sentinels)));
        Self { address, lookout, demotions: 0, latest: None }
    }

    pub(super) async fn dial(&mut self) -> Result<Dialed, Arc<str>> {
        let mut config = self.address.config().clone();
        let primary = match &mut self.lookout {
            Some(lookout) => Some(lookout.ask().await?),
            None => None,
        };
        if let Some(Primary { host, port, .. }) = &primary {
            config.server = server_at(host, *port);
        }
        if let Some(provider) = self.address.provider() {
            let credentials = provider.ask(self.address.label()).await?;
            let (user, password) = credentials.into_parts();
            (config.username, config.password) = (user, Some(password));
        }
        Ok(Dialed { config, primary })
    }

    /// The server was found to be a replica.
    pub(super) fn demoted(&mut self) {
        self.demotions += 1;
    }

    /// Who a server is since it last became a primary, for whoever keeps account of what it may
    /// have forgotten: another with each promotion. As one that sentinels name it is as young as
    /// its promotion, and what it has on disk need not be what its predecessor had.
    pub(super) fn since_promotion(
        &mut self,
        Met { identity, tenure, .. }: &mut Met,
        primary: Option<&Primary>,
    ) -> Identity {
        if let Some(primary) = primary {
            identity.age = identity.age.min(primary.tenure);
            identity.durable = false;
        }
        let promotions = self.demotions + primary.map_or(0, |primary| primary.epoch);
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
    pub(super) async fn superseded(&mut self, primary: Option<&Primary>) -> Arc<str> {
        let (Some(lookout), Some(primary)) = (&mut self.lookout, primary) else {
            return std::future::pending().await;
        };
        let mut confirmed = Clock::System.now();
        loop {
            time::sleep(INTERVAL).await;
            match lookout.ask().await {
                Ok(named) if named.is_same(primary) => confirmed = Clock::System.now(),
                Ok(named) => return format!("the sentinels name {named} now").into(),
                Err(why) if Clock::System.now().since(confirmed) > PATIENCE => return why,
                Err(_) => {}
            }
        }
    }
}
