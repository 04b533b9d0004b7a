//! Votes that count only once replicas have them: primaries with replicas, which are stopped,
//! killed, cut off and promoted.

use std::thread;

use quorate::Holder;
use quorate_tests::{prelude::*, standing::until_noticed};
use tokio::task::spawn_blocking;

// Which grants count.

/// Looked at without waiting, and far sooner than it would be there by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_on_the_replica_when_its_guard_is_handed_out() {
    let (voter, proxy) = Voter::start_behind_proxy().await;
    let quorum = connect(builder([&voter], 1).voter_deadline(MS(2000))).await;
    proxy.delay(MS(0), MS(30));
    for round in 0..20 {
        let name = round.to_string();
        let guard = quorum.mutex(&name).lock().await.expect("the replica answers");
        assert!(votes_for(&voter.replicas[0], &name, guard.hold().as_str()), "in round {round}");
        guard.release().await.expect("it is confirmed");
    }
}

#[tokio::test]
async fn without_a_replica_that_it_needs_a_lock_has_no_quorum_and_says_why() {
    let mut voter = Voter::start(2);
    let (one, two) = (connect(builder([&voter], 1)).await, connect(builder([&voter], 2)).await);
    let tried = async || {
        let tries = [
            two.mutex("a").try_lock().await.map(drop),
            two.fair_mutex("a").try_lock().await.map(drop),
            two.rw_lock("b").try_read().await.map(drop),
            two.rw_lock("b").try_write().await.map(drop),
        ];
        for tried in tries {
            let error = tried.expect_err("one replica is missing");
            assert!(error.is_no_quorum(), "{error}");
            assert_too_few(&error, 1, 2, REPLICA_TIMEOUT);
        }
        let guard = one.mutex("c").try_lock().await.expect("one answers").expect("it is free");
        guard.release().await.expect("it is confirmed");
    };
    voter.replicas[0].stop();
    tried().await;
    voter.replicas[0].resume();
    until_given(&two, "d").await;
    voter.replicas[0].kill();
    tried().await;
}

#[tokio::test]
async fn a_vote_that_did_not_count_is_given_back_and_counted_by_its_voter() {
    let (snapshotter, _recording) = record();
    let voter = Voter::start(1);
    let (with, without) =
        (connect(builder([&voter], 1)).await, connect(builder([&voter], 0)).await);
    with.mutex("a").lock().await.expect("the replica answers").release().await.expect("ours");
    voter.replicas[0].stop();
    let before = voter.primary.calls("hset");
    for _ in 0..3 {
        let error = with.mutex("a").try_lock().await.expect_err("the replica is stopped");
        assert_too_few(&error, 0, 1, REPLICA_TIMEOUT);
    }
    assert!(voter.primary.calls("hset") > before, "the primary granted");
    let address = voter.primary.url().replace("redis://", "");
    assert_eq!(added(&snapshotter, metric::UNACKNOWLEDGED, Some(&address)), 3);
    until!("it is given back", are_empty([&voter.primary]));
    // Whoever does not get the lock anyway waits for no replica.
    let guard = without.mutex("a").lock().await.expect("no replica is needed");
    assert!(with.mutex("a").try_lock().await.expect("it is refused").is_none());
    guard.release().await.expect("it is confirmed");
    voter.replicas[0].resume();
    let next = connect(builder([&voter], 1)).await;
    let guard = next.mutex("a").lock().await.expect("it is free, and the replica answers");
    assert!(votes_for(&voter.replicas[0], "a", guard.hold().as_str()));
}

/// A script that was not known comes with its question again.
#[tokio::test]
async fn a_server_that_forgot_its_scripts_asks_its_replicas_all_the_same() {
    let voter = Voter::start(1);
    let quorum = connect(builder([&voter], 1)).await;
    let mutex = quorum.mutex("a");
    mutex.lock().await.expect("all answer").release().await.expect("confirmed");
    let asked = voter.primary.calls("wait");
    voter.primary.command(&["SCRIPT", "FLUSH"]).expect("it forgets");
    let guard = mutex.lock().await.expect("all answer");
    assert!(votes_for(&voter.replicas[0], "a", guard.hold().as_str()));
    assert!(voter.primary.calls("wait") >= asked + 2, "once in vain, and once for the grant");
    guard.release().await.expect("confirmed");

    voter.replicas[0].stop();
    voter.primary.command(&["SCRIPT", "FLUSH"]).expect("it forgets");
    let granted = voter.primary.calls("hset");
    let error = mutex.try_lock().await.expect_err("the replica is stopped");
    assert!(error.is_no_quorum(), "{error}");
    assert!(voter.primary.calls("hset") > granted, "the primary granted all the same");
}

// Clients that come after a promotion, or ask nothing while there is one.

/// A primary with a replica, and two servers without, none of which counts as just started.
fn servers() -> (Voter, [RedisServer; 2]) {
    let servers = (Voter::start(1), [(); 2].map(|()| RedisServer::start()));
    let (Voter { primary, .. }, others) = &servers;
    make_old(others.iter().chain([primary]));
    servers
}

fn all_three(first: &RedisServer, others: &[RedisServer]) -> Builder {
    let others = others.iter().map(RedisServer::url);
    let builder = Quorate::builder().voter(first.url()).voters(others);
    builder.longest_lease(MS(30_000)).voter_deadline(MS(2_000))
}

// The connections stand all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_was_a_replica_for_a_moment_is_noticed_by_who_asks_nothing() {
    let (Voter { primary, .. }, others) = servers();
    let client = connect(all_three(&primary, &others)).await;
    client.mutex("a").lock().await.unwrap().release().await.unwrap();
    let port = others[0].port().to_string();
    primary.command(&["REPLICAOF", "127.0.0.1", &port]).expect("it becomes a replica");
    promote(&primary);
    assert_eq!(kept_out(&client, 0).await, None, "nobody has told it yet");
    until_noticed(&client, 0).await;
}

// Nobody else is there by whose age it could be told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_server_that_is_alone_is_kept_out_where_the_guard_is_strict() {
    let (Voter { replicas, .. }, _) = servers();
    promote(&replicas[0]);
    let alone = || Quorate::builder().voter(replicas[0].url());
    let strict = connect(alone().restart_guard(RestartGuard::Strict)).await;
    let error = strict.mutex("a").try_lock().await.expect_err("it may have forgotten");
    assert!(error.to_string().contains("was promoted after the others"), "{error}");
    let relative = connect(alone()).await;
    assert!(relative.mutex("a").try_lock().await.expect("it is up").is_some());
}

// Many that ask one voter at once: what waits for replicas holds up little else.

async fn try_all(quorum: &Quorate, count: usize) -> usize {
    let tries = (0..count).map(async |lock| {
        let guard = quorum.mutex(format!("many {lock}")).try_lock().await.ok().flatten()?;
        guard.release().await.ok()
    });
    join_all(tries).await.into_iter().flatten().count()
}

/// One after the other, each would wait for a replica that takes 30 ms to hear of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_that_leave_together_are_acknowledged_together() {
    let (voter, proxy) = Voter::start_behind_proxy().await;
    // On a busy machine an acknowledgement takes longer than the usual time for it.
    let builder = builder([&voter], 1).voter_deadline(MS(2000)).replica_timeout(MS(1000));
    let quorum = connect(builder).await;
    proxy.delay(MS(0), MS(30));
    let before = voter.primary.calls("wait");
    assert_eq!(try_all(&quorum, 64).await, 64);
    let waits = voter.primary.calls("wait") - before;
    assert!((1..32).contains(&waits), "{waits} waits for 64 locks");
}

/// Behind the waits of all sixteen, a tenth of a second and more each, it would come too late.
#[tokio::test]
async fn a_release_is_confirmed_while_others_wait_for_a_replica_that_is_stopped() {
    let voter = Voter::start(1);
    let builder = builder([&voter], 1).voter_deadline(MS(1000)).replica_timeout(MS(100));
    let quorum = connect(builder).await;
    let hold = async |lock| quorum.mutex(format!("held {lock}")).lock().await;
    let held = join_all((0..4).map(hold)).await;
    voter.replicas[0].stop();
    let others = tokio::spawn(async move {
        loop {
            assert_eq!(try_all(&quorum, 16).await, 0);
        }
    });
    for guard in held {
        let before = voter.primary.calls("wait");
        until!("others wait", voter.primary.calls("wait") > before);
        guard.expect("the replica answered").release().await.expect("it is confirmed");
    }
    assert!(!others.is_finished(), "it found a vote that did not count");
    others.abort();
}

// What a replica knows that takes over.

async fn connect_to(servers: &[&RedisServer]) -> Quorate {
    connect(patient(Quorate::builder().voters(servers.iter().map(|server| server.url())))).await
}

#[tokio::test]
async fn a_lock_with_acknowledgements_outlives_all_of_its_primaries() {
    let mut voters = voters(3, 1);
    let quorum = connect(builder(&voters, 1)).await;
    let guard = quorum.mutex("a").lock().await.expect("all replicas answer");
    for voter in &mut voters {
        voter.primary.kill();
    }
    let replicas: Vec<_> = voters.iter().map(|voter| &voter.replicas[0]).collect();
    for replica in &replicas {
        promote(replica);
    }

    let next = connect_to(&replicas).await;
    let is_ours = |view: &&VoterView| {
        let is_held = |held: &Holder| held.hold == *guard.hold();
        view.state.as_ref().is_ok_and(|state| state.holders.iter().any(is_held))
    };
    // On a busy machine one of them may be reached later than the others.
    until!("a majority knows it", {
        let seen = next.mutex("a").inspect().await;
        seen.is_ok_and(|seen| seen.voters.iter().filter(is_ours).count() >= 2)
    });
    assert!(next.mutex("a").try_lock().await.expect("all answer").is_none(), "it is held");
}

/// What the acknowledgements are for; and how the test above would see that they are missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_acknowledgements_a_promoted_replica_may_not_know_the_lock() {
    let (mut voter, proxy) = Voter::start_behind_proxy().await;
    let (with, without) =
        (connect(builder([&voter], 1)).await, connect(builder([&voter], 0)).await);
    proxy.black_hole();
    let error = with.mutex("a").try_lock().await.expect_err("the replica is cut off");
    assert_too_few(&error, 0, 1, REPLICA_TIMEOUT);
    let guard = without.mutex("b").lock().await.expect("no replica is needed");
    assert!(votes_for(&voter.primary, "b", guard.hold().as_str()));
    voter.primary.kill();
    promote(&voter.replicas[0]);
    let next = connect_to(&[&voter.replicas[0]]).await;
    let other = next.mutex("b").try_lock().await.expect("it answers");
    assert!(other.is_some() && guard.is_held(), "two hold it");
}

// Holds whose renewals need replicas.

/// The first renewal comes after a third of the lease, and those that failed are repeated: many do
/// not count, until the hold ends by its deadline as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_whose_renewals_no_replica_has_is_lost_at_its_deadline_and_says_why() {
    let voter = Voter::start(1);
    let quorum = connect(leased(builder([&voter], 1), MS(6000))).await;
    let guard = quorum.mutex("a").lock().await.expect("the replica answers");
    voter.replicas[0].stop();
    // A renewal that was acknowledged before that has ended by now: nothing moves the deadline.
    sleep(MS(200)).await;
    let left = guard.remaining();
    assert!(!left.is_zero(), "lost too early");
    let asked = voter.primary.calls("wait");
    let error = timeout(left + MS(3000), guard.lost()).await.expect("it is told in time");
    assert!(error.is_lost() && !guard.is_held());
    assert!(error.to_string().contains("0 of 1 replicas acknowledged within 150ms"), "{error}");
    assert!(voter.primary.calls("wait") > asked + 2, "it was asked again and again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_that_does_not_count_takes_nothing_and_the_next_one_counts() {
    let voter = Voter::start(1);
    let quorum = connect(builder([&voter], 1).lease(MS(6000))).await;
    let guard = quorum.mutex("a").lock().await.expect("the replica answers");
    let (lease, hold) = (guard.remaining(), guard.hold().as_str());
    voter.replicas[0].stop();
    let asked = voter.primary.calls("wait");
    until!("three renewals came to nothing", {
        assert!(votes_for(&voter.primary, "a", hold), "the vote stays");
        voter.primary.calls("wait") > asked + 3
    });
    assert!(guard.is_held());
    let left = guard.remaining();
    assert!(left < lease * 3 / 4, "no renewal counted: {left:?}");
    voter.replicas[0].resume();
    until!("a renewal counts", guard.remaining() > left);
    assert!(guard.is_held());
    guard.release().await.expect("it is ours");
}

// Primaries with their replicas, and clients of them.

/// A quarter of the voter deadline of [`patient`] clients, as nothing else is set.
pub(crate) const REPLICA_TIMEOUT: Duration = Duration::from_millis(500);

/// A primary and what copies it.
pub(crate) struct Voter {
    pub(crate) primary: RedisServer,
    pub(crate) replicas: Vec<RedisServer>,
}

impl Voter {
    /// Returns once the primary counts on all of its replicas.
    pub(crate) fn start(replicas: usize) -> Self {
        let primary = RedisServer::start();
        let replicas = side_by_side(replicas, || primary.start_replica());
        Self { primary, replicas }
    }

    /// With one replica, that hears of everything through a proxy. Needs a runtime of several
    /// threads.
    pub(crate) async fn start_behind_proxy() -> (Self, Proxy) {
        let primary = spawn_blocking(RedisServer::start).await.expect("it starts");
        let proxy = Proxy::start(primary.port()).await;
        let port = proxy.port().to_string();
        let start = move || RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]);
        let replica = spawn_blocking(start).await.expect("it starts");
        let voter = Self { primary, replicas: vec![replica] };
        // A fence is no trace of a lock.
        let written: [&[&str]; 2] = [&["SET", "fence", "1"], &["WAIT", "1", "100"]];
        until!("the replica follows", {
            let replies = voter.primary.commands(&written).expect("it answers");
            replies[1] == Ok(Reply::Int(1))
        });
        (voter, proxy)
    }
}

pub(crate) fn voters(count: usize, replicas: usize) -> Vec<Voter> {
    side_by_side(count, || Voter::start(replicas))
}

fn side_by_side<T: Send>(count: usize, start: impl Fn() -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let starts: Vec<_> = (0..count).map(|_| scope.spawn(&start)).collect();
        starts.into_iter().map(|start| start.join().expect("it starts")).collect()
    })
}

/// A client whose grants need so many replicas of each of its voters.
pub(crate) fn builder<'a>(voters: impl IntoIterator<Item = &'a Voter>, replicas: u32) -> Builder {
    let urls = voters.into_iter().map(|voter| voter.primary.url());
    patient(Quorate::builder().voters(urls).replica_acks(replicas))
}

/// Makes it a primary of its own.
pub(crate) fn promote(replica: &RedisServer) {
    replica.command(&["REPLICAOF", "NO", "ONE"]).expect("it is promoted");
}

/// What an error says that came of too few replicas, and of nothing else.
#[track_caller]
pub(crate) fn assert_too_few(error: &Error, acknowledged: u32, needed: u32, within: Duration) {
    let too_few = Verdict::Unknown(Cause::Unacknowledged { acknowledged, needed, within });
    assert!(error.voters().iter().all(|report| report.verdict == too_few), "{error}");
    let text = format!("{acknowledged} of {needed} replicas acknowledged within {within:?}");
    assert!(error.to_string().contains(&text), "{error}");
}

// What cannot work is refused by `connect`; what the server forbids is told.

#[tokio::test]
async fn voters_inside_the_process_have_no_replicas_to_ask() {
    let voters = embedded::voters(2);
    let error = Quorate::builder()
        .voter("redis://127.0.0.1:1")
        .embedded(&voters)
        .replica_acks(1)
        .connect()
        .await
        .expect_err("no replicas");
    assert!(error.is_invalid(), "{error}");
    let message = "voter embedded-1 is inside the process and has no replicas, but 1 must \
                   acknowledge each grant";
    assert_eq!(error.to_string(), message);
}

#[tokio::test]
async fn a_user_who_may_not_ask_for_replicas_gets_no_vote_and_is_told_so() {
    let voter = Voter::start(1);
    let rules = ["ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all", "-wait"];
    voter.primary.command(&rules).expect("a user");
    let url = format!("redis://poor:pw@127.0.0.1:{}", voter.primary.port());
    let quorum = Quorate::builder().voter(url).replica_acks(1).connect().await.expect("it answers");
    let error = quorum.mutex("a").try_lock().await.expect_err("it may not");
    assert!(error.is_no_quorum() && error.to_string().contains("NOPERM"), "{error}");
}

/// The replica is slower than the usual quarter of the deadline, and fast enough for this one.
#[tokio::test]
async fn the_timeout_is_the_one_that_was_set() {
    let voter = Voter::start(1);
    let quorum = connect(builder([&voter], 1).replica_timeout(MS(100))).await;
    voter.replicas[0].stop();
    let error = quorum.mutex("a").try_lock().await.expect_err("no replica answers");
    assert_too_few(&error, 0, 1, MS(100));
}
