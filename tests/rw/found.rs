//! Schedules that broke a law or a promise; each test's name is the claim.

use quorate::embedded;

use crate::{
    fixture::Fixture,
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
