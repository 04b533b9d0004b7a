//! What a voter inside the process says of itself, and which locks it knows.

use std::{collections::BTreeSet, time::Duration};

use super::server::{ServerCondition, ServerState};
use crate::{
    proto::{Cause, ClockOffset, Persistence, ServerInfo},
    voter::{KeySearch, KeysFound, Outcome},
};

impl ServerState {
    /// Whether it answers, and why it does not.
    fn answers(&self) -> Outcome<()> {
        match self.condition {
            ServerCondition::Running => Ok(()),
            ServerCondition::Stopped => Err(Cause::Unreachable("stopped".into())),
            ServerCondition::Killed => Err(Cause::Unreachable("killed".into())),
        }
    }

    /// `wall`: what the client's clock shows.
    pub(super) fn survey(&self, wall: Duration) -> Outcome<ServerInfo> {
        self.answers()?;
        let news = self.news();
        let durable = news.identity.durable;
        Ok(ServerInfo {
            run_id: news.identity.run_id,
            software: "embedded".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            is_primary: true,
            uptime: self.life.uptime(self.now),
            replicas: 0,
            memory_used: 0,
            memory_limit: None,
            eviction_policy: "noeviction".into(),
            persistence: Persistence {
                appendonly: durable,
                appendfsync: Some(if durable { "always" } else { "no" }.into()),
                no_appendfsync_on_rewrite: Some(false),
                save: Some(String::new()),
                ..Persistence::default()
            },
            needs_all_slots: None,
            clock: Some(ClockOffset::new(news.shown, wall, Duration::ZERO)),
            missing_rights: Vec::new(),
        })
    }

    /// Of patterns it knows names, and names with a star at their end.
    pub(super) fn search(
        &self,
        KeySearch { keys, names, limit }: &KeySearch,
    ) -> Outcome<KeysFound> {
        self.answers()?;
        let fits = |name: &str| match names.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => *name == **names,
        };
        let found = self.database.keyspace.keys().filter_map(|key| keys.found(key));
        let locks: BTreeSet<_> = found.filter(|found| fits(&found.name)).collect();
        Ok(KeysFound { is_complete: locks.len() <= *limit, locks })
    }
}
