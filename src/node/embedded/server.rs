//! The voter's inside: its data, its connections, and what happens to both.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::runtime::Handle;

use super::{
    channels::ConnectionId,
    commands::Database,
    fault::Rules,
    link::{Heard, Link, Parcel},
    lua,
    observe::Observer,
    reply::Reply,
    wall::Wall,
};
use crate::{
    clock::{Clock, Moment},
    node::Ear,
};

/// One embedded voter.
pub(super) struct Server {
    pub(super) label: Arc<str>,
    clock: Clock,
    state: Mutex<State>,
}

/// Whether requests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Running,
    /// They wait.
    Stopped,
    /// There are no connections.
    Killed,
}

/// What the voter's lock guards.
#[derive(Debug)]
pub(super) struct State {
    pub(super) database: Database,
    pub(super) condition: Condition,
    pub(super) run_id: String,
    pub(super) rules: Rules,
    pub(super) links: BTreeMap<ConnectionId, Link>,
    /// Counts connections and requests, to tell them apart and to keep their order.
    counted: u64,
    /// How often each script ran for a client.
    pub(super) runs: BTreeMap<&'static str, u64>,
    pub(super) observer: Option<Observer>,
    pub(super) wall: Wall,
    pub(super) now: Moment,
    pub(super) after: After,
}

/// What is left to do once the lock is free.
#[derive(Default)]
pub(super) struct After {
    pub(super) heard: Vec<Heard>,
    /// When to look again, and on whose runtime.
    pub(super) timers: Vec<(Handle, Moment)>,
    /// To be dropped: an ear may own things that come back here when they are dropped.
    pub(super) over: Vec<Link>,
}

impl Server {
    pub(super) fn new(label: Arc<str>, clock: Clock) -> Self {
        let state = State {
            database: Database::default(),
            condition: Condition::Running,
            run_id: fresh_run_id(),
            rules: Rules::default(),
            links: BTreeMap::new(),
            counted: 0,
            runs: BTreeMap::new(),
            observer: None,
            wall: Wall::new(),
            now: clock.now(),
            after: After::default(),
        };
        Self { label, clock, state: Mutex::new(state) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something at the present time, and then everything that has become due.
    pub(super) fn act<T>(self: &Arc<Self>, action: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        state.set_time(self.clock.now());
        let result = action(&mut state);
        state.settle();
        let after = std::mem::take(&mut state.after);
        drop(state);
        for (runtime, at) in after.timers {
            runtime.spawn(Arc::clone(self).wake(at));
        }
        after.heard.into_iter().for_each(Heard::tell);
        result
    }

    /// Does what is due at `at`.
    async fn wake(self: Arc<Self>, at: Moment) {
        self.clock.sleep_until(at).await;
        self.act(|_| ());
    }
}

impl State {
    pub(super) fn command(&mut self, words: &[&str]) -> Result<Reply, String> {
        match self.condition {
            Condition::Killed => Err("connection refused".into()),
            _ => lua::command(&mut self.database, words),
        }
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.database.keyspace.keys().map(str::to_owned).collect()
    }

    pub(super) fn subscriptions(&self) -> Vec<String> {
        self.database.channels.subscriptions().map(str::to_owned).collect()
    }

    pub(super) fn wipe(&mut self) {
        self.database.keyspace.clear();
    }

    pub(super) fn kill(&mut self) {
        self.condition = Condition::Killed;
        for (id, link) in &mut self.links {
            link.break_off("killed");
            link.ghosts.clear();
            self.database.channels.unsubscribe_all(*id);
        }
    }

    pub(super) fn restart(&mut self) {
        self.kill();
        self.condition = Condition::Running;
        self.run_id = fresh_run_id();
        for (id, link) in &self.links {
            self.after.heard.extend(reconnect(&mut self.database, *id, link));
        }
    }

    pub(super) fn stop(&mut self) {
        if self.condition == Condition::Running {
            self.condition = Condition::Stopped;
        }
    }

    pub(super) fn resume(&mut self) {
        if self.condition == Condition::Stopped {
            self.condition = Condition::Running;
        }
    }

    /// Connects a client; one without a name is called by the number of its connection.
    pub(super) fn connect(
        &mut self,
        client: Option<Arc<str>>,
        ear: Arc<dyn Ear>,
        runtime: Handle,
    ) -> ConnectionId {
        let id = self.count();
        let client = client.unwrap_or_else(|| id.to_string().into());
        self.links.insert(id, Link::new(client, ear, runtime));
        id
    }

    pub(super) fn close(&mut self, id: ConnectionId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.closed = true;
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
}

impl After {
    pub(super) fn post(&mut self, link: &mut Link, now: Moment, at: Moment, parcel: Parcel) {
        let at = link.back.push(at, parcel);
        if at > now {
            self.timers.push((link.runtime.clone(), at));
        }
    }
}

/// Listens again to all that the connection wants to hear. Its ear is to be told, if the client is
/// still there.
pub(super) fn reconnect(database: &mut Database, id: ConnectionId, link: &Link) -> Option<Heard> {
    for channel in &link.wanted {
        database.channels.subscribe(id, Arc::clone(channel));
    }
    (!link.closed).then(|| link.hears(None))
}

fn fresh_run_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:040x}", NEXT.fetch_add(1, Ordering::Relaxed))
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
