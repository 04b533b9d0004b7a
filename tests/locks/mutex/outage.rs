//! Voters that restart, stand still or are gone.

use quorate_tests::prelude::*;

claims!(everywhere of both:
    servers_away_for_longer_than_the_lease_loss_is_told_and_a_new_acquire_is_renewed,
    all_servers_gone_is_an_error_with_each_cause_in_bounded_time,
    servers_that_stand_still_are_an_error_with_each_cause_in_bounded_time,
);
claims!(minority of both:
    errors_name_each_voter_and_what_it_said,
    a_dead_minority_is_not_waited_for_and_nothing_is_left_on_the_others,
);

// The voters are away until the loss is told, which is when the 2 s are over, and come back
// with nothing, so that nobody enters before the longest lease is over. The new hold is still there
// after more than its lease, so it was renewed.
async fn servers_away_for_longer_than_the_lease_loss_is_told_and_a_new_acquire_is_renewed(
    mut on: Fixture,
) {
    let builder = on.builder().lease(secs(2)).longest_lease(secs(2)).voter_deadline(ms(200));
    let mutex = on.connect(builder).await.mutex("a");
    let watch = Stopwatch::start();
    let guard = mutex.lock().await.unwrap();
    on.kill_all();
    let why = timeout(on.at_most(secs(2)), guard.lost()).await.expect("loss is told");
    assert!(why.is_lost() && !guard.is_held(), "{why}");
    assert!(watch.time() >= trusted(secs(2)), "too soon: {:?}", watch.time());
    on.restart_all();
    assert!(guard.release().await.unwrap_err().is_lost());
    let guard = mutex.lock().await.unwrap();
    sleep(ms(2500)).await;
    assert!(guard.is_held());
    on.release(guard.release()).await;
    on.until_clean().await;
}

/// No voter answers: `lock` says so after the patience, the others when they are told to. The
/// patience counts from the first answer that failed; a pause is at most half a second
/// and half of that more by chance.
async fn all_calls_fail_in_bounded_time(
    on: &mut Fixture,
    strike: impl FnOnce(&mut Fixture),
    told: impl Fn(&Cause) -> bool,
) {
    let (patience, exact) = (secs(2), if on.is_real() { secs(1) } else { ms(200) });
    let client = on.connect(on.builder().quorum_timeout(patience).voter_deadline(exact)).await;
    let (mutex, admin) = (client.mutex("a"), client.admin());
    strike(on);
    let attempt = on.at_most(ms(200));
    let watch = Stopwatch::start();
    let error = mutex.try_lock().await.unwrap_err();
    assert!(error.is_no_quorum() && watch.time() <= attempt, "{:?}: {error}", watch.time());
    let watch = Stopwatch::start();
    let error = mutex.lock().await.unwrap_err();
    let waited = watch.time();
    assert!(error.is_no_quorum(), "{error}");
    assert!(waited >= patience && waited <= attempt + patience + ms(750) + attempt, "{waited:?}");
    assert_eq!(error.voters().len(), on.voters());
    for (voter, report) in error.voters().iter().enumerate() {
        assert_eq!(report.voter, on.label(voter));
        let Verdict::Unknown(cause) = &report.verdict else { panic!("{report}") };
        // The others may not have been heard: a majority of silence decides.
        assert!(told(cause) || matches!(cause, Cause::Unheard), "{report}");
        assert!(error.to_string().contains(&report.to_string()));
    }
    let watch = Stopwatch::start();
    let error = mutex.lock_within(ms(700)).await.unwrap_err();
    assert!(error.is_no_quorum(), "{error}");
    assert!(watch.time() <= ms(700) + attempt, "{:?}", watch.time());
    let watch = Stopwatch::start();
    assert!(mutex.inspect().await.unwrap_err().is_no_quorum());
    assert!(admin.clear(LockKind::Mutex, "a").await.unwrap_err().is_no_quorum());
    assert!(watch.time() <= 2 * attempt);
}

async fn all_servers_gone_is_an_error_with_each_cause_in_bounded_time(mut on: Fixture) {
    let told = |cause: &Cause| matches!(cause, Cause::Unreachable(_) | Cause::Broken(_));
    all_calls_fail_in_bounded_time(&mut on, Fixture::kill_all, told).await;
}

// A connection that stays silent may be given up and made anew: then the voter is unreachable.
async fn servers_that_stand_still_are_an_error_with_each_cause_in_bounded_time(mut on: Fixture) {
    let stop_all = |on: &mut Fixture| (0..on.voters()).for_each(|voter| on.stop(voter));
    let exact = !on.is_real();
    let told = move |cause: &Cause| match cause {
        Cause::TimedOut(after) => !exact || *after == ms(200),
        Cause::Unreachable(_) | Cause::Broken(_) => !exact,
        _ => false,
    };
    all_calls_fail_in_bounded_time(&mut on, stop_all, told).await;
    (0..on.voters()).for_each(|voter| on.resume(voter));
}

// Two voters have a holder, two are gone and one stands still: no majority either way. The last to
// be decided is the one that stands still, so by then the two have said who holds; where it was
// given up for its silence before, the three are no majority at once, and that is all there is to
// tell.
async fn errors_name_each_voter_and_what_it_said(mut on: Fixture) {
    let mutex = on.connect(on.builder().voter_deadline(ms(500))).await.mutex("a");
    let holder = on.client().await.mutex("a").lock().await.unwrap();
    until!("every voter has the record", on.keys().iter().all(|keys| !keys.is_empty()));
    on.kill(1);
    on.kill(2);
    on.stop(3);
    let mut error = mutex.lock_within(secs(3)).await.unwrap_err();
    // What is asked in the moment of a server's end may get no answer instead of that one.
    until!("the ends of two servers are noticed", {
        error = mutex.try_lock().await.unwrap_err();
        let gone = |report: &VoterReport| report.to_string().contains("unreachable: ");
        gone(&error.voters()[1]) && gone(&error.voters()[2])
    });
    assert!(error.is_no_quorum(), "{error}");
    for (voter, report) in error.voters().iter().enumerate() {
        assert_eq!(report.voter, on.label(voter));
        let Verdict::Unknown(cause) = &report.verdict else {
            let Verdict::Refused { by, ttl: Some(ttl) } = &report.verdict else {
                panic!("{report}")
            };
            assert!([0, 4].contains(&voter), "{report}");
            assert!(by == holder.hold() && *ttl <= secs(30), "{report}");
            assert_eq!(by.client_name().is_some(), on.is_real(), "{report}");
            assert!(report.to_string().contains(&format!("held by {by} for ")), "{report}");
            continue;
        };
        match voter {
            1 | 2 => assert!(report.to_string().contains("unreachable: "), "{report}"),
            0 | 4 if on.is_real() => assert_eq!(*cause, Cause::Unheard),
            // Silent, or given up for its silence and being connected to again.
            3 => assert!(matches!(cause, Cause::TimedOut(_) | Cause::Unreachable(_)), "{report}"),
            _ => panic!("{report}"),
        }
    }
    let message = error.to_string();
    assert!(message.starts_with("no quorum of 3 for lock `a` in "), "{message}");
    on.resume(3);
}

// What is asked of the dead two is refused or unanswered; a client that waited for them would take
// as long as their deadline. The three that live have nothing left of the hold afterwards.
async fn a_dead_minority_is_not_waited_for_and_nothing_is_left_on_the_others(mut on: Fixture) {
    let mutex = on.client().await.mutex("a");
    on.kill(1);
    on.kill(3);
    let watch = Stopwatch::start();
    for _ in 0..5 {
        let guard = mutex.try_lock().await.unwrap().expect("three of five are a majority");
        guard.release().await.unwrap();
    }
    assert!(watch.time() <= on.at_most(ms(0)), "{:?}", watch.time());
    on.restart_all();
    on.until_clean().await;
}

// What an error and a survey say is what was measured, and not what was set.
#[tokio::test(start_paused = true)]
async fn times_are_told_as_they_were_and_deadlines_as_they_count() {
    let voters = embedded::voters(3);
    let builder = Quorate::builder().embedded(&voters);
    let quorum = builder.clone().connect().await.unwrap();
    // A request that is answered measures the round trip.
    quorum.mutex("a").lock().await.unwrap().release().await.unwrap();
    assert!(quorum.survey().await.voters.iter().all(|voter| voter.round_trip.is_some()));
    voters[1].kill();
    voters[2].kill();
    until!(
        "the loss is seen",
        quorum.status().await.voters[1..].iter().all(|voter| voter.connection.is_err())
    );
    let trips: Vec<bool> =
        quorum.survey().await.voters.iter().map(|voter| voter.round_trip.is_some()).collect();
    assert_eq!(trips, [true, false, false]);
    let inspected = quorum.mutex("a").inspect().await.unwrap_err().to_string();
    assert!(inspected.starts_with("no quorum of 2 for lock `a` in 0ns ("), "{inspected}");
    let led = quorum.election("a").leader().await.unwrap_err().to_string();
    assert!(led.starts_with("no quorum of 2 for lock `a` in 0ns ("), "{led}");
    voters[1..].iter().for_each(embedded::EmbeddedVoter::restart);

    // A tenth of the lease counts, as it is less.
    let short = builder.lease(secs(4)).voter_deadline(ms(1_500)).connect().await.unwrap();
    assert_eq!(short.survey().await.voter_deadline, ms(400));
}
