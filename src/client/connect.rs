//! From addresses to a client that a majority answers.

use std::{collections::BTreeSet, panic, sync::Arc, time::Duration};

use futures::{
    future::join_all,
    stream::{FuturesUnordered, StreamExt},
};
use tokio::{runtime::Handle, task::JoinSet};

use super::{
    Builder,
    roll::{self, Roll},
    source::{self, Origin},
};
use crate::{
    acquire::{Coordinator, Panel, VoterEar, Wakeups},
    client_thread,
    clock::{Clock, Moment},
    metric,
    proto::{Cause, Error, Kind, Rounded, Verdict},
    settings::Settings,
    voter::{Cast, Ear, Identity, Outcome, Seen, Standings, needs_an_operator},
};

/// Pause between two questions to a voter that does not say who it is.
const PAUSE: Duration = Duration::from_millis(20);
/// How often voters that seem too far away are asked again, at least.
const QUESTIONS: usize = 3;

/// Servers are connected to on the thread of the clients, or on the runtime that was asked for;
/// voters inside the process, whose time the caller's runtime may make, on that.
pub(super) async fn connect(builder: Builder) -> Result<Arc<Coordinator>, Error> {
    let Builder { voters, replaced, security, settings, seed, clock, runtime } = builder;
    settings.check()?;
    let Roll { origins, quorum, clusters } = roll::roll(&voters, replaced.as_ref(), &security)?;
    source::check_replicas(&origins, settings.replica_acks)?;
    let clock = source::clock(&origins, clock.as_ref())?;
    let name = source::name(&origins, &settings)?;
    let settings = source::with_roster(&origins, settings);
    let spread: Vec<bool> =
        origins.iter().map(|origin| matches!(origin, Origin::Cluster(_))).collect();
    let settings = Settings { in_cluster: spread.contains(&true), ..settings };
    let shares_a_cluster = clusters.iter().collect::<BTreeSet<_>>().len() < clusters.len();
    let labels = origins.iter().map(Origin::label).collect();
    let cast = Cast { labels, clusters, spread, quorum };
    let runtime = match (runtime, Handle::try_current()) {
        (None, Ok(_)) if !matches!(clock, Clock::System) => None,
        (None, _) => Some(client_thread::runtime()?),
        (asked, _) => asked,
    };
    let connecting = async move {
        let wakeups = Arc::<Wakeups>::default();
        let panel = start(&origins, cast, &wakeups, &clock, &settings, shares_a_cluster);
        let due = clock.now() + settings.connect_timeout;
        reach(&panel, &clock, &settings, due).await?;
        let coordinator = Coordinator::new(panel, clock, settings, wakeups, seed, name.as_ref());
        let coordinator = Arc::new(coordinator);
        coordinator.join_roster(due).await?;
        Ok(coordinator)
    };
    let Some(runtime) = runtime else { return connecting.await };
    // Where this is dropped, so is what connects there.
    let mut there = JoinSet::new();
    there.spawn_on(connecting, &runtime);
    match there.join_next().await.expect("one was spawned") {
        Ok(connected) => connected,
        Err(ended) if ended.is_panic() => panic::resume_unwind(ended.into_panic()),
        Err(_) => Err(Error::closed()),
    }
}

/// Starts the tasks of all voters, on the current runtime.
fn start(
    origins: &[Origin],
    cast: Cast,
    wakeups: &Arc<Wakeups>,
    clock: &Clock,
    settings: &Settings,
    shares_a_cluster: bool,
) -> Panel {
    metric::describe();
    let quorum = cast.quorum;
    let standings = Standings::new(cast, clock.clone(), settings.suspicion());
    let voters = origins.iter().enumerate().map(|(voter, origin)| {
        let (wakeups, standings) = (Arc::clone(wakeups), Arc::clone(&standings));
        let seen = Seen { voter, standings: Arc::clone(&standings) };
        let ear: Arc<dyn Ear> = Arc::new(VoterEar { voter, wakeups, standings });
        origin.voter(ear, clock, seen, settings)
    });
    let panel = Panel::new(voters.collect(), quorum, Arc::clone(&standings), shares_a_cluster);
    for (_, set) in quorum.each().filter(|(_, set)| set.len().is_multiple_of(2)) {
        tracing::warn!(
            voters = set.len(),
            "an even number of voters survives no more failures than one voter fewer"
        );
    }
    panel
}

/// Completes when a majority answers soon enough.
async fn reach(
    panel: &Panel,
    clock: &Clock,
    settings: &Settings,
    due: Moment,
) -> Result<(), Error> {
    let identities = meet(panel, clock, settings).await?;
    panel.standings.speak();
    check_distance(panel, clock, settings, due).await?;
    for (voter, identity) in panel.voters.iter().zip(&identities) {
        if let Err(why) = identity {
            let voter = voter.label();
            tracing::warn!(%voter, %why, "not reached yet; it is tried again and again");
        }
    }
    Ok(())
}

/// Fails where no majority answers in the time that voters have. Slow answers prove nothing on a
/// busy machine, so voters that seem too far away are asked again until `due`.
async fn check_distance(
    panel: &Panel,
    clock: &Clock,
    settings: &Settings,
    due: Moment,
) -> Result<(), Error> {
    let most = settings.longest_deadline(settings.lease);
    let voters = 0..panel.voters.len();
    let mut trips: Vec<Option<Duration>> =
        voters.map(|voter| panel.standings.round_trip(voter)).collect();
    let mut asked = 0;
    loop {
        let majority = panel.quorum.lowest(|voter| trips[voter]);
        let Some(majority) = majority.filter(|majority| *majority > most) else { return Ok(()) };
        if asked >= QUESTIONS && clock.now() >= due {
            return Err(too_far(majority, most, settings));
        }
        asked += 1;
        clock.sleep(PAUSE).await;
        let questions = panel.voters.iter().map(async |voter| {
            let started = clock.now();
            voter.identify().await.is_ok().then(|| clock.now().since(started))
        });
        for (trip, again) in trips.iter_mut().zip(join_all(questions).await) {
            *trip = again.map_or(*trip, |again| Some(trip.map_or(again, |trip| trip.min(again))));
        }
    }
}

fn too_far(majority: Duration, most: Duration, settings: &Settings) -> Error {
    let (majority, shown) = (Rounded(majority), Rounded(most));
    let limit = if settings.deadline_is_fixed && most == settings.voter_deadline {
        format!("the voter deadline of {shown}: set a longer `voter_deadline`, or none")
    } else {
        let lease = Rounded(settings.lease);
        format!("{shown}, a tenth of the lease of {lease}: set a longer `lease`")
    };
    let why = format!("a majority of the voters takes {majority} to answer, more than {limit}");
    Error::new(Kind::TooFar(why), Vec::new())
}

/// Asks all voters who they are, until a majority has said so and the others have had their chance.
async fn meet(
    panel: &Panel,
    clock: &Clock,
    settings: &Settings,
) -> Result<Vec<Outcome<Identity>>, Error> {
    let started = clock.now();
    let due = started + settings.connect_timeout;
    let mut identities: Vec<Outcome<Identity>> =
        panel.voters.iter().map(|_| Err(Cause::TimedOut(settings.connect_timeout))).collect();
    let mut asked: FuturesUnordered<_> =
        (0..identities.len()).map(|voter| ask(panel, voter, None)).collect();
    let mut grace: Option<Moment> = None;
    let mut untried = identities.len();
    loop {
        let until = grace.map_or(due, |grace| grace.min(due));
        tokio::select! {
            biased;
            Some((voter, first, outcome)) = asked.next() => {
                untried -= usize::from(first);
                if outcome.is_err() {
                    asked.push(ask(panel, voter, Some(clock.clone())));
                }
                identities[voter] = outcome;
                check_twins(panel, &identities)?;
            }
            () = clock.sleep_until(until) => untried = 0,
        }
        if panel.quorum.reached(|voter| identities[voter].is_ok()) {
            // Those that have not had their data for long may be younger than one that is not met
            // yet: then it matters whether it has. It is met, or fails to be, within a second.
            let longest = settings.suspicion().longest;
            let forgets = |one: &Identity| one.birth.is_some() || !one.durable;
            let young = |one: &Identity| one.age < longest && forgets(one);
            if !identities.iter().flatten().any(young) {
                grace.get_or_insert(clock.now() + settings.voter_deadline);
            }
            if untried == 0 {
                return Ok(identities);
            }
        } else if clock.now() >= due || untried == 0 && is_hopeless(panel, &identities) {
            return Err(unreachable(panel, identities, clock.now().since(started)));
        }
    }
}

/// Whether so many voters say what only an operator can change, a wrong password for example, that
/// the others are no majority.
fn is_hopeless(panel: &Panel, identities: &[Outcome<Identity>]) -> bool {
    panel.quorum.missed(|voter| match &identities[voter] {
        Err(Cause::Unreachable(why)) => needs_an_operator(why),
        _ => false,
    })
}

/// Asks one voter, after a pause where it has been asked before.
async fn ask(
    panel: &Panel,
    voter: usize,
    again: Option<Clock>,
) -> (usize, bool, Outcome<Identity>) {
    if let Some(clock) = &again {
        clock.sleep(PAUSE).await;
    }
    (voter, again.is_none(), panel.voters[voter].identify().await)
}

fn check_twins(panel: &Panel, identities: &[Outcome<Identity>]) -> Result<(), Error> {
    let Some((one, other)) = twins(panel, identities) else { return Ok(()) };
    let advice = match [one, other].map(|voter| panel.quorum.side(voter)) {
        [Some(side), Some(also)] if side != also => {
            "; give the server the same address in both sets"
        }
        _ => "",
    };
    Err(Error::invalid(format!(
        "voters {} and {} are the same server, which has one vote{advice}",
        panel.voters[one].label(),
        panel.voters[other].label()
    )))
}

/// Two voters that are one server. Voters of one cluster in two sets may be: their keys differ.
fn twins(panel: &Panel, identities: &[Outcome<Identity>]) -> Option<(usize, usize)> {
    (0..identities.len()).find_map(|other| {
        let identity = identities[other].as_ref().ok()?;
        let same = |one: &usize| {
            let run_id = identities[*one].as_ref().ok().map(|one| &*one.run_id);
            // The rest of an identity changes from one question to the next.
            run_id == Some(&*identity.run_id) && !panel.standings.are_apart(*one, other)
        };
        let one = (0..other).find(same)?;
        Some((one, other))
    })
}

fn unreachable(panel: &Panel, identities: Vec<Outcome<Identity>>, after: Duration) -> Error {
    let verdicts = identities.into_iter().map(|identity| match identity {
        Ok(_) => Verdict::Reached,
        Err(cause) => Verdict::Unknown(cause),
    });
    let needed = panel.quorum.needed();
    Error::new(Kind::Connect { needed, after }, panel.report(verdicts.collect()))
}
