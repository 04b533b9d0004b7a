//! Plans of what chance alone rarely brings together: several things that go wrong at the right
//! moments, and who asks for the lock just then. What else there is in them is drawn as ever.

use super::Draft;
use crate::sim::prelude::*;

/// When and for how long something goes wrong.
#[derive(Clone, Copy)]
struct Span {
    from_ms: u64,
    lasts_ms: u64,
}

impl Span {
    fn of(self, what: What) -> Trouble {
        Trouble { at_ms: self.from_ms, lasts_ms: self.lasts_ms, what }
    }
}

impl Draft {
    pub(super) fn scene(mut self, seed: u64) -> Plan {
        // Beside what is drawn, so that the other schedules stay what they are.
        if Plan::draws_job(seed) {
            return self.forgotten_firing(seed);
        }
        match self.below(3) {
            0 => self.forgotten_while_held(seed),
            1 => self.forgotten_while_asked(seed),
            _ => self.asked_at_once(seed),
        }
    }

    /// A voter forgets a hold that is not renewed any more. Others want the lock when half of the
    /// quarantine is over, and when all of it is.
    fn forgotten_while_held(&mut self, seed: u64) -> Plan {
        let mut plan = self.scenery(seed, &[1, 3, 3, 3, 5]);
        let lease_ms = plan.times.lease_ms;
        let kind = self.kind();
        let forgets_at_ms = self.between(1, lease_ms / 3);
        let held = Step {
            lease: Lease::Fixed(lease_ms),
            meanwhile: Meanwhile::Sleep(2 * lease_ms),
            ..self.plain_step(kind)
        };
        // When whoever cannot reach it cannot.
        plan.clients.push(client(1, vec![held]));
        for _ in 0..self.between(1, 3) {
            let late = [0, forgets_at_ms + lease_ms / 2, forgets_at_ms + lease_ms];
            let starts_at_ms = self.about(&late);
            plan.clients.push(self.rival(starts_at_ms, 4, kind, lease_ms));
        }
        let voters = plan.voters.len();
        let forgetful = self.index(voters);
        let down = Span { from_ms: forgets_at_ms, lasts_ms: self.between(1, 20) };
        let reboots = What::VoterReboots {
            voter: forgetful,
            ms: i64::try_from(self.between(lease_ms / 2, 2 * lease_ms)).unwrap_or(i64::MAX),
            keeps: true,
        };
        if self.one_in(2) {
            // Beside what is drawn, so that the other schedules stay what they are.
            let troubles = match seed / 8 % 8 {
                1 | 5 => vec![down.of(What::VoterForgets(forgetful))],
                // The other one has no vote of the hold.
                2 | 6 if voters > 2 => {
                    let of = (forgetful + 1) % voters;
                    vec![down.of(What::VoterCopied { voter: forgetful, of })]
                }
                // Nothing is kept of the hold.
                3 | 7 => {
                    let span = Span { from_ms: 0, lasts_ms: down.from_ms + down.lasts_ms };
                    vec![span.of(What::VoterLoses(forgetful))]
                }
                4 => ahead_for_a_while(&mut plan, forgetful),
                _ => vec![down.of(What::VoterFlushed(forgetful))],
            };
            plan.troubles.extend(troubles);
        } else {
            plan.troubles.push(down.of(reboots));
            // Where all clocks differ, none is the one that is apart.
            for (voter, ahead_ms) in plan.voters.iter_mut().zip((0..).step_by(3_600_000)) {
                voter.clock_ahead_ms = ahead_ms;
            }
        }
        // The first client has a bare majority, and the voter that forgets is one of it.
        let spare = voters - plan.quorum();
        let others = (1..voters).map(|next| (forgetful + next) % voters);
        for voter in others.take(spare) {
            let away = Span { from_ms: 0, lasts_ms: 2 * lease_ms };
            plan.troubles.push(away.of(What::Partition { voter, client: 0 }));
        }
        if self.one_in(3) {
            let gone = Span { from_ms: forgets_at_ms + self.below(lease_ms), lasts_ms: lease_ms };
            let what = self.pick(&[What::ClientDies(0), What::ClientStalls(0)]);
            plan.troubles.push(gone.of(what));
        }
        finished(plan)
    }

    /// A voter forgets whom it gave its vote to, while another holds the lock by the rest and then
    /// cannot reach one of them: it may need the vote of the one that forgot.
    fn forgotten_while_asked(&mut self, seed: u64) -> Plan {
        let mut plan = self.scenery(seed, &[3, 3, 5]);
        let lease_ms = plan.times.lease_ms;
        let way_ms = plan.network.usual_ms;
        let kind = self.kind();
        let held = Step { meanwhile: Meanwhile::Sleep(4 * lease_ms), ..self.plain_step(kind) };
        plan.clients.push(client(1, vec![held]));
        let asks_at_ms = self.between(4 * way_ms + 5, 2 * lease_ms);
        plan.clients.push(self.rival(asks_at_ms, 3, kind, lease_ms));
        if self.one_in(2) {
            let starts_at_ms = self.about(&[0, asks_at_ms, asks_at_ms + lease_ms]);
            plan.clients.push(self.rival(starts_at_ms, 3, kind, lease_ms));
        }
        let voters = plan.voters.len();
        let forgetful = self.index(voters);
        let others: Vec<usize> = (1..voters).map(|next| (forgetful + next) % voters).collect();
        // It asks, and cannot say any more that it gives up.
        let silent_ms = asks_at_ms + self.below(2 * way_ms + 3);
        let silent = Span { from_ms: silent_ms, lasts_ms: lease_ms };
        let gone = [What::ClientDies(1), What::Partition { voter: forgetful, client: 1 }];
        plan.troubles.push(silent.of(self.pick(&gone)));
        let forgets_at_ms = silent_ms + self.between(1, lease_ms / 4);
        let down = Span { from_ms: forgets_at_ms, lasts_ms: self.between(1, 5) };
        plan.troubles.push(down.of(What::VoterForgets(forgetful)));
        // The first client is cut off from it until then, and from others afterwards.
        let apart_ms = forgets_at_ms + self.below(lease_ms / 4);
        let apart = Span { from_ms: 0, lasts_ms: apart_ms };
        plan.troubles.push(apart.of(What::Partition { voter: forgetful, client: 0 }));
        let spare = voters - plan.quorum();
        for voter in others.into_iter().take(spare) {
            let from_ms = forgets_at_ms.saturating_sub(self.below(lease_ms / 3));
            let away = Span { from_ms, lasts_ms: 2 * lease_ms };
            plan.troubles.push(away.of(What::Partition { voter, client: 0 }));
        }
        finished(plan)
    }

    /// A firing of the job is done while some voters cannot be reached. One of those that know it
    /// forgets, and the others come back. Requests and answers may be lost: who asks then may hear
    /// from all but those that know it that nothing is done.
    fn forgotten_firing(&mut self, seed: u64) -> Plan {
        let mut plan = self.scenery(seed, &[3, 3, 3, 5]);
        let lease_ms = plan.times.lease_ms;
        // Who wants nothing but the job, and has it to itself, or nearly.
        plan.clients = vec![client(0, Vec::new()); self.pick(&[1, 1, 2])];
        let voters = plan.voters.len();
        let forgetful = self.index(voters);
        // Before the second firing, which is due after two leases.
        let forgets_at_ms = self.between(lease_ms / 2, 5 * lease_ms / 4);
        let down = Span { from_ms: forgets_at_ms, lasts_ms: self.between(1, 5) };
        plan.troubles.push(down.of(What::VoterForgets(forgetful)));
        plan.network.lost_request_ppm = self.pick(&[100_000, 200_000, 300_000]);
        plan.network.lost_reply_ppm = plan.network.lost_request_ppm;
        // When all have met them.
        let from_ms = 10 * plan.network.usual_ms + 10;
        let back_ms = forgets_at_ms + self.below(lease_ms / 4);
        let away = Span { from_ms, lasts_ms: back_ms.saturating_sub(from_ms) };
        let others = (1..voters).map(|next| (forgetful + next) % voters);
        for voter in others.skip(plan.quorum() - 1) {
            for client in 0..plan.clients.len() {
                plan.troubles.push(away.of(What::Partition { voter, client }));
            }
        }
        finished(plan)
    }

    /// Many stand in a queue, give up and come again at nearly the same moments. Requests to a
    /// minority of the voters are late, and so are the answers of that minority.
    fn asked_at_once(&mut self, seed: u64) -> Plan {
        let mut plan = self.scenery(seed, &[3, 3, 5]);
        let lease_ms = plan.times.lease_ms;
        let deadline_ms = plan.times.voter_deadline_ms;
        let spare = plan.voters.len() - plan.quorum();
        plan.mood = Mood::Minority;
        plan.voters.iter_mut().skip(spare).for_each(|voter| voter.troubled = false);
        plan.network.usual_ms = self.between(1, deadline_ms / 10);
        (plan.network.tail_ppm, plan.network.tail_ms) = (500_000, self.between(1, 2 * deadline_ms));
        let kinds = [[Kind::Fair, Kind::Fair], [Kind::Fair, Kind::Plain], [Kind::Write; 2]];
        let kinds = self.pick(&kinds);
        for _ in 0..self.between(3, 4) {
            let tasks = self.between(1, 2);
            let tasks = (0..tasks).map(|_| {
                let steps = (0..8).map(|_| {
                    let kind = self.pick(&kinds);
                    let limit_ms = self.between(1, lease_ms / 2);
                    Step {
                        how: self.pick(&[How::Wait, How::Within(limit_ms), How::Within(limit_ms)]),
                        lease: Lease::Default,
                        ..self.short_step(kind, lease_ms)
                    }
                });
                steps.collect()
            });
            let tasks = tasks.collect();
            plan.clients.push(ClientPlan { tasks, ..client(self.about(&[20]), Vec::new()) });
        }
        plan
    }

    /// What the specification has: three voters, a mutex, leases of one length. In every other one
    /// a voter loses its data; in the rest the counts of tokens differ.
    pub(super) fn mutex_alone(&mut self, seed: u64) -> Plan {
        let mut plan = self.scenery(seed, &[3]);
        let lease_ms = plan.times.lease_ms;
        let loses = seed.is_multiple_of(2);
        let forgetful = self.index(3);
        let forgets_at_ms = self.between(lease_ms / 8, lease_ms);
        let held =
            Step { meanwhile: Meanwhile::Sleep(2 * lease_ms), ..self.plain_step(Kind::Plain) };
        plan.clients.push(client(1, vec![if loses { held } else { self.short_plain(lease_ms) }]));
        for _ in 0..2 {
            let starts_at_ms = self.about(&[20, forgets_at_ms]);
            let wall_ahead_ms = if loses { 0 } else { self.pick(&[0, 2_000_000, -2_000_000]) };
            let tasks = (0..self.between(1, 2))
                .map(|_| (0..4).map(|_| self.short_plain(lease_ms)).collect())
                .collect();
            plan.clients.push(ClientPlan {
                wall_ahead_ms,
                tasks,
                ..client(starts_at_ms, Vec::new())
            });
        }
        if loses {
            let down = Span { from_ms: forgets_at_ms, lasts_ms: self.between(1, 20) };
            plan.troubles.push(down.of(What::VoterForgets(forgetful)));
            let away = Span { from_ms: 0, lasts_ms: 2 * lease_ms };
            let voter = (forgetful + 1) % 3;
            plan.troubles.push(away.of(What::Partition { voter, client: 0 }));
        } else {
            for client in 0..3 {
                let away =
                    Span { from_ms: self.below(lease_ms), lasts_ms: self.below(2 * lease_ms) };
                let voter = self.index(3);
                plan.troubles.push(away.of(What::Partition { voter, client }));
            }
        }
        plan.network.lost_reply_ppm = self.pick(&[0, 50_000]);
        (plan.network.tail_ppm, plan.network.tail_ms) = (self.pick(&[0, 50_000]), lease_ms / 4);
        finished(plan)
    }

    fn short_plain(&mut self, lease_ms: u64) -> Step {
        self.short_step(Kind::Plain, lease_ms)
    }

    /// Voters whose clocks agree, one lock, and all leases of one length.
    fn scenery(&mut self, seed: u64, counts: &[u8]) -> Plan {
        let lease_ms = self.pick(&[400, 600, 1_000, 2_000]);
        let voter_deadline_ms = lease_ms / self.pick(&[10, 20]);
        let poll_ms = self.pick(&[lease_ms / 4, 500, 2_000]);
        let waiter_deadline_ms = self.pick(&[None, Some(lease_ms)]);
        let times =
            Times { lease_ms, voter_deadline_ms, poll_ms, patience_ms: 10_000, waiter_deadline_ms };
        let voter = VoterPlan { clock_ppm: 0, clock_ahead_ms: 0, troubled: true };
        let voters = vec![voter; self.pick(counts).into()];
        let mut plan = Plan::new(seed, Mood::Chaos, voters, times, 4 * lease_ms);
        plan.network.usual_ms = self.between(1, voter_deadline_ms / 3);
        plan
    }

    fn plain_step(&mut self, kind: Kind) -> Step {
        Step {
            pause_ms: 0,
            number: 0,
            kind,
            owner: None,
            lease: Lease::Default,
            how: How::Wait,
            cancel: Cancel::Never,
            further: Further::Nothing,
            meanwhile: Meanwhile::Sleep(0),
            end: self.pick(&[End::Release(Cancel::Never), End::Drop]),
        }
    }

    fn short_step(&mut self, kind: Kind, lease_ms: u64) -> Step {
        Step {
            pause_ms: if self.one_in(2) { 0 } else { self.below(lease_ms / 4) },
            how: self.pick(&[How::Wait, How::Wait, How::Try, How::Within(lease_ms)]),
            lease: self.pick(&[Lease::Default, Lease::Fixed(lease_ms)]),
            meanwhile: self.pick(&[Meanwhile::Sleep(0), Meanwhile::Sleep(lease_ms / 2)]),
            ..self.plain_step(kind)
        }
    }

    /// A client that asks so often at most.
    fn rival(&mut self, starts_at_ms: u64, most: u64, kind: Kind, lease_ms: u64) -> ClientPlan {
        let steps = (0..self.between(1, most)).map(|_| self.short_step(kind, lease_ms));
        client(starts_at_ms, steps.collect())
    }

    fn kind(&mut self) -> Kind {
        self.pick(&[Kind::Plain, Kind::Plain, Kind::Fair, Kind::Write])
    }

    /// One of these moments, a little sooner or later.
    fn about(&mut self, moments_ms: &[u64]) -> u64 {
        (self.pick(moments_ms) + self.below(40)).saturating_sub(20)
    }
}

/// The clock of a voter is so far ahead that it forgets all votes, once the first client has its
/// own. That client looks at it meanwhile, and the others come when it is right again.
fn ahead_for_a_while(plan: &mut Plan, voter: usize) -> Vec<Trouble> {
    let lease_ms = plan.times.lease_ms;
    let ms = i64::try_from(4 * lease_ms).unwrap_or(i64::MAX);
    let ahead_ms = lease_ms / 5;
    let right_ms = ahead_ms + lease_ms / 3 + plan.times.voter_deadline_ms + lease_ms / 50;
    for rival in &mut plan.clients[1..] {
        rival.starts_at_ms = rival.starts_at_ms.max(right_ms + 10);
    }
    let jumps = [(ahead_ms, ms), (right_ms, -ms)];
    let of = |(from_ms, ms)| Span { from_ms, lasts_ms: 1 }.of(What::ClockJumps { voter, ms });
    jumps.map(of).into()
}

fn client(starts_at_ms: u64, steps: Vec<Step>) -> ClientPlan {
    ClientPlan {
        starts_at_ms,
        clock_ppm: 0,
        wall_ahead_ms: 0,
        sets: Sets::All,
        tasks: vec![steps],
        closes: false,
    }
}

fn finished(mut plan: Plan) -> Plan {
    plan.troubles.sort_by_key(|trouble| trouble.at_ms);
    plan
}
