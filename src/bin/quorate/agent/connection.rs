//! One client: what it asks for, what it holds, and what ends that.
//!
//! A hold ends by its release, by its loss, at once when its process dies, and otherwise at the
//! deadline that the client was told last: if it does not answer any more, if its connection is gone
//! or if the agent is being shut down.

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

/// In bytes. Nobody has a reason to send a longer line.
const LONGEST_LINE: usize = 64 * 1024;
/// So much is read at once.
const BUFFER: usize = 4 * 1024;
/// So much may wait for a client that does not read.
const MOST_UNREAD: usize = 1024 * 1024;
/// Holds, and calls under way.
const MOST_OPEN: usize = 1024;

/// Why nothing is acquired any more.
const CLOSING: &str = "the agent is being shut down";

/// What all connections have in common.
pub(super) struct Service {
    pub(super) quorum: Quorate,
    /// Of locks that are asked for without one.
    pub(super) lease: Duration,
    /// Turns true when the agent is to end.
    pub(super) closes: watch::Receiver<bool>,
}

pub(super) struct Connection {
    service: Arc<Service>,
    closes: watch::Receiver<bool>,
    /// None: it is over, and what is left are holds and calls.
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
    /// The calls that can be given up.
    waiting: HashMap<u64, AbortHandle>,
    pings: u64,
    /// The ping that was not answered yet.
    unanswered: Option<u64>,
}

/// What became of a call.
enum Done {
    /// None: the firing was done before.
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

    /// Until it is over, and nothing is held or under way any more.
    pub(super) async fn serve(mut self) {
        if AssertUnwindSafe(self.work()).catch_unwind().await.is_err() {
            // What a defect ends is an end of the connection: the client relies on its holds.
            self.hang_up();
            time::sleep(self.holds.until_last()).await;
        }
    }

    async fn work(&mut self) {
        while self.goes_on() {
            match self.next().await {
                Happened::Read(Ok(length)) if length > 0 => {
                    self.input.extend_from_slice(&self.buffer[..length]);
                    self.hear();
                }
                Happened::Read(_) | Happened::Written(Err(_) | Ok(0)) => self.hang_up(),
                Happened::Written(Ok(length)) => drop(self.output.drain(..length)),
                Happened::Done(done) => self.done(done),
                Happened::Lost(hold, why) => self.lost(hold, why),
                Happened::Looks => self.look(),
                Happened::Died => self.bury(),
                Happened::Closes => self.close(),
            }
        }
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
        // The end of the last call is an event, too: all may be over then.
        let any_call = !calls.is_empty();
        let done = calls.next().map(|done| done.unwrap_or(Done::LetGo));
        tokio::select! {
            biased;
            () = peer.died(), if !self.peer_is_dead => Happened::Died,
            done = done, if any_call => Happened::Done(done),
            Some((hold, why)) = losses.next(), if !losses.is_empty() => Happened::Lost(hold, why),
            written = write => Happened::Written(written),
            // Before more is heard: a client that says much puts off no end.
            () = time::sleep(look.unwrap_or_default()), if look.is_some() => Happened::Looks,
            () = closes, if !self.is_closing => Happened::Closes,
            read = read => Happened::Read(read),
        }
    }

    // What it says.

    fn hear(&mut self) {
        let input = mem::take(&mut self.input);
        for line in input.split_inclusive(|byte| *byte == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else {
                self.input = line.to_vec();
                break;
            };
            // A line may have ended it.
            if self.stream.is_some() {
                self.hear_line(line);
            }
        }
        if self.input.len() > LONGEST_LINE {
            self.refuse(&Refusal::protocol(format!("a line has at most {LONGEST_LINE} bytes")));
        }
    }

    fn hear_line(&mut self, line: &[u8]) {
        if line.len() > LONGEST_LINE {
            return self
                .refuse(&Refusal::protocol(format!("a line has at most {LONGEST_LINE} bytes")));
        }
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

    /// The answer, if it is known at once.
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
            // It was looked at above.
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
            // Whoever extends it drops it.
            Refusal::new("invalid", format!("hold {hold} was being extended; it is released"))
        })
    }

    /// Goes on also without the connection.
    fn later(&mut self, call: impl Future<Output = Done> + Send + 'static) {
        self.calls.push(stream::once(call).boxed());
    }

    /// Ends with the connection.
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
                let told = |()| self.holds.get(hold).map(|held| held.tell_extended(lease));
                let answer = result.map(told).map(|told| json!({ "deadline_us": told }));
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
            // Nobody will hear of it.
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
        let mut told = json!({ "hold": hold, "hold_id": hold_id, "deadline_us": deadline_us });
        if let Some(token) = token {
            told["token"] = json!(token);
        }
        if let Some(slot) = slot {
            told["slot"] = json!(slot);
        }
        Ok(told)
    }

    fn lost(&mut self, hold: u64, why: Error) {
        // One that was released ends as well.
        if self.holds.remove(hold).is_some() {
            self.say(&wire::lost(hold, &Refusal::from(why)));
        }
    }

    fn look(&mut self) {
        let lives = self.stream.is_some() && self.unanswered.is_none() && !self.is_closing;
        let Look { deadlines, ending, over } = self.holds.look(lives);
        for hold in ending {
            self.say(&wire::ending(hold));
        }
        let why = if self.is_closing { CLOSING } else { "its program did not answer" };
        for (hold, held) in over {
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

    /// Its process has died.
    fn bury(&mut self) {
        self.peer_is_dead = true;
        self.hang_up();
        for held in self.holds.take_those_of_the_dead() {
            self.let_go(held.lock);
        }
    }

    /// The agent is to end.
    fn close(&mut self) {
        self.is_closing = true;
        for (id, call) in mem::take(&mut self.waiting) {
            call.abort();
            let why = Refusal::new("closed", CLOSING);
            self.say(&wire::answer(id, Err(why)));
        }
        for hold in self.holds.all_end() {
            self.say(&wire::ending(hold));
        }
    }

    /// Gives it back. Whoever still extends it does so at last.
    fn let_go(&mut self, lock: Arc<LockHeld>) {
        self.later(async move {
            if let Some(lock) = Arc::into_inner(lock) {
                // What no majority has confirmed goes on in the background.
                let _ = lock.release().await;
            }
            Done::LetGo
        });
    }

    fn say(&mut self, what: &Value) {
        if self.stream.is_none() {
            return;
        }
        // To a buffer, and of numbers and texts: it cannot fail.
        let _ = serde_json::to_writer(&mut self.output, what);
        self.output.push(b'\n');
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

    /// The connection is over. Its holds stay until their deadlines.
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
        let (held, told_us) = Held::new(lock, KindName::Mutex, false, lease);
        connection.holds.insert(held);
        connection.later(async { panic!("a defect") });
        let next = async {
            let _guard = other.mutex("a").lock().await.unwrap();
            wire::micros(clock::monotonic())
        };
        let ((), at) = join(connection.serve(), next).await;
        assert!(told_us <= at && at < told_us + 1_000_000, "had at {at}, told {told_us}");
    }
}
