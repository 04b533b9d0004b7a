//! What users of several locks at once rely on. Each test's name is the claim; each claim is
//! written once and holds on voters inside the process and on real servers.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

use quorate_tests::{inside, prelude::*};

/// One more client: another party.
pub(crate) async fn client(on: &Fixture) -> Quorate {
    let client = on.client().await;
    Quorate::clone(&client)
}

// All or none.

claims!(everywhere:
    mutexes_and_sides_of_read_write_locks_are_held_as_one,
    several_are_renewed_together_and_kept_after_the_work,
    where_one_is_taken_a_try_has_none_and_leaves_nothing,
);

async fn mutexes_and_sides_of_read_write_locks_are_held_as_one(on: Fixture) {
    let (quorum, theirs) = (client(&on).await, client(&on).await);
    let all: [Lockable; 4] = [
        quorum.mutex("a").into(),
        quorum.fair_mutex("b").into(),
        quorum.rw_lock("c").reading(),
        quorum.rw_lock("d").writing(),
    ];
    let guard = quorum.lock_all(all).lock().await.unwrap();
    assert!(guard.is_held() && guard.remaining() > secs(20));
    assert_eq!(guard.names().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    let has_token: Vec<_> = guard.tokens().map(|(name, token)| (name, token.is_some())).collect();
    assert_eq!(has_token, [("a", true), ("b", true), ("c", false), ("d", true)]);
    on.must_be_refused(theirs.mutex("a").try_lock().await);
    on.must_be_refused(theirs.mutex("b").try_lock().await);
    on.must_be_refused(theirs.rw_lock("c").try_write().await);
    on.must_be_refused(theirs.rw_lock("d").try_read().await);
    let beside = theirs.rw_lock("c").read().await.unwrap();
    let seen = theirs.mutex("a").inspect().await.unwrap().holders.remove(0);
    assert_eq!(Some(&seen.hold), guard.holds().next().map(|(_, hold)| hold));
    let tokens: Vec<_> = guard.tokens().filter_map(|(_, token)| token).collect();
    beside.release().await.unwrap();
    on.release(guard.release()).await;
    on.until_clean().await;
    let again = theirs.lock_all([theirs.mutex("a"), theirs.mutex("b")]).lock().await.unwrap();
    assert!(again.tokens().zip(tokens).all(|((_, token), before)| token > Some(before)));
    drop(again);
    on.until_clean().await;
}

// The leases are fixed: only the renewal outlasts them. Then all are taken though nobody has them.
async fn several_are_renewed_together_and_kept_after_the_work(on: Fixture) {
    let lease = secs(6);
    let (quorum, theirs) = (on.client_with_lease(lease).await, client(&on).await);
    let all = quorum.lock_all(NAMES.map(|name| quorum.mutex(name).lease_fixed(lease)));
    let guard = all.lock().await.unwrap();
    sleep(secs(2)).await;
    let before = guard.remaining();
    guard.renew().await.unwrap();
    assert!(guard.remaining() > before + secs(1), "{before:?}, {:?}", guard.remaining());
    guard.keep_for(secs(4)).await.unwrap();
    for name in NAMES {
        on.must_be_refused(theirs.mutex(name).try_lock().await);
    }
    let next = timeout(secs(60), theirs.lock_all(NAMES).lock()).await.expect("it ends by itself");
    on.release(next.unwrap().release()).await;
    on.until_clean().await;
}

// That it compiles is the half of it.
#[tokio::test(start_paused = true)]
async fn names_and_locks_go_into_the_list_as_they_are_and_a_mixed_one_needs_no_type() {
    let (_voters, quorum) = with_client(3).await;
    let [names, owned] = [NAMES.map(str::to_owned), NAMES.map(|name| format!("{name}{name}"))];
    let lists = [
        quorum.lock_all(NAMES),
        quorum.lock_all(names.iter()),
        quorum.lock_all(names.clone()),
        quorum.lock_all(NAMES.map(|name| quorum.mutex(name))),
        quorum.lock_all(names.iter().map(|name| quorum.mutex(name).into())),
        quorum.lock_all(owned.iter().map(|name| quorum.mutex(name)).collect::<Vec<_>>()),
        quorum.lock_all([quorum.fair_mutex("b").into(), quorum.rw_lock("a").reading()]),
        quorum.lock_all(["c".into(), quorum.rw_lock("a").writing()]),
    ];
    for all in lists {
        let guard = all.try_lock().await.unwrap().expect("all are free");
        assert!(guard.tokens().all(|(name, token)| token.is_some() || name == "a"), "{guard:?}");
        guard.release().await.unwrap();
    }
    // A name is that of a mutex of this client.
    let guard = quorum.lock_all(["a"]).lock().await.unwrap();
    assert!(quorum.mutex("a").try_lock().await.unwrap().is_none());
    let twice = quorum.lock_all(["b".into(), quorum.fair_mutex("b").into()]).lock().await;
    assert_invalid(&twice.unwrap_err(), "the lock `b` is in the list twice");
    guard.release().await.unwrap();
}

const NAMES: [&str; 3] = ["a", "b", "c"];

async fn where_one_is_taken_a_try_has_none_and_leaves_nothing(on: Fixture) {
    let (quorum, theirs) = (client(&on).await, client(&on).await);
    let all = quorum.lock_all(NAMES.map(|name| quorum.mutex(name)));
    let taken = theirs.mutex("b").lock().await.unwrap();
    on.must_be_refused(all.try_lock().await);
    on.until_only(&["quorate:{b}"]).await;
    on.release(taken.release()).await;
    let guard = all.try_lock().await.unwrap().expect("all are free");
    assert!(all.try_lock().await.unwrap().is_none());
    on.release(guard.release()).await;
    on.until_clean().await;
}

// Each server counts the calls. Until the client has heard that a server has a script, it is sent
// with its source, by another command.
#[tokio::test]
async fn all_that_are_free_are_had_by_one_call_to_each_voter() {
    let on = Fixture::real(3);
    let quorum = client(&on).await;
    let all = || quorum.lock_all((0..20).map(|number| quorum.mutex(number.to_string())));
    until!("each has the scripts", {
        let before = on.scripts_run();
        all().lock().await.unwrap().release().await.unwrap();
        until!("nothing is left", on.keys().iter().all(Vec::is_empty));
        on.scripts_run() == before + 6
    });
    let before = on.scripts_run();
    let guard = all().lock().await.unwrap();
    assert_eq!(guard.names().count(), 20);
    until!("each has answered", on.scripts_run() >= before + 3);
    assert_eq!(on.scripts_run(), before + 3);
    guard.release().await.unwrap();
    until!("each has answered", on.scripts_run() >= before + 6);
    assert_eq!(on.scripts_run(), before + 6);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_work_is_refused_and_nothing_is_sent() {
    let on = Fixture::embedded(3);
    let (quorum, theirs) = (client(&on).await, client(&on).await);
    let asked = on.runs("mutex/acquire").unwrap();
    let (ours, mutex) = (quorum.mutex("a"), |name: &str| Lockable::from(quorum.mutex(name)));
    let (rw, fair) = (quorum.rw_lock("a"), quorum.fair_mutex("a"));
    let (other, twice) = (theirs.mutex("a"), "the lock `a` is in the list twice");
    let lists: [(Vec<Lockable>, &str); 8] = [
        (vec![], "there is no lock in the list of those to be locked"),
        (vec![mutex("a"), mutex("a")], twice),
        (vec![mutex("a"), fair.into()], twice),
        (vec![rw.reading(), rw.writing()], twice),
        (vec![ours.owner(&Owner::new()).into()], "the lock `a` has an owner"),
        (vec![other.clone().into()], "the lock `a` is of another client"),
        (vec![mutex("a"), other.into()], "the lock `a` is of another client"),
        (vec![mutex("a"), mutex("")], "empty"),
    ];
    for (list, message) in lists {
        let all = quorum.lock_all(list);
        assert_invalid(&all.lock().await.unwrap_err(), message);
        assert_invalid(&all.try_lock().await.unwrap_err(), message);
        assert_invalid(&all.lock_within(secs(1)).await.unwrap_err(), message);
    }
    assert_eq!(on.runs("mutex/acquire").unwrap(), asked);
    // A mutex and a read/write lock of one name are two locks.
    let both = quorum.lock_all([quorum.mutex("a").into(), quorum.rw_lock("a").writing()]);
    both.lock().await.unwrap().release().await.unwrap();
    until!("nothing is left", on.keys().iter().all(Vec::is_empty));
}

/// The last answer comes when the second is over, and the limit.
#[tokio::test(start_paused = true)]
async fn the_lock_that_ended_meanwhile_is_named() {
    let voters = embedded::voters(3);
    let quorum = Quorate::builder().embedded(&voters).connect().await.unwrap();
    for voter in &voters {
        voter.fault_each(|sent| {
            let is_slow = sent.script() == Some("rw/acquire");
            if is_slow { vec![Fault::Delay { there: ms(0), back: ms(100) }] } else { Vec::new() }
        });
    }
    let brief = quorum.mutex("a").hold_at_most(ms(50)).into();
    let all = [quorum.mutex("first").into(), brief, quorum.rw_lock("last").writing()];
    let all = quorum.lock_all(all);
    let error = all.lock_or_busy(ms(80)).await.expect_err("one has ended");
    assert_eq!(error.lock(), Some("a"), "{error}");
}

// Many who want several locks: nobody waits for ever, and no lock is anybody else's meanwhile.

claims!(everywhere:
    callers_that_name_two_locks_in_opposite_orders_all_have_their_turns,
    a_crowd_over_overlapping_sets_goes_through_and_never_two_at_once,
    who_wants_three_busy_locks_is_not_starved_by_those_who_want_one,
    of_ten_that_try_the_same_three_locks_at_once_one_has_them,
);

/// Each of these locks is somebody's, or nobody's.
#[derive(Default)]
struct Taken([AtomicBool; 4]);

impl Taken {
    fn take(&self, locks: &[usize]) {
        for lock in locks {
            assert!(!self.0[*lock].swap(true, SeqCst), "lock {lock} is held twice");
        }
    }

    fn leave(&self, locks: &[usize]) {
        for lock in locks {
            self.0[*lock].store(false, SeqCst);
        }
    }
}

/// Takes these, so many times.
async fn turns(
    on: Arc<Fixture>,
    quorum: Quorate,
    taken: Arc<Taken>,
    locks: Vec<usize>,
    turns: u64,
) {
    for _ in 0..turns {
        let names = locks.iter().map(|lock| quorum.mutex(lock.to_string()));
        let guard = quorum.lock_all(names).lock().await.expect("a majority answers");
        taken.take(&locks);
        sleep(ms(1)).await;
        assert!(guard.is_held());
        taken.leave(&locks);
        on.release(guard.release()).await;
    }
}

async fn all_have_their_turns(on: Fixture, sets: Vec<Vec<usize>>, count: u64) {
    let (on, taken) = (Arc::new(on), Arc::<Taken>::default());
    let mut tasks = JoinSet::new();
    for locks in sets {
        let quorum = client(&on).await;
        tasks.spawn(turns(Arc::clone(&on), quorum, Arc::clone(&taken), locks, count));
    }
    timeout(secs(600), tasks.join_all()).await.expect("nobody waits for ever");
    on.until_clean().await;
}

async fn callers_that_name_two_locks_in_opposite_orders_all_have_their_turns(on: Fixture) {
    let count = on.rounds(100, (50, 10));
    all_have_their_turns(on, vec![vec![0, 1], vec![1, 0], vec![0, 1], vec![1, 0]], count).await;
}

async fn a_crowd_over_overlapping_sets_goes_through_and_never_two_at_once(on: Fixture) {
    let count = on.rounds(30, (15, 3));
    let sets = [&[0, 1][..], &[1, 2], &[2, 3], &[3, 0], &[0, 1, 2, 3], &[3, 1], &[2], &[0, 2, 1]];
    all_have_their_turns(on, sets.map(<[usize]>::to_vec).into(), count).await;
}

// Two clients for each of three locks take it again and again, so that none is ever free for long.
// Whoever wants all three has them ten times.
async fn who_wants_three_busy_locks_is_not_starved_by_those_who_want_one(on: Fixture) {
    let on = Arc::new(on);
    let (over, given) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let mut tasks = Vec::new();
    for number in 0..6 {
        let quorum = client(&on).await;
        let (on, over, given) = (Arc::clone(&on), Arc::clone(&over), Arc::clone(&given));
        tasks.push(tokio::spawn(async move {
            let mutex = quorum.mutex((number % 3).to_string());
            while !over.load(SeqCst) {
                let guard = mutex.lock().await.expect("a majority answers");
                given.fetch_add(1, SeqCst);
                sleep(ms(5)).await;
                on.release(guard.release()).await;
            }
        }));
    }
    let quorum = client(&on).await;
    for _ in 0..on.rounds(20, (10, 3)) {
        let all = quorum.lock_all(["0", "1", "2"].map(|name| quorum.mutex(name)));
        let guard = timeout(secs(60), all.lock()).await.expect("it is not starved").unwrap();
        on.release(guard.release()).await;
    }
    over.store(true, SeqCst);
    join_all(tasks).await.into_iter().for_each(|one| one.expect("no panic"));
    assert!(given.load(SeqCst) > 10, "the others had their turns too");
    on.until_clean().await;
}

async fn of_ten_that_try_the_same_three_locks_at_once_one_has_them(on: Fixture) {
    let clients = join_all((0..10).map(|_| client(&on))).await;
    for round in 0..20 {
        let names = ["a", "b", "c"].map(|name| format!("{name}{round}"));
        let tries = clients.iter().map(async |quorum| {
            quorum.lock_all(names.clone().map(|name| quorum.mutex(name))).try_lock().await
        });
        let got = join_all(tries).await.into_iter().map(|tried| tried.expect("all answer"));
        let got: Vec<_> = got.flatten().collect();
        assert_eq!(got.len(), 1, "in round {round}");
        for guard in got {
            on.release(guard.release()).await;
        }
    }
    on.until_clean().await;
}

// They stand or fall together.

claims!(everywhere: when_one_is_lost_all_are_and_the_guard_says_which);

async fn when_one_is_lost_all_are_and_the_guard_says_which(on: Fixture) {
    let (ours, theirs) = (on.client_with_lease(secs(6)).await, on.client_with_lease(secs(6)).await);
    let (quorum, theirs) = (Quorate::clone(&ours), Quorate::clone(&theirs));
    let all: [Lockable; 3] =
        [quorum.mutex("a").into(), quorum.mutex("b").into(), quorum.rw_lock("c").writing()];
    let guard = quorum.lock_all(all).lock().await.unwrap();
    let elsewhere = tokio::spawn(guard.lost().clone());
    assert!(theirs.admin().clear(LockKind::Mutex, "b").await.unwrap());
    let lost = timeout(secs(60), guard.lost()).await.expect("it is told");
    assert!(lost.is_lost() && lost.lock() == Some("b"), "{lost}");
    let told = timeout(secs(60), elsewhere).await.expect("it is told").unwrap();
    assert!(told.is_lost() && told.lock() == Some("b"), "{told}");
    assert!(!guard.is_held() && guard.remaining().is_zero());
    // The others are free, though nobody has released anything.
    let next = timeout(secs(60), theirs.mutex("a").lock()).await.unwrap().unwrap();
    let written = timeout(secs(60), theirs.rw_lock("c").write()).await.unwrap().unwrap();
    let refused = guard.while_held(sleep(secs(1))).await.unwrap_err();
    assert!(refused.is_lost() && refused.lock() == Some("b"), "{refused}");
    let released = guard.release().await.unwrap_err();
    assert!(released.is_lost() && released.lock() == Some("b"), "{released}");
    assert!(next.is_held() && written.is_held(), "they are the next holder's");
}

// Without a majority all are lost, at the earliest of their deadlines.
#[tokio::test(start_paused = true)]
async fn all_are_lost_at_the_earliest_deadline_and_work_is_dropped() {
    let on = Fixture::embedded(3);
    let quorum = client(&on).await;
    let leases = [("a", secs(20)), ("b", secs(5)), ("c", secs(30))];
    let locks = leases.map(|(name, lease)| quorum.mutex(name).lease_fixed(lease));
    let watch = Stopwatch::start();
    let guard = quorum.lock_all(locks).lock().await.unwrap();
    assert!(guard.remaining() <= trusted(secs(5)));
    let error = guard.while_held(std::future::pending::<()>()).await.unwrap_err();
    assert!(error.is_lost() && error.lock() == Some("b"), "{error}");
    assert!(watch.time() <= trusted(secs(5)) + ms(1), "{:?}", watch.time());
    // The others are given back at once, long before their leases end.
    until!("nothing is left", on.keys().iter().all(Vec::is_empty));
    assert!(watch.time() < secs(6));
    let why = guard.release().await.unwrap_err();
    assert_eq!(why.lock(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_loss_is_told_of_the_release() {
    let on = Fixture::embedded(3);
    let quorum = client(&on).await;
    let guard = quorum.lock_all(["a", "b"].map(|name| quorum.mutex(name))).lock().await.unwrap();
    let lost = guard.lost();
    guard.release().await.unwrap();
    assert!(lost.await.is_released());
    on.until_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_closed_loses_all() {
    let on = Fixture::embedded(3);
    let quorum = client(&on).await;
    let all = quorum.lock_all([quorum.mutex("a"), quorum.mutex("b")]);
    let guard = all.lock().await.unwrap();
    let (theirs, waiting) = (client(&on).await, tokio::spawn(all.lock()));
    sleep(ms(10)).await;
    drop(quorum.close().await);
    assert!(guard.lost().await.is_lost() && !guard.is_held());
    assert!(waiting.await.unwrap().unwrap_err().is_closed());
    assert!(all.try_lock().await.unwrap_err().is_closed());
    let again = theirs.lock_all(["a", "b"].map(|name| theirs.mutex(name))).lock().await.unwrap();
    on.release(again.release()).await;
    on.until_clean().await;
}

/// At the limit an attempt is under way: its result is waited for.
#[tokio::test(start_paused = true)]
async fn a_limit_that_comes_before_the_voters_have_answered_is_no_silence() {
    let voters = embedded::voters(3);
    let client = inside::client(&voters).await;
    let _slow = all(&voters, Fault::Delay { there: ms(0), back: ms(100) });
    let first = tokio::spawn(client.mutex("b").lock());
    sleep(ms(1)).await;
    let all = client.lock_all([client.mutex("a"), client.mutex("b")]);
    assert!(all.lock_within(ms(20)).await.expect("all voters answer").is_none());
    assert!(client.mutex("b").lock_within(ms(0)).await.expect("it is known").is_none());
    first.await.expect("no panic").expect("it is free").release().await.expect("it is confirmed");
}
