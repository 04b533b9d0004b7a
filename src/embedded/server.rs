//! The voter's inside: its data, its connections, and what happens to both.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::runtime::Handle;

use super::{
    channels::ConnectionId,
    command::Database,
    fault::FaultRules,
    keyspace::Keyspace,
    life::{LifeNews, ServerLife},
    link::{Caller, Parcel, Telling, Wire},
    lua,
    observe::RunObserver,
    reply::Reply,
    wall::Wall,
};
use crate::clock::{Clock, Moment};

/// One embedded voter.
pub(super) struct Server {
    pub(super) label: Arc<str>,
    clock: Clock,
    state: Mutex<ServerState>,
}

/// Whether requests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerCondition {
    Running,
    /// They wait.
    Stopped,
    /// There are no connections.
    Killed,
}

/// What the voter's lock guards.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) database: Database,
    pub(super) condition: ServerCondition,
    pub(super) life: ServerLife,
    /// What is on its disk, and since when nothing more gets there.
    disk: Option<(Moment, Keyspace)>,
    pub(super) rules: FaultRules,
    pub(super) links: BTreeMap<ConnectionId, Wire>,
    /// Counts connections and requests, to tell them apart and to keep their order.
    counted: u64,
    /// How often each script ran for a client.
    pub(super) runs: BTreeMap<&'static str, u64>,
    pub(super) observer: Option<RunObserver>,
    pub(super) wall: Wall,
    pub(super) now: Moment,
    pub(super) after: After,
}

/// What is left to do once the lock is free.
#[derive(Default)]
pub(super) struct After {
    pub(super) heard: Vec<Telling>,
    /// When to look again, and on whose runtime.
    pub(super) timers: Vec<(Handle, Moment)>,
    /// To be dropped: an ear may own things that come back here when they are dropped.
    pub(super) over: Vec<Wire>,
}

impl Server {
    pub(super) fn new(label: Arc<str>, clock: Clock) -> Self {
        let now = clock.now();
        let state = ServerState {
            database: Database::default(),
            condition: ServerCondition::Running,
            life: ServerLife::first(now),
            disk: None,
            rules: FaultRules::default(),
            links: BTreeMap::new(),
            counted: 0,
            runs: BTreeMap::new(),
            observer: None,
            wall: Wall::new(),
            now,
            after: After::default(),
        };
        Self { label, clock, state: Mutex::new(state) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something at the present time, and then everything that has become due.
    pub(super) fn act<T>(self: &Arc<Self>, action: impl FnOnce(&mut ServerState) -> T) -> T {
        let mut state = self.lock();
        state.set_time(self.clock.now());
        let result = action(&mut state);
        state.settle();
        let after = std::mem::take(&mut state.after);
        drop(state);
        for (runtime, at) in after.timers {
            runtime.spawn(Arc::clone(self).wake(at));
        }
        for heard in after.heard {
            let Some((met, lacks)) = heard.tell() else { continue };
            let mut state = self.lock();
            if lacks {
                let now = state.now;
                state.life.rename(now);
            }
            if let Some(link) = state.links.get_mut(&met) {
                link.unmet -= 1;
            }
        }
        result
    }

    /// Does what is due at `at`.
    async fn wake(self: Arc<Self>, at: Moment) {
        self.clock.sleep_until(at).await;
        self.act(|_| ());
    }
}

impl ServerState {
    pub(super) fn command(&mut self, words: &[&str]) -> Result<Reply, String> {
        if self.condition == ServerCondition::Killed {
            return Err("connection refused".into());
        }
        self.database.begin_script(false);
        let reply = lua::command(&mut self.database, words)?;
        if words[0].eq_ignore_ascii_case("FLUSHALL") {
            self.life.wipe(self.now);
        }
        Ok(reply)
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.database.keyspace.keys().map(str::to_owned).collect()
    }

    pub(super) fn subscriptions(&self) -> Vec<String> {
        self.database.channels.subscriptions().map(str::to_owned).collect()
    }

    pub(super) fn wipe(&mut self) {
        self.database.keyspace.clear();
        self.life.wipe(self.now);
    }

    pub(super) fn kill(&mut self) {
        self.condition = ServerCondition::Killed;
        for (id, link) in &mut self.links {
            self.after.heard.extend(link.break_off("killed"));
            link.ghosts.clear();
            self.database.channels.unsubscribe_all(*id);
        }
    }

    /// From now on nothing gets to its disk.
    pub(super) fn lose_writes(&mut self) {
        self.disk = Some((self.now, self.database.keyspace.clone()));
    }

    /// A `durable` restart keeps the data that are on the disk.
    pub(super) fn restart(&mut self, durable: bool) {
        self.kill();
        self.condition = ServerCondition::Running;
        let mut kept = self.now;
        if let Some((at, keyspace)) = self.disk.take() {
            (kept, self.database.keyspace) = (at, keyspace);
            self.set_time(self.now);
        }
        self.life.next(durable, kept, self.now);
        if !durable {
            self.wipe();
        }
        let news = self.news();
        for (id, link) in &mut self.links {
            self.after.heard.extend(reconnect(&mut self.database, *id, link, &news));
        }
    }

    pub(super) fn stop(&mut self) {
        if self.condition == ServerCondition::Running {
            self.condition = ServerCondition::Stopped;
        }
    }

    pub(super) fn resume(&mut self) {
        if self.condition == ServerCondition::Stopped {
            self.condition = ServerCondition::Running;
        }
    }

    /// Connects a client, where the voter is not dead.
    pub(super) fn connect(&mut self, caller: Caller) -> ConnectionId {
        let id = self.count();
        let mut link = Wire::new(id, caller);
        if self.condition != ServerCondition::Killed {
            self.after.heard.push(link.meets(&self.news()));
        }
        self.links.insert(id, link);
        id
    }

    /// What is told on a connection that stands from now on.
    pub(super) fn news(&self) -> LifeNews {
        // No clock shows a time before 1970.
        let shown = u64::try_from(self.wall.micros(self.now)).unwrap_or(0);
        LifeNews { identity: self.life.identity(self.now), shown: Duration::from_micros(shown) }
    }

    pub(super) fn close(&mut self, id: ConnectionId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.closed = true;
            self.after.heard.extend(link.parts(None));
            link.wanted.clear();
            self.database.channels.unsubscribe_all(id);
        }
    }

    pub(super) fn set_time(&mut self, now: Moment) {
        self.now = now;
        self.database.keyspace.set_time(self.wall.micros(now));
    }

    pub(super) fn count(&mut self) -> u64 {
        self.counted += 1;
        self.counted
    }

    pub(super) fn jump_clock(&mut self, micros: i64) {
        // A server deletes what has expired, so setting its clock back does not bring that back.
        self.database.keyspace.sweep_all();
        self.wall.jump(micros, self.now);
        self.set_time(self.now);
    }
}

impl After {
    pub(super) fn post(&mut self, link: &mut Wire, now: Moment, at: Moment, parcel: Parcel) {
        let at = link.back.push(at, parcel);
        if at > now {
            self.timers.push((link.runtime.clone(), at));
        }
    }
}

/// Listens again to all that the connection wants to hear. Its ear is to be told, if the client is
/// still there.
pub(super) fn reconnect(
    database: &mut Database,
    id: ConnectionId,
    link: &mut Wire,
    news: &LifeNews,
) -> Vec<Telling> {
    for channel in &link.wanted {
        database.channels.subscribe(id, Arc::clone(channel));
    }
    if link.closed { Vec::new() } else { vec![link.meets(news), link.misses()] }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("label", &self.label).finish_non_exhaustive()
    }
}

impl fmt::Debug for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("After").field("timers", &self.timers.len()).finish_non_exhaustive()
    }
}
