//! Voters that die, stand still, come late or lose their connections.

use futures::FutureExt;
use quorate::Mutex;
use quorate_tests::{
    prelude::*,
    scene::{
        DURABLE, SCRIPTS, builder_through, called, calls, count, forget_calls, median, rounds,
        until_queued,
    },
};

// A minority of the voters fails: users do not notice.

/// What a silent voter may take: whoever waits for it is far above what is prompt, also on a busy
/// machine.
const SILENCE: Duration = Duration::from_secs(3);
const PROMPT: Duration = Duration::from_secs(1);
const ROUNDS: usize = 20;

/// The medians of acquiring and releasing are prompt.
async fn expect_prompt(quorum: &Quorate) {
    let (mut acquires, mut releases) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (took, guard) = timed(quorum.mutex("a").lock()).await;
        acquires.push(took);
        let (took, released) = timed(guard.expect("a majority is up").release()).await;
        releases.push(took);
        released.expect("a majority confirms");
    }
    let (acquire, release) = (median(acquires), median(releases));
    assert!(acquire < PROMPT, "an acquire took {acquire:?}");
    assert!(release < PROMPT, "a release took {release:?}");
}

async fn eventually_empty<'a>(servers: impl IntoIterator<Item = &'a RedisServer> + Clone) {
    until!("no key is left", are_empty(servers.clone()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_three_refused_slows_nothing_and_orphans_no_key() {
    let mut servers = servers(3);
    servers[0].kill();
    let quorum = connect(builder(&servers).voter_deadline(SILENCE)).await;
    expect_prompt(&quorum).await;
    eventually_empty(&servers[1..]).await;
    // Nor later, when the one that was away hears of what was asked meanwhile.
    servers[0].restart();
    let guard = quorum.mutex("a").lock().await.expect("a majority is up");
    let on_all = async || servers.iter().all(|server| !without_lasting(server.keys()).is_empty());
    until!("the voter that came back votes", {
        let again = guard.reenter().await.expect("a majority is up");
        again.release().await.expect("a majority confirms");
        on_all().await
    });
    guard.release().await.expect("a majority confirms");
    eventually_empty(&servers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_minority_slows_nothing() {
    for (voters, stopped) in [(3, 1), (5, 1), (5, 2)] {
        let servers = servers(voters);
        let quorum = connect(builder(&servers).voter_deadline(SILENCE)).await;
        servers[..stopped].iter().for_each(RedisServer::stop);
        expect_prompt(&quorum).await;
        eventually_empty(&servers[stopped..]).await;
        // What they were sent meanwhile they run now, in its order.
        servers[..stopped].iter().for_each(RedisServer::resume);
        let guard = quorum.mutex("a").lock().await.expect("all are up");
        guard.release().await.expect("a majority confirms");
        eventually_empty(&servers).await;
    }
}

// Voters that come late.

/// For so long a server that restarted empty is kept out of new holds: the tests wait for its end.
const LEASE: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_was_down_at_connecting_joins_when_it_comes() {
    let mut servers = servers(3);
    servers[2].kill();
    let quorum = connect(leased(builder(&servers), LEASE)).await;
    let guard = quorum.mutex("a").lock().await.expect("two of three are up");
    servers[2].restart();
    let hold = guard.hold().as_str();
    // At the next renewal.
    until!("the late voter votes", votes_for(&servers[2], "a", hold));
    // It is one of a majority now.
    servers[0].kill();
    assert!(quorum.mutex("b").try_lock().await.expect("two of three are up").is_some());
    guard.release().await.expect("two of three confirm");
}

// A lock is held while voters die.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_death_of_a_majority_is_told_at_the_deadline_and_not_later() {
    let mut servers = servers(3);
    // The longest lease is how long servers that restart empty are kept out of the new acquire.
    let quorum = connect(leased(builder(&servers), MS(8000))).await;
    let guard = quorum.mutex("a").lock().await.expect("all are up");
    servers[1..].iter_mut().for_each(RedisServer::kill);
    // A renewal that was under way has ended by now: nothing moves the deadline any more.
    tokio::time::sleep(MS(200)).await;
    // The time is read last, so this lies at the deadline or a little after it.
    let left = guard.remaining();
    let deadline = now() + left;
    assert!(!left.is_zero(), "lost too early");
    tokio::time::sleep(left.saturating_sub(MS(1000))).await;
    // Asked often, by the clock alone: without an await no task can help.
    let mut asked = now();
    assert!(guard.is_held(), "lost too early");
    while guard.is_held() {
        assert!(asked < deadline, "held at {asked:?}, after {deadline:?}");
        asked = now();
    }
    let ended = now();
    assert!(ended + MS(50) >= deadline, "ended at {ended:?}, not {deadline:?}");
    let (took, error) = timed(tokio::time::timeout(MS(1000), guard.lost())).await;
    assert!(error.expect("the loss is told").is_lost(), "after {took:?}");
    assert!(!guard.is_held() && guard.remaining().is_zero());
    let error = guard.release().await.expect_err("there is nothing to release");
    assert!(error.is_lost(), "{error}");

    servers[1..].iter_mut().for_each(RedisServer::restart);
    let mutex = quorum.mutex("a");
    let mut guard = None;
    until!("a new acquire works", {
        guard = mutex.try_lock().await.ok().flatten();
        guard.is_some()
    });
    let guard = guard.expect("it was acquired");
    tokio::time::sleep(MS(10_000)).await;
    assert!(guard.is_held(), "it is not renewed");
    guard.release().await.expect("all confirm");
    until!("no key is left", are_empty(&servers));
}

// As a failover of a proxy or a restart does: the server is there, and the connection is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_waits_for_a_new_connection() {
    let servers = servers(1);
    let ways = proxies(&servers).await;
    let quorum = connect(builder_through(&ways)).await;
    let guard = quorum.mutex("a").lock().await.expect("it is up");
    ways[0].refuse().await;
    let back = async {
        tokio::time::sleep(MS(200)).await;
        ways[0].accept();
    };
    let (released, ()) = tokio::join!(guard.release(), back);
    released.expect("the server confirms it");
    assert!(are_empty(&servers));
}

// Waiters are never lost with a connection.

/// Asking again because of time alone is out of reach of these tests.
const MINUTE: Duration = Duration::from_mins(1);

/// The release falls into the time in which the waiter hears nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_connections_are_all_cut_recovers_and_enters() {
    let servers = servers(3);
    let proxies = proxies(&servers).await;
    let holder = connect(builder(&servers)).await;
    let waiter = connect(builder_through(&proxies).poll_interval(MINUTE)).await;
    let guard = holder.mutex("a").lock().await.expect("it is free");
    let waiting = tokio::spawn(waiter.mutex("a").lock());
    until_queued(&servers, 1).await;

    for proxy in &proxies {
        proxy.refuse().await;
        proxy.cut().await;
    }
    guard.release().await.expect("a majority confirms");
    proxies.iter().for_each(Proxy::accept);
    let started = now();
    let entered = timeout(MS(5000), waiting).await;
    let took = since(started);
    let guard = entered.expect("the waiter enters").expect("no panic").expect("all are up");
    assert!(guard.is_held(), "after {took:?}");
    guard.release().await.expect("a majority confirms");
}

/// With their data, so that the lock stays held meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn voters_that_come_back_are_listened_to_again() {
    let mut servers = servers_with(3, &DURABLE);
    let holder = connect(builder(&servers)).await;
    let waiter = connect(builder(&servers).poll_interval(MINUTE)).await;
    let guard = holder.mutex("a").lock().await.expect("it is free");
    let waiting = tokio::spawn(waiter.mutex("a").lock());
    until_queued(&servers, 1).await;
    for server in &mut servers {
        server.restart();
        let heard = async || called(server) == 2;
        eventually_async("both clients listen again", heard).await;
    }
    assert!(!waiting.is_finished(), "the lock is held");
    // The holder has to have its connections again, too.
    let inspected = async || match holder.mutex("a").inspect().await {
        Ok(inspection) => inspection.voters.iter().all(|view| view.state.is_ok()),
        Err(_) => false,
    };
    eventually_async("the holder reaches all voters again", inspected).await;
    guard.release().await.expect("all confirm");
    let entered = timeout(MS(5000), waiting).await.expect("the waiter is woken");
    let guard = entered.expect("no panic").expect("all are up");
    guard.release().await.expect("all confirm");
}

// The connection is cut between execution and reply: nothing runs twice, and nothing is orphaned.

/// Three voters behind proxies, and the next request for the lock at some of them is to be cut off.
struct Cuts {
    servers: Vec<RedisServer>,
    proxies: Vec<Proxy>,
    victims: Vec<usize>,
    carried_out: Vec<usize>,
}

impl Cuts {
    fn plan(&mut self, victims: &[usize]) {
        self.victims = victims.to_vec();
        self.carried_out = self.proxies.iter().map(Proxy::cuts).collect();
        self.servers.iter().for_each(forget_calls);
        for &victim in victims {
            self.proxies[victim].cut_after_request_naming(&key("a"), 1);
        }
    }

    async fn carried_out(&self) {
        until!(
            "the planned cuts are carried out",
            self.victims.iter().all(|&at| self.proxies[at].cuts() > self.carried_out[at])
        );
    }

    /// Every voter ran one script, and knows the hold with this count.
    fn expect_once(&self, guard: &MutexGuard, entries: u32) {
        assert_eq!(guard.count(), entries);
        for server in &self.servers {
            assert_eq!(calls(server, &SCRIPTS), 1, "a script ran more than once");
            assert_eq!(count(server, "a", guard.hold().as_str()), Some(entries));
        }
    }

    /// Acquires with the votes of all three: by then all connections stand again.
    async fn lock_everywhere(&self, mutex: &Mutex) -> MutexGuard {
        let mut everywhere = None;
        until!("all voters vote", {
            let guard = mutex.lock().await.expect("a majority is up");
            let hold = guard.hold().as_str().to_owned();
            // The third vote may come a little later than the majority.
            tokio::time::sleep(MS(2)).await;
            if self.servers.iter().all(|server| count(server, "a", &hold) == Some(1)) {
                everywhere = Some(guard);
            }
            everywhere.is_some()
        });
        everywhere.expect("it was acquired")
    }

    /// By what is repeated, not by the lease of 30 seconds.
    async fn no_key_is_left(&self) {
        let empty = async || are_empty(&self.servers);
        eventually_async("no key is left", empty).await;
    }
}

#[tokio::test]
async fn a_connection_cut_between_execution_and_reply_runs_nothing_twice() {
    let servers = servers(3);
    let proxies = proxies(&servers).await;
    let quorum = connect(builder_through(&proxies)).await;
    let mutex = quorum.mutex("a");
    let mut cuts = Cuts { servers, proxies, victims: Vec::new(), carried_out: Vec::new() };
    for round in 0..rounds(1000) {
        let victim = usize::try_from(round % 3).expect("it is small");
        match round / 3 % 4 {
            0 => cut_acquire(&mut cuts, &mutex, victim).await,
            1 => cut_reentry(&mut cuts, &mutex, victim).await,
            2 => cut_release(&mut cuts, &mutex, &[victim]).await,
            _ => cut_all(&mut cuts, &mutex).await,
        }
        cuts.no_key_is_left().await;
    }
}

async fn cut_acquire(cuts: &mut Cuts, mutex: &Mutex, victim: usize) {
    drop(cuts.lock_everywhere(mutex).await);
    cuts.no_key_is_left().await;
    cuts.plan(&[victim]);
    let guard = mutex.lock().await.expect("a majority answers");
    cuts.carried_out().await;
    cuts.expect_once(&guard, 1);
    guard.release().await.expect("a majority confirms");
}

async fn cut_reentry(cuts: &mut Cuts, mutex: &Mutex, victim: usize) {
    let guard = cuts.lock_everywhere(mutex).await;
    cuts.plan(&[victim]);
    let again = guard.reenter().await.expect("a majority answers");
    cuts.carried_out().await;
    cuts.expect_once(&guard, 2);
    again.release().await.expect("a majority confirms");
    assert_eq!(guard.count(), 1);
    guard.release().await.expect("a majority confirms");
}

async fn cut_release(cuts: &mut Cuts, mutex: &Mutex, victims: &[usize]) {
    let guard = cuts.lock_everywhere(mutex).await;
    cuts.plan(victims);
    guard.release().await.expect("a majority confirms");
    cuts.carried_out().await;
}

/// No voter's answer arrives: the attempt is undone, and the next one succeeds.
async fn cut_all(cuts: &mut Cuts, mutex: &Mutex) {
    drop(cuts.lock_everywhere(mutex).await);
    cuts.no_key_is_left().await;
    cuts.plan(&[0, 1, 2]);
    let guard = mutex.lock().await.expect("the voters are back soon");
    cuts.carried_out().await;
    assert!(guard.is_held());
    let hold = guard.hold().as_str();
    let votes = cuts.servers.iter().filter(|server| count(server, "a", hold) == Some(1)).count();
    assert!(votes >= 2, "{votes} votes");
    guard.release().await.expect("a majority confirms");
}

// Renewals that fail for a moment delete nothing.

/// What each renewal runs once, and what is asked of a server on a new connection does not.
const RENEWAL: &str = "hget";

/// Long enough that the time to connect again, on a busy machine, is not what ends it.
const LONG_LEASE: Duration = Duration::from_secs(15);

/// No server has deleted the vote, nor seen it expire.
fn expect_all_votes(servers: &[RedisServer], guard: &MutexGuard) {
    assert!(guard.is_held(), "the lock is lost: {:?}", guard.lost().now_or_never());
    for server in servers {
        assert_eq!(calls(server, &["del", "hdel", "unlink"]), 0, "something was deleted");
        assert!(votes_for(server, "a", guard.hold().as_str()), "the vote is gone");
    }
}

/// At one renewal after the other: a burst of trouble, and its end.
async fn each_burst_deletes_no_vote(
    (servers, guard): (&[RedisServer], &MutexGuard),
    trouble: impl AsyncFn(),
    heal: impl Fn(),
) {
    let forget = || servers.iter().for_each(forget_calls);
    forget();
    for _ in 0..rounds(40) {
        trouble().await;
        sleep(MS(10)).await;
        expect_all_votes(servers, guard);
        forget();
        heal();
        until!("the renewal is repeated", {
            assert!(guard.is_held(), "the lock is lost: {:?}", guard.lost().now_or_never());
            are_asked(servers)
        });
        expect_all_votes(servers, guard);
        forget();
    }
}

fn are_asked(servers: &[RedisServer]) -> bool {
    servers.iter().all(|server| server.calls(RENEWAL) > 0)
}

/// Ten milliseconds without any voter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_broken_connections_at_renewal_deletes_no_vote() {
    let servers = servers(3);
    let proxies = proxies(&servers).await;
    let quorum = connect(leased(builder_through(&proxies), LONG_LEASE)).await;
    let guard = quorum.mutex("a").lock().await.expect("all are up");
    // It falls right into a renewal, whose answers are lost.
    let trouble = async || {
        let cuts: Vec<_> = proxies.iter().map(Proxy::cuts).collect();
        for proxy in &proxies {
            proxy.cut_after_request_naming(&key("a"), 1);
        }
        let is_cut = || proxies.iter().zip(&cuts).all(|(proxy, before)| proxy.cuts() > *before);
        until!("a renewal is cut off everywhere", is_cut());
        for proxy in &proxies {
            proxy.refuse().await;
            proxy.cut().await;
        }
    };
    let heal = || proxies.iter().for_each(Proxy::accept);
    each_burst_deletes_no_vote((&servers, &guard), trouble, heal).await;
    guard.release().await.expect("all confirm");
}

/// Servers that answer every write with an error of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_errors_from_the_servers_at_renewal_deletes_no_vote() {
    let servers = servers(3);
    let quorum = connect(leased(builder(&servers), LONG_LEASE)).await;
    let guard = quorum.mutex("a").lock().await.expect("all are up");
    let replicas = |needed: &str| {
        for server in &servers {
            let set = ["CONFIG", "SET", "min-replicas-to-write", needed];
            server.command(&set).expect("it can be set");
        }
    };
    let trouble = async || {
        replicas("1");
        until!("a renewal is refused", are_asked(&servers));
    };
    each_burst_deletes_no_vote((&servers, &guard), trouble, || replicas("0")).await;
    sleep(LONG_LEASE).await;
    expect_all_votes(&servers, &guard);
    guard.release().await.expect("all confirm");
}
