//! Makes a plan that breaks a law smaller, as long as it still breaks it.

use crate::sim::{
    asking::Kind,
    laws::Law,
    plan::{Cancel, Further, How, Lease, Meanwhile, Mood, Network, Plan, Step},
    schedule,
    trace::Verbosity,
};

/// One way to make a plan smaller.
type Cut = Box<dyn Fn(&mut Plan)>;

/// More is not worth the wait: so many scripts take half a minute.
const MOST_SCRIPTS: u64 = 2_000_000;

/// The smallest plan found that breaks the law, and what it was made of.
pub(crate) fn shrink(plan: &Plan, law: Law) -> Plan {
    let mut smallest = plan.clone();
    let mut scripts = 0;
    loop {
        let mut shrunk = false;
        // Those that take away the most come first, and the last of each kind before the first:
        // what happens after the breach is the easiest to do without.
        let count = cuts(&smallest).len();
        for number in (0..count).rev() {
            let Some(cut) = cuts(&smallest).into_iter().nth(number) else { continue };
            let mut candidate = smallest.clone();
            cut(&mut candidate);
            if size(&candidate) >= size(&smallest) {
                continue;
            }
            let outcome = schedule::run(candidate.clone(), Verbosity::Silent);
            if outcome.failure().is_some_and(|breach| breach.law == law) {
                smallest = candidate;
                shrunk = true;
            }
            scripts += outcome.scripts_run;
            if scripts > MOST_SCRIPTS {
                return smallest;
            }
        }
        if !shrunk {
            return smallest;
        }
    }
}

/// How much there is to read in a plan.
fn size(plan: &Plan) -> usize {
    let steps = plan.clients.iter().flat_map(|client| client.tasks.iter().flatten());
    let network = plan.network;
    let chances = [
        network.tail_ppm,
        network.lost_request_ppm,
        network.lost_reply_ppm,
        network.cut_before_ppm,
        network.cut_after_ppm,
        network.twice_ppm,
    ];
    let clocks = plan.clients.iter().filter(|client| client.clock_ppm != 0).count()
        + plan.voters.iter().filter(|voter| voter.clock_ppm != 0).count()
        + plan.voters.iter().filter(|voter| voter.clock_ahead_ms != 0).count()
        + plan.clients.iter().filter(|client| client.wall_ahead_ms != 0).count();
    let closed = plan.clients.iter().filter(|client| client.closes).count();
    steps.map(size_of_step).sum::<usize>()
        + 20 * plan.troubles.len()
        + 10 * chances.iter().filter(|ppm| **ppm > 0).count()
        + clocks
        + closed
}

fn size_of_step(step: &Step) -> usize {
    10 + usize::from(step.pause_ms > 0)
        + usize::from(step.kind != Kind::Plain)
        + usize::from(step.owner.is_some())
        + usize::from(step.lease != Lease::Default)
        + usize::from(step.how != How::Wait)
        + usize::from(step.cancel != Cancel::Never)
        + usize::from(step.further != Further::Nothing)
        + usize::from(step.meanwhile != Meanwhile::Sleep(0))
}

fn cuts(plan: &Plan) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    for (client, tasks) in plan.clients.iter().map(|client| &client.tasks).enumerate() {
        for (task, steps) in tasks.iter().enumerate() {
            for step in 0..steps.len() {
                cuts.extend(cuts_of_step(move |plan, change| {
                    if let Some(step) = plan.clients[client].tasks[task].get_mut(step) {
                        change(step);
                    }
                }));
            }
            for step in 0..steps.len() {
                cuts.push(Box::new(move |plan| {
                    let steps = &mut plan.clients[client].tasks[task];
                    if step < steps.len() {
                        steps.remove(step);
                    }
                }));
            }
            cuts.push(Box::new(move |plan| plan.clients[client].tasks[task].clear()));
        }
        cuts.push(Box::new(move |plan| plan.clients[client].clock_ppm = 0));
        cuts.push(Box::new(move |plan| plan.clients[client].wall_ahead_ms = 0));
        cuts.push(Box::new(move |plan| plan.clients[client].closes = false));
        // Its number stays another's business.
        cuts.push(Box::new(move |plan| plan.clients[client].tasks.clear()));
    }
    cuts.push(Box::new(|plan| plan.voters.iter_mut().for_each(|voter| voter.clock_ppm = 0)));
    cuts.push(Box::new(|plan| plan.voters.iter_mut().for_each(|voter| voter.clock_ahead_ms = 0)));
    for calm in [
        |network: &mut Network| network.tail_ppm = 0,
        |network: &mut Network| network.lost_request_ppm = 0,
        |network: &mut Network| network.lost_reply_ppm = 0,
        |network: &mut Network| network.cut_before_ppm = 0,
        |network: &mut Network| network.cut_after_ppm = 0,
        |network: &mut Network| network.twice_ppm = 0,
    ] {
        cuts.push(Box::new(move |plan| calm(&mut plan.network)));
    }
    // Other laws hold in another mood: it stays.
    if plan.mood != Mood::Calm {
        for trouble in 0..plan.troubles.len() {
            cuts.push(Box::new(move |plan| {
                if trouble < plan.troubles.len() {
                    plan.troubles.remove(trouble);
                }
            }));
        }
        cuts.push(Box::new(|plan| plan.troubles.clear()));
    }
    cuts
}

fn cuts_of_step(at: impl Fn(&mut Plan, fn(&mut Step)) + Copy + 'static) -> Vec<Cut> {
    let plainer: [fn(&mut Step); 8] = [
        |step| step.pause_ms = 0,
        |step| {
            if step.kind == Kind::Fair {
                step.kind = Kind::Plain;
            }
        },
        |step| step.owner = None,
        |step| step.lease = Lease::Default,
        |step| step.how = How::Wait,
        |step| step.cancel = Cancel::Never,
        |step| step.further = Further::Nothing,
        |step| step.meanwhile = Meanwhile::Sleep(0),
    ];
    plainer
        .into_iter()
        .map(|change| Box::new(move |plan: &mut Plan| at(plan, change)) as Cut)
        .collect()
}
