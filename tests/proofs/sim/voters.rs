//! The voters of a schedule, the ways to them, and what is seen of them.

use std::sync::{
    Mutex, Weak,
    atomic::{AtomicBool, Ordering},
};

use quorate::embedded::{Fault, Sent};
use rand::{SeedableRng, rngs::StdRng};

use crate::sim::{
    amnesia::Cause,
    laws::{self},
    prelude::*,
    steps,
};

/// Hundreds of times as many as usual: somebody asks without a pause.
const MOST_SCRIPTS: u64 = 30_000;

/// What a voter says that is full.
pub(crate) const OUT_OF_MEMORY: &str = "OOM ";

/// What a voter says that has no permit left behind those that others gave.
const NO_PERMIT: &str = "no permit is free behind";

/// Deletes all data in place, and leaves no sign of it: as a flush is for as long as no client has
/// looked.
pub(crate) fn delete_all(voter: &EmbeddedVoter) {
    for key in voter.keys() {
        // One that is dead has nobody to ask, and goes on expiring.
        let _ = voter.command(&["DEL", &key]);
    }
}

/// The ways between clients and voters.
#[derive(Default)]
pub(crate) struct Ways {
    /// From now on nothing goes wrong by chance.
    pub(crate) healed: AtomicBool,
    /// Who cannot reach which voter.
    pub(crate) cut_off: Mutex<BTreeSet<(String, usize)>>,
    /// The voters that have no room in memory.
    pub(crate) full: Mutex<BTreeSet<usize>>,
    /// Each voter's way, once that is fixed.
    pub(crate) fixed: Mutex<Option<Vec<Way>>>,
}

/// What a voter's way takes there and back; `None`: nothing arrives.
pub(crate) type Way = Option<(Duration, Duration)>;

/// Makes the voters, with their clocks and their faults.
pub(crate) fn make(plan: &Plan, ways: &Arc<Ways>) -> Vec<EmbeddedVoter> {
    let voter = |number: usize| {
        let voter = EmbeddedVoter::new(format!("v{number}"));
        // Whatever starts again is younger than those that do not.
        voter.set_uptime(Duration::from_hours(24));
        voter.jump_clock(plan.voters[number].clock_ahead_ms * 1_000);
        voter.set_clock_rate(plan.voters[number].clock_ppm);
        // As ten seconds are to thirty.
        voter.look_every(Duration::from_millis(plan.longest_lease_ms() / 3));
        let [mut asked, mut looked] = [1_000, 2_000].map(|part| chance(plan, part + number));
        let (plan, ways) = (plan.clone(), Arc::clone(ways));
        voter.fault_each(move |sent| {
            // Beside what is drawn for requests, so that a look moves none of it.
            let chance = if sent.is_look() { &mut looked } else { &mut asked };
            ways.faults(&plan, number, sent, chance)
        });
        voter
    };
    (0..plan.voters.len()).map(voter).collect()
}

/// A source of chance of its own for every part of a schedule: what one draws moves no other.
pub(crate) fn chance(plan: &Plan, part: usize) -> StdRng {
    let part = u64::try_from(part).unwrap_or(u64::MAX);
    StdRng::seed_from_u64(plan.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ part)
}

impl Ways {
    fn faults(
        &self,
        plan: &Plan,
        voter: usize,
        sent: &Sent<'_>,
        chance: &mut StdRng,
    ) -> Vec<Fault> {
        if let Some(fixed) = &*locked(&self.fixed) {
            let delay = |(there, back)| Fault::Delay { there, back };
            let is_cut_off = locked(&self.cut_off).contains(&(sent.client().to_owned(), voter));
            let way = fixed[voter].filter(|_| !is_cut_off);
            return vec![way.map_or(Fault::DropRequests, delay)];
        }
        let network = &plan.network;
        let mut way = |longest_ms: u64| Duration::from_millis(chance.random_range(0..=longest_ms));
        let usual = Fault::Delay { there: way(network.usual_ms), back: way(network.usual_ms) };
        if self.healed.load(Ordering::Relaxed) || !plan.voters[voter].troubled {
            return vec![usual];
        }
        let mut faults = vec![usual];
        if locked(&self.cut_off).contains(&(sent.client().to_owned(), voter)) {
            faults.push(Fault::DropRequests);
        }
        if locked(&self.full).contains(&voter) {
            faults.push(Fault::NoRoom);
        }
        // A subscription is not lost alone: its connection breaks.
        let single = u32::from(sent.script().is_some() || sent.is_message());
        let mut happens = |ppm: u32| chance.random_ratio(ppm, 1_000_000);
        for (ppm, fault) in [
            (single * network.lost_request_ppm, Fault::DropRequests),
            (single * network.lost_reply_ppm, Fault::DropReplies),
            (network.cut_before_ppm, Fault::CutBeforeRun),
            (network.cut_after_ppm, Fault::CutAfterRun),
            (network.twice_ppm, Fault::RunTwice),
        ] {
            if happens(ppm) {
                faults.push(fault);
            }
        }
        if happens(network.tail_ppm) {
            let mut part = || {
                let longest_ms = chance.random_range(0..=network.tail_ms);
                Duration::from_millis(chance.random_range(0..=longest_ms))
            };
            faults.push(Fault::Delay { there: part(), back: part() });
        }
        faults
    }
}

/// Shows every script that runs to the laws and to the trace.
pub(crate) fn observe(world: &Arc<World>, ways: &Arc<Ways>) {
    for (number, voter) in world.voters.iter().enumerate() {
        let (world, ways) = (Arc::downgrade(world), Arc::clone(ways));
        let before = Mutex::new((0, Vec::new()));
        voter.observe(move |run| {
            if let Some(world) = Weak::upgrade(&world) {
                if world.counts_script() > MOST_SCRIPTS {
                    let what = "the voters are asked without end".into();
                    world.breach(Law::AnswersInTime, None, what);
                    // Or the schedule would not end either.
                    *locked(&ways.fixed) = Some(vec![None; world.voters.len()]);
                }
                seen(&world, number, run, &mut locked(&before));
            }
        });
    }
}

/// `before`: when the last script ran, and the records after it.
fn seen(world: &World, voter: usize, run: &Ran<'_>, before: &mut (u64, Vec<Record>)) {
    let after = run.records();
    let now_ms = world.now_ms();
    note(world, voter, run);
    remember(world, voter, run);
    steps::ran(world, voter, run);
    if let Ok((-1, _, message)) = run.answer()
        && !message.starts_with(OUT_OF_MEMORY)
        && !message.starts_with(NO_PERMIT)
    {
        let what = format!("{} failed: {message}", run.script());
        world.breach(Law::NoPanic, None, what);
    }
    for record in after.iter().filter(|record| record.left_ms.is_none()) {
        laws::leaks::no_expiry(world, voter, record);
    }
    laws::order::ran(world, voter, run, &before.1, &after);
    laws::leaders::ran(world, voter, run);
    let steady = world.is_steady(voter, before.0);
    laws::firings::ran(world, voter, run, steady, (&before.1, &after));
    laws::leaks::ended(world, voter, run, &after);
    if steady {
        let elapsed = Duration::from_millis(now_ms - before.0);
        laws::once::ran(world, run, &before.1, &after);
        laws::renewal::ran(world, voter, run, (&before.1, elapsed), &after);
        laws::renewal::refused(world, voter, run, (&before.1, elapsed));
    }
    *before = (now_ms, after);
    world.changed.notify_one();
}

/// What the run means for the promise.
fn remember(world: &World, voter: usize, run: &Ran<'_>) {
    let mut ledger = locked(&world.ledger);
    let Some(hold) = run.arg("hold") else { return };
    match run.script() {
        script if votes(script) => {
            if ledger.wild.contains(&voter) {
                ledger.amnesia.loses(voter, Cause::Unseen, hold, world.now_ms());
            }
            if let Some(lease_ms) = run.arg("lease_ms").and_then(|lease| lease.parse().ok()) {
                ledger.asked(hold, lease_ms);
            }
            // What a hold was given before, and the voter forgot, it has passed on.
            if let (Ok((1, ..)), Some(former)) = (run.answer(), run.arg("former")) {
                ledger.amnesia.gives_back(voter, former);
            }
        }
        script if script.ends_with("/force_release") => {
            ledger.forced.insert(hold.to_owned());
            ledger.amnesia.gives_back(voter, hold);
        }
        script if script.ends_with("/release") && run.arg("count") == Some("0") => {
            ledger.amnesia.gives_back(voter, hold);
        }
        _ => {}
    }
}

/// Whether a script may give its voter's vote to a hold.
fn votes(script: &str) -> bool {
    ["/acquire", "/renew", "/pass"].iter().any(|end| script.ends_with(end))
}

fn note(world: &World, voter: usize, run: &Ran<'_>) {
    // Votes go back to a parked hold for the client that made it.
    let is_new = run.script().ends_with("/acquire")
        || run.script() == "mutex/pass" && run.arg("floor") != Some("");
    if let Some(hold) = run.arg("hold").filter(|_| is_new) {
        world.introduce(hold, run.client());
    }
    world.note(&format!("v{voter}"), || {
        let args: Vec<&str> = run.args().map(|(_, arg)| arg).collect();
        let again = if run.again() { " again" } else { "" };
        let answer = match run.answer() {
            Ok((code, ms, id)) => format!("{code}, {ms} ms {id} {:?}", run.more()),
            Err(message) => format!("error: {message}"),
        };
        let key = run.keys().next().unwrap_or_default();
        format!("{}{again} {key} {} for {} -> {answer}", run.script(), args.join(" "), run.client())
    });
}
