//! Tasks of one client hand a mutex on without asking the voters: the hold stays, and each task has
//! a token of its own.

use std::{
    future::poll_fn,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    task::Poll,
};

use futures::poll;
use metrics_util::debugging::DebugValue;
use quorate::Mutex;
use quorate_tests::prelude::*;

/// The longest time for which a client hands a lock on.
const TENURE: Duration = ms(50);

claims!(everywhere: each_owner_of_a_hold_has_a_higher_token_than_the_one_before);

fn a(client: &Quorate) -> Mutex {
    client.mutex("a")
}

/// What tasks of a client saw that all wanted a lock, each for so long: the holds and tokens in the
/// order in which they had it.
async fn owners(mutex: &Mutex, tasks: usize, work: Duration) -> Vec<(String, Token)> {
    let (sender, mut had) = tokio::sync::mpsc::unbounded_channel();
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        let (mutex, sender) = (mutex.clone(), sender.clone());
        running.spawn(async move {
            let guard = mutex.lock().await.expect("all voters answer");
            sender.send((guard.hold().to_string(), guard.token())).expect("somebody listens");
            if !work.is_zero() {
                sleep(work).await;
            }
            guard.release().await.expect("all voters answer");
        });
    }
    running.join_all().await;
    drop(sender);
    let mut all = Vec::new();
    while let Some(one) = had.recv().await {
        all.push(one);
    }
    all
}

async fn each_owner_of_a_hold_has_a_higher_token_than_the_one_before(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    for _ in 0..3 {
        let (ours, theirs) = (a(&ours), a(&theirs));
        let (ours, theirs) = tokio::join!(owners(&ours, 100, ms(0)), owners(&theirs, 100, ms(0)));
        let mut all: Vec<_> = ours.into_iter().chain(theirs).collect();
        all.sort_by_key(|(_, token)| *token);
        let tokens: BTreeSet<Token> = all.iter().map(|(_, token)| *token).collect();
        assert_eq!(tokens.len(), 200, "no two have the same");
        // All tokens of a hold stand together.
        let mut holds: Vec<&str> = all.iter().map(|(hold, _)| &**hold).collect();
        holds.dedup();
        assert_eq!(holds.len(), holds.iter().collect::<BTreeSet<_>>().len(), "{holds:?}");
        assert!(holds.len() < 200, "nothing was handed on");
    }
    on.until_clean().await;
}

/// How long the owners of each hold had it: so many of each, one hold after the other.
fn tenures(owners: &[(String, Token)]) -> Vec<usize> {
    owners.chunk_by(|(one, _), (other, _)| one == other).map(<[_]>::len).collect()
}

#[tokio::test(start_paused = true)]
async fn sixty_four_tasks_have_a_lock_for_one_request_to_each_voter() {
    let (snapshotter, _recording) = record();
    let (on, client) = Fixture::with_client(3).await;
    let owners = owners(&a(&client), 130, ms(0)).await;
    assert_eq!(tenures(&owners), [64, 64, 2]);
    assert!(owners.is_sorted_by_key(|(_, token)| *token), "in the order of asking");
    assert_eq!(on.runs("mutex/acquire"), Some(vec![3; 3]));
    assert_eq!(on.runs("mutex/release"), Some(vec![3; 3]));
    let handed_on = counted(&snapshotter, quorate::metric::HANDOVERS);
    assert_eq!(handed_on.into_values().collect::<Vec<_>>(), [127.0]);
    on.until_clean().await;
}

// Ten in line, of which two follow each other with each note. The second of each pair has the hold
// of the first.
#[tokio::test(start_paused = true)]
async fn a_hold_goes_on_only_to_a_task_with_the_same_note() {
    let (on, client) = Fixture::with_client(3).await;
    let had = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut running = JoinSet::new();
    for task in 0..10 {
        let (note, had) = (format!("job {}", task / 2), Arc::clone(&had));
        let mutex = a(&client).note(&note);
        running.spawn(async move {
            let guard = mutex.lock().await.expect("all voters answer");
            assert_eq!(guard.hold().note(), Some(note));
            had.lock().unwrap().push((guard.hold().to_string(), guard.token()));
            guard.release().await.expect("all voters answer");
        });
    }
    running.join_all().await;
    let had = std::mem::take(&mut *had.lock().unwrap());
    assert_eq!(tenures(&had), [2; 5]);
    assert!(had.is_sorted_by_key(|(_, token)| *token), "in the order of asking");
    on.until_clean().await;
}

// The third has it at 40 ms. Each has it for as long as it works.
#[tokio::test(start_paused = true)]
async fn after_fifty_milliseconds_the_voters_are_asked_again() {
    let (snapshotter, _recording) = record();
    let (_on, client) = Fixture::with_client(3).await;
    let owners = owners(&a(&client), 7, ms(20)).await;
    assert_eq!(tenures(&owners), [3, 3, 1]);
    let held = snapshotter.snapshot().into_vec().into_iter().find_map(|(key, _, _, value)| {
        let DebugValue::Histogram(times) = value else { return None };
        (key.key().name() == quorate::metric::HOLD_SECONDS).then_some(times)
    });
    assert!(held.expect("it is recorded").iter().all(|time| time.into_inner() < 0.03));
}

#[tokio::test(start_paused = true)]
async fn another_client_waits_for_one_tenure_and_one_section_at_most() {
    let on = Fixture::of(&embedded::voters(3));
    let (ours, theirs) = (on.client().await, on.client().await);
    let (ours, theirs) = (a(&ours), a(&theirs));
    let greedy = tokio::spawn(async move { owners(&ours, 100, ms(9)).await });
    sleep(ms(1)).await;
    let watch = Stopwatch::start();
    theirs.lock().await.expect("all voters answer").release().await.expect("all answer");
    assert!(watch.time() <= TENURE + ms(9), "{:?}", watch.time());
    greedy.abort();
}

/// A lock that is held while a task of the same client wants it, by a future that was polled once.
macro_rules! wanted {
    ($client:ident => $guard:ident, $next:ident) => {
        let mutex = a(&$client);
        let mut first = Box::pin(mutex.lock());
        let mut $next = Box::pin(mutex.lock());
        assert!(poll!(&mut first).is_pending());
        assert!(poll!(&mut $next).is_pending());
        let $guard = first.await.expect("all voters answer");
        assert!(poll!(&mut $next).is_pending());
    };
}

/// How long it takes until another client has the lock.
async fn time_to_lock(other: &Quorate) -> Duration {
    let watch = Stopwatch::start();
    drop(a(other).lock().await.expect("all voters answer"));
    watch.time()
}

#[tokio::test(start_paused = true)]
async fn what_is_offered_to_a_task_that_nobody_polls_is_free_at_the_end_of_the_tenure() {
    let on = Fixture::of(&embedded::voters(3));
    let (client, other) = (on.client().await, on.client().await);
    wanted!(client => guard, next);
    guard.release().await.expect("it is handed on");
    let time = time_to_lock(&other).await;
    assert!(time > ms(40) && time <= TENURE, "{time:?}");
    next.await.expect("it asks the voters").release().await.expect("all voters answer");
    on.until_clean().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_offered_is_free_at_once_when_nobody_wants_it_any_more() {
    let on = Fixture::of(&embedded::voters(3));
    let (client, other) = (on.client().await, on.client().await);
    wanted!(client => guard, next);
    guard.release().await.expect("it is handed on");
    drop(next);
    assert_eq!(time_to_lock(&other).await, ms(0));
    on.until_clean().await;
}

// The one that has gone had got the lock from a place in the queue.
#[tokio::test(start_paused = true)]
async fn who_gives_back_what_nobody_took_leaves_the_queue() {
    let on = Fixture::of(&embedded::voters(3));
    let (client, other) = (on.client().await, on.client().await);
    let held = a(&other).lock().await.expect("all voters answer");
    let mut next = Box::pin(a(&client).lock());
    let first = tokio::spawn(a(&client).lock());
    on.until_queued().await;
    assert!(poll!(&mut next).is_pending());
    held.release().await.expect("all voters answer");
    drop(first.await.expect("no panic").expect("all voters answer"));
    drop(next);
    assert_eq!(time_to_lock(&other).await, ms(0));
    on.until_only(&[]).await;
}

#[tokio::test(start_paused = true)]
async fn the_one_behind_gets_what_was_offered_to_a_task_that_has_gone() {
    let (on, client) = Fixture::with_client(3).await;
    wanted!(client => guard, next);
    let behind = tokio::spawn(a(&client).lock());
    sleep(ms(1)).await;
    let hold = guard.hold().clone();
    drop(guard);
    drop(next);
    let behind = behind.await.expect("no panic").expect("all voters answer");
    assert_eq!(*behind.hold(), hold);
    drop(behind);
    on.until_clean().await;
}

#[tokio::test(start_paused = true)]
async fn closing_the_client_gives_back_what_is_offered() {
    let (on, other) = Fixture::with_client(3).await;
    // It waits no longer than that for those inside, which is less than a tenure takes.
    let hasty = on.builder().voter_deadline(ms(20));
    let client = hasty.connect().await.expect("all voters answer");
    wanted!(client => guard, next);
    drop(guard);
    // Nobody polls the task to which it is offered.
    drop(client.close().await);
    assert_eq!(time_to_lock(&other).await, ms(0));
    drop(next);
    on.until_clean().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_the_end_of_a_guard_hears_of_it_though_the_hold_goes_on() {
    let (on, client) = Fixture::with_client(3).await;
    wanted!(client => guard, next);
    let (lost, token) = (guard.lost(), guard.token());
    guard.release().await.expect("it is handed on");
    assert!(lost.await.is_released());
    let next = next.await.expect("it is handed on");
    assert!(next.is_held() && next.token() > token && next.count() == 1 && next.votes() == 3);
    assert_eq!(on.runs("mutex/acquire"), Some(vec![1; 3]));
    drop(next);
    on.until_clean().await;
}

/// Whether a lock that was held like this goes on to a task that asks like that.
async fn is_handed_on(
    held: impl AsyncFnOnce(&MutexGuard),
    terms: impl Fn(Mutex) -> [Mutex; 2],
) -> bool {
    let (on, client) = Fixture::with_client(3).await;
    let [first, next] = terms(a(&client));
    // The second stands in line when the first is granted.
    let (first, next) = (tokio::spawn(first.lock()), tokio::spawn(next.lock()));
    let first = first.await.expect("no panic").expect("all voters answer");
    held(&first).await;
    let (hold, watch) = (first.hold().clone(), Stopwatch::start());
    first.release().await.expect("all voters answer");
    let next = next.await.expect("no panic").expect("all voters answer");
    assert_eq!(watch.time(), ms(0), "it waits for nothing, whether it is handed on or asks");
    let same = *next.hold() == hold;
    drop(next);
    on.until_clean().await;
    same
}

#[tokio::test(start_paused = true)]
async fn only_a_hold_that_is_as_it_was_granted_goes_to_a_task_that_wants_the_same() {
    let nothing = async |_: &MutexGuard| {};
    let same = |mutex: Mutex| [mutex.clone(), mutex];
    assert!(is_handed_on(nothing, same).await);
    let limited = |mutex: Mutex| [mutex.clone(), mutex.hold_at_most(secs(9))];
    assert!(is_handed_on(nothing, limited).await, "the limit is the next one's own");
    let first_fixed = |mutex: Mutex| [mutex.clone().lease_fixed(secs(30)), mutex];
    assert!(!is_handed_on(nothing, first_fixed).await);
    let next_fixed = |mutex: Mutex| [mutex.clone(), mutex.lease_fixed(secs(30))];
    assert!(!is_handed_on(nothing, next_fixed).await);
    let longer = |mutex: Mutex| [mutex.clone(), mutex.lease(secs(29))];
    assert!(!is_handed_on(nothing, longer).await);
    let extended = async |guard: &MutexGuard| guard.extend(secs(30)).await.expect("all answer");
    assert!(!is_handed_on(extended, same).await);
    let entered = async |guard: &MutexGuard| drop(guard.reenter().await.expect("all answer"));
    assert!(!is_handed_on(entered, same).await);
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_after_the_work_keeps_no_task_from_asking() {
    let (on, client) = Fixture::with_client(3).await;
    wanted!(client => guard, next);
    guard.keep_for(ms(900)).await.expect("all voters answer");
    // It has asked once by then, and not after the tenure.
    assert!(poll!(&mut next).is_pending());
    sleep(ms(1)).await;
    assert_eq!(on.runs("mutex/acquire"), Some(vec![2; 3]));
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn where_nobody_wants_it_any_more_the_voters_confirm_the_release() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let client = on.client().await;
    wanted!(client => guard, next);
    drop(next);
    voters.iter().for_each(EmbeddedVoter::kill);
    let released = guard.release().await;
    assert!(released.as_ref().is_err_and(quorate::Error::is_unconfirmed), "{released:?}");
}

// A section takes 20 ms, and 950 of 988 ms are to be left: so the third cannot have what the two
// before it had, and asks the voters instead.
#[tokio::test(start_paused = true)]
async fn who_gets_too_little_of_a_lease_keeps_its_turn() {
    let on = Fixture::of(&embedded::voters(3));
    let lease = on.builder().lease(secs(1)).minimum_validity(ms(950));
    let client = lease.connect().await.expect("all voters answer");
    let turns = Arc::new([0, 0, 0].map(AtomicU32::new));
    for task in 0..3 {
        let (mutex, turns) = (a(&client), Arc::clone(&turns));
        tokio::spawn(async move {
            loop {
                let guard = mutex.lock().await.expect("all voters answer");
                turns[task].fetch_add(1, Relaxed);
                sleep(ms(20)).await;
                drop(guard);
            }
        });
    }
    sleep(secs(3)).await;
    let turns = turns.each_ref().map(|turns| turns.load(Relaxed));
    assert!(turns.iter().all(|count| *count >= 45), "each has it every 60 ms: {turns:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_to_its_limit_leaves_the_hold_to_those_behind() {
    let (on, client) = Fixture::with_client(3).await;
    let mutex = a(&client);
    let first = tokio::spawn(mutex.lock());
    let limited = tokio::spawn(mutex.lock_within(ms(20)));
    let behind = tokio::spawn(mutex.lock());
    let first = first.await.expect("no panic").expect("all voters answer");
    let hold = first.hold().clone();
    let watch = Stopwatch::start();
    assert!(limited.await.expect("no panic").expect("all voters answer").is_none());
    assert_eq!(watch.time(), ms(20));
    sleep(ms(10)).await;
    drop(first);
    assert_eq!(*behind.await.expect("no panic").expect("all voters answer").hold(), hold);
    assert_eq!(on.runs("mutex/acquire"), Some(vec![1; 3]));
}

// It gives back what it has when it cannot have all: other clients may have asked before its tasks.
#[tokio::test(start_paused = true)]
async fn what_is_held_with_others_is_not_handed_on() {
    let (_on, client) = Fixture::with_client(3).await;
    let quorum: &Quorate = &client;
    let all = quorum.lock_all([a(quorum), quorum.mutex("b")]);
    let (all, next) = (tokio::spawn(all.lock()), tokio::spawn(a(quorum).lock()));
    let all = all.await.expect("no panic").expect("all voters answer");
    let hold = all.holds().next().expect("it has two").1.clone();
    drop(all);
    let next = next.await.expect("no panic").expect("all voters answer");
    assert_ne!(*next.hold(), hold);
}

#[tokio::test(start_paused = true)]
async fn each_owner_may_have_it_for_as_long_as_it_has_asked_for() {
    let (_on, client) = Fixture::with_client(3).await;
    let mutex = a(&client).hold_at_most(secs(1));
    let (first, next) = (tokio::spawn(mutex.lock()), tokio::spawn(mutex.lock()));
    let first = first.await.expect("no panic").expect("all voters answer");
    sleep(ms(40)).await;
    let hold = first.hold().clone();
    drop(first);
    let next = next.await.expect("no panic").expect("all voters answer");
    assert_eq!(*next.hold(), hold);
    let watch = Stopwatch::start();
    let lost = timeout(secs(5), next.lost()).await.expect("it ends");
    assert!(lost.to_string().contains("hold_at_most"));
    assert_eq!(watch.time(), secs(1));
}

// Its client stood still for longer than the lease while it was offered.
#[tokio::test(start_paused = true)]
async fn a_hold_whose_time_is_over_is_not_taken() {
    let on = Fixture::of(&embedded::voters(3));
    let machine = Machine::new("still");
    let client = on.builder().machine(&machine).lease(secs(2)).connect().await.expect("all answer");
    wanted!(client => guard, next);
    let hold = guard.hold().clone();
    drop(guard);
    machine.suspend();
    sleep(secs(3)).await;
    machine.resume();
    let next = next.await.expect("it asks the voters");
    assert_ne!(*next.hold(), hold);
}

#[tokio::test(start_paused = true)]
async fn whoever_only_tries_is_told_who_has_it() {
    let (_on, client) = Fixture::with_client(3).await;
    wanted!(client => guard, next);
    let mutex = a(&client);
    assert!(mutex.try_lock().await.expect("all voters answer").is_none());
    let busy = mutex.lock_or_busy(ms(0)).await.expect_err("it is held");
    assert_eq!(busy.holder(), Some(guard.hold()));
    drop((guard, next));
}

// What is known of a hold goes with it to its next owner.

/// Keeps its task ahead of all that are woken from now on, until it is so.
async fn before_all_others(is_so: impl Fn() -> bool) {
    poll_fn(|context| {
        if is_so() {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

// The machine was paused for a second of the lease of four, and no clock of it shows that. The
// first owner hears of it at the moment of the hand-over, from the answers to another lock. The
// task that renews holds has not been awake since.
#[tokio::test(start_paused = true)]
async fn a_pause_that_the_owner_before_heard_of_is_off_the_lease_of_the_next() {
    let on = Fixture::of(&embedded::voters(3));
    let machine = Machine::new("paused");
    let client = on.builder().machine(&machine).lease(secs(4)).connect().await.expect("all answer");
    wanted!(client => guard, next);
    let (hold, trusted) = (guard.hold().clone(), guard.remaining());
    machine.stall();
    machine.set_clock_rate(-1_000_000);
    sleep(secs(1)).await;
    machine.set_clock_rate(0);
    machine.resume();
    let first = tokio::spawn(async move {
        before_all_others(|| guard.remaining() + ms(900) < trusted).await;
        drop(guard);
    });
    let other = tokio::spawn(client.mutex("b").lock());
    first.await.expect("no panic");
    let next = next.await.expect("it is handed on");
    assert_eq!(*next.hold(), hold);
    assert!(next.remaining() + ms(900) <= trusted, "{:?} of {trusted:?}", next.remaining());
    drop((next, other.await));
    on.until_clean().await;
}

// Two of three give their votes: the third may have forgotten whose its vote was. Without one of
// the two there is no majority that counts.
#[tokio::test(start_paused = true)]
async fn a_voter_that_did_not_count_for_the_owner_before_does_not_for_the_next() {
    let voters = embedded::voters(3);
    for voter in &voters {
        voter.set_uptime(secs(3_600));
    }
    let on = Fixture::of(&voters);
    let client = on.client().await;
    voters[2].restart_empty();
    until!("it is in quarantine", kept_out(&client, 2).await.is_some());
    wanted!(client => guard, next);
    let hold = guard.hold().clone();
    assert_eq!(guard.votes(), 2);
    drop(guard);
    let next = next.await.expect("it is handed on");
    assert_eq!(*next.hold(), hold);
    assert_eq!(next.votes(), 2);
    voters[0].kill();
    // Longer than the lease, which is as long as the quarantine.
    sleep(secs(31)).await;
    assert!(!next.is_held(), "two voters renew it, and one of them does not count");
}

// They had it for 30 and for 10 ms of 400, of which 6 are for drift.
#[tokio::test(start_paused = true)]
async fn a_lease_goes_on_as_the_hold_is_handed_on() {
    let on = Fixture::of(&embedded::voters(3));
    let client = on.builder().lease(ms(400)).connect().await.expect("all voters answer");
    wanted!(client => guard, next);
    let (hold, left) = (guard.hold().clone(), guard.remaining());
    assert_eq!(left, ms(394));
    sleep(ms(30)).await;
    drop(guard);
    sleep(ms(10)).await;
    let next = next.await.expect("it is handed on");
    assert_eq!((next.hold(), next.remaining()), (&hold, ms(354)));
}

// The other's clock shows 50 us more than this one's did. By that alone the first of its 64 numbers
// would be the 51st of those that this one's tasks have had.
#[tokio::test(start_paused = true)]
async fn whoever_comes_a_moment_later_has_a_higher_token_than_each_owner_of_the_hold_before() {
    let (on, ours) = Fixture::with_client(3).await;
    let theirs = on.client().await;
    let earlier = owners(&a(&ours), 64, ms(0)).await;
    assert_eq!(tenures(&earlier), [64]);
    tokio::time::advance(Duration::from_micros(50)).await;
    // The first of several in line has the first number of its hold's block.
    let later = owners(&a(&theirs), 2, ms(0)).await;
    assert_eq!(tenures(&later), [2]);
    let token = |(_, token): &(String, Token)| *token;
    let highest = earlier.iter().map(token).max().expect("there are 64");
    assert!(later.iter().map(token).all(|token| token > highest), "{later:?} after {highest}");
}

// The same of a hold that is given from the queue of the lock: other lines of the script count
// then.
#[tokio::test(start_paused = true)]
async fn whoever_waited_for_a_moment_has_a_higher_token_than_the_holder_before() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let (ours, theirs) = (on.client().await, on.client().await);
    let guard = a(&ours).lock().await.expect("it is free");
    let earlier = guard.token();
    let waiting = tokio::spawn(async move { owners(&a(&theirs), 2, ms(0)).await });
    // Time for both to ask, of which 50 us pass by.
    for _ in 0..50 {
        tokio::time::advance(Duration::from_micros(1)).await;
    }
    let queue = voters[0].command(&["ZCARD", &format!("{}:queue", key("a"))]);
    assert_eq!(queue, Ok(embedded::Reply::Int(1)), "the first of them waits");
    guard.release().await.expect("all voters confirm");
    let later = waiting.await.expect("it does not panic");
    assert_eq!(tenures(&later), [2]);
    assert!(later.iter().all(|(_, token)| *token > earlier), "{later:?} after {earlier}");
}

// A client compares every 15 s. Another one has been there meanwhile that believes otherwise.
#[tokio::test(start_paused = true)]
async fn nobody_takes_what_was_offered_when_clients_turned_out_to_disagree() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let watch = Stopwatch::start();
    let client = on.builder().voter_configuration(1).connect().await.expect("all voters answer");
    let configuration =
        ["HSET", "quorate:{%roster}", "2 of a later release", "9999999999999 60000 it"];
    voters[0].command(&configuration).expect("it is stored");
    watch.sleep_until(ms(14_990)).await;
    wanted!(client => guard, next);
    drop(guard);
    sleep(ms(20)).await;
    let status = client.status().await;
    assert!(status.voters[0].configuration_mismatch.is_some(), "it has compared by now: {status}");
    assert!(watch.time() < ms(14_990) + TENURE, "it is still offered");
    let refused = next.await.expect_err("no vote counts");
    assert!(refused.is_no_quorum(), "{refused}");
}

// As rule 3 of the protocol has it. By itself the renewal would be due after ten seconds.
#[tokio::test(start_paused = true)]
async fn a_voter_that_came_back_empty_while_a_hold_was_offered_has_its_vote_again_at_once() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let client = on.client().await;
    wanted!(client => guard, next);
    let hold = guard.hold().clone();
    drop(guard);
    voters[0].restart_empty();
    sleep(ms(10)).await;
    assert!(voters[0].keys().iter().all(|key| !key.contains("{a}")), "it has forgotten");
    let next = next.await.expect("it is handed on");
    assert_eq!(*next.hold(), hold);
    sleep(ms(10)).await;
    let holders = voters[0].command(&["HKEYS", &key("a")]).expect("it answers");
    assert_eq!(holders, embedded::Reply::List(vec![embedded::Reply::Text(hold.to_string())]));
}
