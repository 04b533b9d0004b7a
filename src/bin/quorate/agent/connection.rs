//! One client of the agent: its requests, its holds, and how they end.
//!
//! A hold ends
//!
//! - when it is released or lost;
//! - at once when its process dies;
//! - at the deadline that the client got last, if the client does not answer any more, if its
//!   connection is gone, or if the agent is being shut down.

use std::{
    collections::HashMap, future::pending, io, mem, panic::AssertUnwindSafe, sync::Arc,
    time::Duration,
};

use futures::{
    FutureExt, Stream as AnyStream, StreamExt,
    future::BoxFuture,
    stream::{self, AbortHandle, BoxStream, FuturesUnordered, SelectAll, abortable},
};
use quorate::{Error, Observed, Quorate};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::watch,
    time,
};

use super::{
    holds::{Held, Holds, Look},
    peer::Peer,
    stream::Stream,
    wire::{self, Acquire, Call, KindName, Line, OnExit, Refusal},
};
use crate::{
    clock,
    lock::{LockHeld, LockKind},
};

// The limits of what one client can take from the others.

/// The longest line, in bytes.
const LONGEST_LINE: usize = 64 * 1024;
/// How much is read at once.
const BUFFER: usize = 4 * 1024;
/// How much may wait for a client that does not read.
const MOST_UNREAD: usize = 1024 * 1024;
/// How many holds and calls a client may have.
const MOST_OPEN: usize = 1024;

/// Why nothing is acquired any more.
const CLOSING: &str = "the agent is being shut down";

/// What all connections share.
pub(super) struct Service {
    pub(super) quorum: Quorate,
    /// The lease of locks that are asked for without one.
    pub(super) lease: Duration,
    /// Turns true when the agent is to end.
    pub(super) closes: watch::Receiver<bool>,
}

pub(super) struct Connection {
    service: Arc<Service>,
    closes: watch::Receiver<bool>,
    /// `None`: the connection has ended, and only holds and calls are left.
    stream: Option<Stream>,
    peer: Peer,
    peer_is_dead: bool,
    is_greeted: bool,
    is_closing: bool,
    buffer: Box<[u8]>,
    /// The beginning of a line.
    input: Vec<u8>,
    output: Vec<u8>,
    holds: Holds,
    losses: FuturesUnordered<BoxFuture<'static, (u64, Error)>>,
    calls: SelectAll<BoxStream<'static, Done>>,
    /// The calls that can be cancelled.
    waiting: HashMap<u64, AbortHandle>,
    pings: u64,
    /// The ping that was not answered yet.
    // While there is one, no deadline of this client moves.
    unanswered: Option<u64>,
}

/// The result of a call.
enum Done {
    /// With `None`, the firing was done before.
    Acquired {
        id: u64,
        call: Box<Acquire>,
        result: Result<Option<LockHeld>, Error>,
    },
    Extended {
        id: u64,
        hold: u64,
        lease: Duration,
        result: Result<(), Error>,
    },
    Answered {
        id: u64,
        result: Result<Value, Error>,
    },
    Observed {
        id: u64,
        observed: Observed,
    },
    /// Nobody waits for the answer.
    LetGo,
}

enum Happened {
    Done(Done),
    Lost(u64, Error),
    Died,
    Closes,
    Written(io::Result<usize>),
    Looks,
    Read(io::Result<usize>),
}

impl Connection {
    pub(super) fn new(service: &Arc<Service>, stream: Stream, peer: Peer) -> Self {
        Self {
            service: Arc::clone(service),
            closes: service.closes.clone(),
            stream: Some(stream),
            peer,
            peer_is_dead: false,
            is_greeted: false,
            is_closing: false,
            buffer: vec![0; BUFFER].into(),
            input: Vec::new(),
            output: Vec::new(),
            holds: Holds::default(),
            losses: FuturesUnordered::new(),
            calls: SelectAll::new(),
            waiting: HashMap::new(),
            pings: 0,
            unanswered: None,
        }
    }

    /// Serves until the connection has ended, and nothing is held or under way any more.
    pub(super) async fn serve(mut self) {
        if AssertUnwindSafe(self.work()).catch_unwind().await.is_err() {
            // The guards must not be dropped yet: a client whose connection ends still relies on
            // its holds, until their deadlines (`a_defect_releases_nothing_before_the_deadline`).
            self.hang_up();
            time::sleep(self.holds.until_last()).await;
        }
    }

    async fn work(&mut self) {
        while self.goes_on() {
            match self.next().await {
                Happened::Read(Ok(length)) if length > 0 => {
                    self.input.extend_from_slice(&self.buffer[..length]);
                    self.read_lines();
                }
                Happened::Read(_) | Happened::Written(Err(_) | Ok(0)) => self.hang_up(),
                Happened::Written(Ok(length)) => drop(self.output.drain(..length)),
                Happened::Done(done) => self.done(done),
                Happened::Lost(hold, why) => self.lost(hold, why),
                Happened::Looks => self.look(),
                Happened::Died => self.release_all_of_dead(),
                Happened::Closes => self.close(),
            }
        }
        // Without waiting: a client that does not read must not put off the end of the agent.
        if let Some(stream) = &self.stream {
            stream.write_now(&self.output);
        }
    }

    fn goes_on(&self) -> bool {
        let is_open = self.stream.is_some() && !self.is_closing;
        is_open || !self.holds.is_empty() || !self.calls.is_empty()
    }

    async fn next(&mut self) -> Happened {
        let Self { closes, stream, peer, buffer, output, losses, calls, holds, .. } = self;
        let (reader, writer) = stream.as_mut().map(|it| (&mut it.input, &mut it.output)).unzip();
        let look = holds.until_look();
        let write = async {
            match writer {
                Some(writer) if !output.is_empty() => writer.write(output).await,
                _ => pending().await,
            }
        };
        let read = async {
            match reader {
                Some(reader) => reader.read(buffer).await,
                None => pending().await,
            }
        };
        let closes = async { drop(closes.wait_for(|closes| *closes).await) };
        // The end of the last call is an event, too: nothing may be left then.
        let any_call = !calls.is_empty();
        let done = calls.next().map(|done| done.unwrap_or(Done::LetGo));
        tokio::select! {
            // In the order of what others wait for: a dead process frees its locks first.
            biased;
            () = peer.died(), if !self.peer_is_dead => Happened::Died,
            done = done, if any_call => Happened::Done(done),
            Some((hold, why)) = losses.next(), if !losses.is_empty() => Happened::Lost(hold, why),
            written = write => Happened::Written(written),
            // Before more is read: a client that sends all the time puts off no deadline.
            () = time::sleep(look.unwrap_or_default()), if look.is_some() => Happened::Looks,
            () = closes, if !self.is_closing => Happened::Closes,
            read = read => Happened::Read(read),
        }
    }

    // What the client sends.

    fn read_lines(&mut self) {
        let input = mem::take(&mut self.input);
        for line in input.split_inclusive(|byte| *byte == b'\n') {
            // A line before may have ended the connection.
            if self.stream.is_none() {
                return;
            }
            let whole = line.strip_suffix(b"\n");
            // Also while the line is not complete: it would grow for ever.
            if whole.unwrap_or(line).len() > LONGEST_LINE {
                let why = format!("a line has at most {LONGEST_LINE} bytes");
                return self.refuse(&Refusal::protocol(why));
            }
            match whole {
                Some(line) => self.read_line(line),
                None => self.input = line.to_vec(),
            }
        }
    }

    fn read_line(&mut self, line: &[u8]) {
        if !mem::replace(&mut self.is_greeted, true) {
            match wire::check_greeting(line) {
                Ok(()) => self.say(&wire::greeting(clock::monotonic())),
                Err(why) => self.refuse(&why),
            }
            return;
        }
        match wire::read(line) {
            Ok(Line::Pong(number)) => drop(self.unanswered.take_if(|asked| *asked == number)),
            Ok(Line::Call(id, call)) => {
                let done = call.and_then(|call| self.call(id, call));
                match done {
                    Ok(None) => {}
                    Ok(Some(value)) => self.say(&wire::answer(id, Ok(value))),
                    Err(why) => self.say(&wire::answer(id, Err(why))),
                }
            }
            Err(why) => self.refuse(&why),
        }
    }

    /// Begins a call, or answers it at once.
    fn call(&mut self, id: u64, call: Call) -> Result<Option<Value>, Refusal> {
        if self.waiting.contains_key(&id) {
            return Err(Refusal::protocol(format!("request {id} is still open")));
        }
        match call {
            Call::Acquire(call) => self.acquire(id, call)?,
            Call::Observe { name } => self.observe(id, &name)?,
            Call::Inspect { kind, name } => self.inspect(id, kind, name)?,
            Call::Cancel { request } => {
                if let Some(waiting) = self.waiting.remove(&request) {
                    waiting.abort();
                    let why = Refusal::new("cancelled", "the caller gave up");
                    self.say(&wire::answer(request, Err(why)));
                }
                return Ok(Some(json!({})));
            }
            Call::Release { hold, done } => self.release(id, hold, done)?,
            Call::Extend { hold, lease_ms } => self.extend(id, hold, lease_ms)?,
            Call::KeepFor { hold, time_ms } => self.keep_for(id, hold, time_ms)?,
        }
        Ok(None)
    }

    fn acquire(&mut self, id: u64, call: Box<Acquire>) -> Result<(), Refusal> {
        call.lock_kind()?;
        self.check_room()?;
        let quorum = self.service.quorum.clone();
        let acquired = async move {
            // Read twice, as the kind borrows from the call: it was checked above.
            let kind = call.lock_kind().unwrap_or(LockKind::Mutex);
            let result = LockHeld::acquire(&quorum, kind, &call.name, call.request()).await;
            Done::Acquired { id, call, result }
        };
        self.until_cancelled(id, stream::once(acquired));
        Ok(())
    }

    fn observe(&mut self, id: u64, name: &str) -> Result<(), Refusal> {
        self.check_room()?;
        let observer = self.service.quorum.election(name).observe();
        self.until_cancelled(id, observer.map(move |observed| Done::Observed { id, observed }));
        Ok(())
    }

    fn inspect(&mut self, id: u64, kind: KindName, name: String) -> Result<(), Refusal> {
        self.check_room()?;
        let quorum = self.service.quorum.clone();
        self.later(async move {
            let seen = quorum.admin().look(kind.lock(), &name).await;
            Done::Answered { id, result: seen.map(|seen| json!(seen)) }
        });
        Ok(())
    }

    fn check_room(&self) -> Result<(), Refusal> {
        if self.is_closing {
            return Err(Refusal::new("closed", CLOSING));
        }
        if self.holds.len() + self.calls.len() >= MOST_OPEN {
            let why = format!("a connection has at most {MOST_OPEN} locks and calls under way");
            return Err(Refusal::new("overloaded", why));
        }
        Ok(())
    }

    fn release(&mut self, id: u64, hold: u64, done: bool) -> Result<(), Refusal> {
        let lock = self.take(hold)?;
        self.later(async move {
            let result = if done { lock.finish().await } else { lock.release().await };
            Done::Answered { id, result: result.map(|()| json!({})) }
        });
        Ok(())
    }

    fn keep_for(&mut self, id: u64, hold: u64, time_ms: u64) -> Result<(), Refusal> {
        self.check_kind(hold)?;
        let lock = self.take(hold)?;
        self.later(async move {
            let kept = lock.keep_for(Duration::from_millis(time_ms)).await;
            Done::Answered { id, result: kept.map(|()| json!({})) }
        });
        Ok(())
    }

    fn extend(&mut self, id: u64, hold: u64, lease_ms: u64) -> Result<(), Refusal> {
        self.check_room()?;
        self.check_kind(hold)?;
        let lock = Arc::clone(&self.held(hold)?.lock);
        let lease = Duration::from_millis(lease_ms);
        self.later(async move {
            let result = lock.extend(lease).await;
            Done::Extended { id, hold, lease, result }
        });
        Ok(())
    }

    fn held(&mut self, hold: u64) -> Result<&mut Held, Refusal> {
        let why = || Refusal::new("lost", format!("hold {hold} has ended"));
        self.holds.get(hold).ok_or_else(why)
    }

    fn check_kind(&mut self, hold: u64) -> Result<(), Refusal> {
        match self.held(hold)?.kind {
            KindName::Election | KindName::Once => {
                Err(Refusal::new("invalid", "a lead or a firing can only be released"))
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, hold: u64) -> Result<LockHeld, Refusal> {
        self.held(hold)?;
        let held = self.holds.remove(hold).expect("it was there");
        Arc::try_unwrap(held.lock).map_err(|_shared| {
            // The extension has the last reference then, and drops the guard, which releases it.
            Refusal::new("invalid", format!("hold {hold} was being extended; it is released"))
        })
    }

    /// Runs a call to its end, also without the connection.
    fn later(&mut self, call: impl Future<Output = Done> + Send + 'static) {
        self.calls.push(stream::once(call).boxed());
    }

    /// Runs a call until it ends, is cancelled, or the connection ends.
    fn until_cancelled(&mut self, id: u64, call: impl AnyStream<Item = Done> + Send + 'static) {
        let (call, handle) = abortable(call);
        self.waiting.insert(id, handle);
        self.calls.push(call.boxed());
    }

    // What happens.

    fn done(&mut self, done: Done) {
        match done {
            Done::Acquired { id, call, result } => {
                self.waiting.remove(&id);
                let answer = self.acquired(&call, result).map_err(Refusal::from);
                self.say(&wire::answer(id, answer));
            }
            Done::Extended { id, hold, lease, result } => {
                let deadline = |()| self.holds.get(hold).map(|held| held.extend_deadline(lease));
                let answer = result.map(deadline).map(|at| json!({ "deadline_us": at }));
                self.say(&wire::answer(id, answer.map_err(Refusal::from)));
            }
            Done::Answered { id, result } => {
                self.say(&wire::answer(id, result.map_err(Refusal::from)));
            }
            Done::Observed { id, observed } => self.say(&wire::leader(id, observed)),
            Done::LetGo => {}
        }
    }

    fn acquired(
        &mut self,
        call: &Acquire,
        result: Result<Option<LockHeld>, Error>,
    ) -> Result<Value, Error> {
        let Some(lock) = result? else { return Ok(json!({ "passed": true })) };
        if self.stream.is_none() {
            // The client cannot get the answer, so it does not rely on the hold.
            self.let_go(Arc::new(lock));
            return Ok(Value::Null);
        }
        let (hold_id, lost) = (lock.hold().to_string(), lock.lost());
        let (token, slot) = (lock.token(), lock.slot());
        let lease = call.request().lease.unwrap_or(self.service.lease);
        let outlives = call.on_exit == OnExit::Expire;
        let (held, deadline_us) = Held::new(lock, call.kind, outlives, lease);
        let hold = self.holds.insert(held);
        self.losses.push(lost.map(move |why| (hold, why)).boxed());
        let mut answer = json!({ "hold": hold, "hold_id": hold_id, "deadline_us": deadline_us });
        if let Some(token) = token {
            answer["token"] = json!(token);
        }
        if let Some(slot) = slot {
            answer["slot"] = json!(slot);
        }
        Ok(answer)
    }

    fn lost(&mut self, hold: u64, why: Error) {
        // A hold that was released ends, too: its client has the answer to that.
        if self.holds.remove(hold).is_some() {
            self.say(&wire::lost(hold, &Refusal::from(why)));
        }
    }

    fn look(&mut self) {
        // Only the deadlines of a client that answers move. One that is stopped (`SIGSTOP`, a
        // blocked event loop) loses its holds, and others get the locks
        // (`a_stopped_program_loses_its_lock_at_its_deadline_and_others_keep_theirs`).
        let lives = self.stream.is_some() && self.unanswered.is_none() && !self.is_closing;
        let Look { deadlines, ending, expired } = self.holds.look(lives);
        for hold in ending {
            self.say(&wire::ending(hold));
        }
        let why = if self.is_closing { CLOSING } else { "its program did not answer" };
        for (hold, held) in expired {
            let why = format!("hold {} was released at its deadline: {why}", held.lock.hold());
            self.say(&wire::lost(hold, &Refusal::new("lost", why)));
            self.let_go(held.lock);
        }
        if lives && !self.holds.is_empty() {
            self.pings += 1;
            self.unanswered = Some(self.pings);
            self.say(&wire::ping(self.pings, &deadlines));
        }
    }

    /// Ends the connection of a process that has died, and releases what it held.
    fn release_all_of_dead(&mut self) {
        self.peer_is_dead = true;
        self.hang_up();
        for held in self.holds.take_ending_with_process() {
            self.let_go(held.lock);
        }
    }

    /// Ends waiting calls, and warns of the end of all holds: the agent is to end.
    fn close(&mut self) {
        // Nothing is released: the client ends its work until the deadlines, which move no more.
        self.is_closing = true;
        for (id, call) in mem::take(&mut self.waiting) {
            call.abort();
            let why = Refusal::new("closed", CLOSING);
            self.say(&wire::answer(id, Err(why)));
        }
        for hold in self.holds.mark_all_ending() {
            self.say(&wire::ending(hold));
        }
    }

    /// Releases a lock for which no client waits.
    fn let_go(&mut self, lock: Arc<LockHeld>) {
        self.later(async move {
            // If an extension still has it, the extension drops the guard, which releases the lock.
            if let Some(lock) = Arc::into_inner(lock) {
                // Nobody is left to hear of an error, and the release is repeated anyway.
                let _ = lock.release().await;
            }
            Done::LetGo
        });
    }

    fn say(&mut self, what: &Value) {
        if self.stream.is_none() {
            return;
        }
        // Into memory, and with keys that are texts: it cannot fail.
        let _ = serde_json::to_writer(&mut self.output, what);
        self.output.push(b'\n');
        // A client that does not read cannot answer a ping either
        // (`a_program_that_does_not_read_is_closed_and_its_locks_go_with_its_deadline`).
        if self.output.len() > MOST_UNREAD {
            self.hang_up();
        }
    }

    /// Says why, and ends the connection.
    fn refuse(&mut self, why: &Refusal) {
        self.say(&wire::no_greeting(why));
        if let Some(stream) = &self.stream {
            stream.write_now(&self.output);
        }
        self.hang_up();
    }

    /// Ends the connection. Its holds stay until their deadlines.
    fn hang_up(&mut self) {
        self.stream = None;
        self.input.clear();
        self.output.clear();
        for (_, call) in self.waiting.drain() {
            call.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use futures::future::join;
    use quorate::embedded;
    use tokio::runtime::Handle;

    use super::*;
    use crate::lock::Request;

    #[tokio::test]
    async fn a_defect_releases_nothing_before_the_deadline() {
        let (voters, lease) = (embedded::voters(3), Duration::from_secs(1));
        let connect = || {
            let builder = Quorate::builder().embedded(&voters).lease(lease).longest_lease(lease);
            builder.runtime(Handle::current()).connect()
        };
        let (quorum, other) = (connect().await.unwrap(), connect().await.unwrap());
        let (_close, closes) = watch::channel(false);
        let service = Arc::new(Service { quorum, lease, closes });
        let (agent, _client) = UnixStream::pair().unwrap();
        let stream = Stream::of_socket(agent).unwrap();
        let mut connection = Connection::new(&service, stream, Peer::of(None));
        let lock = LockHeld::acquire(&service.quorum, LockKind::Mutex, "a", Request::default());
        let lock = lock.await.unwrap().expect("it is no firing");
        let (held, deadline_us) = Held::new(lock, KindName::Mutex, false, lease);
        connection.holds.insert(held);
        connection.later(async { panic!("a defect") });
        let next = async {
            let _guard = other.mutex("a").lock().await.unwrap();
            wire::micros(clock::monotonic())
        };
        let ((), at) = join(connection.serve(), next).await;
        let in_time = deadline_us <= at && at < deadline_us + 1_000_000;
        assert!(in_time, "had at {at}, the deadline was {deadline_us}");
    }
}
