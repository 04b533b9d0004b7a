//! Readers and writers over real servers, some of them in processes of their own.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};

use quorate::{Preference, RwLock};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::rw::waiting::{read, release, until_waiting};
use quorate_support::{Worker, eventually_async};
use quorate_tests::fixture::{Fixture, Stopwatch, ms, secs};

/// A process that reads or writes `a`.
fn worker(on: &Fixture, way: &str) -> Worker {
    let arguments = [way.to_owned(), "a".to_owned()];
    Worker::start(Path::new(env!("CARGO_BIN_EXE_prices")), arguments.into_iter().chain(on.urls()))
}

/// A hundred readers that come and go.
struct Readers {
    tasks: JoinSet<()>,
    over: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
}

impl Readers {
    /// Each stays until another one has come, or for 50 ms: they read without a gap, unless nobody
    /// is let in.
    async fn start(on: &Fixture, preference: Preference) -> Self {
        let mut readers =
            Self { tasks: JoinSet::new(), over: Arc::default(), reads: Arc::default() };
        for _ in 0..4 {
            let client = on.client().await;
            for _ in 0..25 {
                readers.come(client.rw_lock("a").preference(preference));
            }
        }
        eventually_async("all of them have read", async || readers.reads() >= 100).await;
        readers
    }

    fn come(&mut self, lock: RwLock) {
        let (over, reads) = (Arc::clone(&self.over), Arc::clone(&self.reads));
        self.tasks.spawn(async move {
            while !over.load(SeqCst) {
                let guard = lock.read().await.unwrap();
                let entered = reads.fetch_add(1, SeqCst);
                let watch = Stopwatch::start();
                while reads.load(SeqCst) == entered + 1 && watch.time() < ms(50) {
                    sleep(ms(1)).await;
                }
                drop(guard);
            }
        });
    }

    fn reads(&self) -> usize {
        self.reads.load(SeqCst)
    }

    async fn end(self) {
        self.over.store(true, SeqCst);
        self.tasks.join_all().await;
    }
}

// Each reads for 50 ms at the most, and the bound is one for a busy machine: if readers passed the
// writer, one of them would be inside at any moment for as long as they come.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_enters_among_a_hundred_readers_that_come_and_go() {
    let on = Fixture::real(5);
    let client = on.client().await;
    for preference in [Preference::Writers, Preference::Fair] {
        let readers = Readers::start(&on, preference).await;
        let lock = client.rw_lock("a");
        let entered = timeout(secs(15), lock.write()).await;
        let writing = entered.expect("it enters").unwrap();
        let before = readers.reads();
        sleep(ms(100)).await;
        assert_eq!(readers.reads(), before, "somebody reads while it is written");
        release(&on, writing.release()).await;
        eventually_async("they go on", async || readers.reads() > before + 100).await;
        readers.end().await;
        on.until_clean().await;
    }
}

// The default deadline of 5 s, and as long again for a busy machine; the first reader, which the
// writer waits for, reads on all the time.
#[tokio::test(flavor = "multi_thread")]
async fn when_a_process_that_waits_to_write_is_killed_the_readers_behind_it_enter() {
    let on = Fixture::real(5);
    let (ours, theirs) = (on.client().await, on.client().await);
    let reading = read(&ours).await.unwrap();
    let mut writer = worker(&on, "write");
    until_waiting(&ours, 1, 0).await;
    let behind = read(&theirs);
    let mut process = worker(&on, "read");
    until_waiting(&ours, 1, 2).await;
    writer.kill();
    let watch = Stopwatch::start();
    assert!(process.says().starts_with("entered "));
    let second = behind.await.unwrap();
    assert!(watch.time() < secs(10), "{:?}", watch.time());
    assert!(reading.is_held() && second.is_held());
    process.leave();
    release(&on, second.release()).await;
    release(&on, reading.release()).await;
    on.until_clean().await;
}
