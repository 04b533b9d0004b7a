//! Bugs of locks that one asks for, holds, renews and gives back.

use quorate::embedded::Reply;
use quorate_tests::prelude::*;
use tokio::time::Instant;

fn delay(there_ms: u64, back_ms: u64) -> Fault {
    Fault::Delay { there: MS(there_ms), back: MS(back_ms) }
}

/// Each request to one voter breaks its connection, and each reconnection wakes the waiter, who may
/// have missed a call. That went round without a pause.
#[tokio::test(start_paused = true)]
async fn a_voter_whose_connection_breaks_at_every_request_does_not_make_a_waiter_spin() {
    for kind in [Kind::Mutex, Kind::FairMutex] {
        let voters = embedded::voters(3);
        let guard = client(&voters).await.mutex("a").lock().await.expect("it is free");
        let waiter = Client::new(client(&voters).await, kind).mutex("a");
        let _fault = voters[0].fault(Fault::CutBeforeRun);
        let asked = voters[1].runs("mutex/acquire");
        let entered = waiter.lock_within(Duration::from_secs(10)).await;
        assert!(entered.expect("two of three answer").is_none());
        // Pauses from 1 ms, doubled up to half a second.
        let asked = voters[1].runs("mutex/acquire") - asked;
        assert!(asked < 40, "{kind:?} asked {asked} times in ten seconds");
        drop(guard);
    }
}

/// A re-entry asks for 60 s and no voter hears of it; an earlier one, which asked for 3 s, is
/// answered afterwards.
#[tokio::test(start_paused = true)]
async fn a_renewal_is_trusted_for_the_lease_it_asked_for_and_not_for_a_later_longer_one() {
    let (voters, client) = with_client(3).await;
    let owner = Owner::new();
    let mutex = client.mutex("x").owner(&owner).lease(MS(3_000));
    let guard = mutex.lock().await.expect("free");
    let slow = all(&voters, delay(1, 90));
    let (short, long) = (tokio::spawn(mutex.lock()), mutex.lease(MS(30_000)));
    sleep(MS(1)).await;
    drop(slow);
    let _cut_off = all(&voters, Fault::DropRequests);
    assert!(long.lock().await.unwrap_err().is_not_entered());
    drop(short.await.expect("no panic").expect("its answers came"));
    assert!(guard.remaining() <= MS(3_000), "{:?}", guard.remaining());
}

/// Cancelled is as if never asked: the lease that the guard has is the one it asked for.
#[tokio::test(start_paused = true)]
async fn a_cancelled_re_entry_does_not_have_a_fixed_lease_renewed() {
    let (voters, client) = with_client(3).await;
    let owner = Owner::new();
    let mutex = client.mutex("x").owner(&owner);
    let guard = mutex.clone().lease_fixed(MS(3_000)).lock().await.expect("free");
    let slow = all(&voters, delay(10, 10));
    let renewed = mutex.lease(MS(3_000));
    assert!(timeout(MS(5), renewed.lock()).await.is_err(), "cancelled under way");
    drop(slow);
    sleep(MS(3_100)).await;
    assert!(!guard.is_held());
}

/// Each is cancelled after 9 ms of a round trip of 20 ms; the watchdog has its own round trips.
#[tokio::test(start_paused = true)]
async fn cancelled_re_entries_do_not_keep_the_watchdog_from_renewing() {
    let (voters, client) = with_client(3).await;
    let owner = Owner::new();
    let mutex = client.mutex("x").owner(&owner).lease(MS(3_000));
    let guard = mutex.lock().await.expect("free");
    let _slow = all(&voters, delay(10, 10));
    for _ in 0..1_000 {
        assert!(timeout(MS(9), mutex.lock()).await.is_err(), "cancelled under way");
        assert!(guard.is_held());
    }
}

/// Half of the voters answer after 2 ms, the others after 20: ten times what the first took.
#[tokio::test(start_paused = true)]
async fn a_held_lock_on_an_even_number_of_unequally_fast_voters_is_held_and_not_without_quorum() {
    for count in [2, 4, 6] {
        let voters = embedded::voters(count);
        let (holder, other) = (client(&voters).await, client(&voters).await);
        let _near = all(&voters[..count / 2], delay(1, 1));
        let _far = all(&voters[count / 2..], delay(10, 10));
        let _guard = holder.mutex("x").lock().await.expect("free");
        let tried = other.mutex("x").try_lock().await.expect("all voters answer in time");
        assert!(tried.is_none());
    }
}

/// Each task finds the hold of another one that is just about to release it. Many times, because
/// that takes two threads at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_re_entry_that_comes_with_the_last_release_acquires_afresh_and_is_not_lost() {
    // Real time on threads that may be kept waiting: the voter has long enough to answer.
    let voters = embedded::voters(1);
    let settings = Quorate::builder().embedded(&voters).voter_deadline(MS(3_000));
    let client = settings.connect().await.expect("the voter answers");
    let owner = Owner::new();
    let tasks: Vec<_> = (0..4)
        .map(|_| client.mutex("x").owner(&owner))
        .map(|mutex| {
            tokio::spawn(async move {
                for _ in 0..3_000 {
                    drop(mutex.lock().await.expect("nobody else wants it"));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no task failed");
    }
}

/// A replica without its primary refuses writes until it is made a primary again.
#[tokio::test]
async fn a_release_that_a_voter_could_not_run_at_the_time_is_run_later() {
    let server = RedisServer::start();
    let others = embedded::voters(2);
    let builder = Quorate::builder().voter(server.url()).embedded(&others);
    let client = builder.connect().await.expect("all voters answer");
    until!("the server is connected", {
        let views = client.mutex("x").inspect().await.expect("a majority answers").voters;
        views[0].state.is_ok()
    });
    let guard = client.mutex("x").lock().await.expect("free");
    until!("the server voted", without_lasting(server.keys()).len() == 1);
    server.command(&["REPLICAOF", "127.0.0.1", "1"]).expect("a replica of nothing");
    guard.release().await.expect("the two others are a majority");
    sleep(MS(100)).await;
    assert_eq!(without_lasting(server.keys()).len(), 1, "it could not give its vote back");
    server.command(&["REPLICAOF", "NO", "ONE"]).expect("a primary again");
    // One that was promoted is marked as that, for longer than any lock.
    let held = || server.keys().into_iter().filter(|key| !key.contains("{%")).collect();
    until!("its vote is given back", without_lasting(held()).is_empty());
}

/// What two dead clients left makes a split that this one leads, and nobody yields: five rounds of
/// 80 ms each, unless the limit of 100 ms ends them.
#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the paused time is measured")]
async fn lock_within_ends_on_time_in_a_split_too() {
    let (voters, client) = with_client(3).await;
    for (voter, hold) in voters.iter().zip(["z:1", "z:2"]) {
        voter.command(&["HSET", "quorate:{x}", hold, "1"]).expect("a fresh hash");
        voter.command(&["PEXPIRE", "quorate:{x}", "6000000"]).expect("a key");
    }
    let _slow = all(&voters, delay(40, 40));
    // Timers go by whole milliseconds: a pause that ends just before a limit may end after it.
    let odd = (1..=2000).map(|step| MS(690) + step * Duration::from_micros(13));
    for limit in [MS(100), MS(150), MS(700)].into_iter().chain(odd) {
        let started = Instant::now();
        let entered = client.mutex("x").lock_within(limit).await.expect("all voters answer");
        let took = started.elapsed();
        assert!(entered.is_none() && took <= limit + MS(1), "{took:?} of {limit:?}");
    }
}

/// Some program left a record for ages, of which four times is no number to Lua's `PEXPIRE`.
#[tokio::test(start_paused = true)]
async fn what_is_held_for_ages_can_be_ended_by_force_and_no_mark_stays_for_ever() {
    let (voters, client) = with_client(3).await;
    for voter in &voters {
        voter.command(&["HSET", "quorate:{x}", "z:1", "1"]).expect("a fresh hash");
        voter.command(&["PEXPIRE", "quorate:{x}", "4000000000000000000"]).expect("a key");
    }
    assert!(client.admin().clear(LockKind::Mutex, "x").await.expect("all voters answer"));
    for voter in &voters {
        assert_eq!(without_lasting(voter.keys()), ["quorate:{x}:revoked"]);
        let left = voter.command(&["PTTL", "quorate:{x}:revoked"]);
        assert!(matches!(left, Ok(Reply::Int(1..))), "{left:?}");
    }
}

/// Two ways lead to the first and to the second server, and were closed when the client connected.
#[tokio::test]
async fn every_voter_that_turns_out_to_be_another_one_loses_its_vote() {
    let servers: Vec<_> = (0..3).map(|_| RedisServer::start()).collect();
    let ways = [Proxy::start(servers[0].port()).await, Proxy::start(servers[1].port()).await];
    for way in &ways {
        way.refuse().await;
    }
    let addresses = servers.iter().map(RedisServer::url).chain(ways.iter().map(Proxy::url));
    let client = Quorate::connect(addresses).await.expect("three of five answer");
    ways.iter().for_each(Proxy::accept);
    until!("both are found out", {
        let Ok(seen) = client.mutex("x").inspect().await else { return false };
        seen.voters[3..].iter().all(|view| matches!(view.state, Err(Cause::Duplicate(_))))
    });
}

/// The voters have 200 ms to answer, the caller 20: it ends when they have had their time.
#[tokio::test(start_paused = true)]
async fn lock_within_ends_on_time_for_an_owner_that_enters_again_too() {
    let (voters, client) = with_client(3).await;
    let owner = Owner::new();
    let mutex = client.mutex("x").owner(&owner);
    let guard = mutex.lock().await.expect("free");
    let _silent = all(&voters, Fault::DropRequests);
    let answer = timeout(MS(201), mutex.lock_within(MS(20))).await.expect("on time");
    let error = answer.unwrap_err();
    assert!(error.is_not_entered(), "{error}");
    assert_eq!(guard.count(), 1, "that entry does not count");
}

/// The user may write the record and not give it an end: the vote is refused with the server's
/// words, and the record is gone.
#[tokio::test]
async fn a_record_that_cannot_be_given_an_end_is_taken_back() {
    let server = RedisServer::start();
    let acl = ["ACL", "SETUSER", "poor", "on", ">secret", "~*", "&*", "+@all"];
    server.command(&acl).expect("an administrator");
    let address = format!("redis://poor:secret@127.0.0.1:{}", server.port());
    let client = Quorate::connect([address]).await.expect("it may log in");
    server.command(&["ACL", "SETUSER", "poor", "-pexpire"]).expect("an administrator");
    let error = client.mutex("x").try_lock().await.expect_err("no vote without an end");
    assert!(
        error.is_no_quorum() && error.to_string().contains("can't run this command"),
        "{error}"
    );
    assert_eq!(without_lasting(server.keys()), [""; 0]);
}

/// The first voter runs the acquire and its answer is lost; then it does not get the undo. The
/// other two refuse, so nobody needs that vote, and its lease would keep it for 30 s.
#[tokio::test(start_paused = true)]
async fn an_undo_that_did_not_arrive_is_sent_again_until_it_does() {
    let voters = embedded::voters(3);
    let (holder, other) = (client(&voters).await, client(&voters).await);
    voters[0].kill();
    // Fixed: one that is renewed would be told to the first as soon as that is back.
    let mutex = holder.mutex("x").lease_fixed(MS(30_000));
    let guard = mutex.lock().await.expect("two are a majority");
    voters[0].restart();
    let _slow = all(&voters[1..], delay(5, 5));
    let unheard = voters[0].fault(Fault::DropReplies);
    let tried = tokio::spawn(async move { other.mutex("x").try_lock().await.map(|_| other) });
    sleep(MS(1)).await;
    drop(unheard);
    let unasked = voters[0].fault(Fault::DropRequests);
    let _other = tried.await.expect("no panic").expect("a majority refused");
    sleep(MS(50)).await;
    drop(unasked);
    assert_eq!(without_lasting(voters[0].keys()).len(), 1, "the undo was lost");
    sleep(MS(1_000)).await;
    assert!(without_lasting(voters[0].keys()).is_empty(), "{:?}", voters[0].keys());
    drop(guard);
}

/// Gives a voter's vote to a stranger for a while.
fn give_to_a_stranger(voter: &EmbeddedVoter, lock: &str, for_ms: u64) {
    let (key, for_ms) = (format!("quorate:{{{lock}}}"), for_ms.to_string());
    voter.command(&["HSET", &key, "stranger:1", "1"]).expect("it runs");
    voter.command(&["PEXPIRE", &key, &for_ms]).expect("it runs");
}

/// The hold has two votes of three and loses one voter; the third vote is a contender's but for
/// 60 ms, early in the first round of renewal, from 3,333 ms on. There whoever refused is asked
/// again after some 3, 6, 12 and 25 ms, and by chance half as much more. A round that waits for the
/// silent voter's 200 ms missed that. Later in a round, and between rounds, pauses are longer.
#[tokio::test(start_paused = true)]
async fn a_renewal_gets_a_vote_that_is_free_for_a_moment() {
    let (voters, client) = with_client(3).await;
    let mutex = client.mutex("a").lease(MS(10_000));
    give_to_a_stranger(&voters[2], "a", 3_340);
    let guard = mutex.lock().await.expect("two of three are free");
    voters[1].stop();
    sleep(MS(3_340 + 60)).await;
    assert_eq!(voters[2].records()[0].fields[0].0, guard.hold().as_str(), "it was there in time");
    assert!(guard.remaining() > MS(9_000), "{:?}", guard.remaining());
}

/// One voter gave its vote back, one had never given it, one does not answer: a majority is free.
#[tokio::test(start_paused = true)]
async fn a_release_needs_no_voter_that_never_had_the_vote() {
    let (voters, client) = with_client(3).await;
    give_to_a_stranger(&voters[2], "a", 60_000);
    let guard = client.mutex("a").lock().await.expect("two of three are free");
    voters[1].stop();
    guard.release().await.expect("a majority has no vote of it");
}

/// A re-entry asks the voter that refused it again and again. The client is closed meanwhile, and
/// then that voter is free: a renewal now would leave a vote that nobody gives back.
#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_a_hold_that_has_ended() {
    let (voters, client) = with_client(3).await;
    give_to_a_stranger(&voters[2], "a", 60_000);
    let guard = client.mutex("a").lock().await.expect("two of three are free");
    voters[1].stop();
    let free_later = async {
        sleep(MS(1)).await;
        voters[2].command(&["DEL", "quorate:{a}"]).expect("it runs");
    };
    let (entered, ..) = tokio::join!(guard.reenter(), client.close(), free_later);
    assert!(entered.unwrap_err().is_lost());
    sleep(MS(500)).await;
    assert!(voters[2].records().is_empty(), "{:?}", voters[2].records());
}

/// A loss was explained by rounds that had failed long before, although others had succeeded since.
#[tokio::test(start_paused = true)]
async fn a_loss_is_not_explained_by_what_failed_before_the_last_renewal() {
    for renews in [false, true] {
        let (voters, client) = with_client(3).await;
        let guard = client.mutex("x").lock().await.expect("free");
        voters.iter().for_each(EmbeddedVoter::stop);
        // Renewals begin after 10 s of 30.
        sleep(MS(11_000)).await;
        assert!(guard.remaining() < MS(19_000), "no round has succeeded");
        voters.iter().for_each(EmbeddedVoter::resume);
        if renews {
            sleep(MS(4_000)).await;
            assert!(guard.remaining() > MS(25_000), "one has");
        }
        drop(client.close().await);
        let error = guard.lost().await;
        assert_eq!((error.is_lost(), error.voters().is_empty()), (true, renews), "{error}");
    }
}
