//! Looking at every state that a model can come to.

use std::{
    fmt::Debug,
    hash::Hash,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Instant,
};

use stateright::{Checker, Model, Path};

/// Rules of which there is a model.
pub(crate) trait Protocol: Copy {
    type Model: Model<
            State: Clone + Debug + Hash + PartialEq + Send + Sync,
            Action: Clone + Debug + PartialEq + Send + Sync,
        > + Send
        + Sync
        + 'static;
    type Landmark: Mark + Debug;

    /// With one property to look at, or all of them.
    fn model(self, only: Option<&'static str>) -> Self::Model;

    /// Those that no path of this model has come by.
    fn missing(model: &Self::Model, landmarks: &[Self::Landmark]) -> Vec<Self::Landmark>;

    /// The step from this state, in words.
    fn tell(self, state: &StateOf<Self>, step: ActionOf<Self>) -> String;
}

type StateOf<P> = <<P as Protocol>::Model as Model>::State;
type ActionOf<P> = <<P as Protocol>::Model as Model>::Action;

/// Something that a path can come by.
pub(crate) trait Mark: Copy {
    /// Below 32.
    fn number(self) -> u32;
}

/// The marks that some path came by.
#[derive(Debug, Default)]
pub(crate) struct Passed(AtomicU32);

impl Passed {
    pub(crate) fn add(&self, mark: impl Mark) {
        let bit = 1 << mark.number();
        if self.0.load(Relaxed) & bit == 0 {
            self.0.fetch_or(bit, Relaxed);
        }
    }

    /// Those of these that no path has come by.
    pub(crate) fn missing<M: Mark>(&self, marks: &[M]) -> Vec<M> {
        let passed = self.0.load(Relaxed);
        marks.iter().copied().filter(|mark| passed & 1 << mark.number() == 0).collect()
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
/// least so many, and some path must come by each of the landmarks.
#[track_caller]
pub(crate) fn holds<P: Protocol>(name: &str, rules: P, at_least: usize, landmarks: &[P::Landmark]) {
    let started = now();
    let checker = rules.model(None).checker().threads(2).spawn_dfs().join();
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
    let missing = P::missing(checker.model(), landmarks);
    assert!(missing.is_empty(), "{name}: no path comes by {missing:?}");
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
    let checker = rules.model(Some(property)).checker().spawn_bfs().join();
    checker.discovery(property).map(|path| path_of(path, rules))
}

fn path_of<P: Protocol>(path: Path<StateOf<P>, ActionOf<P>>, rules: P) -> Vec<String> {
    let told = |(state, step): (StateOf<P>, Option<_>)| Some(rules.tell(&state, step?));
    path.into_vec().into_iter().filter_map(told).collect()
}

#[expect(clippy::disallowed_methods, reason = "the length of a search is in real time")]
fn now() -> Instant {
    Instant::now()
}
