//! An election, given up at every await: no vote is left, no place in the queue, and no listener.

use std::time::Duration;

use quorate::{Election, Error, Leadership};
use tokio::time::sleep;

use crate::cancel::{
    check,
    scene::{Completed, LEASE, Rivals, Scene, every},
};

const RIVALS: [Rivals; 3] = [Rivals::Nobody, Rivals::Leader, Rivals::CandidateInQueue];

async fn campaign<A>(
    mut scene: Scene,
    campaign: impl Fn(Election) -> A,
) -> Result<Completed, String>
where
    A: Future<Output = Result<Option<Leadership>, Error>>,
{
    let rival = scene.rivals().await;
    let trouble = scene.inflict();
    let completed = scene.give_up(campaign(scene.election())).await;
    scene.leave_if_told();
    sleep(scene.case.trouble.round_trip()).await;
    if scene.case.rivals != Rivals::CandidateInQueue {
        check::nobody_waits(scene.obedient())?;
    }
    scene.expect_nothing(rival, trouble).await.map(|()| completed)
}

#[test]
fn a_campaign_given_up_at_any_await_leaves_nothing() {
    every(&RIVALS, |scene| {
        campaign(scene, async |election| election.campaign("x").await.map(Some))
    });
}

#[test]
fn a_try_to_lead_given_up_at_any_await_leaves_nothing() {
    every(&RIVALS, |scene| campaign(scene, async |election| election.try_campaign("x").await));
    // Shorter than the rival leads.
    let limit = Duration::from_millis(30);
    every(&[Rivals::Leader], |scene| {
        let within =
            move |election: Election| async move { election.campaign_within("x", limit).await };
        campaign(scene, within)
    });
}

async fn led(scene: &Scene) -> Leadership {
    scene.election().campaign("old").await.expect("nobody else is there")
}

#[test]
fn a_resignation_given_up_at_any_await_resigns_all_the_same() {
    every(&[Rivals::Nobody, Rivals::WaitingCandidate], async |mut scene| {
        let leadership = led(&scene).await;
        let rival = scene.waiter().await;
        let trouble = scene.inflict();
        // Never polled, it drops the leadership: that is the drop of one as well.
        let completed = scene.give_up(leadership.resign()).await;
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_proclamation_given_up_at_any_await_leaves_the_lead_with_one_value_on_all_voters() {
    every(&[Rivals::Nobody], async |mut scene| {
        let leadership = led(&scene).await;
        let trouble = scene.inflict();
        let completed = scene.give_up(leadership.proclaim("new")).await;
        sleep(scene.case.trouble.round_trip()).await;
        trouble.heal().await;
        let (voters, hold) = (&scene.voters, leadership.hold());
        let said: &[&str] = if scene.case.polls == 0 { &["old"] } else { &["new"] };
        check::within(LEASE / 2, || check::says(voters, hold, said)).await?;
        if !leadership.is_held() {
            return Err("the lead is lost".into());
        }
        scene.leave_if_told();
        leadership.resign().await.map_err(|error| error.to_string())?;
        let nobody = scene.waiter().await;
        scene.expect_end(nobody).await.map(|()| completed)
    });
}

#[test]
fn a_question_who_leads_given_up_at_any_await_changes_nothing() {
    every(&[Rivals::Nobody, Rivals::Leader], async |mut scene| {
        let rival = scene.rivals().await;
        let trouble = scene.inflict();
        let election = scene.election();
        let completed = scene.give_up(election.leader()).await;
        drop(election);
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}

#[test]
fn an_observation_given_up_at_any_await_leaves_no_listener() {
    every(&[Rivals::Nobody, Rivals::Leader], async |mut scene| {
        let rival = scene.rivals().await;
        let trouble = scene.inflict();
        let mut observer = scene.election().observe();
        let completed = scene.give_up(observer.next()).await;
        drop(observer);
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}
