//! Several locks at once. They are lost together. Callers that take each of them by turns do not
//! starve a caller that wants them all.

use std::convert::Infallible;

use crate::sim::prelude::*;

/// In alphabetical order. A caller that has failed twice takes them in this order.
const NAMES: [&str; 2] = ["several-1", "several-2"];

pub(crate) async fn measure(calm: &Calm<'_>) {
    if let Err(error) = lose_one(calm).await {
        calm.world.breach(Law::WhatIsTold, None, format!("free locks cannot be had: {error}"));
    }
    sleep(2 * calm.slowest).await;
    want_what_others_take_by_turns(calm).await;
    sleep(2 * calm.slowest).await;
}

/// The voters forget one: the guard says which, and the other is free before the guard is dropped.
async fn lose_one(calm: &Calm<'_>) -> Result<(), Error> {
    let [kept, ended] = NAMES;
    let all = calm.holder.lock_all(NAMES.map(|name| calm.holder.mutex(name)));
    let guard = all.lock().await?;
    sleep(calm.slowest).await;
    for voter in &calm.world.voters {
        voter.command(&["DEL", &format!("quorate:{{{ended}}}")]).expect("it is a command");
    }
    // The next renewal tells.
    let within = Duration::from_millis(LEASE_MS * 101 / 300) + Duration::from_secs(2);
    let lost = timeout(within, guard.lost()).await;
    sleep(2 * calm.slowest).await;
    let other = calm.waiter.mutex(kept).try_lock().await?;
    let is_told = lost.as_ref().is_ok_and(|error| error.lock() == Some(ended));
    if !is_told || guard.is_held() || other.is_none() {
        let what = format!("{ended} of {guard:?} is forgotten: {lost:?}; of the other: {other:?}");
        calm.world.breach(Law::WhatIsTold, None, what);
    }
    Ok(())
}

/// Each is free for a moment at a time, and never both at once for long.
async fn want_what_others_take_by_turns(calm: &Calm<'_>) {
    let hold = 50 * calm.slowest + Duration::from_millis(50);
    let busy = NAMES.map(|name| take_again_and_again(&calm.holder, name, hold));
    let all = calm.waiter.lock_all(NAMES.map(|name| calm.waiter.mutex(name)));
    // For each it waits for those who stand before it, and twice it has one without the other.
    let most = 12 * hold;
    let entered = tokio::select! {
        biased;
        Err(error) = futures::future::try_join_all(busy) => Ok(Err(error)),
        entered = timeout(most, all.lock()) => entered,
    };
    if !matches!(entered, Ok(Ok(_))) {
        let what = format!("both of two locks, held for {hold:?} each, in {most:?}: {entered:?}");
        calm.world.breach(Law::AnswersInTime, None, what);
    }
}

async fn take_again_and_again(
    quorum: &Quorate,
    name: &str,
    hold: Duration,
) -> Result<Infallible, Error> {
    loop {
        let guard = quorum.mutex(name).lock().await?;
        sleep(hold).await;
        guard.release().await?;
    }
}
