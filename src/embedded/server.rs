//! The voter's inside: its data, its connections, what is under way on them, and what happens to
//! all of this.

mod connection;

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::{Arc, Mutex},
    time::Duration,
};

pub(super) use connection::Connection;
use tokio::{runtime::Handle, sync::oneshot};

use super::{
    commands::Reply,
    data::{ConnectionId, Database, Keyspace, Message},
    fault::{Fault, FaultRules, InFlight, Ran, Sent, delays},
    life::ServerLife,
    lua,
};
use crate::{
    clock::{Clock, Machine, Moment},
    proto::{Cause, Reason},
    scripts::Value,
    sync::lock,
    voter::{Birth, Call, KeySearch, KeysFound, ONLY, Outcome, Stamp, VoterEvents},
};

/// How often a client looks who a voter is, as it does at a server.
const LOOKS: Duration = Duration::from_secs(10);

/// One embedded voter.
pub(super) struct Server {
    pub(super) label: Arc<str>,
    clock: Clock,
    state: Mutex<ServerState>,
}

/// What the voter's lock guards.
pub(super) struct ServerState {
    pub(super) now: Moment,
    /// On which it runs: by the wall clock of that `TIME` answers and keys expire.
    pub(super) machine: Machine,
    pub(super) database: Database,
    condition: ServerCondition,
    pub(super) life: ServerLife,
    /// What is on its disk, and since when nothing more gets there.
    disk: Option<(Moment, Keyspace)>,
    pub(super) rules: FaultRules,
    pub(super) links: BTreeMap<ConnectionId, Link>,
    /// What is under way, in the order in which it arrives: when, and its place among all that was
    /// sent.
    under_way: BTreeMap<(Moment, u64), Parcel>,
    /// Counts connections and what is sent, to tell them apart and to keep their order.
    counted: u64,
    /// How often a client looks who it is.
    pub(super) look_every: Duration,
    /// How often each script ran for a client.
    pub(super) runs: BTreeMap<&'static str, u64>,
    /// Is told of each script that ran, under the voter's lock.
    pub(super) observe: Option<Observer>,
    after: Vec<After>,
}

/// Whether requests run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerCondition {
    Running,
    /// They wait.
    Stopped,
    /// There are no connections.
    Killed,
}

/// Is told of each script that ran.
pub(super) type Observer = Box<dyn Fn(&Ran<'_>) + Send + Sync>;

/// What is left to do once the mutex is free: listeners may call the voter, and so may what they own
/// when it is dropped.
type After = Box<dyn FnOnce(&Arc<Server>) + Send>;

/// A connection of a client that is still there.
pub(super) struct Link {
    /// Which client it is: the label of its machine, or the number of its connection.
    client: Arc<str>,
    listener: Arc<dyn VoterEvents>,
    clock: Clock,
    /// Where the timers of what is under way run.
    runtime: Handle,
    /// Whether the listener was told last that it stands.
    stands: bool,
    /// How often the listener is still to be told who answers: until then no script passes.
    unmet: usize,
    /// What the data were called when the connection was made.
    birth: Option<Birth>,
    /// The channels to listen to again after a reconnection.
    wanted: BTreeSet<Arc<str>>,
    /// When the last request arrives, and the last of what goes back: nothing overtakes on one way.
    last_there: Moment,
    last_back: Moment,
    /// Those who wait for an answer that will not come.
    forsaken: Vec<Asker>,
}

type Asker = oneshot::Sender<Outcome<Value>>;

/// Something on its way, there or back.
struct Parcel {
    connection: ConnectionId,
    // As of the connection, which may be gone when it arrives.
    client: Arc<str>,
    runtime: Handle,
    /// What goes wrong with it.
    fate: Vec<Fault>,
    /// Who waits for the answer, unless the connection was cut since.
    asker: Option<Asker>,
    content: Content,
}

/// What a client asks for, and what goes back to it.
enum Content {
    Run(Call),
    Subscribe(Arc<str>),
    Unsubscribe(Arc<str>),
    Identify,
    /// The same, asked by the connection itself now and then.
    Look,
    Answer(Outcome<Value>),
    Message(Message),
}

impl Server {
    pub(super) fn new(label: Arc<str>, clock: Clock) -> Self {
        let now = clock.now();
        let state = ServerState {
            now,
            machine: Machine::new(&*label),
            database: Database::default(),
            condition: ServerCondition::Running,
            life: ServerLife::begin(now),
            disk: None,
            rules: FaultRules::default(),
            links: BTreeMap::new(),
            under_way: BTreeMap::new(),
            counted: 0,
            look_every: LOOKS,
            runs: BTreeMap::new(),
            observe: None,
            after: Vec::new(),
        };
        Self { label, clock, state: Mutex::new(state) }
    }

    /// Does something at the present time, and then everything that has become due.
    pub(super) fn act<T>(self: &Arc<Self>, action: impl FnOnce(&mut ServerState) -> T) -> T {
        let mut state = lock(&self.state);
        state.set_time(self.clock.now());
        let result = action(&mut state);
        state.settle();
        let after = mem::take(&mut state.after);
        drop(state);
        for act in after {
            act(self);
        }
        result
    }
}

/// What happens to the voter.
impl ServerState {
    fn set_time(&mut self, now: Moment) {
        self.now = now;
        let micros = self.machine.wall().as_micros();
        self.database.keyspace.now_micros = i64::try_from(micros).unwrap_or(i64::MAX);
    }

    pub(super) fn jump_clock(&mut self, micros: i64) {
        // A server deletes what has expired, so setting its clock back does not bring that back.
        self.database.keyspace.sweep_all();
        self.machine.jump_wall_clock(micros);
        self.set_time(self.now);
    }

    pub(super) fn command(&mut self, words: &[&str]) -> Result<Reply, String> {
        if self.condition == ServerCondition::Killed {
            return Err("connection refused".into());
        }
        self.database.is_full = false;
        let reply = lua::command(&mut self.database, words)?;
        if words[0].eq_ignore_ascii_case("FLUSHALL") {
            self.life.lose_fingerprint();
        }
        Ok(reply)
    }

    pub(super) fn wipe(&mut self) {
        self.database.keyspace.clear();
        self.life.lose_fingerprint();
    }

    /// From now on nothing gets to its disk.
    pub(super) fn lose_writes(&mut self) {
        self.disk = Some((self.now, self.database.keyspace.clone()));
    }

    pub(super) fn kill(&mut self) {
        self.condition = ServerCondition::Killed;
        for id in self.link_ids(|_| true) {
            self.break_off(id, "killed");
        }
        // What was sent on connections that are gone.
        self.under_way.clear();
    }

    /// A `durable` restart keeps the data that are on the disk.
    pub(super) fn restart(&mut self, durable: bool) {
        self.kill();
        let mut kept = self.now;
        if let Some((at, keyspace)) = self.disk.take() {
            (kept, self.database.keyspace) = (at, keyspace);
            self.set_time(self.now);
        }
        self.life.begin_again(durable, kept, self.now);
        if !durable {
            self.wipe();
        }
        self.start();
    }

    /// Starts with what another has, instead of what was its own.
    pub(super) fn restart_with_copy(&mut self, keyspace: Keyspace, life: &ServerLife) {
        self.kill();
        (self.database.keyspace, self.disk) = (keyspace, None);
        self.set_time(self.now);
        self.life.begin_with_copy(life, self.now);
        self.start();
    }

    fn start(&mut self) {
        self.condition = ServerCondition::Running;
        for id in self.link_ids(|_| true) {
            self.reconnect(id);
        }
    }

    pub(super) fn stop(&mut self, stopped: bool) {
        if self.condition != ServerCondition::Killed {
            let (stops, goes_on) = (ServerCondition::Stopped, ServerCondition::Running);
            self.condition = if stopped { stops } else { goes_on };
        }
    }

    /// Of patterns it knows names, and names with a star at their end.
    fn search(&self, search: &KeySearch) -> Outcome<KeysFound> {
        self.must_run()?;
        let fits = |name: &str| match search.names.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => *name == *search.names,
        };
        let found = self.database.keyspace.keys().filter_map(|key| search.found(key));
        let locks: BTreeSet<_> = found.filter(|found| fits(&found.name)).collect();
        Ok(KeysFound { is_complete: locks.len() <= search.limit, locks })
    }

    fn must_run(&self) -> Outcome<()> {
        match self.condition {
            ServerCondition::Running => Ok(()),
            ServerCondition::Stopped => Err(Cause::Unreachable("stopped".into())),
            ServerCondition::Killed => Err(Cause::Unreachable("killed".into())),
        }
    }
}

/// Connections.
impl ServerState {
    fn connect(&mut self, listener: Arc<dyn VoterEvents>, clock: Clock) -> ConnectionId {
        let id = self.count();
        let machine = clock.machine().map(|machine| machine.label().into());
        let link = Link {
            client: machine.unwrap_or_else(|| id.to_string().into()),
            listener,
            clock,
            runtime: Handle::current(),
            stands: false,
            unmet: 0,
            birth: None,
            wanted: BTreeSet::new(),
            last_there: self.now,
            last_back: self.now,
            forsaken: Vec::new(),
        };
        self.links.insert(id, link);
        if self.condition != ServerCondition::Killed {
            self.stand_up(id);
        }
        id
    }

    /// The client goes. What it sent still arrives.
    fn close(&mut self, id: ConnectionId) {
        self.database.channels.unsubscribe_all(id);
        let Some(link) = self.links.remove(&id) else { return };
        self.after.push(Box::new(move |_| {
            if link.stands {
                link.listener.parted(ONLY, None);
            }
        }));
    }

    /// Breaks the connections of one client, or of all.
    pub(super) fn cut(&mut self, in_flight: InFlight, client: Option<&str>) {
        if self.condition == ServerCondition::Killed {
            return;
        }
        for id in self.link_ids(|link| client.is_none_or(|client| *link.client == *client)) {
            if in_flight == InFlight::Arrives {
                self.leave_scripts(id);
            }
            self.cut_off(id);
        }
    }

    /// Of what is under way on a connection scripts arrive though it breaks, on one that nobody has
    /// any more.
    fn leave_scripts(&mut self, id: ConnectionId) {
        let former = self.count();
        let Some(link) = self.links.get_mut(&id) else { return };
        for parcel in self.under_way.values_mut().filter(|parcel| parcel.connection == id) {
            if let Content::Run(_) = parcel.content {
                parcel.connection = former;
                link.forsaken.extend(parcel.asker.take());
            }
        }
    }

    /// Breaks a connection, which then stands again.
    fn cut_off(&mut self, id: ConnectionId) {
        self.break_off(id, "cut");
        self.reconnect(id);
    }

    /// Loses all that is under way on a connection.
    fn break_off(&mut self, id: ConnectionId, why: &'static str) {
        self.database.channels.unsubscribe_all(id);
        let mut askers = Vec::new();
        if let Some(link) = self.links.get_mut(&id) {
            askers.append(&mut link.forsaken);
            (link.last_there, link.last_back) = (self.now, self.now);
            if mem::take(&mut link.stands) {
                let listener = Arc::clone(&link.listener);
                self.after.push(Box::new(move |_| listener.parted(ONLY, Some(why))));
            }
        }
        let (lost, stays): (BTreeMap<_, _>, _) = mem::take(&mut self.under_way)
            .into_iter()
            .partition(|(_, parcel)| parcel.connection == id);
        self.under_way = stays;
        askers.extend(lost.into_values().filter_map(|parcel| parcel.asker));
        for asker in askers {
            answer(asker, Err(Cause::Broken(why.into())));
        }
    }

    /// Listens again to all that the client wants to hear, if it is still there.
    fn reconnect(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get(&id) else { return };
        for channel in &link.wanted {
            self.database.channels.subscribe(id, channel);
        }
        let listener = Arc::clone(&link.listener);
        self.stand_up(id);
        self.after.push(Box::new(move |_| listener.missed()));
    }

    /// The connection stands from now on: its listener is to be told who answers.
    fn stand_up(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.stands = true;
        link.unmet += 1;
        let (asked, listener) = (link.clock.now(), Arc::clone(&link.listener));
        let stamp = Stamp { shown: self.machine.wall(), asked, answered: asked };
        let identity = self.life.identity(self.now);
        link.birth.clone_from(&identity.birth);
        self.after.push(Box::new(move |server| {
            let needs_a_name = listener.met(ONLY, &identity, Some(stamp));
            let state = &mut *lock(&server.state);
            if needs_a_name {
                state.rename(identity.birth.as_ref());
            }
            if let Some(link) = state.links.get_mut(&id) {
                link.unmet -= 1;
            }
        }));
    }

    /// A client looks who answers on its connection; nothing where that is closed.
    fn look(&mut self, id: ConnectionId) -> Option<Outcome<oneshot::Receiver<Outcome<Value>>>> {
        self.links.contains_key(&id).then(|| self.send(id, Content::Look))
    }

    /// The answer to that has arrived.
    fn show(&mut self, id: ConnectionId, asked: Moment) {
        let Some(link) = self.links.get(&id).filter(|link| link.stands) else { return };
        let (answered, listener) = (link.clock.now(), Arc::clone(&link.listener));
        let stamp = Stamp { shown: self.machine.wall(), asked, answered };
        let identity = self.life.identity(self.now);
        self.after.push(Box::new(move |server| {
            if listener.seen(ONLY, &identity, Some(stamp)) {
                lock(&server.state).rename(identity.birth.as_ref());
            }
        }));
    }

    /// Data that were called so get another name.
    fn rename(&mut self, lost: Option<&Birth>) {
        if let Some(lost) = lost {
            self.life.rename(lost, self.now);
        }
    }

    fn link_ids(&self, is_meant: impl Fn(&Link) -> bool) -> Vec<ConnectionId> {
        self.links.iter().filter(|(_, link)| is_meant(link)).map(|(id, _)| *id).collect()
    }

    fn count(&mut self) -> u64 {
        self.counted += 1;
        self.counted
    }
}

/// Requests and messages on their ways.
impl ServerState {
    /// Sends a request on its way.
    fn send(
        &mut self,
        id: ConnectionId,
        content: Content,
    ) -> Outcome<oneshot::Receiver<Outcome<Value>>> {
        let number = self.count();
        let unreachable = |why: &str| Cause::Unreachable(why.into());
        let link = self.links.get_mut(&id).ok_or_else(|| unreachable("closed"))?;
        let mut script = None;
        match &content {
            Content::Run(call) => script = Some(call.script.name),
            Content::Subscribe(channel) => drop(link.wanted.insert(Arc::clone(channel))),
            Content::Unsubscribe(channel) => drop(link.wanted.remove(channel)),
            _ => {}
        }
        let is_look = matches!(content, Content::Look);
        if self.condition == ServerCondition::Killed {
            return Err(unreachable("killed"));
        }
        if link.unmet > 0 && script.is_some() {
            return Err(unreachable("not met yet"));
        }
        let sent = Sent { client: &link.client, script, is_message: false, is_look };
        let fate = self.rules.decide_fate(&sent);
        let (asker, answered) = oneshot::channel();
        if fate.contains(&Fault::DropRequests) {
            link.forsake(asker);
            return Ok(answered);
        }
        let at = link.last_there.max(self.now + delays(&fate).0);
        link.last_there = at;
        let (client, runtime) = (Arc::clone(&link.client), link.runtime.clone());
        self.look_again(&runtime, at);
        let (connection, asker) = (id, Some(asker));
        let parcel = Parcel { connection, client, runtime, fate, asker, content };
        self.under_way.insert((at, number), parcel);
        Ok(answered)
    }

    /// Does everything that is due, in the order of arrival.
    fn settle(&mut self) {
        loop {
            self.announce();
            let Some(parcel) = self.take_arrived() else { break };
            match parcel {
                Parcel { content: Content::Answer(outcome), asker, .. } => {
                    if let Some(asker) = asker {
                        answer(asker, outcome);
                    }
                }
                Parcel { content: Content::Message(message), connection, .. } => {
                    let Some(link) = self.links.get(&connection) else { continue };
                    let listener = Arc::clone(&link.listener);
                    self.after
                        .push(Box::new(move |_| listener.called(&message.channel, &message.text)));
                }
                request => self.serve(request),
            }
        }
    }

    /// The first that has arrived; requests wait while no request runs.
    fn take_arrived(&mut self) -> Option<Parcel> {
        let runs = self.condition == ServerCondition::Running;
        let arrived = self.under_way.range(..=(self.now, u64::MAX));
        let goes_back =
            |parcel: &Parcel| matches!(parcel.content, Content::Answer(_) | Content::Message(_));
        let mut arrived = arrived.filter(|(_, parcel)| runs || goes_back(parcel));
        let first = *arrived.next()?.0;
        self.under_way.remove(&first)
    }

    /// Sends what was published on its way to the listeners.
    fn announce(&mut self) {
        for message in self.database.channels.take_published() {
            let connection = message.listener;
            let Some(link) = self.links.get(&connection) else { continue };
            let (client, runtime) = (Arc::clone(&link.client), link.runtime.clone());
            let sent = Sent { client: &client, script: None, is_message: true, is_look: false };
            let fate = self.rules.decide_fate(&sent);
            if !fate.contains(&Fault::DropReplies) && !fate.contains(&Fault::DropRequests) {
                let (asker, content) = (None, Content::Message(message));
                self.send_back(Parcel { connection, client, runtime, fate, asker, content });
            }
        }
    }

    fn serve(&mut self, request: Parcel) {
        let Parcel { connection, client, runtime, fate, asker, content } = request;
        let mut outcome = Ok(Value::Nil);
        match content {
            _ if fate.contains(&Fault::CutBeforeRun) => {}
            Content::Run(call) => {
                outcome = self.run(&client, &call, &fate, false);
                if fate.contains(&Fault::RunTwice) {
                    // What it leaves counts, not what it says.
                    drop(self.run(&client, &call, &fate, true));
                }
            }
            Content::Subscribe(channel) if self.links.contains_key(&connection) => {
                self.database.channels.subscribe(connection, &channel);
            }
            Content::Unsubscribe(channel) => {
                self.database.channels.unsubscribe(connection, &channel);
            }
            // What it answers is read when the answer arrives.
            _ => {}
        }
        let is_cut = fate.contains(&Fault::CutBeforeRun) || fate.contains(&Fault::CutAfterRun);
        if is_cut || fate.contains(&Fault::DropReplies) {
            if let (Some(link), Some(asker)) = (self.links.get_mut(&connection), asker) {
                link.forsake(asker);
            }
        } else {
            let content = Content::Answer(outcome);
            self.send_back(Parcel { connection, client, runtime, fate, asker, content });
        }
        if is_cut {
            self.cut_off(connection);
        }
    }

    /// Runs a script for a client, possibly not for the first time.
    fn run(&mut self, client: &str, call: &Call, fate: &[Fault], again: bool) -> Outcome<Value> {
        *self.runs.entry(call.script.name).or_default() += call.requests.len() as u64;
        self.database.is_full = fate.contains(&Fault::NoRoom);
        let mut reply = match &self.observe {
            None => lua::run(&mut self.database, call),
            // One by one, so that the records after each can be seen. It comes to what it would
            // together: the requests share nothing but the voter's data.
            Some(observe) => {
                let ran = (0..call.requests.len()).map(|request| {
                    let (database, call) = (&mut self.database, &call.pick(&[request]));
                    let reply = lua::run(database, call);
                    observe(&Ran {
                        client,
                        call,
                        reply: &reply,
                        again,
                        keyspace: &database.keyspace,
                    });
                    match reply? {
                        Reply::List(entries) => Ok(entries),
                        other => Ok(vec![other]),
                    }
                });
                let ran: Result<Vec<_>, String> = ran.collect();
                ran.map(|entries| Reply::List(entries.concat()))
            }
        };
        if let Ok(Reply::List(entries)) = &mut reply
            && call.script.votes
        {
            // Its fingerprint is none of its keys.
            entries.push(Reply::Text(self.life.birth.clone()));
        }
        reply.map(Value::from).map_err(|message| Cause::Rejected(Reason::of_server(message)))
    }

    fn send_back(&mut self, parcel: Parcel) {
        let mut at = self.now + delays(&parcel.fate).1;
        if let Some(link) = self.links.get_mut(&parcel.connection) {
            at = at.max(link.last_back);
            link.last_back = at;
        }
        self.look_again(&parcel.runtime, at);
        let number = self.count();
        self.under_way.insert((at, number), parcel);
    }

    fn look_again(&mut self, runtime: &Handle, at: Moment) {
        if at > self.now {
            let runtime = runtime.clone();
            self.after.push(Box::new(move |server| {
                let server = Arc::clone(server);
                runtime.spawn(async move {
                    server.clock.sleep_until(at).await;
                    server.act(|_| ());
                });
            }));
        }
    }
}

impl Link {
    /// Leaves the caller without an answer until its deadline, or until the connection breaks.
    fn forsake(&mut self, asker: Asker) {
        self.forsaken.retain(|asker| !asker.is_closed());
        self.forsaken.push(asker);
    }
}

/// Whoever asked may have gone: then nobody misses the answer.
fn answer(asker: Asker, outcome: Outcome<Value>) {
    drop(asker.send(outcome));
}
