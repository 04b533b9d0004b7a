//! One lock of a client, and every request that is made for it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use super::kind::{Form, Kind};
use crate::{
    keys::{Prefix, Word},
    proto::{
        Done, HoldId, HoldIds, LeaderValue, LockName, Note, Proclaimed, Rules, SlotOrder, Slots,
        Ticket, Token,
    },
    scripts::{Script, mutex, once},
    sync::lock,
    voter::{Call, Request, sha1_hash},
};

/// What is asked of a voter.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    /// The hold that asks; `None` for a question that no hold asks.
    pub(crate) hold: Option<&'a HoldId>,
    /// How often the owner has entered, this time included.
    // Absolute, and not by how much it changes: a request that arrives twice has the effect of one
    // (law 5, `claim_adds_up`).
    pub(crate) count: u32,
    /// The lease; for a forced end, how long the mark of the hold stays.
    pub(crate) lease: Duration,
    /// The ticket of the place in the queue, once it is fixed.
    pub(crate) ticket: Option<Ticket>,
    /// The least number that its token may be; its token, once it has one. `None`: it has none.
    pub(crate) token: Option<Token>,
    /// A brief renewal: the voter looks only for the vote.
    // All voters have renewed the hold in full before. A full renewal also looks for a forced end
    // and at the token, which is three keys in place of one.
    pub(crate) is_known: bool,
    /// Whether the voter gives the vote if nobody has it.
    // A renewal is given none unless the voter has said that the vote is gone. Otherwise, if that
    // answer is lost, nobody would ever learn of the loss (`vote_is_given_anew_unasked`).
    pub(crate) is_anew: bool,
    /// Of a semaphore: its slots, for a renewal; otherwise the slots before which it takes none.
    pub(crate) slots: Option<&'a Slots>,
    /// The place that leaves the queue.
    pub(crate) place: Option<&'a HoldId>,
    /// Of a semaphore: the first slot of which the voter says who has it.
    pub(crate) from: u64,
    /// The firing that is done.
    pub(crate) done: Option<Done>,
    /// The hold that has the vote and passes it on, and the secret for that.
    pub(crate) passes: Option<(&'a HoldId, &'a Arc<str>)>,
}

impl<'a> Ask<'a> {
    /// A first request for a hold.
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
    /// A name that no other lock of the client has.
    pub(crate) key: Arc<str>,
    /// How many permits a semaphore has.
    pub(crate) permits: Option<u16>,
    /// The key of the other side of a read/write lock.
    pub(crate) other_side: Option<Arc<str>>,
    /// The user's note on the holds.
    pub(crate) note: Option<Note>,
    /// How many permits are wanted; 1 of any other lock.
    wanted: u16,
    /// The name of the record.
    lock: Arc<str>,
    /// What the names of the other keys begin with.
    stem: Arc<str>,
    form: Arc<Form>,
}

impl LockInfo {
    /// How long voters keep a place in its queue whose waiter does not ask again. `None`: there is
    /// no queue.
    pub(crate) fn waiting(&self) -> Option<Duration> {
        self.form.waiting
    }

    /// How long after one bid the next must follow, so that voters keep the place.
    // A third: the place outlives a request that is lost, also if the next one is late.
    pub(crate) fn refresh(&self) -> Option<Duration> {
        self.form.waiting.map(|waiting| waiting / 3)
    }

    /// The id of a new place in the queue.
    // It says whether the lock has an order. Without one, a voter removes a place whose client does
    // not listen, and wakes the next; with one, that would let later callers pass (law 4,
    // `unheard_fair_waiter_is_passed`).
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

    /// In which order a hold looks for free slots. `None`: the lock has no slots.
    pub(crate) fn slot_order(&self, hold: &HoldId) -> Option<SlotOrder> {
        self.permits.map(|permits| SlotOrder::of(hold, permits))
    }

    fn has_channel(&self) -> bool {
        self.kind.names.iter().any(|(label, _)| *label == "channel")
    }

    /// The name of a key or a channel, by its label in a script's header.
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

/// What stands behind a request for a lock.
#[derive(Clone, Debug)]
enum AskedFrom {
    /// Nothing.
    Anywhere,
    /// A place in the queue.
    Place(HoldId),
    /// A write of the same owner, under which it reads.
    Write(HoldId),
    /// A hold that passes its votes on, as it is detached or resumed.
    Hold { former: HoldId, secret: Arc<str> },
}

/// One lock as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct LockRecord {
    info: Arc<LockInfo>,
    asked_from: AskedFrom,
    /// The value of the candidate that asks for it.
    announced: Option<Arc<AnnouncedValue>>,
}

impl LockRecord {
    /// A lock whose keys have our names. `permits`: of a semaphore, how many it has and how many of
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

    /// A lock whose record is called `lock`, and whose other keys begin with `stem`.
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
            // An owner enters again only by asking for as many as it has.
            (many, _) => format!("{} {many}", info.lock).into(),
        };
        let other_side = kind.other_side.map(|label| info.name_of(label).into());
        let info = Arc::new(LockInfo { key, other_side, ..info });
        Self { info, asked_from: AskedFrom::Anywhere, announced: None }
    }

    /// The same with a note on its holds.
    pub(crate) fn noted(mut self, note: Option<Note>) -> Self {
        Arc::get_mut(&mut self.info).expect("it was just made").note = note;
        self
    }

    /// The same as a candidate asks for it.
    pub(crate) fn announcing(&self, announced: &Arc<AnnouncedValue>) -> Self {
        Self { announced: Some(Arc::clone(announced)), ..self.clone() }
    }

    /// The value of the candidate that asks with this.
    pub(crate) fn announced(&self) -> Option<&AnnouncedValue> {
        self.announced.as_deref()
    }

    /// This lock as it is asked for from a place in its queue.
    pub(crate) fn at_place(&self, place: &HoldId) -> Self {
        Self { asked_from: AskedFrom::Place(place.clone()), ..self.clone() }
    }

    /// The read of the same name, as it is asked for under a write.
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

    /// The same, as it passes from this hold to the one that parks or resumes it.
    pub(crate) fn passed_on(&self, former: &HoldId, secret: &Arc<str>) -> Self {
        let (former, secret) = (former.clone(), Arc::clone(secret));
        Self { asked_from: AskedFrom::Hold { former, secret }, ..self.clone() }
    }

    /// The parked hold that it resumes.
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

    pub(crate) fn rules(&self) -> Rules {
        self.info.form.rules
    }

    /// The channel for observers of an election, and for programs of another library.
    // Made when it is asked for, as few listen.
    pub(crate) fn channel(&self) -> Option<Arc<str>> {
        self.info.has_channel().then(|| self.info.name_of("channel").into())
    }

    /// The name of the local queue for this record: a client may have several for one lock.
    // One for each preference of readers. In one for all, 512 readers that let writers pass would
    // hold up the readers behind them that let none pass
    // (`a_reader_that_lets_no_writer_pass_is_not_behind_those_that_do`).
    pub(crate) fn local_queue_name(&self) -> &'static str {
        self.info.form.turn()
    }

    /// The hold of an attempt without a place in a queue.
    pub(crate) fn hold(&self, ids: &HoldIds) -> HoldId {
        match &self.asked_from {
            AskedFrom::Write(hold) => ids.under(hold),
            AskedFrom::Anywhere | AskedFrom::Place(_) => self.info.fresh(ids),
            // The id has the hash of the secret: so voters can check the secret without a field for
            // it in the record, and whoever reads the record cannot resume the hold.
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

    /// Has the token of an attempt stored that a majority has granted.
    // An attempt that only gets the votes of a former hold makes no vote anew: a hold could be
    // resumed where nobody has the lock any more (guarantee 14).
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

    /// Sets how often the hold is entered. At 0 the voter takes its vote back, removes the place
    /// from the queue, and wakes the next waiter.
    pub(crate) fn release(&self, hold: &HoldId, count: u32) -> Call {
        let place = match &self.asked_from {
            AskedFrom::Place(place) => Some(place),
            AskedFrom::Anywhere | AskedFrom::Write(_) | AskedFrom::Hold { .. } => None,
        };
        let ask = Ask { count, place, ..Ask::new(hold, self.info.form.lease()) };
        self.request(self.kind().release, &ask, None)
    }

    /// Gives back the votes of an attempt, and stays in the queue. Votes that came from a parked
    /// hold go back to it.
    // A bid that is lost gives back its votes, not its turn: otherwise later callers would pass it
    // (law 4, `undo_leaves_the_queue`).
    pub(crate) fn undo(&self, hold: &HoldId) -> Call {
        if let AskedFrom::Hold { former, secret } = &self.asked_from
            && former.is_parked()
            && !crate::mutant!("failed_resume_frees_the_lock")
        {
            // Whoever has the ticket can try again.
            let passes = Some((hold, secret));
            let ask = Ask { passes, ..Ask::new(former, self.info.form.lease()) };
            return self.request(&mutex::PASS, &ask, None);
        }
        if crate::mutant!("undo_leaves_the_queue") {
            return self.release(hold, 0);
        }
        let ask = Ask { count: 0, ..Ask::new(hold, self.info.form.lease()) };
        self.request(self.kind().release, &ask, None)
    }

    /// Lets the lease of a hold end sooner. `None`: locks of this kind cannot.
    pub(crate) fn shorten(&self, hold: &HoldId, lease: Duration) -> Option<Call> {
        Some(self.request(self.kind().shorten?, &Ask::new(hold, lease), None))
    }

    /// Ends a hold by force. `slots`: how many of a semaphore it has. `marker`: how long its mark
    /// stays.
    pub(crate) fn end(&self, hold: &HoldId, slots: u16, marker: Duration) -> Call {
        self.request(self.kind().end, &Ask::new(hold, marker), None).weighing(slots)
    }

    /// Deletes its queue, and values under its keys that no lock has written.
    pub(crate) fn clear(&self) -> Call {
        self.question(self.kind().clear, 0)
    }

    /// Asks who has it and who waits; of a semaphore for the slots from `from` on.
    pub(crate) fn look(&self, from: u64) -> Call {
        let (look, _) = self.kind().look;
        // As much as the most slots that one answer may name: a server answers nobody else
        // meanwhile.
        let weight = if self.info.permits.is_some() { Slots::AT_ONCE } else { 1 };
        self.question(look, from).weighing(weight)
    }

    /// Asks who leads an election.
    pub(crate) fn look_for_leader(&self) -> Option<Call> {
        Some(self.question(self.kind().leader?, 0))
    }

    /// Asks which firing is done, and has this one stored if it is later. Without a hold, whoever
    /// has the vote.
    pub(crate) fn note_done(&self, hold: Option<&HoldId>, done: Option<Done>) -> Call {
        let nobody = HoldId::parse("");
        let ask = Ask { hold, done, ..Ask::new(&nobody, self.info.form.lease()) };
        self.request(&once::NOTE, &ask, None)
    }

    /// Has voters forget which firing is done.
    pub(crate) fn forget_done(&self) -> Call {
        self.question(&once::FORGET, 0)
    }

    /// What the other library calls a lock with a queue, and the question who waits there.
    pub(crate) fn look_for_foreign_queue(&self) -> Option<(&'static str, Call)> {
        let (what, look) = self.kind().foreign_queue?;
        Some((what, self.question(look, 0)))
    }

    fn question(&self, script: &'static Script, from: u64) -> Call {
        let nobody = HoldId::parse("");
        let ask = Ask { hold: None, from, ..Ask::new(&nobody, Duration::ZERO) };
        self.request(script, &ask, None)
    }

    /// Fills in the labels in the header of a script. `said`: the value of a candidate.
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

fn flag(is_so: bool) -> Word<'static> {
    if is_so { "1".into() } else { Word::NOTHING }
}

/// The value of a candidate, or of a leader, as its requests carry it.
#[derive(Debug)]
pub(crate) struct AnnouncedValue(Mutex<Proclaimed>);

impl AnnouncedValue {
    pub(crate) fn of(value: LeaderValue) -> Arc<Self> {
        // The candidate has the first version. So a late request of the candidate never replaces
        // what its renewals have stored.
        let version = Proclaimed::FIRST + 1;
        Arc::new(Self(Mutex::new(Proclaimed { version, token: None, value })))
    }

    /// From now on every renewal carries this value.
    pub(crate) fn change(&self, value: LeaderValue) {
        let mut latest = lock(&self.0);
        *latest = Proclaimed { version: latest.version + 1, token: None, value };
    }

    /// The text of a candidate that asks for the vote with this floor.
    // Without a token: only whoever has won knows it, and observers name no leader before they see
    // one. A candidate that gives up is never named (`candidate_says_that_it_leads`).
    fn first(&self, floor: Option<Token>) -> String {
        let token = floor.filter(|_| crate::mutant!("candidate_says_that_it_leads"));
        Proclaimed { version: Proclaimed::FIRST, token, ..lock(&self.0).clone() }.to_text()
    }

    /// The text of a renewal.
    fn latest(&self, token: Option<Token>) -> String {
        Proclaimed { token, ..lock(&self.0).clone() }.to_text()
    }
}
