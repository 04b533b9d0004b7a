use std::{cell::RefCell, sync::Weak};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

use super::*;
use crate::settings::Settings;

thread_local! {
    /// What the recorder looks at, and how often it did.
    static WATCHED: RefCell<(Weak<Standings>, usize)> = const { RefCell::new((Weak::new(), 0)) };
}

/// Sees whether an answer would have to wait, whenever it is told something.
struct Watching;

impl Watching {
    fn look() {
        WATCHED.with_borrow_mut(|(standings, looks)| {
            if let Some(standings) = standings.upgrade() {
                assert!(standings.state.try_lock().is_ok(), "a recorder is called under the mutex");
                *looks += 1;
            }
        });
    }
}

impl CounterFn for Watching {
    fn increment(&self, _: u64) {
        Self::look();
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Watching {
    fn increment(&self, _: f64) {
        Self::look();
    }

    fn decrement(&self, _: f64) {
        Self::look();
    }

    fn set(&self, _: f64) {
        Self::look();
    }
}

impl HistogramFn for Watching {
    fn record(&self, _: f64) {
        Self::look();
    }
}

impl Recorder for Watching {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Self))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(Self))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Self))
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

#[tokio::test(start_paused = true)]
async fn recorders_are_called_while_no_answer_waits() {
    let _recording = metrics::set_default_local_recorder(&Watching);
    let labels = ["one", "two", "three"].map(Arc::from).to_vec();
    let (clusters, spread, quorum) = (vec![0, 1, 2], vec![false; 3], Quorum::of(3));
    let cast = Cast { labels, clusters, spread, quorum };
    let clock = Clock::tokio();
    let standings = Standings::new(cast, clock.clone(), Settings::default().suspicion());
    WATCHED.set((Arc::downgrade(&standings), 0));
    standings.speak();
    let place = |voter| Place { voter, shard: 0 };
    let stamp = |moved: u64| {
        let (asked, answered) = (clock.now(), clock.now());
        let shown = Duration::from_secs(1_700_000_000 + moved);
        Some(Stamp { shown, asked, answered })
    };
    for voter in 0..3 {
        standings.met(place(voter), &identity(&format!("run {voter}"), None), stamp(0));
    }
    standings.parted(place(0), Some("cut off"));
    standings.parted(place(1), Some("cut off"));
    // Back without its data, and full.
    standings.met(place(0), &identity("run 3", Some("full")), stamp(0));
    standings.answered(place(1), clock.now(), stamp(600), None).expect("it is no twin");
    standings.lacks_vote(place(2), clock.now());
    standings.note_step(1, 1, true, Some("others".into()));
    standings.note_step(1, 1, true, None);
    tokio::time::sleep(Duration::from_secs(100)).await;
    standings.note_step(1, 1, true, Some("others".into()));
    standings.retire();
    let looks = WATCHED.take().1;
    assert!(looks > 30, "{looks}");
}
