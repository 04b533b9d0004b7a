//! Bugs of semaphores.

use quorate::{Semaphore, embedded::Reply};
use quorate_tests::prelude::*;

const SLOTS: &str = "quorate:{a}:semaphore:slots";
const ENDS: &str = "quorate:{a}:semaphore:ends";
const QUEUE: &str = "quorate:{a}:semaphore:queue";
const SERVED: &str = "quorate:{a}:semaphore:served";
const ALIVE: &str = "quorate:{a}:semaphore:alive";

async fn semaphore(voters: &[EmbeddedVoter], permits: u32) -> Semaphore {
    client(voters).await.semaphore("a", permits)
}

fn waits(semaphore: Semaphore) -> JoinHandle<PermitGuard> {
    tokio::spawn(async move { semaphore.acquire().await.expect("all voters answer") })
}

fn says(voter: &EmbeddedVoter, words: &[&str]) -> Reply {
    voter.command(words).expect("it is up")
}

/// Ada hears nothing of her first attempt and undoes it. Her next attempt is granted before the
/// voters have confirmed, or heard, the undo.
async fn late_undo(undo: Fault) {
    let voters = embedded::voters(3);
    let theirs = semaphore(&voters, 3).await;
    let (one, two) = (theirs.acquire().await.unwrap(), theirs.acquire_many(2).await.unwrap());
    let machine = Machine::new("ada");
    let ada = Quorate::builder().embedded(&voters).machine(&machine).connect().await.unwrap();
    let waiting = waits(ada.semaphore("a", 3));
    sleep(ms(50)).await;
    let spoil = |acquire: &'static [Fault]| {
        for voter in &voters {
            voter.fault_each(move |sent| match (sent.client(), sent.script()) {
                ("ada", Some("semaphore/acquire")) => acquire.to_vec(),
                ("ada", Some("semaphore/release")) => vec![undo],
                _ => Vec::new(),
            });
        }
    };
    spoil(&[Fault::DropReplies]);
    two.release().await.unwrap();
    sleep(ms(1)).await;
    for voter in &voters {
        assert_eq!(says(voter, &["ZCARD", SLOTS]), Reply::Int(2), "it was called and granted");
    }
    // After the deadline of the first attempt, and before the next.
    sleep(ms(210)).await;
    spoil(&[]);
    let guard = waiting.await.unwrap();
    heal(&voters);
    sleep(secs(2)).await;
    assert!(guard.is_held());
    for voter in &voters {
        assert_eq!(says(voter, &["ZCARD", QUEUE]), Reply::Int(0), "nobody waits");
    }
    let third = theirs.try_acquire().await.unwrap().expect("a permit is free, and nobody waits");
    drop((one, guard, third));
}

/// The undo was repeated, and took the place of the holder back into the queue: a permit that was
/// free was refused for as long as the place counted. Where it is not heard, the first attempt had
/// a permit until then.
#[tokio::test(start_paused = true)]
async fn an_undo_that_comes_late_puts_no_holder_back_into_the_queue() {
    late_undo(Fault::DropReplies).await;
    late_undo(Fault::DropRequests).await;
}

/// How long the places that were given permits are kept, when one that counts for a short time was
/// given one, behind one that counted for longer.
async fn served_for(fault: Option<Fault>) -> Reply {
    let voters = embedded::voters(1);
    let theirs = semaphore(&voters, 1).await;
    let guard = theirs.acquire().await.unwrap();
    let other = waits(theirs.clone());
    sleep(ms(10)).await;
    let brief = Quorate::builder().embedded(&voters).waiter_deadline(secs(1));
    let waiting = waits(brief.connect().await.unwrap().semaphore("a", 1));
    sleep(ms(10)).await;
    other.abort();
    sleep(ms(10)).await;
    let _fault = fault.map(|fault| voters[0].fault(fault));
    guard.release().await.unwrap();
    let next = waiting.await.unwrap();
    let kept = says(&voters[0], &["PTTL", SERVED]);
    drop(next);
    kept
}

/// The second run made the queue anew, and kept what it moved only for as long as that.
#[tokio::test(start_paused = true)]
async fn a_request_for_permits_that_runs_twice_leaves_what_it_left_the_first_time() {
    let once = served_for(None).await;
    assert_eq!(served_for(Some(Fault::RunTwice)).await, once);
    assert!(matches!(once, Reply::Int(ms) if ms > 1_000), "{once:?}");
}

/// Three voters granted, each another slot, and one of them told a high ticket. The two others
/// answered while the three were asked to go on: only what the three had said was the ticket.
#[tokio::test(start_paused = true)]
async fn the_ticket_of_a_majority_counts_though_it_comes_after_the_grants() {
    let voters = embedded::voters(5);
    let Reply::List(now) = says(&voters[0], &["TIME"]) else { panic!("a time") };
    let Reply::Text(now_secs) = &now[0] else { panic!("a time") };
    let later = format!("{}000", now_secs.parse::<u64>().unwrap() + 60);
    for (number, voter) in voters.iter().enumerate() {
        for slot in (0..3).filter(|slot| *slot != number) {
            let hold = format!("nobody:{slot}");
            says(voter, &["ZADD", SLOTS, &slot.to_string(), &hold]);
            says(voter, &["ZADD", ENDS, &later, &hold]);
        }
        let back = ms(if number < 3 { 2 } else { 3 });
        voter.fault_each(move |_| vec![Fault::Delay { there: ms(0), back }]);
    }
    says(&voters[2], &["ZADD", SERVED, "12000001", "nobody:9"]);
    says(&voters[2], &["ZADD", ALIVE, &later, "nobody:9"]);
    for voter in &voters {
        for key in [SLOTS, ENDS, SERVED, ALIVE] {
            says(voter, &["PEXPIRE", key, "60000"]);
        }
    }
    let waiting = waits(semaphore(&voters, 3).await);
    sleep(secs(1)).await;
    for voter in &voters {
        let Reply::List(queue) = says(voter, &["ZRANGE", QUEUE, "0", "-1", "WITHSCORES"]) else {
            panic!("a list")
        };
        assert_eq!(queue[1..], [Reply::Text("1".into())], "{queue:?}");
    }
    waiting.abort();
}
