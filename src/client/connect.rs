//! From addresses to a client that a majority answers.

use std::{collections::BTreeSet, panic, sync::Arc, time::Duration};

use futures::{
    future::join_all,
    stream::{FuturesUnordered, StreamExt},
};
use tokio::{runtime::Handle, task::JoinSet};

use super::{
    Builder,
    voters::{Origin, read_voters},
};
use crate::{
    acquire::{Coordinator, Panel, VoterListener, Wakeups},
    client_thread,
    clock::{self, Clock, Moment},
    log, metric,
    proto::{Cause, ClientName, Error, Kind, Rounded, Verdict},
    settings::Settings,
    voter::{Identity, Outcome, Standings, Voter, VoterEvents, VoterLayout, VoterStanding},
};

/// Pause between two questions to a voter that does not say who it is.
// A voter without a connection fails at once: without a pause, asking again would fill a core.
const PAUSE: Duration = Duration::from_millis(20);
/// How often voters that seem too far away are asked again, at least.
const QUESTIONS: usize = 3;

/// Connects on the thread of the clients, or on the runtime that the builder names. A client of
/// embedded voters connects on the caller's runtime, in whose time they live.
pub(super) async fn connect(builder: Builder) -> Result<Arc<Coordinator>, Error> {
    let Builder { voters, replaced, security, mut settings, seed, clock, runtime } = builder;
    settings.check()?;
    let (origins, layout) = read_voters(&voters, replaced.as_ref(), &security)?;
    let replicas = settings.replica_acks.replicas;
    if let Some(Origin { label, .. }) = origins.iter().find(|it| it.is_inside && replicas > 0) {
        // Its grants would count though no replica has acknowledged them.
        return Err(Error::invalid(format!(
            "voter {label} is inside the process and has no replicas, but {replicas} must \
             acknowledge each grant"
        )));
    }
    // Voters inside the process have no other clients than this process. So a client that has only
    // such voters may live in the runtime's time, or in its machine's, and needs neither a name nor
    // a voter configuration: then a simulation repeats itself.
    let is_inside = origins.iter().all(|origin| origin.is_inside);
    let clock = match clock {
        #[cfg(feature = "embedded")]
        asked if is_inside => asked.unwrap_or_else(Clock::tokio),
        None if seed.is_none() => Clock::System,
        // Two clients with one seed have the same hold ids: a server would say "granted" to the
        // second for the vote of the first, which breaks law 1.
        _ => return Err(Error::invalid("a client with servers takes no seed and no machine")),
    };
    let named = settings.client_name()?;
    let name = named.or_else(|| (!is_inside).then(ClientName::of_this_process));
    settings.only_looks |= is_inside && settings.configuration.is_none();
    settings.in_cluster = layout.spread.contains(&true);
    check_timers(runtime.as_ref())?;
    // Not on the caller's runtime, unless that makes the time: one blocked thread of it could lose
    // a lock (design 2, `a_lock_is_kept_while_threads_of_its_callers_are_blocked`).
    let runtime = match (runtime, Handle::try_current()) {
        (None, Ok(_)) if !matches!(clock, Clock::System) => None,
        (None, _) => Some(client_thread::runtime()?),
        (asked, _) => asked,
    };
    let connecting = connect_here(origins, layout, clock, settings, seed, name);
    let Some(runtime) = runtime else { return connecting.await };
    // Dropping the set aborts its task. With a plain spawn, a caller who gives up would leave
    // connections behind (`connecting_that_is_dropped_leaves_no_connection`).
    let mut there = JoinSet::new();
    there.spawn_on(connecting, &runtime);
    match there.join_next().await.expect("one was spawned") {
        Ok(connected) => connected,
        Err(ended) if ended.is_panic() => panic::resume_unwind(ended.into_panic()),
        Err(_) => Err(Error::closed()),
    }
}

/// Connects on the current runtime.
async fn connect_here(
    origins: Vec<Origin>,
    layout: VoterLayout,
    clock: Clock,
    settings: Settings,
    seed: Option<u64>,
    name: Option<ClientName>,
) -> Result<Arc<Coordinator>, Error> {
    let wakeups = Arc::<Wakeups>::default();
    let panel = start(&origins, layout, &wakeups, &clock, &settings);
    let due = clock.now() + settings.connect_timeout;
    let identities = identify_voters(&panel, &clock, &settings, due).await?;
    // Only now: a server that is named twice is an error, and its quarantine would only distract.
    panel.standings.log_quarantines();
    check_distance(&panel, &clock, &settings, due).await?;
    for (voter, identity) in panel.voters.iter().zip(&identities) {
        if let Err(why) = identity {
            let (voter, why) = (Arc::clone(voter.label()), why.clone());
            log::report(move || {
                tracing::warn!(%voter, %why, "not reached yet; it is tried again and again");
            });
        }
    }
    let coordinator = Coordinator::new(panel, clock, settings, wakeups, seed, name.as_ref());
    let coordinator = Arc::new(coordinator);
    // Before the client is handed out: one that had compared with no voter held locks beside
    // clients of other voters (design 6,
    // `connecting_goes_on_asking_until_a_majority_has_compared`).
    coordinator.join_configuration(due).await?;
    Ok(coordinator)
}

/// Fails if the runtime of the caller, or the one that the builder names, has no timer.
fn check_timers(asked: Option<&Handle>) -> Result<(), Error> {
    // Tokio panics at the first sleep on such a runtime: with servers that would be the first call
    // that waits for a lock, long after the program started.
    let current = Handle::try_current().ok();
    match asked.into_iter().chain(&current).find(|runtime| !clock::has_timer(runtime)) {
        Some(_) => Err(Error::invalid(
            "this tokio runtime has no timer, by which calls wait and leases end: build it with \
             `enable_time` or `enable_all`",
        )),
        None => Ok(()),
    }
}

/// Starts the tasks of all voters, on the current runtime.
fn start(
    origins: &[Origin],
    layout: VoterLayout,
    wakeups: &Arc<Wakeups>,
    clock: &Clock,
    settings: &Settings,
) -> Panel {
    metric::describe();
    let quorum = layout.quorum;
    let shares_a_cluster =
        layout.clusters.iter().collect::<BTreeSet<_>>().len() < layout.clusters.len();
    let standings =
        Standings::new(layout, clock.clone(), settings.suspicion(), settings.configuration(quorum));
    let voters = origins.iter().enumerate().map(|(voter, origin)| {
        let (wakeups, standings) = (Arc::clone(wakeups), Arc::clone(&standings));
        let seen = VoterStanding { voter, standings: Arc::clone(&standings) };
        let listener: Arc<dyn VoterEvents> = Arc::new(VoterListener { voter, wakeups, standings });
        let node = (origin.start)(listener, clock, settings);
        Voter::spawn(Arc::clone(&origin.label), node, clock, settings.batch_size, seen)
    });
    let panel = Panel::new(voters.collect(), quorum, Arc::clone(&standings), shares_a_cluster);
    // Of each set by itself: three old voters and three new ones are no even number.
    for (_, set) in quorum.each().filter(|(_, set)| set.len().is_multiple_of(2)) {
        let voters = set.len();
        log::report(move || {
            tracing::warn!(
                voters,
                "an even number of voters survives no more failures than one voter fewer"
            );
        });
    }
    panel
}

/// Asks all voters who they are, until a majority has answered and the others had their chance.
async fn identify_voters(
    panel: &Panel,
    clock: &Clock,
    settings: &Settings,
    due: Moment,
) -> Result<Vec<Outcome<Identity>>, Error> {
    let started = clock.now();
    let mut identities: Vec<Outcome<Identity>> =
        panel.voters.iter().map(|_| Err(Cause::TimedOut(settings.connect_timeout))).collect();
    let ask = |voter: usize, first: bool| async move {
        if !first {
            clock.sleep(PAUSE).await;
        }
        (voter, first, panel.voters[voter].identify().await)
    };
    let mut asked: FuturesUnordered<_> =
        (0..identities.len()).map(|voter| ask(voter, true)).collect();
    let mut grace: Option<Moment> = None;
    let mut untried = identities.len();
    loop {
        let until = grace.map_or(due, |grace| grace.min(due));
        tokio::select! {
            // An answer that is there counts, although the time is over at the same moment.
            biased;
            Some((voter, first, outcome)) = asked.next() => {
                untried -= usize::from(first);
                if outcome.is_err() {
                    asked.push(ask(voter, false));
                }
                identities[voter] = outcome;
                // At each answer: two of three votes of one server would be a majority.
                check_twins(panel, &identities)?;
            }
            () = clock.sleep_until(until) => untried = 0,
        }
        if panel.quorum.reached(|voter| identities[voter].is_ok()) {
            // A voter is in quarantine if it is younger than another one (guarantee 4, `young`). So
            // if one that answered is young, the others matter, and each answers or fails within a
            // second. Without that wait, three of five voters that lost their data would count
            // until the other two answer.
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
            let verdict = |identity| match identity {
                Ok(_) => Verdict::Reached,
                Err(cause) => Verdict::Unknown(cause),
            };
            let verdicts = identities.into_iter().map(verdict).collect();
            let (needed, after) = (panel.quorum.needed(), clock.now().since(started));
            return Err(Error::new(Kind::Connect { needed, after }, panel.report(verdicts)));
        }
    }
}

/// Whether so many voters name what only an operator can change that the others are no majority.
fn is_hopeless(panel: &Panel, identities: &[Outcome<Identity>]) -> bool {
    // A password that is wrong everywhere is reported at once, and not after the connect timeout.
    panel.quorum.missed(|voter| match &identities[voter] {
        Err(Cause::Unreachable(why)) => why.needs_an_operator(),
        _ => false,
    })
}

/// Fails if two voters are one server.
fn check_twins(panel: &Panel, identities: &[Outcome<Identity>]) -> Result<(), Error> {
    // Only the run id: the rest of an identity changes from one question to the next.
    let run_id = |voter: usize| identities[voter].as_ref().ok().map(|one| &*one.run_id);
    // Voters of one cluster in two sets may be on one server: their keys differ, and so their
    // votes.
    let are_twins = |one: usize, other: usize| {
        run_id(one) == run_id(other) && !panel.standings.are_apart(one, other)
    };
    let mut answered = (0..identities.len()).filter(|voter| run_id(*voter).is_some());
    let twins =
        |other: usize| (0..other).find(|one| are_twins(*one, other)).map(|one| [one, other]);
    let Some(twins) = answered.find_map(twins) else { return Ok(()) };
    // A server that stays may be in both sets, but only under one address: by that a client sees
    // that it is one voter, which is asked once and has a vote in each set.
    let advice = match twins.map(|voter| panel.quorum.side(voter)) {
        [Some(side), Some(also)] if side != also => {
            "; give the server the same address in both sets"
        }
        _ => "",
    };
    let [one, other] = twins.map(|voter| panel.voters[voter].label());
    Err(Error::invalid(format!(
        "voters {one} and {other} are the same server, which has one vote{advice}"
    )))
}

/// Fails if no majority answers within the longest voter deadline.
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
        let Some(majority) = majority.filter(|majority| *majority > most) else {
            return Ok(());
        };
        // A busy machine makes answers slow, so one slow answer proves nothing. All of `due` may
        // have gone into connecting: some questions are asked even then.
        if asked >= QUESTIONS && clock.now() >= due {
            return Err(too_far(majority, most, settings));
        }
        asked += 1;
        clock.sleep(PAUSE).await;
        let questions = panel.voters.iter().map(async |voter| {
            let started = clock.now();
            voter.identify().await.is_ok().then(|| clock.now().since(started))
        });
        // The shortest is nearest to the way itself: load only adds to it.
        for (trip, again) in trips.iter_mut().zip(join_all(questions).await) {
            let shorter = again.map(|again| trip.map_or(again, |trip| trip.min(again)));
            *trip = shorter.or(*trip);
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
