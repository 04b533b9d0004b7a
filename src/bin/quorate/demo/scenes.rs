//! What happens, one scene after the other. Each sentence is checked before it is said.

use std::time::Duration;

use quorate::{
    FenceGate, MutexGuard,
    embedded::{EmbeddedVoter, Fault},
};
use tokio::{task::JoinHandle, time};

use super::stage::{LEASE, LOCK, Stage, check};
use crate::{
    clock,
    exit::{Code, Failure},
    frame::Short,
};

type Scene<T> = Result<T, Failure>;

pub(super) async fn play(stage: &Stage) -> Scene<()> {
    let guard = votes(stage).await?;
    let guard = a_voter_dies(stage, guard).await?;
    let guard = the_queue(stage, guard).await?;
    let guard = a_voter_forgets(stage, guard).await?;
    a_token_is_refused(stage, guard).await?;
    stage.title("That was all");
    stage.tell("on servers: `quorate run NAME -- CMD` holds a lock while a command runs").await
}

async fn votes(stage: &Stage) -> Scene<MutexGuard> {
    stage.title("Votes");
    stage.tell("five voters, and the clients Ada, Ben and Cleo. Ada asks for the lock").await?;
    for (place, voter) in (1..).zip(&stage.voters) {
        let there = Duration::from_millis(50) * place;
        let late = Fault::Delay { there, back: Duration::ZERO };
        voter.fault_each(move |sent| {
            // The votes; nobody else asks for locks now.
            let is_vote = sent.script().is_some_and(|script| script.ends_with("/acquire"));
            if is_vote { vec![late] } else { Vec::new() }
        });
    }
    let asked = clock::now();
    let guard = stage.ada.fair_mutex(LOCK).lock().await?;
    let took = clock::now().saturating_sub(asked);
    check(guard.votes() >= 3, "three votes")?;
    let token = guard.token();
    let text =
        format!("three votes came within {}: Ada has the lock, and token {token}", Short(took));
    stage.tell(&text).await?;
    stage.eventually("all five vote", async || votes_of(stage, &guard).await == 5).await?;
    stage.voters.iter().for_each(|voter| voter.fault_each(|_| Vec::new()));
    stage.tell("the others have voted too; she needs three only").await?;
    Ok(guard)
}

async fn a_voter_dies(stage: &Stage, guard: MutexGuard) -> Scene<MutexGuard> {
    stage.title("A voter dies");
    stage.voters[2].kill();
    stage.tell("voter 3 is killed").await?;
    time::sleep(LEASE + LEASE / 4).await;
    check(guard.is_held() && votes_of(stage, &guard).await == 4, "four voters renew")?;
    let text =
        "more than a lease of 3s has passed: the other four renewed it, and Ada still has it";
    stage.tell(text).await?;
    check(stage.ben.fair_mutex(LOCK).try_lock().await?.is_none(), "nobody else gets in")?;
    stage.tell("Ben asks, and cannot have it").await?;
    Ok(guard)
}

async fn the_queue(stage: &Stage, guard: MutexGuard) -> Scene<MutexGuard> {
    stage.title("The queue");
    let wait = |client: &quorate::Quorate| {
        let mutex = client.fair_mutex(LOCK);
        tokio::spawn(async move {
            let guard = mutex.lock().await;
            (guard, clock::now())
        })
    };
    let stand = async |count: usize| {
        let stands = async || matches!(stage.look().await, Ok(it) if it.queue().len() == count);
        stage.eventually("they stand in the queue", stands).await
    };
    let ben = wait(&stage.ben);
    stand(1).await?;
    stage.tell("Ben waits").await?;
    let cleo = wait(&stage.cleo);
    stand(2).await?;
    stage.tell("Cleo waits behind him: the voters keep the order").await?;
    let released = clock::now();
    guard.release().await?;
    let (guard, taken) = turn(ben).await?;
    let took = Short(taken.saturating_sub(released));
    stage.tell(&format!("Ada releases; {took} later Ben has it")).await?;
    check(!cleo.is_finished(), "Cleo comes after him")?;
    stage.voters[2].restart();
    let released = clock::now();
    guard.release().await?;
    let (guard, taken) = turn(cleo).await?;
    let took = Short(taken.saturating_sub(released));
    stage.tell(&format!("voter 3 is back, Ben releases; {took} later Cleo has it")).await?;
    Ok(guard)
}

async fn a_voter_forgets(stage: &Stage, guard: MutexGuard) -> Scene<MutexGuard> {
    stage.title("A voter forgets");
    stage.eventually("all five vote", async || votes_of(stage, &guard).await == 5).await?;
    stage.voters[4].restart_empty();
    stage.tell("voter 5 restarts without its data: its vote for Cleo is gone").await?;
    stage.eventually("it votes again", async || stage.has_vote(4, guard.hold()).await).await?;
    check(guard.is_held(), "it was held all along")?;
    stage.tell("Cleo's client has seen it, and got the vote back at once").await?;
    let seen = stage.ben.fair_mutex(LOCK).inspect().await?;
    if let Some(quarantine) = seen.voters[4].quarantine {
        stage.tell(&format!("for Ben voter 5 does not count: {quarantine}")).await?;
    }
    Ok(guard)
}

async fn a_token_is_refused(stage: &Stage, guard: MutexGuard) -> Scene<()> {
    stage.title("A token is refused");
    let silent = clock::now();
    stage.voters[..3].iter().for_each(EmbeddedVoter::stop);
    guard.lost().await;
    let took = clock::now().saturating_sub(silent);
    check(!guard.is_held() && took <= LEASE, "it is lost at its deadline")?;
    let took = Short(took);
    let text =
        format!("voters 1 to 3 fell silent: {took} later Cleo is told that her lock is lost");
    stage.voters[..3].iter().for_each(EmbeddedVoter::resume);
    stage.tell(&text).await?;
    let next = stage.ada.fair_mutex(LOCK).lock().await?;
    let (late, token) = (guard.token(), next.token());
    check(late < token, "tokens grow")?;
    stage.tell(&format!("they are back, and Ada has the lock, with token {token}")).await?;
    let gate = FenceGate::new();
    check(gate.check(LOCK, token).is_ok(), "the latest token passes")?;
    let Err(stale) = gate.check(LOCK, late) else { return check(false, "a late write is refused") };
    let text = format!("Ada has written. What Cleo still sends is refused: {stale}");
    stage.tell(&text).await?;
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

async fn votes_of(stage: &Stage, guard: &MutexGuard) -> usize {
    let Ok(seen) = stage.look().await else { return 0 };
    let holders = seen.voters.into_iter().filter_map(|view| view.holder.ok().flatten());
    holders.filter(|holder| holder.hold == *guard.hold()).count()
}
