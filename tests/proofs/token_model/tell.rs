//! Steps in words.

use crate::token_model::{
    moves::Move,
    requests::{Kind, Request},
    rules::Rules,
    state::{Answer, Phase, State},
};

/// The step from this state.
pub(crate) fn tell(state: &State, step: Move, rules: &Rules) -> String {
    let at = |voter: usize| format!("voter {}", state.names[voter]);
    let after = state.after(step, rules);
    match step {
        Move::Tick => "a tick passes".into(),
        Move::Ask(client) => format!("{} asks", name(client)),
        Move::AskAgain(client) => format!("{} asks the others again", name(client)),
        Move::Renew(client) => format!("{} renews", name(client)),
        Move::GiveBack(client) if state.client(client).holds() => {
            format!("{} releases", name(client))
        }
        Move::GiveBack(client) => format!("{} gives up", name(client)),
        Move::Arrive(client, voter) => {
            let what = request(state.voters[voter].line(client).requests.first());
            let answer = told(after.voters[voter].line(client).reply);
            format!("{what} of {} arrives at {}{answer}", name(client), at(voter))
        }
        Move::Hear(client, voter) => {
            let now = became(state.client(client).phase, after.client(client).phase);
            format!("{} hears {}{now}", name(client), at(voter))
        }
        Move::Cut(client, voter) => {
            format!("the connection of {} to {} breaks", name(client), at(voter))
        }
        Move::Forget(voter) => format!("{} restarts and has forgotten everything", at(voter)),
    }
}

fn name(client: u8) -> &'static str {
    ["ada", "ben", "cleo"][usize::from(client)]
}

fn request(request: Option<Request>) -> String {
    let Some(Request { kind, token, .. }) = request else { return String::new() };
    match kind {
        Kind::Acquire => "acquire".into(),
        Kind::Renew => format!("renew with {token}"),
        Kind::Release => "release".into(),
    }
}

fn told(answer: Answer) -> String {
    match answer {
        Answer::Granted(counter) => format!(": granted with {counter}"),
        Answer::Uncounted { counter, .. } => format!(": granted with {counter}, in quarantine"),
        Answer::Stored => ": refused, but stored".into(),
        Answer::None => String::new(),
    }
}

fn became(was: Phase, is: Phase) -> String {
    match (was, is) {
        (Phase::Asking { .. }, Phase::Storing { token, .. }) => {
            format!(" and has to store {token}")
        }
        (Phase::Asking { .. } | Phase::Storing { .. }, Phase::Holding { token, .. }) => {
            format!(" and is handed the lock with {token}")
        }
        (Phase::Holding { left: was, .. }, Phase::Holding { left: is, .. }) if is > was => {
            " and has renewed".into()
        }
        _ => String::new(),
    }
}
