//! Schedules that broke a law or a promise; each test's name is the claim.

use quorate::embedded::{self, EmbeddedVoter, Fault};
use tokio::time::sleep;

use crate::{
    fixture::{Fixture, ms},
    support::without_fences,
    waiting::{release, until_waiting, write},
};

/// What was left of the queue still named the writer: it kept readers out, or the script failed,
/// where its deadline was gone. The writer comes back with its next bid.
#[tokio::test(start_paused = true)]
async fn a_writer_keeps_nobody_out_where_its_place_was_lost_with_a_part_of_the_queue() {
    for lost in [&["queue"][..], &["alive"], &["queue", "alive"]] {
        let voters = embedded::voters(3);
        let on = Fixture::of(&voters);
        let client = on.client().await;
        let reading = client.rw_lock("a").read().await.unwrap();
        let writer = write(&client);
        until_waiting(&client, 1, 0).await;
        for (voter, part) in
            voters.iter().flat_map(|voter| lost.iter().map(move |part| (voter, part)))
        {
            voter.command(&["DEL", &format!("quorate:{{a}}:rw:{part}")]).unwrap();
        }
        let other = client.rw_lock("a").try_read().await;
        let other = other.expect("no script fails").expect("nobody is known to wait");
        until_waiting(&client, 1, 0).await;
        assert!(client.rw_lock("a").try_read().await.unwrap().is_none(), "{lost:?}");
        release(&on, other.release()).await;
        release(&on, reading.release()).await;
        release(&on, writer.await.unwrap().release()).await;
        on.until_clean().await;
    }
}

/// As with a fair mutex: the vote stayed until the next bid, which took another one, and may have
/// been the one that a holder needed.
#[tokio::test(start_paused = true)]
async fn a_bid_without_a_quorum_gives_back_what_comes_after_it() {
    for writes in [false, true] {
        let voters = embedded::voters(3);
        let lock = Fixture::of(&voters).client().await.rw_lock("a");
        let _far = voters[2].fault(Fault::Delay { there: ms(1), back: ms(1) });
        voters[..2].iter().for_each(EmbeddedVoter::kill);
        let waiter = tokio::spawn(async move {
            if writes { lock.write().await.map(drop) } else { lock.read().await.map(drop) }
        });
        // The pauses between bids are 20 ms and more, and a bid is over after 2 ms.
        for _ in 0..20 {
            sleep(ms(10)).await;
            assert_eq!(without_fences(voters[2].keys()), [""; 0], "writes: {writes}");
        }
        assert!(voters[2].runs("rw/acquire") > 2, "writes: {writes}");
        waiter.abort();
    }
}
