//! Stories of voters that restart, with their data and without: told inside the process, where
//! times are exact, and on servers.

use quorate_tests::{age::Apart, prelude::*};

use crate::amnesia::inside::blamed;

claims!(three:
    a_forgotten_vote_lets_nobody_in_until_the_longest_lease_has_passed,
    a_connection_that_was_cut_is_no_quarantine,
    after_the_first_start_of_all_voters_a_lock_is_there_at_once_unless_the_guard_is_strict,
    after_a_restart_of_all_voters_who_saw_it_waits_for_the_longest_lease,
);
claims!(keeping:
    a_voter_that_restarts_with_its_data_does_not_make_up_for_one_that_forgot,
    what_a_durable_voter_has_lost_lets_nobody_in_who_comes_later,
    a_restart_that_forgets_nothing_is_no_quarantine,
    who_has_seen_later_data_keeps_a_voter_out_and_tells_all,
    a_holder_that_misses_a_vote_after_a_restart_keeps_the_voter_out_and_tells_all,
    the_data_of_another_voter_in_place_of_its_own_let_nobody_in,
);

/// The lease, and the longest there is.
const LEASE: Duration = secs(5);
/// Servers tell their age in whole seconds, and both ends of a time are read a little late.
const DOUBT: Duration = ms(1000);
/// A pause between two attempts: at most half a second and half of that more.
const PAUSE: Duration = ms(750);

fn set(builder: Builder) -> Builder {
    leased(builder, LEASE).quorum_timeout(3 * LEASE)
}

/// A client that has met a majority.
async fn client(on: &Fixture) -> Quorate {
    connect(set(on.builder())).await
}

/// Why the grants of those that were heard do not count. Nobody waits for more answers than it
/// takes to know that there is no majority, so on servers no one knows beforehand which these are.
fn all_blamed(error: &Error) -> Vec<(Quarantine, Duration)> {
    let is_kept_out =
        |verdict: &Verdict| matches!(verdict, Verdict::Unknown(Cause::Quarantined(_)));
    let kept_out = (0..3).filter(|voter| is_kept_out(&error.voters()[*voter].verdict));
    let all: Vec<_> = kept_out.map(|voter| blamed(error, voter)).collect();
    assert!(!all.is_empty(), "nobody is in quarantine: {error}");
    all
}

/// Ada holds the lock for a whole lease by the first two of three voters, the second of which comes
/// back empty a little later. She does not renew: nobody tells it again.
async fn forgotten_vote(on: &mut Fixture) -> (MutexGuard, (Quorate, Apart), Stopwatch) {
    let (ada, apart) = on.client_apart_from(2, set).await;
    let watch = Stopwatch::start();
    let guard = ada.mutex("a").lease_fixed(LEASE).lock().await.expect("two are up");
    sleep(LEASE / 10).await;
    on.restart(1);
    (guard, (ada, apart), watch)
}

/// The voter is kept out for this reason, and inside the process for exactly so long.
async fn is_kept_out(
    on: &Fixture,
    client: &Quorate,
    voter: usize,
    why: Quarantine,
    left: Duration,
) {
    until_kept_out(client, voter, why).await;
    let quarantined = kept_out(client, voter).await.expect("it is kept out");
    assert!(quarantined.left <= left, "{quarantined}");
    assert!(on.is_real() || quarantined.left == left, "{quarantined}");
}

// Ben has seen the restart, and Cleo comes then. With the vote that Ada gives back they do without
// the one that forgot.
async fn a_forgotten_vote_lets_nobody_in_until_the_longest_lease_has_passed(mut on: Fixture) {
    on.grow_old();
    let ben = on.connect(set(on.builder())).await;
    let (held, _ada, watch) = forgotten_vote(&mut on).await;
    let cleo = client(&on).await;
    is_kept_out(&on, &ben, 1, Quarantine::Restarted, LEASE).await;
    is_kept_out(&on, &cleo, 1, Quarantine::Young, LEASE).await;
    assert!(held.is_held(), "the machine was too busy to show anything");
    for client in [&*ben, &cleo] {
        let guard = client.mutex("a").lock().await.expect("all are up");
        let waited = watch.time();
        assert!(guard.is_held() && !held.is_held() && waited >= trusted(LEASE), "{waited:?}");
        assert!(on.is_real() || waited <= trusted(LEASE) + PAUSE, "{waited:?}");
        guard.release().await.expect("all confirm");
    }
}

// The second forgets Ada's vote, and the first dies. Ben has only seen that the second started
// after the third, which then starts again with its data.
async fn a_voter_that_restarts_with_its_data_does_not_make_up_for_one_that_forgot(mut on: Fixture) {
    on.grow_old();
    let (held, _ada, watch) = forgotten_vote(&mut on).await;
    on.kill(0);
    let ben = client(&on).await;
    is_kept_out(&on, &ben, 1, Quarantine::Young, LEASE).await;
    on.restart_with_data(2);
    sleep(LEASE / 10).await;
    is_kept_out(&on, &ben, 1, Quarantine::Young, 9 * LEASE / 10).await;
    assert!(held.is_held(), "the machine was too busy to show anything");
    let guard = ben.mutex("a").lock().await.expect("two are up");
    let (waited, doubt) = (watch.time(), if on.is_real() { DOUBT } else { ms(0) });
    assert!(!held.is_held() && waited + doubt >= LEASE / 10 + LEASE, "{waited:?}");
    guard.release().await.expect("both confirm");
}

// Ada holds the lock by the first two, and the first, which writes every change to disk, loses its
// data. Eve is the first to meet what it has now, and Ben, who comes after her, does not reach the
// second.
async fn what_a_durable_voter_has_lost_lets_nobody_in_who_comes_later(on: Fixture) {
    on.grow_old();
    let (ada, _apart) = on.client_apart_from(2, set).await;
    let guard = ada.mutex("a").lease_fixed(LEASE).lock().await.expect("two are up");
    on.command(0, &["FLUSHALL"]);
    let _eve = client(&on).await;
    let (ben, _apart) = on.client_apart_from(1, set).await;
    until_kept_out(&ben, 0, Quarantine::Young).await;
    assert!(guard.is_held(), "the machine was too busy to show anything");
}

// Ada's vote comes after what the first voter still has when it is back. Ben has looked at it in
// between, and Cleo comes later.
async fn who_has_seen_later_data_keeps_a_voter_out_and_tells_all(mut on: Fixture) {
    on.grow_old();
    on.make_way_longer(0).await;
    let ben = on.connect(set(on.builder())).await;
    let (ada, _apart) = on.client_apart_from(2, set).await;
    on.lose_writes(0);
    sleep(ms(10)).await;
    let guard = ada.mutex("a").lease_fixed(LEASE).lock().await.expect("two are up");
    // He looks when he connects, and not before that he has its vote.
    on.cut(0, InFlight::Lost).await;
    on.kill(2);
    both_count(&on, &ben).await;
    on.restart_with_older_data(0);
    assert!(!on.has_vote(0, "a", guard.hold().as_str()), "it forgets nothing");
    until_kept_out(&ben, 0, Quarantine::Emptied).await;
    let cleo = client(&on).await;
    until_kept_out(&cleo, 0, Quarantine::Young).await;
    assert!(guard.is_held(), "the machine was too busy to show anything");
}

// Nobody has looked at the first voter since it got what it has when it is back. Ada renews.
async fn a_holder_that_misses_a_vote_after_a_restart_keeps_the_voter_out_and_tells_all(
    mut on: Fixture,
) {
    on.grow_old();
    let (ada, _apart) = on.client_apart_from(2, set).await;
    on.lose_writes(0);
    let name = on.name_of_data(0);
    sleep(ms(10)).await;
    let guard = ada.mutex("a").lock().await.expect("two are up");
    until!("both vote", guard.votes() == 2);
    sleep(ms(10)).await;
    on.restart_with_older_data(0);
    until_kept_out(&ada, 0, Quarantine::Emptied).await;
    // It is asked for it anew when it has said that it lacks it.
    let hold = guard.hold().to_string();
    until!("it has it again", on.has_vote(0, "a", &hold));
    until!("the data have another name", !on.is_real() || on.name_of_data(0) != name);
    sleep(ms(10)).await;
    let cleo = client(&on).await;
    assert_eq!(kept_out(&cleo, 0).await.expect("it is kept out").why, Quarantine::Young);
    assert!(guard.is_held());
    guard.release().await.expect("both confirm");
}

// Ada holds the lock by the first two, and the third has never heard of it: nor has the first, once
// it has the data of the third. Both say that they forget nothing. Ben knew it before, and Cleo
// comes then: by what they say all three are old.
async fn the_data_of_another_voter_in_place_of_its_own_let_nobody_in(mut on: Fixture) {
    let ben = on.connect(set(on.builder())).await;
    on.grow_old();
    let (ada, _apart) = on.client_apart_from(2, set).await;
    let guard = ada.mutex("a").lease_fixed(LEASE).lock().await.expect("two are up");
    let name = on.name_of_data(2);
    on.restart_with_copy(0, 2);
    let cleo = client(&on).await;
    for client in [&*ben, &cleo] {
        for voter in [0, 2] {
            until_kept_out(client, voter, Quarantine::Copied).await;
        }
    }
    assert!(guard.is_held(), "the machine was too busy to show anything");
    // So that whoever comes later takes both for young.
    until!("both have other names", {
        let names = [0, 2].map(|voter| on.name_of_data(voter));
        !on.is_real() || names[0] != names[1] && !names.contains(&name)
    });
}

/// Two voters that are left count, and inside the process at once.
async fn both_count(on: &Fixture, client: &Quorate) {
    let watch = Stopwatch::start();
    until!(
        "both count",
        match client.mutex("b").try_lock().await {
            Ok(Some(guard)) => guard.release().await.is_ok(),
            _ => false,
        }
    );
    assert!(on.is_real() || watch.time() == ms(0), "{:?}", watch.time());
}

// Both voters that are left are needed. By default the longest lease is longer than this waits.
async fn a_connection_that_was_cut_is_no_quarantine(mut on: Fixture) {
    on.make_way_longer(0).await;
    on.make_way_longer(1).await;
    let ben = on.client().await;
    on.kill(2);
    for in_flight in [InFlight::Lost, InFlight::Arrives] {
        on.cut(0, in_flight).await;
        on.cut(1, in_flight).await;
        both_count(&on, &ben).await;
    }
}

// Both voters that are left are needed, and restart.
async fn a_restart_that_forgets_nothing_is_no_quarantine(mut on: Fixture) {
    let (ada, ben) = (on.client().await, on.client().await);
    let guard = ada.mutex("a").lock().await.expect("all are up");
    until!("all vote", guard.votes() == 3);
    on.kill(1);
    for voter in [0, 2] {
        on.restart_with_data(voter);
        assert!(on.has_vote(voter, "a", guard.hold().as_str()), "it has forgotten");
    }
    for client in [&*ben, &connect(on.builder()).await] {
        both_count(&on, client).await;
        let tried = client.mutex("a").try_lock().await.expect("both answer");
        assert!(tried.is_none(), "a second holder");
    }
    assert!(guard.is_held());
    until!("ada has come back to both", ada.status().await.counting() == 2);
    guard.release().await.expect("both confirm");
}

// A server that says it syncs every write, and one that only seems to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_syncs_every_second_is_kept_out_after_a_restart() {
    let mut servers = servers_with(3, &["--appendonly", "yes", "--appendfsync", "everysec"]);
    let ben = connect(builder(&servers)).await;
    servers[2].kill();
    servers[1].restart();
    until_kept_out(&ben, 1, Quarantine::Restarted).await;
}

// All have started at once, and none of them writes to disk.
async fn after_the_first_start_of_all_voters_a_lock_is_there_at_once_unless_the_guard_is_strict(
    mut on: Fixture,
) {
    on.restart_all();
    let watch = Stopwatch::start();
    let strict = connect(set(on.builder()).restart_guard(RestartGuard::Strict)).await;
    let error = strict.mutex("a").try_lock().await.expect_err("nobody counts yet");
    for (why, left) in all_blamed(&error) {
        assert!(why == Quarantine::Young && (on.is_real() || left == LEASE), "{why} {left:?}");
    }

    let relative = client(&on).await;
    let entered = relative.mutex("a").try_lock().await.expect("all are up").expect("it is free");
    assert!(on.is_real() || watch.time() == ms(0), "{:?}", watch.time());
    entered.release().await.expect("all confirm");

    if !on.is_real() {
        watch.sleep_until(LEASE.saturating_sub(ms(1))).await;
    }
    assert!(strict.mutex("a").try_lock().await.is_err() || watch.time() + DOUBT > LEASE);
    until_given(&strict, "a").await;
    let waited = watch.time();
    assert!(waited + DOUBT > LEASE, "{waited:?}");
    assert!(on.is_real() || (LEASE..=LEASE + ms(5)).contains(&waited), "{waited:?}");
}

// Whoever was there sees that all have forgotten. The first two that come back are a majority:
// nobody enters before their quarantine has ended.
async fn after_a_restart_of_all_voters_who_saw_it_waits_for_the_longest_lease(mut on: Fixture) {
    let (ben, ada) = (on.connect(set(on.builder())).await, client(&on).await);
    let held = ada.mutex("a").lease_fixed(LEASE).lock().await.expect("all are up");
    on.restart(0);
    let watch = Stopwatch::start();
    on.restart(1);
    on.restart(2);
    for voter in 0..2 {
        is_kept_out(&on, &ben, voter, Quarantine::Restarted, LEASE).await;
    }
    let error = ben.mutex("a").try_lock().await.expect_err("nobody counts");
    assert!(all_blamed(&error).iter().all(|(why, _)| *why == Quarantine::Restarted), "{error}");
    let guard = ben.mutex("a").lock().await.expect("all are up");
    let waited = watch.time();
    assert!(waited >= LEASE && (on.is_real() || waited <= LEASE + PAUSE), "{waited:?}");
    assert!(guard.is_held() && !held.is_held());
    guard.release().await.expect("all confirm");
}
