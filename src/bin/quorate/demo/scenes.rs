//! What happens, one scene after the other. Each sentence is checked before it is said.

use std::time::Duration;

use quorate::{
    FenceGate, MutexGuard,
    embedded::{EmbeddedVoter, Fault},
};
use tokio::{task::JoinHandle, time};

use super::story::{LEASE, LOCK, Story, check};
use crate::{
    clock,
    exit::{Code, Failure},
    frame::Short,
};

type Scene<T> = Result<T, Failure>;

pub(super) async fn play(story: &Story) -> Scene<()> {
    let guard = votes(story).await?;
    let guard = a_voter_dies(story, guard).await?;
    let guard = the_queue(story, guard).await?;
    let guard = a_voter_forgets(story, guard).await?;
    a_token_is_refused(story, guard).await?;
    story.title("That was all");
    story.tell("on servers: `quorate run NAME -- CMD` holds a lock while a command runs").await
}

async fn votes(story: &Story) -> Scene<MutexGuard> {
    story.title("Votes");
    story.tell("five voters, and the clients Ada, Ben and Cleo. Ada asks for the lock").await?;
    for (place, voter) in (1..).zip(&story.voters) {
        let there = Duration::from_millis(50) * place;
        let late = Fault::Delay { there, back: Duration::ZERO };
        voter.fault_each(move |sent| {
            // The votes; nobody else asks for locks now.
            let is_vote = sent.script().is_some_and(|script| script.ends_with("/acquire"));
            if is_vote { vec![late] } else { Vec::new() }
        });
    }
    let asked = clock::now();
    let guard = story.ada.fair_mutex(LOCK).lock().await?;
    let took = clock::now().saturating_sub(asked);
    check(guard.votes() >= 3, "three votes")?;
    let token = guard.token();
    let text =
        format!("three votes came within {}: Ada has the lock, and token {token}", Short(took));
    story.tell(&text).await?;
    story.eventually("all five vote", async || votes_of(story, &guard).await == 5).await?;
    story.voters.iter().for_each(|voter| voter.fault_each(|_| Vec::new()));
    story.tell("the others have voted too; she needs three only").await?;
    Ok(guard)
}

async fn a_voter_dies(story: &Story, guard: MutexGuard) -> Scene<MutexGuard> {
    story.title("A voter dies");
    story.voters[2].kill();
    story.tell("voter 3 is killed").await?;
    time::sleep(LEASE + LEASE / 4).await;
    check(guard.is_held() && votes_of(story, &guard).await == 4, "four voters renew")?;
    let text =
        "more than a lease of 3s has passed: the other four renewed it, and Ada still has it";
    story.tell(text).await?;
    check(story.ben.fair_mutex(LOCK).try_lock().await?.is_none(), "nobody else gets in")?;
    story.tell("Ben asks, and cannot have it").await?;
    Ok(guard)
}

async fn the_queue(story: &Story, guard: MutexGuard) -> Scene<MutexGuard> {
    story.title("The queue");
    let wait = |client: &quorate::Quorate| {
        let mutex = client.fair_mutex(LOCK);
        tokio::spawn(async move {
            let guard = mutex.lock().await;
            (guard, clock::now())
        })
    };
    let stand = async |count: usize| {
        let stands = async || matches!(story.look().await, Ok(it) if it.queue().len() == count);
        story.eventually("they stand in the queue", stands).await
    };
    let ben = wait(&story.ben);
    stand(1).await?;
    story.tell("Ben waits").await?;
    let cleo = wait(&story.cleo);
    stand(2).await?;
    story.tell("Cleo waits behind him: the voters keep the order").await?;
    let released = clock::now();
    guard.release().await?;
    let (guard, taken) = turn(ben).await?;
    let took = Short(taken.saturating_sub(released));
    story.tell(&format!("Ada releases; {took} later Ben has it")).await?;
    check(!cleo.is_finished(), "Cleo comes after him")?;
    story.voters[2].restart();
    let released = clock::now();
    guard.release().await?;
    let (guard, taken) = turn(cleo).await?;
    let took = Short(taken.saturating_sub(released));
    story.tell(&format!("voter 3 is back, Ben releases; {took} later Cleo has it")).await?;
    Ok(guard)
}

async fn a_voter_forgets(story: &Story, guard: MutexGuard) -> Scene<MutexGuard> {
    story.title("A voter forgets");
    story.eventually("all five vote", async || votes_of(story, &guard).await == 5).await?;
    story.voters[4].restart_empty();
    story.tell("voter 5 restarts without its data: its vote for Cleo is gone").await?;
    story.eventually("it votes again", async || story.has_vote(4, guard.hold()).await).await?;
    check(guard.is_held(), "it was held all along")?;
    story.tell("Cleo's client has seen it, and got the vote back at once").await?;
    let seen = story.ben.fair_mutex(LOCK).inspect().await?;
    if let Some(quarantine) = seen.voters[4].quarantine {
        story.tell(&format!("for Ben voter 5 does not count: {quarantine}")).await?;
    }
    Ok(guard)
}

async fn a_token_is_refused(story: &Story, guard: MutexGuard) -> Scene<()> {
    story.title("A token is refused");
    let silent = clock::now();
    story.voters[..3].iter().for_each(EmbeddedVoter::stop);
    guard.lost().await;
    let took = clock::now().saturating_sub(silent);
    check(!guard.is_held() && took <= LEASE, "it is lost at its deadline")?;
    let took = Short(took);
    let text =
        format!("voters 1 to 3 fell silent: {took} later Cleo is told that her lock is lost");
    story.voters[..3].iter().for_each(EmbeddedVoter::resume);
    story.tell(&text).await?;
    let next = story.ada.fair_mutex(LOCK).lock().await?;
    let (late, token) = (guard.token(), next.token());
    check(late < token, "tokens grow")?;
    story.tell(&format!("they are back, and Ada has the lock, with token {token}")).await?;
    let gate = FenceGate::new();
    check(gate.check(LOCK, token).is_ok(), "the latest token passes")?;
    let Err(stale) = gate.check(LOCK, late) else { return check(false, "a late write is refused") };
    let text = format!("Ada has written. What Cleo still sends is refused: {stale}");
    story.tell(&text).await?;
    next.release().await?;
    Ok(())
}

/// Waits for one who waits.
async fn turn(
    waiting: JoinHandle<(Result<MutexGuard, quorate::Error>, Duration)>,
) -> Scene<(MutexGuard, Duration)> {
    let (guard, at) = waiting
        .await
        .map_err(|cause| Failure::new(Code::Software, format!("a client: {cause}")))?;
    Ok((guard?, at))
}

async fn votes_of(story: &Story, guard: &MutexGuard) -> usize {
    let Ok(seen) = story.look().await else { return 0 };
    let holders = seen.voters.into_iter().filter_map(|view| view.holder.ok().flatten());
    holders.filter(|holder| holder.hold == *guard.hold()).count()
}
