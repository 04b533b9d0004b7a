//! One lock of a client, and every request that is made for it.

use std::{sync::Arc, time::Duration};

use super::{AnnouncedValue, form::Form, kind::Kind};
use crate::{
    keys::{Prefix, Word},
    proto::{Done, HoldId, HoldIds, LockName, Note, Rules, SlotOrder, Slots, Ticket, Token},
    scripts::{Script, mutex, once},
    voter::{Call, Request, sha1_hash},
};

/// What is asked of a voter.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    /// None: it is nobody's.
    pub(crate) hold: Option<&'a HoldId>,
    /// How often the owner has entered, this time included.
    pub(crate) count: u32,
    /// Of a hold that is ended by force: for how long its mark stays.
    pub(crate) lease: Duration,
    /// Of the place in the queue, where it is fixed.
    pub(crate) ticket: Option<Ticket>,
    /// The least that its token may be; once it has one, that. `None`: it has none.
    pub(crate) token: Option<Token>,
    /// All voters have lately renewed this hold in full: where it has the vote, it needs no look at
    /// anything else.
    pub(crate) is_known: bool,
    /// To be given the vote where nobody has it. A renewal is not, unless the voter has said so:
    /// where the answer is lost that it had none, nobody would ever know.
    pub(crate) is_anew: bool,
    /// Of a semaphore: before which none of its slots may be, or, when it is renewed, its slots.
    pub(crate) slots: Option<&'a Slots>,
    /// The place that leaves the queue.
    pub(crate) place: Option<&'a HoldId>,
    /// Of a semaphore: the slot from which on it is asked who has them.
    pub(crate) from: u64,
    /// The firing that is done.
    pub(crate) done: Option<Done>,
    /// The hold that has the vote, and passes it on by this secret.
    pub(crate) passes: Option<(&'a HoldId, &'a Arc<str>)>,
}

impl<'a> Ask<'a> {
    /// What a first request asks that has nothing more to say.
    pub(crate) fn new(hold: &'a HoldId, lease: Duration) -> Self {
        Self {
            hold: Some(hold),
            count: 1,
            lease,
            ticket: None,
            token: None,
            is_known: false,
            is_anew: true,
            slots: None,
            place: None,
            from: 0,
            done: None,
            passes: None,
        }
    }
}

/// One lock, as its client knows it.
#[derive(Debug)]
pub(crate) struct LockInfo {
    pub(crate) kind: &'static Kind,
    pub(crate) name: LockName,
    /// Tells this lock from all others of the client.
    pub(crate) key: Arc<str>,
    /// Of how many permits a semaphore is.
    pub(crate) permits: Option<u16>,
    /// The key of the other side of a read/write lock. Whoever writes reads at once; whoever reads
    /// and wants to write would wait for itself.
    pub(crate) other_side: Option<Arc<str>>,
    /// What its user says of the holds.
    pub(crate) note: Option<Note>,
    /// How many permits are wanted; 1 of any other lock.
    wanted: u16,
    /// The record.
    lock: Arc<str>,
    /// What the names of the other keys have in common.
    stem: Arc<str>,
    form: Arc<Form>,
}

impl LockInfo {
    /// How long a place in its queue counts that does not ask again; `None` where there is no
    /// queue.
    pub(crate) fn waiting(&self) -> Option<Duration> {
        self.form.waiting
    }

    /// How long after one bid the next one must follow, so that its place goes on to count.
    pub(crate) fn refresh(&self) -> Option<Duration> {
        self.form.waiting.map(|waiting| waiting / 3)
    }

    /// A fresh place in the queue. A voter removes one without an order if its client has gone.
    pub(crate) fn fresh_place(&self, ids: &HoldIds) -> HoldId {
        if self.kind.is_fair { self.fresh(ids) } else { self.noted(ids.fresh_unordered()) }
    }

    fn fresh(&self, ids: &HoldIds) -> HoldId {
        let reads = self.kind.is_shared && self.permits.is_none();
        let fresh = self.noted(if reads { ids.fresh_read() } else { ids.fresh() });
        match self.kind.ending {
            "" => fresh,
            ending => HoldId::parse(&format!("{fresh}{ending}")),
        }
    }

    fn noted(&self, fresh: HoldId) -> HoldId {
        match &self.note {
            Some(note) => fresh.noted(note),
            None => fresh,
        }
    }

    /// In which order a hold looks for free slots; `None` where there are none.
    pub(crate) fn slot_order(&self, hold: &HoldId) -> Option<SlotOrder> {
        self.permits.map(|permits| SlotOrder::of(hold, permits))
    }

    fn has_channel(&self) -> bool {
        self.kind.names.iter().any(|(label, _)| *label == "channel")
    }

    /// What a key or a channel is called that a header names.
    fn name_of(&self, label: &'static str) -> Word<'_> {
        if label == "lock" {
            return (&self.lock).into();
        }
        match self.kind.names.iter().find(|(named, _)| *named == label) {
            Some((_, [before, behind])) => Word::Text([before, &self.stem, behind]),
            None => Word::Text([&self.stem, ":", label]),
        }
    }
}

/// From where a lock is asked for.
#[derive(Clone, Debug)]
enum AskedFrom {
    /// From nowhere yet.
    Anywhere,
    /// From a place in the queue.
    Place(HoldId),
    /// From under a write of the same owner.
    Write(HoldId),
    /// From this hold, which passes its votes on: it is detached, or it is parked and is resumed.
    Hold { former: HoldId, secret: Arc<str> },
}

/// One lock as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct LockRecord {
    info: Arc<LockInfo>,
    asked_from: AskedFrom,
    /// What the candidate says that asks for it.
    announced: Option<Arc<AnnouncedValue>>,
}

impl LockRecord {
    /// A lock of this client's own. `permits`: of a semaphore, how many it has and how many of
    /// them are wanted.
    pub(crate) fn own(
        prefix: &Prefix,
        name: LockName,
        form: Arc<Form>,
        permits: Option<(u16, u16)>,
    ) -> Self {
        let stem: Arc<str> = format!("{}{}", prefix.stem(&name), form.kind.stem).into();
        let lock = match form.kind.record {
            "" => Arc::clone(&stem),
            record => format!("{stem}{record}").into(),
        };
        Self::new(name, [lock, stem], form, permits)
    }

    /// A lock whose record is called `lock`; the names of its other keys have `stem` in common.
    pub(crate) fn new(
        name: LockName,
        [lock, stem]: [Arc<str>; 2],
        form: Arc<Form>,
        permits: Option<(u16, u16)>,
    ) -> Self {
        let (kind, wanted) = (form.kind, permits.map_or(1, |(_, wanted)| wanted));
        let permits = permits.map(|(permits, _)| permits);
        let (key, other_side) = (Arc::clone(&lock), None);
        let note = None;
        let info =
            LockInfo { kind, name, key, permits, other_side, note, wanted, lock, stem, form };
        let key = match (wanted, kind.identity) {
            (1, Some(label)) => info.name_of(label).into(),
            (1, None) => Arc::clone(&info.lock),
            // Who has some enters again by asking for as many.
            (many, _) => format!("{} {many}", info.lock).into(),
        };
        let other_side = kind.other_side.map(|label| info.name_of(label).into());
        let info = Arc::new(LockInfo { key, other_side, ..info });
        Self { info, asked_from: AskedFrom::Anywhere, announced: None }
    }

    /// The same with what its user says of the holds.
    pub(crate) fn noted(mut self, note: Option<Note>) -> Self {
        Arc::get_mut(&mut self.info).expect("it was just made").note = note;
        self
    }

    /// The same as a candidate asks for it.
    pub(crate) fn announcing(&self, announced: &Arc<AnnouncedValue>) -> Self {
        Self { announced: Some(Arc::clone(announced)), ..self.clone() }
    }

    /// What the candidate says of itself who asks with this.
    pub(crate) fn announced(&self) -> Option<&AnnouncedValue> {
        self.announced.as_deref()
    }

    /// This lock as it is asked for from a place in its queue.
    pub(crate) fn at_place(&self, place: &HoldId) -> Self {
        Self { asked_from: AskedFrom::Place(place.clone()), ..self.clone() }
    }

    /// The lock that this one grants to its own holder, as it is asked for under that hold.
    pub(crate) fn under(&self, hold: &HoldId) -> Option<Self> {
        let LockInfo { kind, name, lock, stem, form, .. } = &*self.info;
        let grants = kind.grants?;
        let lock = match grants.record {
            "" => Arc::clone(lock),
            record => format!("{stem}{record}").into(),
        };
        let form = Arc::new(form.of(grants));
        let read = Self::new(name.clone(), [lock, Arc::clone(stem)], form, None);
        Some(Self { asked_from: AskedFrom::Write(hold.clone()), ..read })
    }

    /// The same as it passes from that hold to the one that parks or resumes it.
    pub(crate) fn passed_on(&self, former: &HoldId, secret: &Arc<str>) -> Self {
        let (former, secret) = (former.clone(), Arc::clone(secret));
        Self { asked_from: AskedFrom::Hold { former, secret }, ..self.clone() }
    }

    /// Where the hold resumes a parked one: that.
    pub(crate) fn resumes(&self) -> Option<&HoldId> {
        match &self.asked_from {
            AskedFrom::Hold { former, .. } if former.is_parked() => Some(former),
            _ => None,
        }
    }

    pub(crate) fn info(&self) -> &LockInfo {
        &self.info
    }

    pub(crate) fn kind(&self) -> &'static Kind {
        self.info.kind
    }

    /// What an attempt is measured by.
    pub(crate) fn rules(&self) -> Rules {
        self.info.form.rules
    }

    /// The channel on which changes are published, for observers of an election and for programs of
    /// another library. Made when it is asked for: few listen.
    pub(crate) fn channel(&self) -> Option<Arc<str>> {
        self.info.has_channel().then(|| self.info.name_of("channel").into())
    }

    /// A client may have several lines of tasks that want a place in the queue of one lock. This is
    /// the name of the one for this record. All in one line have the same to wait for: readers whom
    /// writers go on to pass would hold up those behind them that let none pass.
    pub(crate) fn line(&self) -> &'static str {
        self.info.form.turn()
    }

    /// The hold of an attempt without a place in a queue.
    pub(crate) fn hold(&self, ids: &HoldIds) -> HoldId {
        match &self.asked_from {
            AskedFrom::Write(hold) => ids.under(hold),
            AskedFrom::Anywhere | AskedFrom::Place(_) => self.info.fresh(ids),
            AskedFrom::Hold { former, secret } => match former.hash() {
                Some(hash) if former.is_parked() => ids.resuming(hash),
                _ => ids.parked(&sha1_hash(secret)[..HoldId::HASH]),
            },
        }
    }

    pub(crate) fn acquire(&self, ask: &Ask<'_>) -> Call {
        if let AskedFrom::Hold { former, secret } = &self.asked_from {
            let ask = Ask { passes: Some((former, secret)), ..ask.clone() };
            return self.request(&mutex::PASS, &ask, None);
        }
        self.ask_as_candidate(self.kind().acquire, ask)
    }

    /// Has the token of an attempt stored that is not won before a majority has done so. One that
    /// only gets what a former hold has makes no vote anew.
    pub(crate) fn store_token(&self, ask: &Ask<'_>) -> Call {
        let is_anew = ask.is_anew && !matches!(self.asked_from, AskedFrom::Hold { .. });
        self.ask_as_candidate(self.kind().renew, &Ask { is_anew, ..ask.clone() })
    }

    fn ask_as_candidate(&self, script: &'static Script, ask: &Ask<'_>) -> Call {
        let said = self.announced.as_ref().map(|announced| announced.first(ask.token));
        self.request(script, ask, said.as_deref())
    }

    pub(crate) fn renew(&self, ask: &Ask<'_>) -> Call {
        let said = self.announced.as_ref().map(|announced| announced.latest(ask.token));
        self.request(self.kind().renew, ask, said.as_deref())
    }

    /// Sets how often the hold is entered. At 0 the voter takes its vote back, takes the place out
    /// of the queue, and calls the next waiter.
    pub(crate) fn release(&self, hold: &HoldId, count: u32) -> Call {
        let place = match &self.asked_from {
            AskedFrom::Place(place) => Some(place),
            AskedFrom::Anywhere | AskedFrom::Write(_) | AskedFrom::Hold { .. } => None,
        };
        self.give_back(&Ask { count, place, ..Ask::new(hold, self.info.form.lease()) })
    }

    /// Gives back what an attempt got, and stays in the queue. What came from a parked hold goes
    /// back to that: whoever has the ticket can try again.
    pub(crate) fn undo(&self, hold: &HoldId) -> Call {
        if let AskedFrom::Hold { former, secret } = &self.asked_from
            && former.is_parked()
            && !crate::mutant!("failed_resume_frees_the_lock")
        {
            let passes = Some((hold, secret));
            let ask = Ask { passes, ..Ask::new(former, self.info.form.lease()) };
            return self.request(&mutex::PASS, &ask, None);
        }
        if crate::mutant!("undo_leaves_the_queue") {
            return self.release(hold, 0);
        }
        self.give_back(&Ask { count: 0, ..Ask::new(hold, self.info.form.lease()) })
    }

    fn give_back(&self, ask: &Ask<'_>) -> Call {
        self.request(self.kind().release, ask, None)
    }

    /// Lets the lease of a hold end sooner; `None` where its record cannot.
    pub(crate) fn shorten(&self, hold: &HoldId, lease: Duration) -> Option<Call> {
        Some(self.request(self.kind().shorten?, &Ask::new(hold, lease), None))
    }

    /// Ends a named hold, which has so many slots of a semaphore; its mark stays for `marker`.
    pub(crate) fn end(&self, hold: &HoldId, slots: u16, marker: Duration) -> Call {
        self.request(self.kind().end, &Ask::new(hold, marker), None).weighing(slots)
    }

    /// Takes out who waits, and what is none of its records.
    pub(crate) fn clear(&self) -> Call {
        self.question(self.kind().clear, 0)
    }

    /// Asks who has it and who waits; of a semaphore for the slots from `from` on, as many as one
    /// call may tell.
    pub(crate) fn look(&self, from: u64) -> Call {
        let (look, _) = self.kind().look;
        let weight = if self.info.permits.is_some() { Slots::AT_ONCE } else { 1 };
        self.question(look, from).weighing(weight)
    }

    /// Asks who leads an election.
    pub(crate) fn look_for_leader(&self) -> Option<Call> {
        Some(self.question(self.kind().leader?, 0))
    }

    /// Asks which firing is done, and has it stored where this one is later. Without a hold
    /// whoever has the vote.
    pub(crate) fn note_done(&self, hold: Option<&HoldId>, done: Option<Done>) -> Call {
        let nobody = HoldId::parse("");
        let ask = Ask { hold, done, ..Ask::new(&nobody, self.info.form.lease()) };
        self.request(&once::NOTE, &ask, None)
    }

    /// Has voters forget which firing is done.
    pub(crate) fn forget_done(&self) -> Call {
        self.question(&once::FORGET, 0)
    }

    /// What a queue of another library's is called, and the question who waits there.
    pub(crate) fn look_for_foreign_queue(&self) -> Option<(&'static str, Call)> {
        let (what, look) = self.kind().foreign_queue?;
        Some((what, self.question(look, 0)))
    }

    fn question(&self, script: &'static Script, from: u64) -> Call {
        let nobody = HoldId::parse("");
        let ask = Ask { hold: None, from, ..Ask::new(&nobody, Duration::ZERO) };
        self.request(script, &ask, None)
    }

    /// Fills in what the header of a script names. `said`: what a candidate says of itself.
    fn request(&self, script: &'static Script, ask: &Ask<'_>, said: Option<&str>) -> Call {
        let LockInfo { form, permits, wanted, .. } = &*self.info;
        let slots = ask.slots.map(Slots::text);
        let start =
            ask.hold.and_then(|hold| self.info.slot_order(hold)).map(|slot_order| slot_order.start);
        let arg = |label: &&'static str| match *label {
            "hold" => ask.hold.map(HoldId::text).into(),
            "floor" | "token" => ask.token.map(Word::number).into(),
            "ticket" => ask.ticket.map(|Ticket(ticket)| Word::number(ticket)).into(),
            "count" => Word::number(ask.count),
            "known" => flag(ask.is_known),
            "anew" => flag(ask.is_anew),
            "place" => ask.place.map(HoldId::text).into(),
            "former" => ask.passes.map(|(former, _)| former.text()).into(),
            "secret" => ask.passes.map(|(_, secret)| secret).into(),
            "value" => said.into(),
            "channel" | "news" if self.info.has_channel() => self.info.name_of("channel"),
            "channel" | "news" => Word::NOTHING,
            "lease_ms" | "marker_ms" => Word::Number(whole_millis(ask.lease)),
            "asked" => permits.map(Word::number).into(),
            "wanted" => Word::number(*wanted),
            "start" => start.map(Word::number).into(),
            "floors" | "given" => slots.as_deref().into(),
            "from" => Word::number(ask.from),
            "firing" => ask.done.map(|done| Word::number(done.firing)).into(),
            "when" => ask.done.and_then(|done| done.when_ms).map(Word::number).into(),
            "memory_ms" => ask.done.map(|done| Word::number(done.memory_ms)).into(),
            other => unreachable!("{}: no request says `{other}`", script.name),
        };
        let keys = script.keys.iter().map(|label| self.info.name_of(label));
        let request = Request::new(keys, script.args.iter().map(arg), ask.hold);
        let Rules { voter_deadline: deadline, longest_deadline: longest, .. } = form.rules;
        let (shared, requests) = (form.shared(script, ask.lease), [request].into());
        Call { script, shared, requests, deadline, longest }.weighing(*wanted)
    }
}

fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whether this is so.
fn flag(is_so: bool) -> Word<'static> {
    if is_so { "1".into() } else { Word::NOTHING }
}
