//! The log: a thread of its own passes all events to the subscribers, in their order.

// A subscriber of `tracing` may write to a disk that hangs, or to a pipe that nobody reads. When
// events were written where they arose, a subscriber that took 15 s for one warning cost every lock
// (guarantee 5, test `a_log_that_blocks_costs_no_lock_on_the_thread_of_the_clients`).

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use tokio::sync::oneshot;
use tracing::{
    Dispatch, Id, Span, dispatcher, level_filters::LevelFilter, subscriber::NoSubscriber,
};

use crate::sync::PerProcess;

/// The most events in the queue.
// Enough for the loss of ten thousand locks at once. A log that hangs for good takes no more memory
// than this.
const MOST: usize = 16_384;

static QUEUE: PerProcess<Option<LogQueue>> = PerProcess::new();

/// The entries for the thread of the log.
struct LogQueue {
    entries: Sender<LogEntry>,
    backlog: Arc<Backlog>,
}

#[derive(Default)]
struct Backlog {
    /// How many entries are not written yet.
    waiting: AtomicUsize,
    /// How many events found no room since this was last written.
    missing: AtomicU64,
}

struct LogEntry {
    listener: Option<Dispatch>,
    event: Box<dyn FnOnce() + Send>,
}

/// Waits until the subscribers have all events so far, but no longer than `limit`. Returns whether
/// they have them.
///
/// This blocks the thread. It is for the end of a program that has no client to
/// [close](crate::Quorate::close), which waits for the log too.
///
/// ```
/// # use std::time::Duration;
/// assert!(quorate::log::flush(Duration::from_secs(1)));
/// ```
pub fn flush(limit: Duration) -> bool {
    let (done, written) = mpsc::channel();
    is_written() || {
        // After the limit, nobody receives this.
        let say = move || {
            let _ = done.send(());
        };
        queue(say, None);
        written.recv_timeout(limit).is_ok()
    }
}

/// Completes when the subscribers have all events so far.
pub(crate) async fn until_written() {
    if !is_written() {
        let (done, written) = oneshot::channel::<()>();
        queue(move || drop(done), None);
        let _ = written.await;
    }
}

/// Queues an event for the thread of the log.
// This calls no subscriber, and takes no mutex but its own. So callers may have the mutex of what
// the event is about, which keeps events in the order in which things happened.
pub(crate) fn report(event: impl FnOnce() + Send + 'static) {
    queue(event, Some(MOST));
}

/// The same for an event in the span of a caller's task. Not to be called under a mutex.
// It asks the subscriber for the span, which may block.
pub(crate) fn report_here(event: impl FnOnce() + Send + 'static) {
    let span = Span::current();
    report(move || span.in_scope(event));
}

/// A span that begins and ends on the thread of the log, like its events.
#[derive(Debug)]
pub(crate) struct LogSpan(Option<Arc<OnceLock<Span>>>);

impl LogSpan {
    /// Begins a span of level debug, if any subscriber wants that level.
    pub(crate) fn begin(make: impl FnOnce() -> Span + Send + 'static) -> Self {
        if LevelFilter::current() < LevelFilter::DEBUG {
            return Self(None);
        }
        let span = Arc::<OnceLock<Span>>::default();
        let begun = Arc::clone(&span);
        report(move || drop(begun.set(make())));
        Self(Some(span))
    }

    /// Queues an event with this span as its parent.
    pub(crate) fn report(&self, event: impl FnOnce(Option<Id>) + Send + 'static) {
        let span = self.0.clone();
        report(move || event(span.and_then(|span| span.get()?.id())));
    }

    /// Ends the span with an outcome.
    pub(crate) fn end(mut self, outcome: &'static str) {
        self.close(Some(outcome));
    }

    fn close(&mut self, outcome: Option<&'static str>) {
        let Some(span) = self.0.take() else { return };
        // Also if the queue is full: a subscriber would keep a span without an end for ever.
        let end = move || {
            if let (Some(span), Some(outcome)) = (span.get(), outcome) {
                span.record("outcome", outcome);
            }
        };
        queue(end, None);
    }
}

impl Drop for LogSpan {
    fn drop(&mut self) {
        self.close(None);
    }
}

/// Puts an entry at the end of the queue, unless `most` entries are there.
fn queue(event: impl FnOnce() + Send + 'static, most: Option<usize>) {
    // If it finds no room, it is dropped after the mutex is free: with it may go a subscriber.
    let entry = LogEntry { listener: listener(), event: Box::new(event) };
    let mut queue = QUEUE.lock();
    if queue.is_none() {
        // Where the system gives no thread, the next event tries again.
        let Ok(started) = LogQueue::start() else { return };
        *queue = Some(started);
    }
    let _no_room = queue.as_ref().and_then(|queue| queue.push(entry, most).err());
    drop(queue);
}

/// The subscriber of the thread on which an event arises. `None` on threads without one, such as
/// that of the clients: then the subscriber of the process gets the event.
fn listener() -> Option<Dispatch> {
    dispatcher::get_default(|here| (!here.is::<NoSubscriber>()).then(|| here.clone()))
}

/// Keeps the queue locked until this is dropped.
#[cfg(test)]
pub(crate) fn hold_up() -> Box<dyn std::any::Any> {
    Box::new(QUEUE.lock())
}

fn is_written() -> bool {
    let queue = QUEUE.lock();
    queue.as_ref().is_none_or(|queue| queue.backlog.waiting.load(Ordering::Acquire) == 0)
}

impl LogQueue {
    fn start() -> io::Result<Self> {
        let ((entries, heard), backlog) = (mpsc::channel(), Arc::<Backlog>::default());
        let of_thread = Arc::clone(&backlog);
        let thread = thread::Builder::new().name("quorate-log".into());
        thread.spawn(move || write_all(&heard, &of_thread))?;
        Ok(Self { entries, backlog })
    }

    /// Gives the entry back if there is no room.
    fn push(&self, entry: LogEntry, most: Option<usize>) -> Result<(), LogEntry> {
        let Backlog { waiting, missing } = &*self.backlog;
        if most.is_some_and(|most| waiting.load(Ordering::Relaxed) >= most) {
            missing.fetch_add(1, Ordering::Relaxed);
            return Err(entry);
        }
        waiting.fetch_add(1, Ordering::Relaxed);
        self.entries.send(entry).map_err(|unsent| unsent.0)
    }
}

fn write_all(entries: &Receiver<LogEntry>, backlog: &Backlog) {
    for LogEntry { listener, event } in entries {
        let missing = backlog.missing.swap(0, Ordering::Relaxed);
        let write = || {
            event();
            if missing > 0 {
                tracing::warn!(missing, "events are missing: the log takes too long");
            }
        };
        // A subscriber that panics costs its own event.
        let _ = catch_unwind(AssertUnwindSafe(|| match listener {
            Some(listener) => dispatcher::with_default(&listener, write),
            None => write(),
        }));
        backlog.waiting.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write, sync::Mutex};

    use tracing::{
        Event, Metadata, Subscriber,
        field::{Field, Visit},
        span::{Attributes, Record},
    };

    use super::*;

    /// Keeps the fields of every event.
    #[derive(Clone, Default)]
    struct Listener(Arc<Mutex<String>>);

    struct Line<'a>(&'a mut String);

    impl Visit for Line<'_> {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            write!(self.0, "{field}={value:?};").expect("texts take all");
        }
    }

    impl Subscriber for Listener {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            span.record(&mut Line(&mut self.0.lock().unwrap()));
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, values: &Record<'_>) {
            values.record(&mut Line(&mut self.0.lock().unwrap()));
        }

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            event.record(&mut Line(&mut self.0.lock().unwrap()));
            assert!(!self.0.lock().unwrap().contains("panic"), "this subscriber does");
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}

        fn try_close(&self, _: Id) -> bool {
            self.0.lock().unwrap().push_str("closed;");
            true
        }
    }

    fn heard(by: &Listener) -> String {
        assert!(flush(Duration::from_mins(1)), "it is told");
        by.0.lock().unwrap().clone()
    }

    #[test]
    fn events_are_told_in_their_order_to_who_listened_where_they_arose() {
        let (one, other) = (Listener::default(), Listener::default());
        for (listener, number) in [(&one, 1), (&other, 2), (&one, 3), (&other, 4)] {
            let _listening = dispatcher::set_default(&Dispatch::new(listener.clone()));
            report(move || tracing::info!(number));
        }
        assert_eq!([heard(&one), heard(&other)], ["number=1;number=3;", "number=2;number=4;"]);
    }

    #[test]
    fn a_subscriber_that_panics_costs_its_own_event() {
        let (panics, listens) = (Listener::default(), Listener::default());
        for (listener, text) in [(&panics, "panic"), (&listens, "told")] {
            let _listening = dispatcher::set_default(&Dispatch::new(listener.clone()));
            report(move || tracing::info!(text));
        }
        assert_eq!(heard(&listens), "text=\"told\";");
    }

    #[test]
    fn a_span_is_there_for_its_events_and_has_an_end() {
        let listener = Listener::default();
        let _listening = dispatcher::set_default(&Dispatch::new(listener.clone()));
        let make = || tracing::debug_span!("renew", lock = "a", outcome = tracing::field::Empty);
        let span = LogSpan::begin(make);
        span.report(|on| tracing::info!(parent: on.clone(), has_span = on.is_some()));
        span.end("renewed");
        drop(LogSpan::begin(make));
        let both = "lock=\"a\";has_span=true;outcome=\"renewed\";closed;lock=\"a\";closed;";
        assert_eq!(heard(&listener), both);
    }

    #[test]
    fn what_finds_no_room_is_counted_and_told() {
        let (queue, listener) = (LogQueue::start().unwrap(), Listener::default());
        let (begun, begins) = mpsc::channel();
        let (goes_on, go_on) = mpsc::channel::<()>();
        let push = |event: Box<dyn FnOnce() + Send>| {
            let listener = Some(Dispatch::new(listener.clone()));
            queue.push(LogEntry { listener, event }, Some(3)).is_ok()
        };
        assert!(push(Box::new(move || {
            begun.send(()).unwrap();
            go_on.recv().unwrap();
        })));
        begins.recv().unwrap();
        let kept = [1, 2, 3, 4].map(|number| push(Box::new(move || tracing::info!(number))));
        assert_eq!(kept, [true, true, false, false]);
        goes_on.send(()).unwrap();
        let (done, told) = mpsc::channel();
        let last = LogEntry { listener: None, event: Box::new(move || done.send(()).unwrap()) };
        assert!(queue.push(last, None).is_ok());
        told.recv().unwrap();
        let missing = "message=events are missing: the log takes too long;missing=2;";
        assert_eq!(*listener.0.lock().unwrap(), format!("number=1;{missing}number=2;"));
    }
}
