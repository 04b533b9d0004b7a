//! Voters that are changed: clients of the old ones, of both sets, and of the new ones.

use std::{
    sync::{Mutex, mpsc},
    thread,
};

use quorate::Side;
use quorate_tests::{
    inside::{drop_script, fault_client},
    prelude::*,
};
use tokio::runtime;

use crate::cancel::kinds::Access::{BothPermits, FairLock, Lead, Lock, Permit, Read, Write};

/// So many voters that are only new, in both sets, and only old, in this order.
struct Changed {
    all: Vec<EmbeddedVoter>,
    only_new: usize,
    both: usize,
}

impl Changed {
    fn of(only_new: usize, both: usize, only_old: usize) -> Self {
        Self { all: embedded::voters(only_new + both + only_old), only_new, both }
    }

    fn new_ones(&self) -> &[EmbeddedVoter] {
        &self.all[..self.only_new + self.both]
    }

    fn old_ones(&self) -> &[EmbeddedVoter] {
        &self.all[self.only_new..]
    }

    async fn with_old(&self) -> Quorate {
        builder().embedded(self.old_ones()).connect().await.unwrap()
    }

    async fn with_both(&self) -> Quorate {
        self.both_sets().connect().await.unwrap()
    }

    fn both_sets(&self) -> Builder {
        builder().embedded(self.new_ones()).replacing(self.old_ones())
    }

    async fn with_new(&self) -> Quorate {
        builder().embedded(self.new_ones()).connect().await.unwrap()
    }
}

fn builder() -> Builder {
    Quorate::builder().lease(Duration::from_secs(10))
}

/// One to three, three to five, five to three, three to others, and one in the place of one.
fn changes() -> [Changed; 5] {
    [(2, 1, 0), (2, 3, 0), (0, 3, 2), (3, 0, 3), (1, 2, 1)]
        .map(|(only_new, both, only_old)| Changed::of(only_new, both, only_old))
}

// A client of two sets needs a majority of each.

/// Whether two clients exclude each other from every kind of lock, whichever comes first.
async fn exclude_each_other(one: &Quorate, other: &Quorate) {
    for (first, second) in [(one, other), (other, one)] {
        for (had, wanted) in [
            (Lock, Lock),
            (Lock, FairLock),
            (FairLock, FairLock),
            (Write, Write),
            (Write, Read),
            (Read, Write),
            (Permit, BothPermits),
            (Lead, Lead),
        ] {
            let held = had.have(first, None).await;
            let tried = wanted.ask(second, How::Try, None).await.unwrap();
            assert!(tried.is_none(), "{had:?}, {wanted:?}");
            held.release().await.unwrap();
        }
        let read = Read.have(first, None).await;
        Read.ask(second, How::Try, None)
            .await
            .unwrap()
            .expect("both read")
            .release()
            .await
            .unwrap();
        read.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_of_both_sets_excludes_clients_of_either() {
    for changed in changes() {
        let both = changed.with_both().await;
        exclude_each_other(&both, &changed.with_old().await).await;
        exclude_each_other(&both, &changed.with_both().await).await;
        exclude_each_other(&both, &changed.with_new().await).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_woken_across_the_sets_and_tokens_grow() {
    for changed in changes() {
        let clients = [changed.with_old().await, changed.with_both().await];
        hand_over(&clients).await;
        let clients = [changed.with_both().await, changed.with_new().await];
        hand_over(&clients).await;
    }
}

// The leader of both sets resigns while it does not reach the new voters, which go on naming it. A
// candidate that has the old voters alone leads at once.
#[tokio::test(start_paused = true)]
async fn of_two_that_a_set_names_each_the_one_that_has_resigned_is_not_the_leader() {
    let changed = Changed::of(3, 0, 3);
    let machine = Machine::new("ada");
    let ada = changed.both_sets().machine(&machine).connect().await.unwrap();
    let (ben, observer) = (changed.with_old().await, changed.with_both().await);
    let leadership = ada.election("e").campaign("ada").await.unwrap();
    sleep(secs(1)).await;
    fault_client(changed.new_ones(), "ada", Fault::DropRequests);
    assert!(leadership.resign().await.unwrap_err().is_unconfirmed());
    let leads = ben.election("e").campaign("ben").await.unwrap();
    // It has told its token.
    sleep(ms(100)).await;
    let watch = Stopwatch::start();
    for _ in 0..20 {
        let led_by = observer.election("e").leader().await.unwrap().expect("somebody leads");
        assert_eq!((led_by.text(), led_by.token()), (Some("ben"), leads.token()));
        assert!(watch.time() < secs(5), "the vote of the one that resigned stands");
        sleep(ms(100)).await;
    }
    // Where the old voters do not answer it cannot be known.
    changed.old_ones().iter().for_each(EmbeddedVoter::stop);
    assert!(observer.election("e").leader().await.unwrap_err().is_no_quorum());
}

/// The lock goes from the one to the other and back, soon after each release.
async fn hand_over([one, other]: &[Quorate; 2]) {
    let mut token = None;
    for (from, to) in [(one, other), (other, one), (one, other)] {
        let held = from.mutex("m").lock().await.unwrap();
        assert!(Some(held.token()) > token, "{:?} after {token:?}", held.token());
        token = Some(held.token());
        let waiter = tokio::spawn(to.mutex("m").lock());
        sleep(secs(1)).await;
        let released = Stopwatch::start();
        held.release().await.unwrap();
        let next = waiter.await.unwrap().unwrap();
        let took = released.time();
        assert!(took < ms(100), "{took:?}");
        assert!(Some(next.token()) > token, "{:?} after {token:?}", next.token());
        token = Some(next.token());
        next.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_of_either_set_there_is_no_lock_and_the_error_says_which_set_lacks_what()
{
    let changed = Changed::of(3, 0, 3);
    let client = changed.both_sets().quorum_timeout(ms(100)).connect().await.unwrap();
    changed.all[3].kill();
    changed.all[4].kill();
    let error = client.mutex("m").lock().await.unwrap_err();
    assert!(error.is_no_quorum());
    let told = error.to_string();
    assert!(told.starts_with("no quorum of 2 of 3 new and 2 of 3 old for lock `m`"), "{told}");
    assert!(told.contains(", 1 of the old voters gave a usable answer ("), "{told}");
    assert!(told.contains("embedded-4 (old): unreachable: killed"), "{told}");
    let sides = error.voters().iter().map(|report| report.side);
    let (new, old) = (Some(Side::New), Some(Side::Old));
    assert_eq!(sides.collect::<Vec<_>>(), [new, new, new, old, old, old]);
    let status = client.status().await;
    assert!(!status.has_quorum());
    let sets: Vec<_> = status.sets().map(|set| set.to_string()).collect();
    assert_eq!(
        sets,
        ["3 of 3 new votes count, 2 are needed", "1 of 3 old votes count, 2 are needed"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_voter_in_both_sets_is_asked_once() {
    let changed = Changed::of(2, 3, 0);
    let client = changed.with_both().await;
    let runs =
        |script: &str| changed.all.iter().map(|voter| voter.runs(script)).collect::<Vec<_>>();
    let guard = client.mutex("m").lock().await.unwrap();
    assert_eq!(guard.votes(), 5);
    guard.release().await.unwrap();
    sleep(secs(1)).await;
    assert_eq!((runs("mutex/acquire"), runs("mutex/release")), (vec![1; 5], vec![1; 5]));
}

#[tokio::test(start_paused = true)]
async fn inspection_and_force_see_the_holds_of_clients_of_one_set() {
    let changed = Changed::of(3, 0, 3);
    let (old, both) = (changed.with_old().await, changed.with_both().await);
    let held = old.mutex("m").lock().await.unwrap();
    let seen = both.mutex("m").inspect().await.unwrap();
    assert_eq!(seen.holder().expect("it is held").hold, *held.hold());
    assert!(!seen.is_free);
    assert_eq!(seen.token, Some(held.token()));
    assert!(both.admin().end(LockKind::Mutex, "m", held.hold()).await.unwrap() >= 3);
    sleep(secs(4)).await;
    assert!(!held.is_held(), "it was ended by force");
    let held = both.mutex("m").lock().await.unwrap();
    let seen = both.mutex("m").inspect().await.unwrap();
    assert_eq!(seen.holder().expect("it is held").hold, *held.hold());
    held.release().await.unwrap();
    assert!(both.mutex("m").inspect().await.unwrap().is_free);
}

/// Two names of one server in two sets would be two voters, of which one has no vote.
#[tokio::test(start_paused = true)]
async fn the_same_voter_is_in_both_sets_however_often_it_is_named() {
    let voter = EmbeddedVoter::new("only");
    let one = std::slice::from_ref(&voter);
    let client = builder().embedded(one).replacing(one).connect().await.unwrap();
    let status = client.status().await;
    let sides: Vec<_> = status.voters.iter().map(|voter| voter.side).collect();
    assert_eq!(sides, [Some(Side::Both)]);
    assert_eq!(status.needed(), 1);
    client.mutex("m").lock().await.unwrap().release().await.unwrap();
    let nobody = builder().embedded(one).replacing(quorate::VoterSet::new()).connect().await;
    assert_eq!(nobody.unwrap_err().to_string(), "there are no voters to replace");
}

// Clients that disagree about who the voters are.

/// For so long a voter tells of a client: the longest lease of 30 s and 45 s more.
const TOLD: Duration = secs(75);
/// Where this does not arrive nobody compares.
const CONFIGURATION: &str = "voter/configuration";

fn on(voters: &[EmbeddedVoter]) -> Builder {
    builder().embedded(voters).voter_configuration(1)
}

async fn refused(builder: Builder) -> String {
    let error = builder.connect().await.expect_err("its configuration differs");
    assert!(error.is_configuration_mismatch(), "{error}");
    error.to_string()
}

#[tokio::test(start_paused = true)]
async fn a_client_with_another_number_of_voters_does_not_connect_and_is_told_what_each_believes() {
    let voters = embedded::voters(5);
    let first = on(&voters[..3]).client_name("web-1").connect().await.unwrap();
    let told = refused(on(&voters)).await;
    let others = "configuration mismatch with other clients of voter embedded-1: it has configuration 1 with \
                  5 voters, a longest lease of 30s, a drift of 10000 ppm and 2ms; others have \
                  configuration 1 with 3 voters, a longest lease of 30s, a drift of 10000 ppm and 2ms, \
                  last seen ";
    assert!(told.starts_with(others), "{told}");
    assert!(told.contains(" ago by web-1@"), "{told}");
    // Who was refused left nothing behind by which others would be refused.
    on(&voters[..3]).connect().await.unwrap();
    let held = first.mutex("m").lock().await.unwrap();
    sleep(TOLD).await;
    assert!(held.is_held());
    assert!(first.status().await.voters.iter().all(|voter| voter.configuration_mismatch.is_none()));
}

#[tokio::test(start_paused = true)]
async fn clients_of_the_new_voters_start_when_those_of_the_old_have_been_gone_for_a_longest_lease()
{
    for (changed, carried) in [(Changed::of(2, 1, 0), false), (Changed::of(3, 0, 3), true)] {
        let old =
            builder().embedded(changed.old_ones()).voter_configuration(1).connect().await.unwrap();
        let both = changed.both_sets().voter_configuration(2).connect().await.unwrap();
        let new = || builder().embedded(changed.new_ones()).voter_configuration(2);
        // Where no voter is in both sets, the client of both carries it across.
        sleep(secs(25)).await;
        let told = refused(new()).await;
        assert!(told.contains("it has configuration 2 with 3 voters"), "{told}");
        assert!(told.contains("others have configuration 1 with"), "{carried}: {told}");
        drop(old.close().await);
        let gone = Stopwatch::start();
        let client = loop {
            match new().connect().await {
                Ok(client) => break client,
                Err(error) => assert!(error.is_configuration_mismatch(), "{error}"),
            }
            sleep(secs(1)).await;
        };
        let waited = gone.time();
        assert!(waited > secs(30) && waited <= TOLD + secs(1), "{carried}: {waited:?}");
        // All three steps have been made, each beside the one before.
        let held = client.mutex("m").lock().await.unwrap();
        assert!(both.mutex("m").try_lock().await.unwrap().is_none());
        held.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_there_for_a_moment_alone_carries_what_it_hears_across() {
    let changed = Changed::of(3, 0, 3);
    let _old =
        builder().embedded(changed.old_ones()).voter_configuration(1).connect().await.unwrap();
    let both = changed.both_sets().voter_configuration(2).connect().await.unwrap();
    drop(both.close().await);
    let told = refused(builder().embedded(changed.new_ones()).voter_configuration(2)).await;
    assert!(told.contains("others have configuration 1 with 3 voters"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_change_goes_back_as_it_came() {
    let changed = Changed::of(2, 1, 0);
    let both = || changed.both_sets().voter_configuration(2);
    let new =
        builder().embedded(changed.new_ones()).voter_configuration(2).connect().await.unwrap();
    let joint = both().connect().await.unwrap();
    assert!(
        refused(builder().embedded(changed.old_ones()).voter_configuration(1))
            .await
            .contains("configuration 1 with 1")
    );
    drop(new.close().await);
    // The clients of both sets say every 15 s that they are there without it.
    sleep(TOLD + secs(16)).await;
    let old =
        builder().embedded(changed.old_ones()).voter_configuration(1).connect().await.unwrap();
    drop(joint.close().await);
    sleep(TOLD + secs(1)).await;
    // And another change, of the same number, is tried.
    both().connect().await.unwrap();
    drop(old);
}

fn is_configuration_mismatch(error: &Error) -> bool {
    let of_it =
        |verdict: &Verdict| matches!(verdict, Verdict::Unknown(Cause::ConfigurationMismatch(_)));
    error.voters().iter().any(|report| of_it(&report.verdict))
}

#[tokio::test(start_paused = true)]
async fn who_cannot_compare_on_a_majority_does_not_connect_and_has_no_mismatch() {
    let voters = embedded::voters(5);
    drop_script(&voters[..3], CONFIGURATION);
    let asked = Stopwatch::start();
    let error = on(&voters).connect_timeout(secs(3)).connect().await.expect_err("nobody says so");
    assert!(error.is_not_connected(), "{error}");
    assert!(asked.time() >= secs(3), "{:?}", asked.time());
    assert!(error.to_string().contains("embedded-1: no answer within"), "{error}");
    // The other two are no majority, and were told nothing by which others would be refused.
    heal(&voters);
    on(&voters[..3]).connect().await.unwrap();
}

// When the time is over one voter is still silent, and it is another one's turn to be asked, which
// refuses. A thread of its own: if the client went round in circles, nothing else would run on it.
#[test]
fn a_client_that_connects_in_vain_leaves_its_thread_to_others() {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let mut runtime = runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().expect("it starts");
        let connecting = async {
            let voters = embedded::voters(3);
            voters[1].kill();
            drop_script(&voters[2..], CONFIGURATION);
            let builder = on(&voters).voter_deadline(secs(1));
            builder.connect_timeout(ms(3_200)).connect().await
        };
        done.send(runtime.block_on(connecting).map(drop))
    });
    let error = ended.recv_timeout(secs(60)).expect("it ends").expect_err("one of three compares");
    assert!(error.is_not_connected(), "{error}");
}

// The voters are up, and answer nothing about the configuration for a while.
#[tokio::test(start_paused = true)]
async fn connecting_goes_on_asking_until_a_majority_has_compared() {
    let voters = embedded::voters(5);
    let _first = on(&voters).connect().await.unwrap();
    drop_script(&voters[..3], CONFIGURATION);
    let (three, asked) = (voters[..3].to_vec(), Stopwatch::start());
    let late = async {
        sleep(secs(2)).await;
        heal(&three);
    };
    let stray = builder().embedded(&three).voter_configuration(2).connect();
    let (stray, ()) = tokio::join!(stray, late);
    let error = stray.expect_err("its configuration differs with the first");
    assert!(error.is_configuration_mismatch(), "{error}");
    assert!(asked.time() >= secs(2), "{:?}", asked.time());
    // Who agrees connects late, and well.
    drop_script(&voters[..3], CONFIGURATION);
    let late = async {
        sleep(secs(2)).await;
        heal(&voters);
    };
    let (second, ()) = tokio::join!(on(&voters).connect(), late);
    assert!(second.unwrap().mutex("m").try_lock().await.unwrap().is_some(), "it is free");
}

#[tokio::test(start_paused = true)]
async fn a_voter_counts_for_new_holds_once_it_has_compared_on_its_connection_and_holds_are_renewed()
{
    let voters = embedded::voters(3);
    let client = on(&voters).connect().await.unwrap();
    let held = client.mutex("held").lock().await.unwrap();
    drop_script(&voters[..2], CONFIGURATION);
    voters[..2].iter().for_each(|voter| voter.cut(InFlight::Lost));
    let error = client.mutex("m").try_lock().await.unwrap_err();
    assert!(error.is_no_quorum() && is_configuration_mismatch(&error), "{error}");
    assert_eq!(client.status().await.voters.iter().filter(|voter| voter.counts).count(), 1);
    sleep(secs(30)).await;
    assert!(held.is_held() && held.votes() == 3, "a lease of 10 s is renewed");
    let error = client.mutex("m").try_lock().await.unwrap_err();
    assert!(error.is_no_quorum() && is_configuration_mismatch(&error), "{error}");
    heal(&voters);
    sleep(secs(2)).await;
    assert!(client.mutex("m").try_lock().await.unwrap().is_some(), "it is free");
    held.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_is_compared_at_once() {
    let voters = embedded::voters(3);
    let client = on(&voters).connect().await.unwrap();
    sleep(secs(5)).await;
    let before = voters[0].runs(CONFIGURATION);
    voters[0].cut(InFlight::Lost);
    sleep(ms(1)).await;
    assert_eq!(voters[0].runs(CONFIGURATION), before + 1);
    assert!(client.status().await.voters.iter().all(|voter| voter.counts));
}

// The change was done by the book: nobody but the clients of both sets ever met both.
#[tokio::test(start_paused = true)]
async fn a_stray_of_the_step_before_is_refused_for_as_long_as_the_old_voters_know_the_new_step() {
    let changed = Changed::of(3, 0, 3);
    let old = || builder().embedded(changed.old_ones()).voter_configuration(1);
    let both = || changed.both_sets().voter_configuration(2);
    let first = old().connect().await.unwrap();
    let joint = both().connect().await.unwrap();
    drop(first.close().await);
    sleep(TOLD + secs(30)).await;
    let new =
        builder().embedded(changed.new_ones()).voter_configuration(2).connect().await.unwrap();
    let held = new.mutex("m").lock().await.unwrap();
    sleep(secs(45)).await;
    drop(joint.close().await);
    for later in [10, 60, 90, 600, 3_000] {
        sleep(secs(later)).await;
        let told = refused(old()).await;
        assert!(told.contains("others have configuration 2 with 3 voters"), "{later}: {told}");
    }
    let told = refused(old()).await;
    assert!(told.contains("clients in between that have both sets"), "{told}");
    // One of both sets that comes and goes says to the old voters that the new ones have clients.
    drop(both().connect().await.unwrap().close().await);
    refused(old()).await;
    held.release().await.unwrap();
    // One that goes too early after the last client of the new ones takes nothing back.
    let joint = both().connect().await.unwrap();
    drop(new.close().await);
    sleep(secs(60)).await;
    drop(joint.close().await);
    sleep(secs(20 * 24 * 3_600)).await;
    refused(old()).await;
    let joint = both().connect().await.unwrap();
    let old = old().connect().await.unwrap();
    assert!(old.mutex("m").try_lock().await.unwrap().is_some(), "it is free");
    drop(joint);
}

// The new voters are away for a while: what their clients do is not known.
#[tokio::test(start_paused = true)]
async fn clients_of_both_sets_that_do_not_reach_the_new_voters_let_no_stray_in() {
    let changed = Changed::of(3, 0, 3);
    let joint = changed.both_sets().voter_configuration(2).connect().await.unwrap();
    let _new =
        builder().embedded(changed.new_ones()).voter_configuration(2).connect().await.unwrap();
    sleep(secs(45)).await;
    changed.new_ones().iter().for_each(EmbeddedVoter::stop);
    sleep(secs(600)).await;
    refused(builder().embedded(changed.old_ones()).voter_configuration(1)).await;
    drop(joint);
}

#[tokio::test(start_paused = true)]
async fn a_client_with_another_lease_or_drift_or_without_the_restart_guard_does_not_connect() {
    let voters = embedded::voters(3);
    let first = on(&voters).connect().await.unwrap();
    let longer = || on(&voters).longest_lease(secs(60));
    let drifts = on(&voters).drift(200_000, ms(2));
    let unguarded = on(&voters).restart_guard(RestartGuard::Off);
    for (other, named) in [
        (longer(), "a longest lease of 60s"),
        (drifts, "a drift of 200000 ppm and 2ms"),
        (unguarded, "2ms, no restart guard"),
    ] {
        let told = refused(other).await;
        assert!(told.contains(named), "{told}");
        assert!(told.contains("the same longest lease, drift and restart guard"), "{told}");
    }
    // That is stricter by itself, and takes nothing from others.
    on(&voters).restart_guard(RestartGuard::Strict).connect().await.unwrap();
    // Nobody is there any more, for so long that nothing stands that was held.
    drop(first);
    sleep(secs(60) + secs(45) + secs(1)).await;
    longer().connect().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn records_of_a_format_that_this_release_does_not_know_disagree() {
    let voters = embedded::voters(3);
    let now = voters[0].command(&["TIME"]).unwrap();
    let quorate::embedded::Reply::List(parts) = now else { panic!("{now:?}") };
    let quorate::embedded::Reply::Text(seconds) = &parts[0] else { panic!("{parts:?}") };
    let of_another = format!("{seconds}000 75000 web-9@0b2c");
    let keep = ["HSET", "quorate:{%roster}", "2 whatever that may be", &of_another];
    voters[0].command(&keep).unwrap();
    let told = refused(on(&voters)).await;
    assert!(told.contains("others have records in a format that this release does not"), "{told}");
    assert!(told.contains("by web-9@0b2c; all clients need the same longest lease"), "{told}");
    sleep(TOLD).await;
    on(&voters).connect().await.unwrap();
}

// Both count as many as the other step has, and not those that the other step means.
#[tokio::test(start_paused = true)]
async fn a_client_that_replaces_other_voters_than_there_are_does_not_connect() {
    let voters = embedded::voters(5);
    let _first = on(&voters).connect().await.unwrap();
    let both = builder().embedded(&voters[..3]).replacing(&voters[2..]).voter_configuration(2);
    refused(both).await;
}

/// Clients that come to disagree: each was connected when the voter that both have was away.
async fn disagreeing(voters: &[EmbeddedVoter]) -> [Quorate; 2] {
    voters[2].stop();
    let connect = |voters| on(voters).voter_deadline(ms(100)).connect();
    let one = connect(&voters[..3]).await.unwrap();
    let other = connect(&voters[2..7]).await.unwrap();
    [one, other]
}

#[tokio::test(start_paused = true)]
async fn who_finds_out_later_gets_no_new_locks_and_loses_what_it_holds() {
    let voters = embedded::voters(7);
    let [one, other] = disagreeing(&voters).await;
    let held = [&one, &other].map(|client| client.mutex("held"));
    let [held, others] = [held[0].lock().await.unwrap(), held[1].lock().await.unwrap()];
    assert!(held.is_held() && others.is_held(), "nobody knows of the other");
    voters[2].resume();
    sleep(secs(2)).await;
    // The first one that came is well there; the other one is not.
    let (lost, well, its, there) = match (held.is_held(), others.is_held()) {
        (true, false) => (others, held, &other, &one),
        (false, true) => (held, others, &one, &other),
        both => panic!("{both:?}"),
    };
    let why = lost.release().await.unwrap_err();
    assert!(why.is_lost() && is_configuration_mismatch(&why), "{why}");
    assert!(why.to_string().contains("clients disagree about the voters"), "{why}");
    for text in
        its.status().await.voters.iter().map(|voter| voter.configuration_mismatch.as_deref())
    {
        let text = text.expect("none of its votes counts");
        assert!(
            text.contains("configuration 1 with 3 voters")
                && text.contains("configuration 1 with 5 voters")
        );
    }
    let error = its.mutex("m").lock_within(secs(1)).await.unwrap_err();
    assert!(error.is_no_quorum() && is_configuration_mismatch(&error), "{error}");
    sleep(secs(30)).await;
    assert!(well.is_held(), "the other one goes on");
    well.release().await.unwrap();
    // It is over when the others have been gone for a while.
    drop(there.close().await);
    sleep(TOLD + secs(20)).await;
    let status = its.status().await;
    assert!(status.voters.iter().all(|voter| voter.counts), "{status}");
}

#[tokio::test(start_paused = true)]
async fn who_only_looks_connects_and_leaves_no_trace_and_sees_what_the_clients_believe() {
    let voters = embedded::voters(5);
    let first = on(&voters[..3]).client_name("web-1").connect().await.unwrap();
    let looks = on(&voters).only_looks(true).connect().await.unwrap();
    let configuration = looks.survey().await.configuration;
    assert_eq!(configuration.len(), 1, "{configuration:?}");
    let entry = &configuration[0];
    assert_eq!((entry.number, entry.voters, entry.replaced), (1, 3, None));
    assert!(entry.client.starts_with("web-1@") && entry.clashes, "{entry}");
    assert_eq!(first.survey().await.configuration.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn voters_are_asked_every_15_seconds_and_never_on_the_way_of_a_lock() {
    let voters = embedded::voters(3);
    let (asked, start) = (Arc::<Mutex<Vec<u64>>>::default(), Stopwatch::start());
    let noted = Arc::clone(&asked);
    voters[0].observe(move |ran| {
        if ran.script() == CONFIGURATION {
            noted.lock().unwrap().push(start.time().as_secs());
        }
    });
    let client = on(&voters).connect().await.unwrap();
    for _ in 0..10 {
        for _ in 0..20 {
            client.mutex("m").lock().await.unwrap().release().await.unwrap();
        }
        sleep(secs(5)).await;
    }
    // At first it only looks.
    assert_eq!(*asked.lock().unwrap(), [0, 0, 15, 30, 45]);
    // A voter that forgets it hears it again.
    voters[0].wipe();
    sleep(secs(15)).await;
    assert!(voters[0].keys().iter().any(|key| key == "quorate:{%roster}"));
    drop(client.close().await);
    sleep(secs(30 * 24 * 3_600)).await;
    sleep(secs(1)).await;
    assert!(!voters[0].keys().iter().any(|key| key == "quorate:{%roster}"), "it expires");
}
