//! Looking at every state that a model can come to.

use std::{fmt::Debug, hash::Hash, time::Instant};

use stateright::{Checker, Model, Property};

use crate::mutant;

/// Rules of which there is a model.
pub(crate) trait Protocol: Copy + Send + Sync + 'static {
    type State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static;
    type Move: Copy + Debug + PartialEq + Send + Sync + 'static;

    /// The bug of `proto` that is alive.
    fn alive(&self) -> Option<&'static str>;

    fn first(&self) -> Self::State;

    /// What can happen next.
    fn moves(&self, state: &Self::State, moves: &mut Vec<Self::Move>);

    /// The state after a step; `None`: nothing has changed.
    fn next(&self, state: &Self::State, step: Self::Move) -> Option<Self::State>;

    /// What has to be true in every state.
    fn properties() -> Vec<Property<Explored<Self>>>;

    /// The step from this state, in words.
    fn tell(&self, _: &Self::State, step: Self::Move) -> String {
        format!("{step:?}")
    }
}

/// A model whose states are all looked at.
pub(crate) struct Explored<P> {
    pub(crate) rules: P,
    /// The one property that is looked at, if not all are.
    only: Option<&'static str>,
}

impl<P: Protocol> Model for Explored<P> {
    type State = P::State;
    type Action = P::Move;

    fn init_states(&self) -> Vec<P::State> {
        mutant::wake(self.rules.alive());
        vec![self.rules.first()]
    }

    fn actions(&self, state: &P::State, moves: &mut Vec<P::Move>) {
        mutant::wake(self.rules.alive());
        self.rules.moves(state, moves);
    }

    fn next_state(&self, state: &P::State, step: P::Move) -> Option<P::State> {
        mutant::wake(self.rules.alive());
        self.rules.next(state, step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = P::properties();
        properties.retain(|property| self.only.is_none_or(|only| only == property.name));
        properties
    }
}

/// How large the bounds are: `QUORATE_MODEL_SIZE` is 1, which takes seconds, or 2, which takes
/// minutes.
pub(crate) fn is_large() -> bool {
    let size = std::env::var("QUORATE_MODEL_SIZE").unwrap_or_else(|_| "1".into());
    assert!(["1", "2"].contains(&size.as_str()), "QUORATE_MODEL_SIZE is 1 or 2, not {size}");
    size == "2"
}

/// Every property holds in every state. So that this is not for want of states there must be at
/// least so many: where something cannot happen any more there are fewer.
#[track_caller]
pub(crate) fn holds<P: Protocol>(name: &str, rules: P, at_least: usize) {
    let started = now();
    let checker = Explored { rules, only: None }.checker().threads(2).spawn_dfs().join();
    let states = checker.unique_state_count();
    println!("{name}: {states} states, {:.1} s", (now() - started).as_secs_f64());
    let broken = checker.discoveries().into_keys().min();
    if let Some(property) = broken {
        // The search in depth is the faster one, but its paths are long.
        let path = shortest(rules, property).unwrap_or_default();
        panic!("{name}: broken: {property}\n  {}", path.join("\n  "));
    }
    assert!(checker.is_done(), "{name}: not every state was seen");
    assert!(states >= at_least, "{name}: {states} states, and there should be {at_least}");
}

/// The same, where there is time for it.
#[track_caller]
pub(crate) fn large<P: Protocol>(name: &str, rules: P, at_least: usize) {
    if is_large() {
        holds(name, rules, at_least);
    }
}

/// The model comes to a state where this property is broken. Tells the shortest path there, each
/// step in words.
#[track_caller]
pub(crate) fn finds<P: Protocol>(name: &str, rules: P, property: &'static str) {
    let started = now();
    let path = shortest(rules, property);
    let path = path.unwrap_or_else(|| panic!("{name}: `{property}` is not seen to be broken"));
    let seconds = (now() - started).as_secs_f64();
    println!("{name}: found, {seconds:.1} s; broken: {property}\n  {}", path.join("\n  "));
}

/// In breadth, by one thread, and for this property alone: that ends with the first path, and no
/// other is shorter.
fn shortest<P: Protocol>(rules: P, property: &'static str) -> Option<Vec<String>> {
    let checker = Explored { rules, only: Some(property) }.checker().spawn_bfs().join();
    let path = checker.discovery(property)?.into_vec().into_iter();
    Some(path.filter_map(|(state, step)| Some(rules.tell(&state, step?))).collect())
}

#[expect(clippy::disallowed_methods, reason = "the length of a search is in real time")]
fn now() -> Instant {
    Instant::now()
}
