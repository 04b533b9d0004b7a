use std::{
    sync::{
        OnceLock, Weak,
        atomic::AtomicUsize,
        mpsc::{self, Receiver, Sender},
    },
    task::{Context, Wake, Waker},
    thread,
};

use futures::FutureExt;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

use super::*;
use crate::{log, settings::Settings};

/// What is done with all that is told, by its name and value.
type Hear = dyn Fn(&str, f64) + Send + Sync;

/// A recorder that does so.
#[derive(Clone)]
struct Told(Arc<Hear>);

struct ToldOf(Told, String);

impl ToldOf {
    fn tell(&self, value: f64) {
        self.0.0(&self.1, value);
    }
}

impl CounterFn for ToldOf {
    fn increment(&self, _: u64) {
        self.tell(1.0);
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for ToldOf {
    fn increment(&self, value: f64) {
        self.tell(value);
    }

    fn decrement(&self, value: f64) {
        self.tell(-value);
    }

    fn set(&self, value: f64) {
        self.tell(value);
    }
}

impl HistogramFn for ToldOf {
    fn record(&self, value: f64) {
        self.tell(value);
    }
}

impl Recorder for Told {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(ToldOf(self.clone(), key.name().into())))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(ToldOf(self.clone(), key.name().into())))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(ToldOf(self.clone(), key.name().into())))
    }
}

impl Standings {
    fn of_three(clock: Clock) -> Arc<Self> {
        let labels = ["one", "two", "three"].map(Arc::from).to_vec();
        let (clusters, spread, quorum) = (vec![0, 1, 2], vec![false; 3], Quorum::of(3));
        let layout = VoterLayout { labels, clusters, spread, quorum };
        let settings = Settings::default();
        Self::new(layout, clock, settings.suspicion(), settings.configuration(quorum))
    }

    /// Whether an answer would be counted at once.
    fn are_free(&self) -> bool {
        self.trust.try_lock().is_ok() && self.configuration.is_free()
    }
}

fn identity(run_id: &str, refuses: Option<&str>) -> Identity {
    Identity {
        run_id: run_id.into(),
        age: Duration::from_hours(1),
        refuses: refuses.map(Arc::from),
        memory: Some(500),
        ..Identity::default()
    }
}

fn only(voter: usize) -> Shard {
    Shard { voter, number: 0 }
}

/// How often somebody was called back, and how often under a mutex.
#[derive(Default)]
struct Calls {
    standings: OnceLock<Weak<Standings>>,
    all: AtomicUsize,
    under_a_mutex: AtomicUsize,
}

impl Calls {
    fn look(&self) {
        let Some(standings) = self.standings.get().and_then(Weak::upgrade) else { return };
        let is_first = self.all.fetch_add(1, Ordering::SeqCst) == 0;
        if !standings.are_free() {
            self.under_a_mutex.fetch_add(1, Ordering::SeqCst);
        } else if is_first {
            // It may ask, and change, what it likes.
            let _ = standings.quarantine(only(2), Moment::BEGINNING);
            standings.note_disconnect(only(2), None);
        }
    }
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

/// All that may happen to three voters.
async fn a_lot_happens(standings: &Arc<Standings>, clock: &Clock) {
    let stamp = |ahead_secs: u64| {
        let (asked, answered) = (clock.now(), clock.now());
        let shown = Duration::from_secs(1_700_000_000 + ahead_secs);
        Some(Stamp { shown, asked, answered })
    };
    standings.log_quarantines();
    standings.configuration.comparison().begin(clock.now());
    for voter in 0..3 {
        let identity = identity(&format!("run {voter}"), None);
        standings.note_identity(only(voter), &identity, stamp(0), true);
    }
    standings.note_disconnect(only(0), Some("cut off"));
    standings.note_disconnect(only(1), Some("cut off"));
    // Back without its data, and full.
    standings.note_identity(only(0), &identity("run 3", Some("full")), stamp(0), true);
    // The client stands still.
    for voter in [1, 2] {
        standings.note_answer(only(voter), clock.now(), stamp(600), None).expect("it is no twin");
    }
    standings.note_missing_vote(only(2), clock.now());
    standings.note_move(only(2), only(2), true);
    let clash = |clashes| {
        let configuration = Settings::default().configuration(Quorum::of(5)).text();
        let entry = crate::proto::ConfigurationEntry::read(&format!(
            "{clashes} 0 75000 {configuration}\tit"
        ));
        let entries = Ok(vec![entry.expect("it is one")]);
        standings.configuration.note_answer(1, entries, clock.now());
    };
    clash(1);
    clash(0);
    tokio::time::sleep(Duration::from_secs(100)).await;
    clash(1);
    standings.retire();
}

#[tokio::test(start_paused = true)]
async fn nobody_is_called_back_under_a_mutex_and_whoever_is_may_ask_and_change_what_it_likes() {
    let (recorded, woken) = (Arc::<Calls>::default(), Arc::<Calls>::default());
    let noted = Arc::clone(&recorded);
    let recorder = Told(Arc::new(move |_, _| noted.look()));
    let _recording = metrics::set_default_local_recorder(&recorder);
    let clock = Clock::tokio();
    let standings = Standings::of_three(clock.clone());
    for calls in [&recorded, &woken] {
        calls.standings.set(Arc::downgrade(&standings)).expect("it is the first");
    }
    let signals = [&*standings.renewal_signal, &*standings.alarm, &standings.connected];
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut waiting = signals.map(|signal| Box::pin(signal.changed_since(signal.version())));
    assert!(waiting.iter_mut().all(|one| one.poll_unpin(&mut context).is_pending()));
    a_lot_happens(&standings, &clock).await;
    let counts = |calls: &Calls| {
        [&calls.all, &calls.under_a_mutex].map(|count| count.load(Ordering::SeqCst))
    };
    let [told, under_a_mutex] = counts(&recorded);
    assert!(told > 25 && under_a_mutex == 0, "{told} times, {under_a_mutex} under a mutex");
    assert_eq!(counts(&woken), [3, 0], "each signal wakes");
}

/// What has changed by this is seen within a minute, though nothing of it can be told yet.
fn is_seen(standings: &Standings, is_so: impl Fn(&Standings) -> bool) {
    let begun = Clock::System.now();
    while !(standings.are_free() && is_so(standings)) {
        let waited = Clock::System.now().since(begun);
        assert!(waited < Duration::from_mins(1), "an answer waits for what is told");
        thread::sleep(Duration::from_millis(1));
    }
}

#[tokio::test]
async fn no_answer_waits_for_the_log() {
    let standings = Standings::of_three(Clock::System);
    standings.note_identity(only(0), &identity("run 0", None), None, true);
    let (held_up, other) = (log::hold_up(), Arc::clone(&standings));
    // The same server: that is seen as soon as it is noted.
    let told = thread::spawn(move || {
        other.note_identity(only(1), &identity("run 0", None), None, true);
    });
    is_seen(&standings, |standings| standings.twin(only(1)).is_some());
    assert!(!told.is_finished(), "the log takes nothing");
    drop(held_up);
    told.join().expect("it ends");
}

// The recorder takes its time for the first thing that it is told. What changes meanwhile is told
// by whoever waits for it, in its order; nobody else waits.
#[tokio::test]
async fn no_answer_waits_for_a_recorder_and_what_changes_meanwhile_is_told_in_its_order() {
    let standings = Standings::of_three(Clock::System);
    let (goes_on, go_on): (Sender<()>, Receiver<()>) = mpsc::channel();
    let ((tells, told), go_on) = (mpsc::channel(), Mutex::new(go_on));
    let recorder = Told(Arc::new(move |name: &str, value| {
        tells.send(format!("{name} {value}")).expect("the test listens");
        let _ = lock(&go_on).recv();
    }));
    let other = Arc::clone(&standings);
    let telling = thread::spawn(move || {
        metrics::with_local_recorder(&recorder, || {
            other.note_identity(
                only(0),
                &Identity { memory: None, ..identity("a", None) },
                None,
                true,
            );
        });
    });
    let next = || told.recv_timeout(Duration::from_mins(1)).expect("it is told");
    assert_eq!(next(), "quorate_connections 1");
    is_seen(&standings, |_| true);
    let full = Identity { memory: None, ..identity("a", Some("full")) };
    standings.note_identity(only(0), &full, None, false);
    standings.note_disconnect(only(0), None);
    drop(goes_on);
    telling.join().expect("it ends");
    let expected = ["quorate_refusing 1", "quorate_refusing -1", "quorate_connections -1"];
    assert_eq!([(); 3].map(|()| next()), expected);
}

#[tokio::test]
async fn a_recorder_that_panics_costs_one_change_and_the_next_is_told() {
    let standings = Standings::of_three(Clock::System);
    let count = Arc::<AtomicUsize>::default();
    let noted = Arc::clone(&count);
    let recorder = Told(Arc::new(move |_, _| {
        assert!(noted.fetch_add(1, Ordering::SeqCst) > 0, "the first is too much for it");
    }));
    metrics::with_local_recorder(&recorder, || {
        standings.note_disconnect(only(1), None);
        standings.note_disconnect(only(0), None);
    });
    assert_eq!(count.load(Ordering::SeqCst), 2);
}
