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

/// What makes a step plainer.
const PLAINER: [fn(&mut Step); 8] = [
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
            if candidate == smallest {
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

fn cuts(plan: &Plan) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    for (client, tasks) in plan.clients.iter().map(|client| &client.tasks).enumerate() {
        for (task, steps) in tasks.iter().enumerate() {
            for (step, change) in (0..steps.len()).flat_map(|step| PLAINER.map(|it| (step, it))) {
                cuts.push(Box::new(move |plan| {
                    change(&mut plan.clients[client].tasks[task][step]);
                }));
            }
            for step in 0..steps.len() {
                cuts.push(Box::new(move |plan| {
                    plan.clients[client].tasks[task].remove(step);
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
                plan.troubles.remove(trouble);
            }));
        }
        cuts.push(Box::new(|plan| plan.troubles.clear()));
    }
    cuts
}
