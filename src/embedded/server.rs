//! The state of an embedded voter: its data, its connections, and what is under way on them.

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

/// How often a client looks who a voter is.
// As at a server: within this time clients notice data that were lost (guarantee 4).
const LOOKS: Duration = Duration::from_secs(10);

/// One embedded voter.
pub(super) struct Server {
    pub(super) label: Arc<str>,
    clock: Clock,
    state: Mutex<ServerState>,
}

/// All of a voter, behind its mutex.
pub(super) struct ServerState {
    pub(super) now: Moment,
    /// The machine on which it runs: `TIME` and expiry go by its wall clock.
    pub(super) machine: Machine,
    pub(super) database: Database,
    condition: ServerCondition,
    pub(super) life: ServerLife,
    /// The content of its disk, after writes began to be lost, and since when.
    disk: Option<(Moment, Keyspace)>,
    pub(super) rules: FaultRules,
    pub(super) links: BTreeMap<ConnectionId, Link>,
    /// What is under way, by the time at which it arrives, and then in the order of sending.
    // By number, too: two parcels of one moment arrive in the same order in each run of a
    // simulation.
    under_way: BTreeMap<(Moment, u64), Parcel>,
    /// The last number of a connection or of something sent.
    last_number: u64,
    /// How often a client looks who it is.
    pub(super) look_every: Duration,
    /// How often each script ran for a client.
    pub(super) runs: BTreeMap<&'static str, u64>,
    /// Sees each script that ran, under the voter's mutex.
    pub(super) observe: Option<Observer>,
    deferred: Vec<Deferred>,
}

/// Whether requests run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerCondition {
    Running,
    /// Requests wait.
    Stopped,
    /// There are no connections.
    Killed,
}

pub(super) type Observer = Box<dyn Fn(&Ran<'_>) + Send + Sync>;

/// What is left to do once the mutex is free.
// A listener may call the voter, and dropping a listener may drop a client, which calls it too.
type Deferred = Box<dyn FnOnce(&Arc<Server>) + Send>;

/// A connection of a client that is still there.
pub(super) struct Link {
    /// Which client it is: the label of its machine, or the number of its connection.
    client: Arc<str>,
    listener: Arc<dyn VoterEvents>,
    clock: Clock,
    /// Where the timers of what is under way run.
    runtime: Handle,
    /// Whether the connection stands.
    is_up: bool,
    /// How many times the listener still has to hear who answers: until then no script passes.
    // A count: a connection can be cut again before the listener has heard of the one before.
    unidentified: usize,
    /// What the data were called when the connection was made.
    birth: Option<Birth>,
    /// The channels to listen to again after a reconnection.
    wanted: BTreeSet<Arc<str>>,
    /// When the last request arrives, and the last answer or message: nothing overtakes on one way.
    last_there: Moment,
    last_back: Moment,
    /// Callers whose answer will not come.
    unanswered: Vec<Asker>,
}

type Asker = oneshot::Sender<Outcome<Value>>;

/// Something on its way, there or back.
struct Parcel {
    connection: ConnectionId,
    // Copies of what the connection has: the connection may be gone when the parcel arrives.
    client: Arc<str>,
    runtime: Handle,
    /// What goes wrong with it.
    faults: Vec<Fault>,
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
    /// The same, asked by the connection itself from time to time.
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
            last_number: 0,
            look_every: LOOKS,
            runs: BTreeMap::new(),
            observe: None,
            deferred: Vec::new(),
        };
        Self { label, clock, state: Mutex::new(state) }
    }

    /// Does something at the present time, and then everything that is due.
    pub(super) fn act<T>(self: &Arc<Self>, action: impl FnOnce(&mut ServerState) -> T) -> T {
        // With one mutex for all of it: an observer sees the records before anybody hears of the
        // script (`an_observer_sees_the_records_before_anybody_hears_of_the_script`).
        let mut state = lock(&self.state);
        state.set_time(self.clock.now());
        let result = action(&mut state);
        state.settle();
        let deferred = mem::take(&mut state.deferred);
        drop(state);
        for act in deferred {
            act(self);
        }
        result
    }
}

/// The voter as a whole: its clock, its commands, and its starts and ends.
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
        // The commands of a test meet no faults.
        self.database.is_full = false;
        let reply = lua::command(&mut self.database, words)?;
        // The fingerprint is no key here, as it is on a server, so nothing else would delete it.
        if words[0].eq_ignore_ascii_case("FLUSHALL") {
            self.life.lose_fingerprint();
        }
        Ok(reply)
    }

    pub(super) fn wipe(&mut self) {
        self.database.keyspace.clear();
        self.life.lose_fingerprint();
    }

    /// From now on, nothing is written to its disk.
    pub(super) fn lose_writes(&mut self) {
        self.disk = Some((self.now, self.database.keyspace.clone()));
    }

    pub(super) fn kill(&mut self) {
        self.condition = ServerCondition::Killed;
        for id in self.link_ids(|_| true) {
            self.break_off(id, "killed");
        }
        // Scripts of connections that were cut before may still be under way (`InFlight::Arrives`).
        self.under_way.clear();
    }

    /// A `durable` restart keeps the data that are on the disk.
    pub(super) fn restart(&mut self, durable: bool) {
        self.kill();
        let mut kept = self.now;
        if let Some((at, keyspace)) = self.disk.take() {
            (kept, self.database.keyspace) = (at, keyspace);
            // The copy has the time of then: keys have expired since.
            self.set_time(self.now);
        }
        // It says that it kept everything. A client that saw later data knows better by `kept`
        // (guarantee 4, number 4).
        self.life.begin_again(durable, kept, self.now);
        if !durable {
            self.wipe();
        }
        self.start();
    }

    /// Starts with a copy of another voter's data in place of its own.
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

    /// Finds locks by a name, or by the beginning of a name and a star.
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
        let id = self.next_number();
        // A test that cuts a machine off names it by its label.
        let machine = clock.machine().map(|machine| machine.label().into());
        let link = Link {
            client: machine.unwrap_or_else(|| id.to_string().into()),
            listener,
            clock,
            runtime: Handle::current(),
            is_up: false,
            unidentified: 0,
            birth: None,
            wanted: BTreeSet::new(),
            last_there: self.now,
            last_back: self.now,
            unanswered: Vec::new(),
        };
        self.links.insert(id, link);
        if self.condition != ServerCondition::Killed {
            self.go_up(id);
        }
        id
    }

    /// Ends the connection of a client that leaves.
    // What it sent still arrives, as at a server: a client sends its last releases and closes
    // (`what_was_sent_before_the_connection_closed_runs`).
    fn close(&mut self, id: ConnectionId) {
        self.database.channels.unsubscribe_all(id);
        let Some(link) = self.links.remove(&id) else { return };
        self.deferred.push(Box::new(move |_| {
            if link.is_up {
                link.listener.note_disconnect(ONLY, None);
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

    /// Lets the scripts that are under way on a connection arrive although it breaks.
    fn leave_scripts(&mut self, id: ConnectionId) {
        // On a connection that no client has any more: a server may read the old connection after
        // the new one, and so run an acquire after its undo (`docs/protocol.md`, what stays open).
        let former = self.next_number();
        let Some(link) = self.links.get_mut(&id) else { return };
        for parcel in self.under_way.values_mut().filter(|parcel| parcel.connection == id) {
            if let Content::Run(_) = parcel.content {
                parcel.connection = former;
                link.unanswered.extend(parcel.asker.take());
            }
        }
    }

    /// Breaks a connection, and makes it anew.
    fn cut_off(&mut self, id: ConnectionId) {
        self.break_off(id, "cut");
        self.reconnect(id);
    }

    /// Loses all that is under way on a connection.
    fn break_off(&mut self, id: ConnectionId, why: &'static str) {
        self.database.channels.unsubscribe_all(id);
        let mut askers = Vec::new();
        if let Some(link) = self.links.get_mut(&id) {
            askers.append(&mut link.unanswered);
            // The next connection does not wait for what was slow on this one.
            (link.last_there, link.last_back) = (self.now, self.now);
            if mem::take(&mut link.is_up) {
                let listener = Arc::clone(&link.listener);
                self.deferred.push(Box::new(move |_| listener.note_disconnect(ONLY, Some(why))));
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

    /// Connects a client again, with its channels, if it is still there.
    fn reconnect(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get(&id) else { return };
        for channel in &link.wanted {
            self.database.channels.subscribe(id, channel);
        }
        let listener = Arc::clone(&link.listener);
        self.go_up(id);
        // Wake-ups of the time in between are lost, so waiters ask again.
        self.deferred.push(Box::new(move |_| listener.note_lost_messages()));
    }

    /// Opens the connection, and lets its listener hear who answers.
    fn go_up(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.is_up = true;
        // Before any script, as at a server: otherwise the vote of a voter that restarted without
        // its data could count before the client knows of the restart (design 4).
        link.unidentified += 1;
        let (asked, listener) = (link.clock.now(), Arc::clone(&link.listener));
        let stamp = Stamp { shown: self.machine.wall(), asked, answered: asked };
        let identity = self.life.identity(stamp.shown, self.now);
        link.birth.clone_from(&identity.birth);
        self.deferred.push(Box::new(move |server| {
            let needs_a_name = listener.note_connection(ONLY, &identity, Some(stamp));
            let state = &mut *lock(&server.state);
            if needs_a_name {
                state.life.rename(identity.birth.as_ref(), state.now);
            }
            if let Some(link) = state.links.get_mut(&id) {
                link.unidentified -= 1;
            }
        }));
    }

    /// Sends the question who answers. `None`: the connection is closed.
    fn look(&mut self, id: ConnectionId) -> Option<Outcome<oneshot::Receiver<Outcome<Value>>>> {
        self.links.contains_key(&id).then(|| self.send(id, Content::Look))
    }

    /// Lets the listener hear who answers: the answer to a look has arrived.
    fn show(&mut self, id: ConnectionId, asked: Moment) {
        let Some(link) = self.links.get(&id).filter(|link| link.is_up) else { return };
        let (answered, listener) = (link.clock.now(), Arc::clone(&link.listener));
        let stamp = Stamp { shown: self.machine.wall(), asked, answered };
        let identity = self.life.identity(stamp.shown, self.now);
        self.deferred.push(Box::new(move |server| {
            if listener.note_inspection(ONLY, &identity, Some(stamp)) {
                let state = &mut *lock(&server.state);
                state.life.rename(identity.birth.as_ref(), state.now);
            }
        }));
    }

    fn link_ids(&self, is_meant: impl Fn(&Link) -> bool) -> Vec<ConnectionId> {
        self.links.iter().filter(|(_, link)| is_meant(link)).map(|(id, _)| *id).collect()
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
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
        let number = self.next_number();
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
        if link.unidentified > 0 && script.is_some() {
            return Err(unreachable("not identified yet"));
        }
        // Now, and not when it arrives: a fault concerns what is sent while it is in force.
        let sent = Sent { client: &link.client, script, is_message: false, is_look };
        let faults = self.rules.faults_of(&sent);
        let (asker, answered) = oneshot::channel();
        if faults.contains(&Fault::DropRequests) {
            link.leave_unanswered(asker);
            return Ok(answered);
        }
        // As on any connection, a short delay does not overtake a longer one.
        let at = link.last_there.max(self.now + delays(&faults).0);
        link.last_there = at;
        let (client, runtime) = (Arc::clone(&link.client), link.runtime.clone());
        self.look_again(&runtime, at);
        let (connection, asker) = (id, Some(asker));
        let parcel = Parcel { connection, client, runtime, faults, asker, content };
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
                    self.deferred
                        .push(Box::new(move |_| listener.deliver(&message.channel, &message.text)));
                }
                request => self.serve(request),
            }
        }
    }

    /// Takes the first parcel that has arrived. Requests wait while the voter is stopped.
    fn take_arrived(&mut self) -> Option<Parcel> {
        let runs = self.condition == ServerCondition::Running;
        let arrived = self.under_way.range(..=(self.now, u64::MAX));
        // Answers that left before the stop arrive: they are on the network already.
        let goes_back =
            |parcel: &Parcel| matches!(parcel.content, Content::Answer(_) | Content::Message(_));
        let mut arrived = arrived.filter(|(_, parcel)| runs || goes_back(parcel));
        let first = *arrived.next()?.0;
        self.under_way.remove(&first)
    }

    /// Sends what was published to the listeners.
    fn announce(&mut self) {
        for message in mem::take(&mut self.database.channels.published) {
            let connection = message.listener;
            let Some(link) = self.links.get(&connection) else { continue };
            let (client, runtime) = (Arc::clone(&link.client), link.runtime.clone());
            let sent = Sent { client: &client, script: None, is_message: true, is_look: false };
            let faults = self.rules.faults_of(&sent);
            if !faults.contains(&Fault::DropReplies) && !faults.contains(&Fault::DropRequests) {
                let (asker, content) = (None, Content::Message(message));
                self.send_back(Parcel { connection, client, runtime, faults, asker, content });
            }
        }
    }

    fn serve(&mut self, request: Parcel) {
        let Parcel { connection, client, runtime, faults, asker, content } = request;
        let mut outcome = Ok(Value::Nil);
        match content {
            _ if faults.contains(&Fault::CutBeforeRun) => {}
            Content::Run(call) => {
                outcome = self.run(&client, &call, &faults, false);
                if faults.contains(&Fault::RunTwice) {
                    // Law 5 says what the second run leaves. Its answer reaches nobody: the caller
                    // has asked once.
                    drop(self.run(&client, &call, &faults, true));
                }
            }
            Content::Subscribe(channel) if self.links.contains_key(&connection) => {
                self.database.channels.subscribe(connection, &channel);
            }
            Content::Unsubscribe(channel) => {
                self.database.channels.unsubscribe(connection, &channel);
            }
            // The question who answers: `identify` or `show` makes the answer when it arrives.
            _ => {}
        }
        let is_cut = faults.contains(&Fault::CutBeforeRun) || faults.contains(&Fault::CutAfterRun);
        if is_cut || faults.contains(&Fault::DropReplies) {
            if let (Some(link), Some(asker)) = (self.links.get_mut(&connection), asker) {
                link.leave_unanswered(asker);
            }
        } else {
            let content = Content::Answer(outcome);
            self.send_back(Parcel { connection, client, runtime, faults, asker, content });
        }
        if is_cut {
            self.cut_off(connection);
        }
    }

    /// Runs a script for a client, possibly not for the first time.
    fn run(&mut self, client: &str, call: &Call, faults: &[Fault], again: bool) -> Outcome<Value> {
        *self.runs.entry(call.script.name).or_default() += call.requests.len() as u64;
        self.database.is_full = faults.contains(&Fault::NoRoom);
        let mut reply = match &self.observe {
            None => lua::run(&mut self.database, call),
            // One by one, so that the observer sees the records after each. The result is the same
            // as together: requests of one call share nothing but the voter's data.
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
            // On a server the script reads the fingerprint, which is no key here.
            entries.push(Reply::Text(self.life.birth.clone()));
        }
        reply.map(Value::from).map_err(|message| Cause::Rejected(Reason::of_server(message)))
    }

    fn send_back(&mut self, parcel: Parcel) {
        let mut at = self.now + delays(&parcel.faults).1;
        if let Some(link) = self.links.get_mut(&parcel.connection) {
            at = at.max(link.last_back);
            link.last_back = at;
        }
        self.look_again(&parcel.runtime, at);
        let number = self.next_number();
        self.under_way.insert((at, number), parcel);
    }

    /// Acts again when something arrives.
    fn look_again(&mut self, runtime: &Handle, at: Moment) {
        if at > self.now {
            // A timer of the client's runtime: with a paused clock, time jumps to it. The voter has
            // no runtime of its own, as tests may make a voter where there is no runtime.
            let runtime = runtime.clone();
            self.deferred.push(Box::new(move |server| {
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
    // Kept, and not dropped: a sender that is dropped would say at once that the connection broke.
    fn leave_unanswered(&mut self, asker: Asker) {
        self.unanswered.retain(|asker| !asker.is_closed());
        self.unanswered.push(asker);
    }
}

fn answer(asker: Asker, outcome: Outcome<Value>) {
    // The caller may have given up.
    drop(asker.send(outcome));
}
