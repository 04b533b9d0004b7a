//! From addresses to a client that a majority answers.

use std::{collections::BTreeSet, panic, sync::Arc, time::Duration};

use futures::{
    future::join_all,
    stream::{FuturesUnordered, StreamExt},
};
use tokio::{runtime::Handle, task::JoinSet};

use super::{
    Builder,
    voters::{ConfiguredVoters, Origin},
};
use crate::{
    acquire::{Coordinator, Panel, VoterListener, Wakeups},
    client_thread,
    clock::{self, Clock, Moment},
    log, metric,
    proto::{Cause, ClientName, Error, Kind, Rounded, Verdict},
    settings::Settings,
    voter::{Identity, Outcome, Seen, Standings, Voter, VoterEvents, VoterLayout},
};

/// Pause between two questions to a voter that does not say who it is.
const PAUSE: Duration = Duration::from_millis(20);
/// How often voters that seem too far away are asked again, at least.
const QUESTIONS: usize = 3;

/// Servers are connected to on the thread of the clients, or on the runtime that was asked for;
/// voters inside the process, whose time the caller's runtime may make, on that.
pub(super) async fn connect(builder: Builder) -> Result<Arc<Coordinator>, Error> {
    let Builder { voters, replaced, security, mut settings, seed, clock, runtime } = builder;
    settings.check()?;
    let ConfiguredVoters { origins, quorum, clusters } =
        ConfiguredVoters::check(&voters, replaced.as_ref(), &security)?;
    let replicas = settings.replica_acks.replicas;
    if let Some(Origin { label, .. }) = origins.iter().find(|it| it.is_inside && replicas > 0) {
        return Err(Error::invalid(format!(
            "voter {label} is inside the process and has no replicas, but {replicas} must \
             acknowledge each grant"
        )));
    }
    // Voters inside the process are nobody else's. A client that has only such lives in the
    // runtime's time, or in that of the machine which it was put on, and needs neither a name nor a
    // configuration: then a simulation repeats itself.
    let is_inside = origins.iter().all(|origin| origin.is_inside);
    let clock = match clock {
        #[cfg(feature = "embedded")]
        asked if is_inside => asked.unwrap_or_else(Clock::tokio),
        None if seed.is_none() => Clock::System,
        _ => return Err(Error::invalid("a client with servers takes no seed and no machine")),
    };
    let named = settings.client_name()?;
    let name = named.or_else(|| (!is_inside).then(ClientName::of_this_process));
    settings.only_looks |= is_inside && settings.configuration.is_none();
    let spread: Vec<bool> = origins.iter().map(|origin| origin.is_of_a_cluster).collect();
    settings.in_cluster = spread.contains(&true);
    let shares_a_cluster = clusters.iter().collect::<BTreeSet<_>>().len() < clusters.len();
    let labels = origins.iter().map(|origin| Arc::clone(&origin.label)).collect();
    let layout = VoterLayout { labels, clusters, spread, quorum };
    check_timers(runtime.as_ref())?;
    let runtime = match (runtime, Handle::try_current()) {
        (None, Ok(_)) if !matches!(clock, Clock::System) => None,
        (None, _) => Some(client_thread::runtime()?),
        (asked, _) => asked,
    };
    let connecting = async move {
        let wakeups = Arc::<Wakeups>::default();
        let panel = start(&origins, layout, &wakeups, &clock, &settings, shares_a_cluster);
        let due = clock.now() + settings.connect_timeout;
        let reach = Reach { panel: &panel, clock: &clock, settings: &settings };
        let identities = reach.meet(due).await?;
        panel.standings.speak();
        reach.check_distance(due).await?;
        for (voter, identity) in panel.voters.iter().zip(&identities) {
            if let Err(why) = identity {
                let (voter, why) = (Arc::clone(voter.label()), why.clone());
                log::tell(move || {
                    tracing::warn!(%voter, %why, "not reached yet; it is tried again and again");
                });
            }
        }
        let coordinator = Coordinator::new(panel, clock, settings, wakeups, seed, name.as_ref());
        let coordinator = Arc::new(coordinator);
        coordinator.join_configuration(due).await?;
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

/// Fails where calls would wait, or the client would live, on a runtime that has no timer.
fn check_timers(asked: Option<&Handle>) -> Result<(), Error> {
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
    shares_a_cluster: bool,
) -> Panel {
    metric::describe();
    let quorum = layout.quorum;
    let standings =
        Standings::new(layout, clock.clone(), settings.suspicion(), settings.configuration(quorum));
    let voters = origins.iter().enumerate().map(|(voter, origin)| {
        let (wakeups, standings) = (Arc::clone(wakeups), Arc::clone(&standings));
        let seen = Seen { voter, standings: Arc::clone(&standings) };
        let listener: Arc<dyn VoterEvents> = Arc::new(VoterListener { voter, wakeups, standings });
        let node = (origin.start)(listener, clock, settings);
        Voter::spawn(Arc::clone(&origin.label), node, clock, settings.batch_size, seen)
    });
    let panel = Panel::new(voters.collect(), quorum, Arc::clone(&standings), shares_a_cluster);
    for (_, set) in quorum.each().filter(|(_, set)| set.len().is_multiple_of(2)) {
        let voters = set.len();
        log::tell(move || {
            tracing::warn!(
                voters,
                "an even number of voters survives no more failures than one voter fewer"
            );
        });
    }
    panel
}

/// Whether a majority answers, and soon enough.
struct Reach<'a> {
    panel: &'a Panel,
    clock: &'a Clock,
    settings: &'a Settings,
}

impl Reach<'_> {
    /// Asks all voters who they are, until a majority has said so and the others have had their
    /// chance.
    async fn meet(&self, due: Moment) -> Result<Vec<Outcome<Identity>>, Error> {
        let Self { panel, clock, settings } = *self;
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
                biased;
                Some((voter, first, outcome)) = asked.next() => {
                    untried -= usize::from(first);
                    if outcome.is_err() {
                        asked.push(ask(voter, false));
                    }
                    identities[voter] = outcome;
                    self.check_twins(&identities)?;
                }
                () = clock.sleep_until(until) => untried = 0,
            }
            if panel.quorum.reached(|voter| identities[voter].is_ok()) {
                // Those that have not had their data for long may be younger than one that is not
                // met yet: then it matters whether it has. It is met, or fails to be, within a
                // second.
                let longest = settings.suspicion().longest;
                let forgets = |one: &Identity| one.birth.is_some() || !one.durable;
                let young = |one: &Identity| one.age < longest && forgets(one);
                if !identities.iter().flatten().any(young) {
                    grace.get_or_insert(clock.now() + settings.voter_deadline);
                }
                if untried == 0 {
                    return Ok(identities);
                }
            } else if clock.now() >= due || untried == 0 && self.is_hopeless(&identities) {
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

    /// Whether so many voters say what only an operator can change, a wrong password for example,
    /// that the others are no majority.
    fn is_hopeless(&self, identities: &[Outcome<Identity>]) -> bool {
        self.panel.quorum.missed(|voter| match &identities[voter] {
            Err(Cause::Unreachable(why)) => why.needs_an_operator(),
            _ => false,
        })
    }

    /// Fails where two voters are one server. Voters of one cluster in two sets may be: their keys
    /// differ.
    fn check_twins(&self, identities: &[Outcome<Identity>]) -> Result<(), Error> {
        let panel = self.panel;
        // The rest of an identity changes from one question to the next.
        let run_id = |voter: usize| identities[voter].as_ref().ok().map(|one| &*one.run_id);
        let are_twins = |one: usize, other: usize| {
            run_id(one) == run_id(other) && !panel.standings.are_apart(one, other)
        };
        let mut met = (0..identities.len()).filter(|voter| run_id(*voter).is_some());
        let twins =
            |other: usize| (0..other).find(|one| are_twins(*one, other)).map(|one| [one, other]);
        let Some(twins) = met.find_map(twins) else { return Ok(()) };
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

    /// Fails where no majority answers in the time that voters have. Slow answers prove nothing on
    /// a busy machine, so voters that seem too far away are asked again until `due`.
    async fn check_distance(&self, due: Moment) -> Result<(), Error> {
        let Self { panel, clock, settings } = *self;
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
                let shorter = again.map(|again| trip.map_or(again, |trip| trip.min(again)));
                *trip = shorter.or(*trip);
            }
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
