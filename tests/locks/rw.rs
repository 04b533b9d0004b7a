//! What users of the read/write lock rely on. Each test's name is the claim; each claim is written
//! once and holds on voters inside the process (in paused time: fast and exact) and on real
//! servers.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use quorate_support::Worker;
use quorate_tests::{doomed::Doomed, force::waiting, prelude::*};

// Waiters that die, and what waiting costs.

// A reader that comes before a writer and dies: the writer enters when its place ends.
#[tokio::test(start_paused = true)]
async fn a_dead_reader_that_waits_holds_up_a_writer_for_one_waiter_deadline() {
    let on = Fixture::embedded(5);
    let (ours, theirs) = (on.client().await, on.client().await);
    let writing = ours.rw_lock("a").write().await.unwrap();
    let machine = Machine::new("other");
    let doomed = on.builder().machine(&machine).connect().await.unwrap();
    let doomed = doomed.rw_lock("a").preference(quorate::Preference::Fair);
    let dead = tokio::spawn(machine.run(async move { drop(doomed.read().await) }));
    until_waiting(&ours, 0, 1).await;
    let writer = write(&theirs);
    until_waiting(&ours, 1, 1).await;
    machine.kill();
    let watch = Stopwatch::start();
    on.release(writing.release()).await;
    let next = writer.await.unwrap();
    assert!(watch.time() <= secs(5) + ms(10), "{:?}", watch.time());
    on.release(next.release()).await;
    dead.abort();
    on.until_clean().await;
}

/// How often each voter was asked for the lock meanwhile.
async fn asked(on: &Fixture, work: impl Future<Output = ()>) -> Vec<u64> {
    let before = on.runs("rw/acquire").unwrap();
    work.await;
    let now = on.runs("rw/acquire").unwrap();
    now.into_iter().zip(before).map(|(now, before)| now - before).collect()
}

// A writer that waits for readers asks as often as it refreshes its place, and once when the last
// reader has gone, however many there were.
#[tokio::test(start_paused = true)]
async fn a_writer_is_called_once_when_the_last_of_many_readers_has_gone() {
    let on = Fixture::embedded(3);
    let (ours, theirs) = (on.client().await, on.client().await);
    let mut guards = Vec::new();
    for _ in 0..100 {
        guards.push(ours.rw_lock("a").read().await.unwrap());
    }
    let writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    let all_leave = async {
        for guard in guards {
            on.release(guard.release()).await;
        }
        on.release(writer.await.unwrap().release()).await;
    };
    assert_eq!(asked(&on, all_leave).await, [1; 3]);
    on.until_clean().await;
}

// Twenty readers behind a writer, and a writer behind them that has asked for longer: the hand-over
// from writer to writer wakes no reader.
#[tokio::test(start_paused = true)]
async fn a_hand_over_between_writers_wakes_no_reader() {
    let on = Fixture::embedded(3);
    let (ours, theirs) = (on.client().await, on.client().await);
    let writing = ours.rw_lock("a").write().await.unwrap();
    let readers: Vec<_> = (0..20).map(|_| read(&theirs)).collect();
    until_waiting(&ours, 0, 20).await;
    let mut second = write(&theirs);
    until_waiting(&ours, 1, 20).await;
    let mut next = None;
    let hand_over = async {
        on.release(writing.release()).await;
        next = Some((&mut second).await.unwrap());
    };
    assert_eq!(asked(&on, hand_over).await, [1; 3]);
    on.release(next.expect("it has it").release()).await;
    for reader in readers {
        on.release(reader.await.unwrap().release()).await;
    }
    on.until_clean().await;
}

// From a write to a read.

claims!(everywhere:
    a_downgrade_lets_readers_in_at_once_and_no_writer_in_between,
    a_guard_reads_without_an_owner,
);
claims!(minority: a_read_under_a_write_passes_the_queue_where_the_write_was_not_heard);

// Two wait to read; another comes to write when they have gone. Then one that has waited for longer
// than the read: it enters when the read has ended.
async fn a_downgrade_lets_readers_in_at_once_and_no_writer_in_between(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    let writing = ours.rw_lock("a").write().await.unwrap();
    let readers = [read(&theirs), read(&theirs)];
    until_waiting(&ours, 0, 2).await;
    let watch = Stopwatch::start();
    let reading = writing.downgrade().await.unwrap();
    for reader in readers {
        on.release(reader.await.unwrap().release()).await;
    }
    assert!(watch.time() <= on.at_most(ms(20)), "{:?}", watch.time());
    let writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    assert!(reading.is_held() && !writer.is_finished());
    on.release(reading.release()).await;
    let writing = writer.await.unwrap();
    let writer = write(&ours);
    until_waiting(&ours, 1, 0).await;
    let reading = writing.downgrade().await.unwrap();
    assert!(ours.rw_lock("a").try_read().await.unwrap().is_none(), "others stand behind it");
    assert!(reading.is_held() && !writer.is_finished());
    on.release(reading.release()).await;
    on.release(writer.await.unwrap().release()).await;
    on.until_clean().await;
}

async fn a_guard_reads_without_an_owner(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let lock = client.rw_lock("a");
    let writing = lock.write().await.unwrap();
    let reading = writing.read().await.unwrap();
    let under = format!("{}/", writing.hold());
    assert!(reading.hold().as_str().starts_with(&under), "{}", reading.hold());
    on.release(writing.release()).await;
    // By then it has been renewed, where the write is no more.
    tokio::time::sleep(secs(5)).await;
    assert!(reading.is_held());
    on.until_only(READERS).await;
    let other = lock.try_read().await.unwrap().expect("it is only read");
    on.release(other.release()).await;
    on.release(reading.release()).await;
    on.until_clean().await;
}

// Two voters are away while the write is acquired, and come back when another waits to write; then
// two of those that gave it their votes go. The two that never heard of the write are needed:
// nobody who guards against restarts would count those yet.
async fn a_read_under_a_write_passes_the_queue_where_the_write_was_not_heard(mut on: Fixture) {
    let client = async || on.connect(on.builder().restart_guard(RestartGuard::Off)).await;
    let (ours, theirs) = (client().await, client().await);
    on.stop(3);
    on.stop(4);
    let writing = ours.rw_lock("a").write().await.unwrap();
    on.kill(3);
    on.kill(4);
    let writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    on.restart(3);
    on.restart(4);
    let waits_everywhere = |seen: &quorate::LockView| {
        let states = seen.voters.iter().filter_map(|view| view.state.as_ref().ok());
        states.filter(|state| state.waiting.len() == 1).count() == 5
    };
    until(&ours, "it waits on every voter", waits_everywhere).await;
    on.kill(1);
    on.kill(2);
    let reading = writing.read().await.expect("it passes the queue on the two that are new");
    assert!(!writer.is_finished() && reading.is_held());
    on.release(writing.release()).await;
    on.release(reading.release()).await;
    on.release(writer.await.unwrap().release()).await;
}

// The request is on its way while the lease of the write ends, and another writes meanwhile. The
// read that the voters then give is no continuation of the write, so it is not given to the caller.
#[tokio::test(start_paused = true)]
async fn a_read_that_comes_after_the_write_has_ended_is_none() {
    for downgrades in [false, true] {
        let voters = embedded::voters(3);
        let on = Fixture::of(&voters);
        let machine = Machine::new("slow");
        let builder = on.builder().lease(secs(1)).voter_deadline(ms(100));
        let ours = on.connect(builder.machine(&machine)).await;
        let writing = ours.rw_lock("a").lease_fixed(secs(1)).write().await.unwrap();
        let theirs = on.client().await.rw_lock("a");
        let other = tokio::spawn(async move { theirs.write().await.unwrap().release().await });
        until_waiting(&ours, 1, 0).await;
        tokio::time::sleep(ms(930)).await;
        for voter in &voters {
            voter.fault_each(|sent| match (sent.client(), sent.script()) {
                ("slow", Some("rw/acquire")) => {
                    vec![Fault::Delay { there: ms(80), back: ms(0) }]
                }
                _ => Vec::new(),
            });
        }
        assert!(writing.is_held());
        let error = if downgrades {
            writing.downgrade().await.unwrap_err()
        } else {
            writing.read().await.unwrap_err()
        };
        assert!(error.is_lost(), "{error}");
        other.await.unwrap().unwrap();
        on.until_clean().await;
    }
}

// The answers do not come: the write is as it was, and can be released. The caller's limit is
// shorter than the deadline of the voters, which have their time.
#[tokio::test(start_paused = true)]
async fn a_read_that_too_few_confirm_leaves_the_write_as_it_is() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let lock = on.client().await.rw_lock("a").owner(&Owner::new());
    let writing = lock.write().await.unwrap();
    voters[0].stop();
    voters[1].stop();
    let watch = Stopwatch::start();
    for refused in [writing.read().await, lock.read_within(ms(30)).await.map(|it| it.unwrap())] {
        let error = refused.unwrap_err();
        assert!(error.is_not_entered() && writing.is_held(), "{error}");
        assert_eq!(error.voters().len(), 3);
    }
    assert_eq!(watch.time(), ms(400));
    voters[0].resume();
    voters[1].resume();
    writing.read().await.unwrap().release().await.unwrap();
    writing.release().await.unwrap();
    on.until_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_lost_gives_no_read() {
    let (on, client) = Fixture::with_client(3).await;
    let owner = Owner::new();
    let lock = client.rw_lock("a").owner(&owner).lease_fixed(secs(1));
    let writing = lock.write().await.unwrap();
    writing.lost().await;
    assert!(writing.read().await.unwrap_err().is_lost());
    assert!(lock.read().await.unwrap_err().is_lost(), "the owner still has a guard of it");
    assert!(writing.downgrade().await.unwrap_err().is_lost());
    lock.read().await.unwrap().release().await.unwrap();
    on.until_clean().await;
}

// Who may enter again, and who may not.

claims!(everywhere:
    a_reader_that_wants_to_write_is_refused_at_once_with_its_own_error,
    whoever_reads_enters_again_past_writers_that_wait,
    a_writer_reads_at_once_and_reads_on_when_the_write_ends,
    a_writer_that_has_read_writes_on_and_again,
    a_write_that_waits_is_refused_when_its_owner_comes_to_read,
    a_lost_read_does_not_hide_the_write_of_its_owner,
);

async fn a_reader_that_wants_to_write_is_refused_at_once_with_its_own_error(on: Fixture) {
    let owner = Owner::new();
    let client = on.client().await;
    let lock = client.rw_lock("a").owner(&owner);
    let reading = lock.read().await.unwrap();
    let watch = Stopwatch::start();
    for refused in [
        lock.write().await.map(drop),
        lock.try_write().await.map(drop),
        lock.write_within(secs(60)).await.map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(error.is_deadlock() && !error.is_invalid(), "{error}");
        assert!(error.to_string().contains(reading.hold().as_str()), "{error}");
    }
    assert!(watch.time() <= on.at_most(ms(2)), "{:?}", watch.time());
    assert!(reading.is_held());
    on.until_only(READERS).await;
    // Another owner may ask, and waits.
    assert!(client.rw_lock("a").owner(&Owner::new()).try_write().await.unwrap().is_none());
    on.release(reading.release()).await;
    on.release(lock.write().await.unwrap().release()).await;
    on.until_clean().await;
}

async fn whoever_reads_enters_again_past_writers_that_wait(on: Fixture) {
    let owner = Owner::new();
    let (ours, theirs) = (on.client().await, on.client().await);
    let lock = ours.rw_lock("a").owner(&owner);
    let outer = lock.read().await.unwrap();
    let writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    assert!(ours.rw_lock("a").try_read().await.unwrap().is_none(), "a writer waits");
    let inner = lock.read().await.unwrap();
    let third = inner.reenter().await.unwrap();
    assert_eq!((inner.hold(), third.count()), (outer.hold(), 3));
    for guard in [outer, inner, third] {
        assert!(!writer.is_finished());
        on.release(guard.release()).await;
    }
    on.release(writer.await.unwrap().release()).await;
    on.until_clean().await;
}

async fn a_writer_reads_at_once_and_reads_on_when_the_write_ends(on: Fixture) {
    let owner = Owner::new();
    let (ours, theirs, last) = (on.client().await, on.client().await, on.client().await);
    let lock = ours.rw_lock("a").owner(&owner);
    let writing = lock.write().await.unwrap();
    let reader = read(&theirs);
    until_waiting(&ours, 0, 1).await;
    let reading = lock.read().await.unwrap();
    assert!(!reader.is_finished(), "it is written");
    let watch = Stopwatch::start();
    on.release(writing.release()).await;
    let other = reader.await.unwrap();
    assert!(watch.time() <= on.at_most(ms(20)), "{:?}", watch.time());
    assert!(reading.is_held());
    assert!(last.rw_lock("a").try_write().await.unwrap().is_none(), "it is still read");
    on.release(other.release()).await;
    assert!(last.rw_lock("a").try_write().await.unwrap().is_none(), "it is still read");
    assert!(lock.write().await.unwrap_err().is_deadlock(), "the owner only reads now");
    on.release(reading.release()).await;
    on.release(last.rw_lock("a").write().await.unwrap().release()).await;
    on.until_clean().await;
}

// The write outlives two of its leases after the read has gone.
async fn a_writer_that_has_read_writes_on_and_again(on: Fixture) {
    let owner = Owner::new();
    let (ours, theirs) = (on.client_with_lease(secs(3)).await, on.client().await);
    let lock = ours.rw_lock("a").owner(&owner);
    let (outer, reading) = (lock.write().await.unwrap(), lock.read().await.unwrap());
    tokio::time::sleep(secs(4)).await;
    on.release(reading.release()).await;
    on.until_only(WRITER).await;
    tokio::time::sleep(secs(7)).await;
    assert!(outer.is_held());
    assert!(theirs.rw_lock("a").try_read().await.unwrap().is_none(), "it is still written");
    let reading = lock.read().await.unwrap();
    let inner = lock.write().await.expect("it writes already, so it waits for nobody");
    assert_eq!((outer.count(), inner.hold()), (2, outer.hold()));
    on.release(outer.release()).await;
    on.release(inner.release()).await;
    assert!(lock.try_write().await.unwrap_err().is_deadlock());
    on.release(reading.release()).await;
    on.until_clean().await;
}

// Both are asked for at once, and whoever waits for both would wait for ever. Which of them comes
// first is not said.
async fn a_write_that_waits_is_refused_when_its_owner_comes_to_read(on: Fixture) {
    let client = on.client().await;
    let lock = client.rw_lock("a").owner(&Owner::new());
    let (reading, writing) = tokio::join!(lock.read(), lock.write());
    let reading = reading.expect("nobody else has it");
    match writing {
        Ok(writing) => on.release(writing.release()).await,
        Err(error) => assert!(error.is_deadlock(), "{error}"),
    }
    on.release(reading.release()).await;
    // As sure: the read comes while the write waits for another reader.
    let other = on.client().await.rw_lock("a").read().await.unwrap();
    let waiting = tokio::spawn(lock.write());
    until_waiting(&client, 1, 0).await;
    let passing = lock.clone().preference(quorate::Preference::Readers);
    let reading = passing.read().await.unwrap();
    assert!(waiting.await.unwrap().unwrap_err().is_deadlock());
    on.release(reading.release()).await;
    on.release(other.release()).await;
    on.until_clean().await;
}

async fn a_lost_read_does_not_hide_the_write_of_its_owner(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let lock = client.rw_lock("a").owner(&Owner::new());
    let writing = lock.write().await.unwrap();
    let ended = lock.clone().lease_fixed(secs(3)).read().await.unwrap();
    ended.lost().await;
    let reading = lock.read().await.expect("it writes, so it may read");
    assert!(reading.is_held() && writing.is_held() && !ended.is_held());
    on.release(reading.release()).await;
    on.release(writing.release()).await;
    // What was lost is told where nothing else lets the owner in.
    assert!(lock.read().await.unwrap_err().is_lost());
    drop(ended);
    on.until_clean().await;
}

// Whom a reader lets pass.

// A hundred readers that come and go. One reads for 50 ms: that is what the writer has to wait for,
// and then it enters.
#[tokio::test(start_paused = true)]
async fn a_writer_enters_promptly_among_readers_that_come_and_go() {
    for preference in [Preference::Writers, Preference::Fair] {
        let on = Fixture::embedded(5);
        let clients = [on.client().await, on.client().await];
        let over = Arc::new(AtomicBool::new(false));
        let mut readers = JoinSet::new();
        for number in 0..100 {
            let lock = clients[usize::from(number % 2 == 0)].rw_lock("a").preference(preference);
            let over = Arc::clone(&over);
            readers.spawn(async move {
                sleep(ms(number)).await;
                while !over.load(Ordering::SeqCst) {
                    let guard = lock.read().await.unwrap();
                    sleep(ms(50)).await;
                    guard.release().await.unwrap();
                }
            });
        }
        sleep(secs(1)).await;
        let watch = Stopwatch::start();
        let writing = clients[0].rw_lock("a").write().await.unwrap();
        assert!(watch.time() <= ms(60), "{preference:?}: {:?}", watch.time());
        over.store(true, Ordering::SeqCst);
        drop(writing);
        readers.join_all().await;
        on.until_clean().await;
    }
}

// Readers and writers over real servers, some of them in processes of their own.

/// A process that reads or writes `a`.
fn worker(on: &Fixture, way: &str) -> Worker {
    let arguments = [way.to_owned(), "a".to_owned()];
    Worker::start(Path::new(env!("CARGO_BIN_EXE_prices")), arguments.into_iter().chain(on.urls()))
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
    on.release(second.release()).await;
    on.release(reading.release()).await;
    on.until_clean().await;
}

// Waiting for a condition on the lock `a`, and giving up.

/// The keys of a lock that is only read, or only written.
pub(crate) const READERS: &[&str] = &["quorate:{a}:rw:readers"];
pub(crate) const WRITER: &[&str] = &["quorate:{a}:rw:writer"];

/// Waits until a majority says this about the lock.
pub(crate) async fn until(client: &Quorate, what: &str, says: impl Fn(&LockView) -> bool) {
    until!(what, client.rw_lock("a").inspect().await.is_ok_and(|seen| says(&seen)));
}

/// Waits until so many wait to write and to read.
pub(crate) async fn until_waiting(client: &Quorate, writers: usize, readers: usize) {
    until(client, &format!("{writers} wait to write and {readers} to read"), |seen| {
        let waiting = [HolderKind::Write, HolderKind::Read].map(|kind| waiting(seen, kind));
        waiting == [writers, readers]
    })
    .await;
}

pub(crate) fn read(client: &Quorate) -> JoinHandle<ReadGuard> {
    let asks = client.rw_lock("a").read();
    tokio::spawn(async { asks.await.expect("a majority answers") })
}

pub(crate) fn write(client: &Quorate) -> JoinHandle<WriteGuard> {
    let lock = client.rw_lock("a");
    tokio::spawn(async move { lock.write().await.expect("a majority answers") })
}

// Each reader has a lease of its own.

claims!(everywhere:
    a_writer_enters_when_the_longest_read_lease_still_standing_ends,
    a_dead_reader_ends_at_its_own_deadline_although_others_renew,
    a_fixed_write_ends_and_the_readers_enter_without_any_message,
);

/// Clients whose voter deadline goes with leases of a few seconds, and who also take long ones.
async fn three_clients(on: &Fixture) -> [Client; 3] {
    let builder = || on.builder().lease(secs(3)).longest_lease(secs(600)).voter_deadline(ms(300));
    let client = async || on.connect(builder()).await;
    [client().await, client().await, client().await]
}

// The longest is given back before it ends.
async fn a_writer_enters_when_the_longest_read_lease_still_standing_ends(on: Fixture) {
    let clients = three_clients(&on).await;
    let watch = Stopwatch::start();
    let long = clients[0].rw_lock("a").lease_fixed(secs(600)).read().await.unwrap();
    let _short = clients[1].rw_lock("a").lease_fixed(secs(3)).read().await.unwrap();
    let writer = write(&clients[2]);
    until_waiting(&clients[0], 1, 0).await;
    on.release(long.release()).await;
    let writing = writer.await.unwrap();
    let entered = watch.time();
    assert!(entered >= trusted(secs(3)) && entered <= on.at_most(secs(3) + ms(10)), "{entered:?}");
    on.release(writing.release()).await;
}

// The dead one's lease is three seconds; another one renews its lease of one second all along.
async fn a_dead_reader_ends_at_its_own_deadline_although_others_renew(on: Fixture) {
    let lease = secs(3);
    let watch = Stopwatch::start();
    let dead = Doomed::take(&on, lease, async move |client| {
        client.rw_lock("a").lease_fixed(lease).read().await.expect("it is free")
    })
    .await;
    let after = Stopwatch::start();
    let client = on.client_with_lease(secs(3)).await;
    let live = client.rw_lock("a").read().await.unwrap();
    until(&client, "both read", |seen| seen.holders.len() == 2).await;
    dead.die();
    until(&client, "only the live one reads", |seen| {
        seen.holders.len() == 1 && seen.holders[0].hold == *live.hold()
    })
    .await;
    assert!(watch.time() >= lease, "{:?}", watch.time());
    assert!(after.time() <= on.at_most(lease + ms(10)), "{:?}", after.time());
    assert!(live.is_held());
    on.until_only(READERS).await;
    on.release(live.release()).await;
    on.until_clean().await;
}

async fn a_fixed_write_ends_and_the_readers_enter_without_any_message(on: Fixture) {
    let [ours, theirs, _] = three_clients(&on).await;
    let watch = Stopwatch::start();
    let writing = ours.rw_lock("a").lease_fixed(secs(2)).write().await.unwrap();
    let readers = [read(&theirs), read(&theirs)];
    for reader in readers {
        let reading = reader.await.unwrap();
        let entered = watch.time();
        assert!(entered >= trusted(secs(2)), "{entered:?}");
        assert!(entered <= on.at_most(secs(2) + ms(10)), "{entered:?}");
        on.release(reading.release()).await;
    }
    assert!(!writing.is_held());
    on.until_clean().await;
}
