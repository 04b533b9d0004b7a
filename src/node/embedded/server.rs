//! The voter's inside: its data, its connections, and what happens to both.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{runtime::Handle, sync::oneshot};

use super::{
    channels::ConnectionId,
    fault::{Rules, Trouble},
    link::{Heard, Letter, Link, Parcel, Request, tell},
    lua::Interpreter,
    observe::Observer,
    reply::Reply,
    wall::Wall,
};
use crate::{
    clock::{Clock, Moment},
    node::{Ear, Outcome},
    scripts::Value,
    words::Cause,
};

/// One embedded voter.
pub(super) struct Server {
    pub(super) label: Arc<str>,
    clock: Clock,
    state: Mutex<State>,
}

/// Whether requests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Running,
    /// They wait.
    Stopped,
    /// There are no connections.
    Killed,
}

/// What the voter's lock guards.
#[derive(Debug)]
pub(super) struct State {
    pub(super) interpreter: Interpreter,
    condition: Condition,
    run_id: String,
    pub(super) rules: Rules,
    links: BTreeMap<ConnectionId, Link>,
    /// Counts connections and requests, to tell them apart and to keep their order.
    counted: u64,
    /// How often each script ran for a client.
    pub(super) runs: BTreeMap<&'static str, u64>,
    pub(super) observer: Option<Observer>,
    pub(super) wall: Wall,
    pub(super) now: Moment,
    after: After,
}

/// What is left to do once the lock is free.
#[derive(Default)]
struct After {
    heard: Vec<Heard>,
    timers: Vec<(Handle, Moment)>,
    /// To be dropped: an ear may own things that come back here when they are dropped.
    over: Vec<Link>,
}

impl Server {
    pub(super) fn new(label: Arc<str>, clock: Clock) -> Self {
        let state = State {
            interpreter: Interpreter::new(),
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
            _ => self.interpreter.command(words),
        }
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.interpreter.database().keyspace.keys().map(str::to_owned).collect()
    }

    pub(super) fn subscriptions(&self) -> Vec<String> {
        self.interpreter.database().channels.subscriptions().map(str::to_owned).collect()
    }

    pub(super) fn wipe(&mut self) {
        self.interpreter.database().keyspace.clear();
    }

    pub(super) fn kill(&mut self) {
        self.condition = Condition::Killed;
        for (id, link) in &mut self.links {
            link.break_off("killed");
            self.interpreter.database().channels.unsubscribe_all(*id);
        }
    }

    pub(super) fn restart(&mut self) {
        self.kill();
        self.condition = Condition::Running;
        self.run_id = fresh_run_id();
        for (id, link) in &self.links {
            self.after.heard.push(reconnect(&self.interpreter, *id, link));
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

    pub(super) fn connect(&mut self, ear: Arc<dyn Ear>, runtime: Handle) -> ConnectionId {
        let id = self.count();
        self.links.insert(id, Link::new(id.to_string().into(), ear, runtime));
        id
    }

    pub(super) fn close(&mut self, id: ConnectionId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.closed = true;
            link.wanted.clear();
            self.interpreter.database().channels.unsubscribe_all(id);
        }
    }

    /// Sends a request on its way.
    pub(super) fn send(
        &mut self,
        id: ConnectionId,
        request: Request,
    ) -> oneshot::Receiver<Outcome<Value>> {
        let number = self.count();
        let (answer, receiver) = oneshot::channel();
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.closed) else {
            tell(answer, Err(Cause::Unreachable("closed".into())));
            return receiver;
        };
        match &request {
            Request::Subscribe(channel) => drop(link.wanted.insert(Arc::clone(channel))),
            Request::Unsubscribe(channel) => drop(link.wanted.remove(channel)),
            Request::Run(_) | Request::Identify => {}
        }
        if self.condition == Condition::Killed {
            tell(answer, Err(Cause::Unreachable("killed".into())));
            return receiver;
        }
        let fate = self.rules.fate();
        if fate.trouble == Trouble::RequestLost {
            link.forsake(answer);
            return receiver;
        }
        let letter = Letter { number, request, fate, answer };
        let at = link.there.push(self.now + fate.there, letter);
        if at > self.now {
            self.after.timers.push((link.runtime.clone(), at));
        }
        receiver
    }

    pub(super) fn set_time(&mut self, now: Moment) {
        self.now = now;
        self.interpreter.database().keyspace.set_time(self.wall.micros(now));
    }

    fn count(&mut self) -> u64 {
        self.counted += 1;
        self.counted
    }

    /// Does everything that is due, in the order of arrival.
    fn settle(&mut self) {
        loop {
            self.announce();
            for link in self.links.values_mut() {
                link.deliver(self.now, &mut self.after.heard);
            }
            let Some((id, letter)) = self.next_letter() else { break };
            self.serve(id, letter);
        }
        let over = self.links.extract_if(.., |_, link| link.is_over());
        self.after.over.extend(over.map(|(_, link)| link));
    }

    /// Sends what was published on its way to the listeners.
    fn announce(&mut self) {
        let mut database = self.interpreter.database();
        for channel in database.channels.take_published() {
            let fate = self.rules.fate_of_message();
            for id in database.channels.listeners_of(&channel) {
                let Some(link) = self.links.get_mut(&id) else { continue };
                if fate.trouble != Trouble::ReplyLost {
                    let parcel = Parcel::Message(Arc::clone(&channel));
                    self.after.post(link, self.now, self.now + fate.back, parcel);
                }
            }
        }
    }

    fn next_letter(&mut self) -> Option<(ConnectionId, Letter)> {
        if self.condition != Condition::Running {
            return None;
        }
        let arrived = self.links.iter().filter_map(|(id, link)| {
            link.there.arrived(self.now).map(|(at, letter)| (at, letter.number, *id))
        });
        let (_, _, id) = arrived.min()?;
        let letter = self.links.get_mut(&id)?.there.take_arrived(self.now)?;
        Some((id, letter))
    }

    fn serve(&mut self, id: ConnectionId, letter: Letter) {
        let Letter { request, fate, answer, .. } = letter;
        let outcome = match fate.trouble {
            Trouble::CutBeforeRun => Err(Cause::Unheard),
            _ => self.execute(id, &request),
        };
        let Some(link) = self.links.get_mut(&id) else { return };
        match fate.trouble {
            Trouble::None => {
                let parcel = Parcel::Answer(answer, outcome);
                self.after.post(link, self.now, self.now + fate.back, parcel);
            }
            Trouble::ReplyLost | Trouble::RequestLost => link.forsake(answer),
            Trouble::CutBeforeRun | Trouble::CutAfterRun => {
                link.forsake(answer);
                link.break_off("cut");
                self.interpreter.database().channels.unsubscribe_all(id);
                self.after.heard.push(reconnect(&self.interpreter, id, link));
            }
        }
    }

    fn execute(&mut self, id: ConnectionId, request: &Request) -> Outcome<Value> {
        match request {
            Request::Run(call) => {
                let from = self.links.get(&id).map(|link| Arc::clone(&link.from));
                return self.run(&from.unwrap_or_default(), call);
            }
            Request::Identify => return Ok(Value::Text(self.run_id.clone())),
            Request::Subscribe(channel) => {
                if self.links.get(&id).is_some_and(|link| !link.closed) {
                    self.interpreter.database().channels.subscribe(id, Arc::clone(channel));
                }
            }
            Request::Unsubscribe(channel) => {
                self.interpreter.database().channels.unsubscribe(id, channel);
            }
        }
        Ok(Value::Nil)
    }
}

/// Listens again to all that the connection wants to hear. Its ear is to be told.
fn reconnect(interpreter: &Interpreter, id: ConnectionId, link: &Link) -> Heard {
    let mut database = interpreter.database();
    for channel in &link.wanted {
        database.channels.subscribe(id, Arc::clone(channel));
    }
    link.hears(None)
}

impl After {
    fn post(&mut self, link: &mut Link, now: Moment, at: Moment, parcel: Parcel) {
        let at = link.back.push(at, parcel);
        if at > now {
            self.timers.push((link.runtime.clone(), at));
        }
    }
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
