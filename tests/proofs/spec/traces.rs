//! What the program did in the simulation is something that the specification allows.
//!
//! A trace says what the voters did and what callers were told. Steps that nobody sees are looked
//! for: that a client asked, that it took the votes of some majority, that it gave up.

use std::slice::from_ref;

use tla_checker::ast::{State, Value};

use super::module::{Module, distinct, number, set, text};
use crate::sim::{
    draft, schedule,
    steps::Seen::{self, Freed, Kept, Lost, Passed, Renewed, Voted, Won},
};

/// So many steps of a trace are compared.
const MOST: usize = 200;
const BLOCK: u64 = 64;

/// A trace with the settings of its clients.
struct Trace {
    seen: Vec<Seen>,
    lease_ms: u64,
}

impl Trace {
    fn of(seed: u64) -> Self {
        let plan = draft::mutex(seed);
        let lease_ms = plan.times.lease_ms;
        let mut seen = schedule::run(plan, true).steps;
        seen.truncate(MOST);
        Self { seen, lease_ms }
    }

    fn holds(&self) -> Value {
        set(self.seen.iter().filter_map(|seen| match seen {
            Passed(_) | Lost { .. } => None,
            Voted { hold, .. }
            | Kept { hold, .. }
            | Freed { hold, .. }
            | Won { hold, .. }
            | Renewed { hold, .. } => Some(text(hold)),
        }))
    }

    fn loses_data(&self) -> bool {
        self.seen.iter().any(|seen| matches!(seen, Lost { .. }))
    }

    /// Goes through the trace with all states that the module may be in. Says where there is none.
    fn fits(
        &self,
        module: &Module,
        theorem: &str,
        after: impl Fn(&Module, &State, &Seen) -> Vec<State>,
    ) -> Result<(), String> {
        let mut states = module.first();
        for (step, seen) in self.seen.iter().enumerate() {
            let next = states.iter().flat_map(|state| after(module, state, seen));
            let next: Vec<State> = next.filter(|state| module.is(state, theorem, &[])).collect();
            if next.is_empty() {
                let before = states.first().map_or_else(String::new, |state| module.tell(state));
                return Err(format!("step {step} does not fit: {seen:?}, after\n{before}"));
            }
            states = distinct(next);
        }
        Ok(())
    }

    fn fits_lock(&self) -> Result<(), String> {
        let drift_ms = self.lease_ms / 100 + 2;
        let many = 1_000_000;
        let module = Module::new(
            "Lock",
            &[
                ("Voters", set((0..3).map(number))),
                ("Majority", number(2)),
                ("Holds", self.holds()),
                ("Nobody", text("nobody")),
                ("Lease", number(self.lease_ms)),
                ("Margin", number(drift_ms)),
                ("Drift", number(drift_ms)),
                ("Quarantine", number(self.lease_ms)),
                ("Notices", Value::Bool(true)),
                ("Proves", Value::Bool(true)),
                ("Losses", number(many)),
                ("AtOnce", number(1)),
                ("Renewals", number(many)),
            ],
        );
        self.fits(&module, "Exclusion", lock_after)
    }

    fn fits_tokens(&self) -> Result<(), String> {
        let module = Module::new(
            "Tokens",
            &[
                ("Voters", set((0..3).map(number))),
                ("Majority", number(2)),
                ("Keepers", number(2)),
                ("Holds", self.holds()),
                ("Nobody", text("nobody")),
                ("Block", number(BLOCK)),
                ("Apart", number(0)),
                ("Ahead", number(0)),
                ("Losses", number(0)),
                ("Step", number(1)),
            ],
        );
        self.fits(&module, "TokensGrow", tokens_after)
    }
}

fn voter_number(voter: usize) -> Value {
    number(u64::try_from(voter).unwrap_or(u64::MAX))
}

fn phase(module: &Module, state: &State, hold: &Value) -> String {
    match module.of(state, "phase", &[hold]) {
        Value::Str(phase) => phase.to_string(),
        other => panic!("{other:?} is no phase"),
    }
}

fn lock_after(module: &Module, state: &State, seen: &Seen) -> Vec<State> {
    match seen {
        Passed(ms) => module.after(state, "Pass", &[number(*ms)]),
        Lost { voter } => module.after(state, "Lose", &[voter_number(*voter)]),
        Voted { voter, hold, .. } | Kept { voter, hold, .. } => {
            let is_renewed = matches!(seen, Kept { .. });
            lock_voted(module, state, &voter_number(*voter), &text(hold), is_renewed)
        }
        Freed { voter, hold } => {
            let (voter, hold) = (voter_number(*voter), text(hold));
            let ended = match &*phase(module, state, &hold) {
                "over" => vec![state.clone()],
                _ => module.after(state, "End", from_ref(&hold)),
            };
            if module.of(state, "vote", &[&voter]) == hold {
                return module.after_each(&ended, "Release", &[hold, voter]);
            }
            ended
        }
        Won { hold, left_ms, .. } | Renewed { hold, left_ms } => {
            let hold = text(hold);
            let held = match &*phase(module, state, &hold) {
                "asking" => module.after(state, "Win", from_ref(&hold)),
                "held" => vec![state.clone()],
                _ => Vec::new(),
            };
            let relies = |state: &State| {
                let args = [hold.clone(), number(*left_ms)];
                module.is(state, "ReliesFor", &args)
            };
            held.into_iter().filter(relies).collect()
        }
    }
}

fn lock_voted(
    module: &Module,
    state: &State,
    voter: &Value,
    hold: &Value,
    is_renewed: bool,
) -> Vec<State> {
    let mut states = vec![state.clone()];
    let has = module.of(state, "vote", &[voter]);
    if has != *hold && has != text("nobody") {
        states = module.after_each(&states, "EndEarly", from_ref(voter));
    }
    match &*phase(module, state, hold) {
        "new" => {
            let all = set((0..3).map(number));
            states = module.after_each(&states, "Ask", &[hold.clone(), all]);
        }
        "held" if is_renewed => states = module.after_each(&states, "Renew", from_ref(hold)),
        "over" if has == *hold => return states,
        "over" => return module.after_each(&states, "Late", &[hold.clone(), voter.clone()]),
        _ if has == *hold => return states,
        _ => {}
    }
    module.after_each(&states, "Vote", &[hold.clone(), voter.clone(), number(0)])
}

fn tokens_after(module: &Module, state: &State, seen: &Seen) -> Vec<State> {
    match seen {
        Passed(_) | Renewed { .. } => vec![state.clone()],
        Lost { .. } => Vec::new(),
        Voted { voter, hold, number: told } => {
            let (voter, hold) = (voter_number(*voter), text(hold));
            if module.of(state, "vote", &[&voter]) == hold {
                return vec![state.clone()];
            }
            let mut states = freed(module, state, &voter, &hold);
            match &*phase(module, state, &hold) {
                "over" => {
                    let late = |state| late(module, state, &voter, &hold, *told);
                    return states.into_iter().flat_map(late).collect();
                }
                "new" => states = module.after_each(&states, "Ask", &[hold.clone(), number(0)]),
                _ => {}
            }
            let states =
                module.after_each(&states, "Vote", &[hold.clone(), voter.clone(), number(*told)]);
            let is_told =
                |state: &State| module.of(state, "told", &[&hold, &voter]) == number(*told);
            states.into_iter().filter(is_told).collect()
        }
        Kept { voter, hold, number: told } => {
            let (voter, hold) = (voter_number(*voter), text(hold));
            let states = freed(module, state, &voter, &hold);
            if phase(module, state, &hold) == "over" {
                let late = |state| late(module, state, &voter, &hold, *told);
                return states.into_iter().flat_map(late).collect();
            }
            let states = states.iter().flat_map(|state| taken(module, state, &hold));
            let is_it = |state: &State| module.of(state, "number", &[&hold]) == number(*told);
            let states: Vec<State> = states.filter(is_it).collect();
            module.after_each(&states, "Store", &[hold, voter])
        }
        Freed { voter, hold } => {
            let (voter, hold) = (voter_number(*voter), text(hold));
            let ended = ended(module, state, &hold);
            if module.of(state, "vote", &[&voter]) == hold {
                return module.after_each(&ended, "Free", &[hold, voter]);
            }
            ended
        }
        Won { hold, token, .. } => {
            let hold = text(hold);
            if phase(module, state, &hold) == "held" {
                return handed_on(module, state, &hold, *token);
            }
            let taken = taken(module, state, &hold);
            module.after_each(&taken, "HandOut", &[hold, number(*token)])
        }
    }
}

/// The voter's vote is no other hold's any more, if it was.
fn freed(module: &Module, state: &State, voter: &Value, hold: &Value) -> Vec<State> {
    let has = module.of(state, "vote", &[voter]);
    if has == text("nobody") || has == *hold {
        return vec![state.clone()];
    }
    let mut freed = module.after(state, "Free", &[has.clone(), voter.clone()]);
    if phase(module, state, &has) != "over" {
        let ended = ended(module, state, &has);
        freed.extend(module.after_each(&ended, "Free", &[has.clone(), voter.clone()]));
    }
    freed
}

/// The hold has taken a number, by the votes of any majority that answered it.
fn taken(module: &Module, state: &State, hold: &Value) -> Vec<State> {
    if phase(module, state, hold) != "asking" {
        return vec![state.clone()];
    }
    let majorities = [[0, 1].as_slice(), &[0, 2], &[1, 2], &[0, 1, 2]];
    let win = |of: &[u64]| {
        module.after(state, "Win", &[hold.clone(), set(of.iter().copied().map(number))])
    };
    majorities.into_iter().flat_map(win).collect()
}

fn ended(module: &Module, state: &State, hold: &Value) -> Vec<State> {
    match &*phase(module, state, hold) {
        "over" => vec![state.clone()],
        _ => module.after(state, "End", from_ref(hold)),
    }
}

/// A request of a hold that is over has arrived at a voter.
fn late(module: &Module, state: State, voter: &Value, hold: &Value, told: u64) -> Vec<State> {
    if module.of(&state, "vote", &[voter]) == *hold {
        return vec![state];
    }
    module.after(&state, "Late", &[hold.clone(), voter.clone(), number(told)])
}

/// Owners whom nobody saw may have had it between.
fn handed_on(module: &Module, state: &State, hold: &Value, token: u64) -> Vec<State> {
    let mut states = vec![state.clone()];
    for _ in 0..BLOCK {
        states = module.after_each(&states, "HandOn", from_ref(hold));
        let has = |state: &State| module.of(state, "token", &[hold]) == number(token);
        if states.iter().any(has) {
            return states;
        }
    }
    Vec::new()
}

/// How many traces are compared.
const TRACES: u64 = 30;

/// How much of what there was in all of them.
#[derive(Debug, Default)]
struct Compared {
    steps: usize,
    grants: usize,
    renewals: usize,
    losses: usize,
}

fn compare(seeds: impl Iterator<Item = u64>) -> Result<Compared, String> {
    let mut compared = Compared::default();
    for seed in seeds {
        let trace = Trace::of(seed);
        let told = |error: String| format!("the trace of seed {seed} does not fit\n{error}");
        trace.fits_lock().map_err(told)?;
        if !trace.loses_data() {
            trace.fits_tokens().map_err(told)?;
        }
        let count = |which: fn(&Seen) -> bool| trace.seen.iter().filter(|seen| which(seen)).count();
        compared.steps += trace.seen.len();
        compared.grants += count(|seen| matches!(seen, Won { .. }));
        compared.renewals += count(|seen| matches!(seen, Renewed { .. }));
        compared.losses += count(|seen| matches!(seen, Lost { .. }));
    }
    Ok(compared)
}

#[test]
fn traces_of_the_program_fit() {
    #[cfg(quorate_mutants)]
    crate::mutants::rewrite_script();
    let compared = compare(0..TRACES).unwrap_or_else(|error| panic!("{error}"));
    println!("{TRACES} traces: {compared:?}");
    let Compared { steps, grants, renewals, losses } = compared;
    let few = usize::try_from(TRACES).expect("it is small") / 3;
    assert!(steps > 100 * few && grants > few && renewals > few && losses > few, "{TRACES}");
}

/// Each of these mutants leaves a trace that the specification does not allow.
#[cfg(quorate_mutants)]
#[test]
fn traces_of_mutants_do_not_fit() {
    let program = std::env::current_exe().expect("this program has a path");
    for mutant in ["quarantined_vote_counts", "blocks_overlap", "token_is_not_stored"] {
        let mut comparing = std::process::Command::new(&program);
        comparing.args(["--exact", "spec::traces::traces_of_the_program_fit", "--nocapture"]);
        let output = comparing.env("QUORATE_MUTANT", mutant).output().expect("it can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("does not fit"), "{mutant}: {said}");
        let first = said.lines().filter(|line| line.contains("does not fit"));
        println!("{mutant}: {}", first.collect::<Vec<_>>().join(": "));
    }
}
