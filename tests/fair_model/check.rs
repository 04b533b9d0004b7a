//! Looking at every state that a model can come to.

use std::{sync::Arc, time::Instant};

use stateright::{Checker, Model, Path};

use crate::{
    landmarks::{Landmark, Landmarks},
    moves::{Move, Queues},
    rules::Rules,
    state::State,
};

/// How large the bounds are: `QUORATE_MODEL_SIZE` is 1, which takes seconds, or 2, which takes
/// minutes.
pub(crate) fn is_large() -> bool {
    let size = std::env::var("QUORATE_MODEL_SIZE").unwrap_or_else(|_| "1".into());
    assert!(["1", "2"].contains(&size.as_str()), "QUORATE_MODEL_SIZE is 1 or 2, not {size}");
    size == "2"
}

/// Every property holds in every state. So that this is not for want of states there must be at
/// least so many, and some path must come by each of the landmarks.
#[track_caller]
pub(crate) fn holds(name: &str, rules: Rules, at_least: usize, landmarks: &[Landmark]) {
    let passed = Arc::new(Landmarks::default());
    let model = Queues { rules, only: None, landmarks: Arc::clone(&passed) };
    let started = now();
    let checker = model.checker().threads(2).spawn_dfs().join();
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
    assert_eq!(passed.missing(landmarks), [], "{name}: no path comes by these");
}

/// The model comes to a state where this property is broken. Tells the shortest path there, each
/// step in words.
#[track_caller]
pub(crate) fn finds(name: &str, rules: Rules, property: &'static str) {
    let started = now();
    let path = shortest(rules, property);
    let path = path.unwrap_or_else(|| panic!("{name}: `{property}` is not seen to be broken"));
    let seconds = (now() - started).as_secs_f64();
    println!("{name}: found, {seconds:.1} s; broken: {property}\n  {}", path.join("\n  "));
}

/// In breadth, by one thread, and for this property alone: that ends with the first path, and no
/// other is shorter.
fn shortest(rules: Rules, property: &'static str) -> Option<Vec<String>> {
    let model = Queues { rules, only: Some(property), landmarks: Arc::default() };
    let checker = model.checker().spawn_bfs().join();
    checker.discovery(property).map(|path| path_of(path, &rules))
}

fn path_of(path: Path<State, Move>, rules: &Rules) -> Vec<String> {
    let told = |(state, step): (State, Option<Move>)| Some(state.tell(step?, rules));
    path.into_vec().into_iter().filter_map(told).collect()
}

#[expect(clippy::disallowed_methods, reason = "the length of a search is in real time")]
fn now() -> Instant {
    Instant::now()
}
