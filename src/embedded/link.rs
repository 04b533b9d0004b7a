//! The way between one connection and its voter: what is under way, in order, both ways.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
    sync::Arc,
};

use tokio::{runtime::Handle, sync::oneshot};

use super::{
    channels::{ConnectionId, Message},
    fault::{Fate, FaultTrouble},
    life::LifeNews,
};
use crate::{
    clock::{Clock, Moment},
    proto::Cause,
    scripts::Value,
    voter::{Call, Ear, Identity, ONLY, Outcome, Stamp},
};

pub(super) type Asker = oneshot::Sender<Outcome<Value>>;

/// What a connection asks for.
#[derive(Debug)]
pub(super) enum Errand {
    Run(Call),
    Subscribe(Arc<str>),
    Unsubscribe(Arc<str>),
    Identify,
}

impl Errand {
    /// The script that it asks for, if it does.
    pub(super) fn script(&self) -> Option<&'static str> {
        match self {
            Self::Run(call) => Some(call.script.name),
            Self::Subscribe(_) | Self::Unsubscribe(_) | Self::Identify => None,
        }
    }
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct Letter {
    /// The place among all requests to the voter.
    pub(super) number: u64,
    pub(super) request: Errand,
    pub(super) fate: Fate,
    pub(super) answer: Asker,
}

/// A script on its way by a connection that was cut since: it runs, unheard. Nothing else that was
/// asked for outlives its connection.
#[derive(Debug)]
pub(super) struct Ghost {
    number: u64,
    pub(super) call: Call,
    pub(super) fate: Fate,
}

/// By which way a request arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// The connection that stands.
    Present,
    /// One that was cut: its place among [`Wire::ghosts`].
    Former(usize),
}

/// What goes back to the connection.
#[derive(Debug)]
pub(super) enum Parcel {
    Asker(Asker, Outcome<Value>),
    Message(Message),
}

/// Things that arrive in the order in which they left, however long each takes.
#[derive(Debug)]
pub(super) struct Pipe<T> {
    under_way: VecDeque<(Moment, T)>,
}

impl<T> Pipe<T> {
    /// Sends something that takes until `at`, or longer where it stands behind slower things.
    /// Returns when it arrives.
    pub(super) fn push(&mut self, at: Moment, item: T) -> Moment {
        let at = self.under_way.back().map_or(at, |(last, _)| at.max(*last));
        self.under_way.push_back((at, item));
        at
    }

    /// The foremost, if it has arrived.
    pub(super) fn arrived(&self, now: Moment) -> Option<(Moment, &T)> {
        self.under_way.front().filter(|(at, _)| *at <= now).map(|(at, item)| (*at, item))
    }

    pub(super) fn take_arrived(&mut self, now: Moment) -> Option<T> {
        self.arrived(now)?;
        self.under_way.pop_front().map(|(_, item)| item)
    }

    fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    fn take_all(&mut self) -> impl Iterator<Item = T> {
        self.under_way.drain(..).map(|(_, item)| item)
    }
}

impl<T> Default for Pipe<T> {
    fn default() -> Self {
        Self { under_way: VecDeque::new() }
    }
}

/// Who connects.
pub(super) struct Caller {
    pub(super) ear: Arc<dyn Ear>,
    pub(super) clock: Clock,
    /// Where the timers of what is under way run.
    pub(super) runtime: Handle,
}

/// One connection, as its voter sees it.
pub(super) struct Wire {
    id: ConnectionId,
    /// Which client it is of.
    pub(super) client: Arc<str>,
    ear: Arc<dyn Ear>,
    clock: Clock,
    pub(super) runtime: Handle,
    /// Whether the ear was told last that it stands.
    stands: bool,
    /// How often the ear is still to be told who answers: until then no script passes.
    pub(super) unmet: usize,
    /// The channels to listen to again after a reconnection.
    pub(super) wanted: BTreeSet<Arc<str>>,
    pub(super) there: Pipe<Letter>,
    pub(super) back: Pipe<Parcel>,
    /// What is still under way by the connections that were cut: each keeps its own order only.
    pub(super) ghosts: Vec<Pipe<Ghost>>,
    /// Those who wait for an answer that will not come.
    forsaken: Vec<Asker>,
    /// The client has gone; what it sent still arrives.
    pub(super) closed: bool,
}

impl Wire {
    /// One of a client that is called by its machine, or else by the number of the connection.
    pub(super) fn new(id: ConnectionId, Caller { ear, clock, runtime }: Caller) -> Self {
        let machine = clock.machine().map(|machine| machine.label().into());
        Self {
            id,
            client: machine.unwrap_or_else(|| id.to_string().into()),
            ear,
            clock,
            runtime,
            stands: false,
            unmet: 0,
            wanted: BTreeSet::new(),
            there: Pipe::default(),
            back: Pipe::default(),
            ghosts: Vec::new(),
            forsaken: Vec::new(),
            closed: false,
        }
    }

    /// Leaves the caller without an answer until its deadline, or until the connection breaks.
    pub(super) fn forsake(&mut self, answer: Asker) {
        self.forsaken.retain(|answer| !answer.is_closed());
        self.forsaken.push(answer);
    }

    /// Hands over what has arrived at the client.
    pub(super) fn deliver(&mut self, now: Moment, heard: &mut Vec<Telling>) {
        while let Some(parcel) = self.back.take_arrived(now) {
            match parcel {
                Parcel::Asker(answer, outcome) => tell(answer, outcome),
                Parcel::Message(message) => heard.push(self.hears(What::Called(message))),
            }
        }
    }

    /// The foremost of each way, if it has arrived: when, and its number.
    pub(super) fn arrived(&self, now: Moment) -> impl Iterator<Item = (Moment, u64, Way)> {
        let present = self.there.arrived(now);
        let present = present.map(|(at, letter)| (at, letter.number, Way::Present));
        let former = self.ghosts.iter().enumerate().filter_map(move |(index, line)| {
            line.arrived(now).map(|(at, ghost)| (at, ghost.number, Way::Former(index)))
        });
        present.into_iter().chain(former)
    }

    /// Takes the foremost by a former way. The way ends with its last ghost, and with one that
    /// would have cut it, had it not been cut before.
    pub(super) fn take_ghost(&mut self, index: usize, now: Moment) -> Option<Ghost> {
        let line = &mut self.ghosts[index];
        let ghost = line.take_arrived(now)?;
        let cuts =
            matches!(ghost.fate.trouble, FaultTrouble::CutBeforeRun | FaultTrouble::CutAfterRun);
        if cuts || line.is_empty() {
            self.ghosts.remove(index);
        }
        Some(ghost)
    }

    /// Lets the scripts that are under way run as they arrive, though the connection is to break.
    pub(super) fn leave_ghosts(&mut self) {
        let mut line = Pipe::default();
        for (at, Letter { number, request, fate, .. }) in &self.there.under_way {
            if let Errand::Run(call) = request {
                line.push(*at, Ghost { number: *number, call: call.clone(), fate: *fate });
            }
        }
        if !line.is_empty() {
            self.ghosts.push(line);
        }
    }

    /// Loses everything that is under way, but for ghosts.
    pub(super) fn break_off(&mut self, why: &'static str) -> Option<Telling> {
        let unsent = self.there.take_all().map(|letter| letter.answer);
        let unheard = self.back.take_all().filter_map(|parcel| match parcel {
            Parcel::Asker(answer, _) => Some(answer),
            Parcel::Message(_) => None,
        });
        for answer in unsent.chain(unheard).chain(self.forsaken.drain(..)) {
            tell(answer, Err(Cause::Broken(why.into())));
        }
        self.parts(Some(why))
    }

    /// The connection stands no more; its ear is to be told that it did.
    pub(super) fn parts(&mut self, why: Option<&'static str>) -> Option<Telling> {
        std::mem::take(&mut self.stands).then(|| self.hears(What::Parted(why)))
    }

    /// The connection stands again, or for the first time.
    pub(super) fn meets(&mut self, LifeNews { identity, shown }: &LifeNews) -> Telling {
        self.unmet += 1;
        self.stands = true;
        let now = self.clock.now();
        let stamp = Stamp { shown: *shown, asked: now, answered: now };
        self.hears(What::Met(self.id, identity.clone(), stamp))
    }

    /// Messages may have been lost.
    pub(super) fn misses(&self) -> Telling {
        self.hears(What::Missed)
    }

    fn hears(&self, what: What) -> Telling {
        Telling { ear: Arc::clone(&self.ear), what }
    }

    pub(super) fn is_over(&self) -> bool {
        self.closed && self.there.is_empty() && self.back.is_empty() && self.ghosts.is_empty()
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Wire");
        fields.field("wanted", &self.wanted).field("there", &self.there).field("back", &self.back);
        fields.field("ghosts", &self.ghosts);
        fields.finish_non_exhaustive()
    }
}

/// What an ear is told once the voter's lock is free again.
pub(super) struct Telling {
    ear: Arc<dyn Ear>,
    what: What,
}

enum What {
    Met(ConnectionId, Identity, Stamp),
    Parted(Option<&'static str>),
    Called(Message),
    Missed,
}

impl Telling {
    /// Says on which connection it was told who answers, if it was that, and whether the client
    /// knows that the data lack something.
    pub(super) fn tell(self) -> Option<(ConnectionId, bool)> {
        match self.what {
            What::Met(connection, identity, stamp) => {
                return Some((connection, self.ear.met(ONLY, &identity, Some(stamp))));
            }
            What::Parted(why) => self.ear.parted(ONLY, why),
            What::Called(Message { channel, text }) => self.ear.called(&channel, &text),
            What::Missed => self.ear.missed(),
        }
        None
    }
}

/// Whoever asked may have gone: then nobody misses the answer.
pub(super) fn tell(answer: Asker, outcome: Outcome<Value>) {
    drop(answer.send(outcome));
}
