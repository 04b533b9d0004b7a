//! What a caller is told who finds no majority because of quarantines: when one counts again.

use quorate_tests::prelude::*;

use crate::amnesia::inside::{LEASE, builder, client, client_on, old_voters};

/// These voters come back empty, one three seconds after the other. From now on each answers after
/// 40 ms.
async fn restart(voters: &[EmbeddedVoter], order: &[usize]) -> Vec<FaultGuard> {
    for voter in order {
        sleep(secs(3)).await;
        voters[*voter].restart_empty();
        sleep(ms(1)).await;
    }
    all(voters, Fault::Delay { there: ms(20), back: ms(20) })
}

/// A call in the last millisecond of that time fails as this one did, and the next one does not.
async fn succeeds_then(client: &Quorate, error: &Error, case: &str) {
    let made = Stopwatch::start();
    let time = error.retry_after().unwrap_or_else(|| panic!("{case}: {error}"));
    assert!(time < LEASE, "{case}: {time:?}");
    sleep(time.saturating_sub(ms(1))).await;
    let early = client.mutex("a").try_lock().await;
    assert!(early.as_ref().is_err_and(Error::is_no_quorum), "{case}: {time:?}: {early:?}");
    sleep(time.saturating_sub(made.time())).await;
    let tried = client.mutex("a").try_lock().await;
    assert!(matches!(tried, Ok(Some(_))), "{case}: {time:?}: {tried:?}");
}

#[tokio::test(start_paused = true)]
async fn an_error_says_when_a_majority_counts_again() {
    // Of five in quarantine the third that comes out makes a majority, of four the second: neither
    // the first nor the last.
    for (count, order) in [
        (1, &[0][..]),
        (3, &[1, 0]),
        (3, &[2, 0, 1]),
        (5, &[4, 1, 3]),
        (5, &[3, 1, 0, 4]),
        (5, &[0, 1, 2, 3, 4]),
    ] {
        let case = format!("{order:?} of {count}");
        let voters = old_voters(count);
        let client = builder(&voters).connect().await.unwrap();
        let _slow = restart(&voters, order).await;
        let error = client.mutex("a").try_lock().await.unwrap_err();
        succeeds_then(&client, &error, &case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_sets_an_error_says_when_a_majority_of_each_counts_again() {
    for (only_new, both, only_old, order) in [
        (3, 0, 3, &[0, 4, 1, 3][..]),
        (3, 0, 3, &[3, 1, 4, 2]),
        (2, 3, 0, &[4, 0, 3, 1, 2]),
        (0, 3, 2, &[0, 4, 1]),
        (1, 2, 1, &[1, 2]),
    ] {
        let case = format!("{order:?} of {only_new}, {both} and {only_old}");
        let voters = old_voters(only_new + both + only_old);
        let (new, old) = (&voters[..only_new + both], &voters[only_new..]);
        let client = builder(new).replacing(old).connect().await.unwrap();
        let _slow = restart(&voters, order).await;
        let error = client.mutex("a").try_lock().await.unwrap_err();
        succeeds_then(&client, &error, &case).await;
    }
}

// They give up at a limit, long after the last answers.
#[tokio::test(start_paused = true)]
async fn who_has_waited_is_told_what_is_left_then() {
    for patience in [secs(7), secs(10)] {
        let voters = old_voters(3);
        let client = builder(&voters).quorum_timeout(patience).connect().await.unwrap();
        let _slow = restart(&voters, &[0, 2]).await;
        let error = client.mutex("a").lock().await.unwrap_err();
        succeeds_then(&client, &error, "lock").await;
    }
    let voters = old_voters(3);
    let client = client(&voters).await;
    let _slow = restart(&voters, &[0, 2]).await;
    let error = client.mutex("a").lock_or_busy(secs(7)).await.unwrap_err();
    succeeds_then(&client, &error, "lock_or_busy").await;
}

// Those that are away may come back at any time, or never.
#[tokio::test(start_paused = true)]
async fn where_a_majority_is_not_there_no_error_says_when_to_try_again() {
    let voters = old_voters(5);
    let client = client(&voters).await;
    let tried = async || client.mutex("a").try_lock().await.unwrap_err();
    for voter in [0, 1, 2] {
        voters[voter].kill();
    }
    let away = tried().await;
    assert!(away.is_no_quorum() && away.retry_after().is_none(), "{away}");
    voters[3].restart_empty();
    sleep(ms(1)).await;
    assert_eq!(tried().await.retry_after(), None);
    voters[0].restart();
    sleep(secs(1)).await;
    let left = tried().await.retry_after();
    assert!(left.is_some_and(|left| left > secs(28)), "one of three is in quarantine: {left:?}");
}

// Each of three voters hears another client first, and two of them are in quarantine: nobody can
// have the lock. If all were told that another has it, none would try again.
#[tokio::test(start_paused = true)]
async fn who_meets_others_that_cannot_have_the_lock_either_is_not_told_that_it_is_taken() {
    let voters = old_voters(3);
    let names = ["ada", "ben", "cleo"];
    let machines = names.map(Machine::new);
    let clients = machines.each_ref().map(|machine| client_on(machine, &voters));
    let clients = join_all(clients).await;
    for voter in &voters[..2] {
        voter.restart_empty();
    }
    sleep(secs(1)).await;
    for (first, voter) in voters.iter().enumerate() {
        let favourite = names[first];
        voter.fault_each(move |sent| {
            let there = if sent.client() == favourite { ms(1) } else { ms(20) };
            vec![Fault::Delay { there, back: ms(1) }]
        });
    }
    let mutexes = clients.iter().map(|client| client.mutex("a"));
    let tried = join_all(mutexes.map(|mutex| async move { mutex.try_lock().await })).await;
    for (name, tried) in names.iter().zip(&tried) {
        let error = tried.as_ref().expect_err(name);
        let left = error.retry_after();
        assert!(left.is_some_and(|left| left > secs(28) && left < LEASE), "{name}: {error}");
    }
}
