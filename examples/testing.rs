//! How do I test that my own code handles a lost lock, a taken lock and a dead server?
//!
//! Hand the client to your code, so that a test can hand over one with embedded voters. With paused
//! time a lease of 30 s ends at once. In your crate, each function `it_..` below is a
//! `#[tokio::test(start_paused = true)]`.
//!
//! `cargo run --example testing` runs the three tests.

use std::time::Duration;

use quorate::embedded::{self, EmbeddedVoter};
use quorate::{Error, Quorate};
use tokio::time::sleep;

/// The code under test: `false` if another process is making the report.
async fn report(quorum: &Quorate) -> Result<bool, Error> {
    let Some(guard) = quorum.mutex("report").try_lock().await? else { return Ok(false) };
    guard.while_held(sleep(Duration::from_secs(600))).await?;
    guard.release().await?;
    Ok(true)
}

async fn client(voters: &[EmbeddedVoter]) -> Result<Quorate, Error> {
    Quorate::builder().embedded(voters).connect().await
}

async fn it_works_with_one_server_down() -> Result<(), Error> {
    let voters = embedded::voters(3);
    let ours = client(&voters).await?;
    voters[0].kill();
    assert!(report(&ours).await?);
    Ok(())
}

async fn it_skips_what_another_process_does() -> Result<(), Error> {
    let voters = embedded::voters(3);
    let (ours, theirs) = (client(&voters).await?, client(&voters).await?);
    let _guard = theirs.mutex("report").lock().await?;
    assert!(!report(&ours).await?);
    Ok(())
}

async fn it_stops_when_the_lock_is_lost() -> Result<(), Error> {
    let voters = embedded::voters(3);
    let ours = client(&voters).await?;
    let (made, ()) = tokio::join!(report(&ours), async {
        sleep(Duration::from_secs(60)).await;
        voters[..2].iter().for_each(EmbeddedVoter::kill);
    });
    assert!(made.unwrap_err().is_lost());
    Ok(())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Error> {
    it_works_with_one_server_down().await?;
    it_skips_what_another_process_does().await?;
    it_stops_when_the_lock_is_lost().await
}
