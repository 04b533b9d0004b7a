//! One request to every voter.

use std::{
    iter::{empty, once},
    sync::{Arc, LazyLock},
    time::Duration,
};

use crate::{
    engine::Rules,
    node::{Call, Request, Requests},
    scripts::Script,
    words::{HoldId, Token},
};

/// What all requests of one script have in common, whatever hold they are for.
#[derive(Clone, Debug)]
pub(super) struct Form {
    script: &'static Script,
    shared: Arc<[Arc<str>]>,
    /// How long each voter has to answer.
    deadline: Duration,
    /// And how long at most, where it was seen to need longer.
    longest: Duration,
}

impl Form {
    /// `shared`: as in the script's header, without the command that publishes.
    pub(super) fn new(script: &'static Script, rules: Rules, shared: &[&str]) -> Self {
        debug_assert_eq!(
            shared.len() + usize::from(script.publishes()),
            script.shared.len(),
            "{}",
            script.name
        );
        let Rules { voter_deadline: deadline, longest_deadline: longest, .. } = rules;
        Self { script, shared: shared.iter().map(|&arg| arg.into()).collect(), deadline, longest }
    }

    /// A request for a hold, which is the first argument.
    pub(super) fn request<const K: usize, const A: usize>(
        &self,
        keys: [&Arc<str>; K],
        hold: &HoldId,
        args: [Arc<str>; A],
    ) -> Call {
        self.fill(keys, once(Arc::clone(hold.text())).chain(args), Some(hold))
    }

    /// A request for nobody's hold.
    pub(super) fn question<const K: usize>(&self, keys: [&Arc<str>; K]) -> Call {
        self.fill(keys, empty(), None)
    }

    fn fill<const K: usize>(
        &self,
        keys: [&Arc<str>; K],
        args: impl Iterator<Item = Arc<str>>,
        hold: Option<&HoldId>,
    ) -> Call {
        let Self { script, shared, .. } = self;
        let request = Request::new(keys.into_iter().cloned(), args, hold);
        debug_assert_eq!(
            (K, request.args().len()),
            (script.keys.len(), script.args.len()),
            "{}",
            script.name
        );
        Call {
            script,
            shared: Arc::clone(shared),
            requests: Requests::One(request),
            deadline: self.deadline,
            longest: self.longest,
        }
    }
}

/// Arguments that nearly every request has, made once.
static COMMON: LazyLock<[Arc<str>; 3]> = LazyLock::new(|| ["0", "1", ""].map(Into::into));

/// The argument that says nothing.
pub(super) fn nothing() -> Arc<str> {
    Arc::clone(&COMMON[2])
}

/// The count of a hold as an argument.
pub(super) fn count(count: u32) -> Arc<str> {
    match count {
        0 => Arc::clone(&COMMON[0]),
        1 => Arc::clone(&COMMON[1]),
        more => number(more),
    }
}

/// A number as an argument.
pub(super) fn number(number: impl Copy + ToString) -> Arc<str> {
    number.to_string().into()
}

/// The settings see to it that leases are whole milliseconds.
pub(super) fn millis(time: Duration) -> String {
    time.as_millis().to_string()
}

/// A token or a floor for one as an argument; empty for a hold without tokens.
pub(super) fn token(token: Option<Token>) -> Arc<str> {
    token.map_or_else(nothing, number)
}
