//! Steps in words.

use crate::hold_model::{
    moves::Move,
    requests::{Kind, Request},
    rules::Rules,
    state::{Answer, Phase, State},
};

/// The step from this state.
pub(crate) fn tell(state: &State, step: Move, rules: &Rules) -> String {
    let at = |voter: usize| format!("voter {}", state.names[voter]);
    match step {
        Move::Tick => "a tick passes".into(),
        Move::Ask(client) => format!("{} asks", name(client)),
        Move::AskAgain(client) => format!("{} asks the others again", name(client)),
        Move::GiveUp(client) => format!("{} gives up", name(client)),
        Move::Renew(client) => format!("{} renews", name(client)),
        Move::Release(client) => format!("{} releases", name(client)),
        Move::Arrive(client, voter) => {
            let what = request(state.voters[voter].line(client).way.queue.first());
            let reply = state.after(step, rules).voters[voter].line(client).reply;
            format!("{what} of {} arrives at {}{}", name(client), at(voter), answer(reply))
        }
        Move::ArriveLate(client, voter) => {
            let what = request(state.voters[voter].line(client).way.late.first());
            format!("late, {what} of {} arrives at {}", name(client), at(voter))
        }
        Move::Hear(client, voter) => {
            let after = state.after(step, rules);
            let now = became(state.client(client).phase, after.client(client).phase);
            format!("{} hears {}{now}", name(client), at(voter))
        }
        Move::ExpireEarly(voter) => format!("the vote of {} expires early", at(voter)),
        Move::Cut(client, voter) => {
            format!("the connection of {} to {} breaks", name(client), at(voter))
        }
        Move::Crash { voter, keeps_data: true } => format!("{} restarts", at(voter)),
        Move::Crash { voter, keeps_data: false } => {
            format!("{} restarts and has forgotten everything", at(voter))
        }
        Move::Die(client) => format!("{} dies and starts again", name(client)),
        Move::Step(client) => match state.next_sets(client, rules) {
            Some(sets) => format!("{} starts again with the voters {sets:?}", name(client)),
            None => format!("{} takes no step", name(client)),
        },
    }
}

fn name(client: u8) -> &'static str {
    ["ada", "ben", "cleo"][usize::from(client)]
}

fn request(request: Option<Request>) -> String {
    let Some(Request { kind, token, .. }) = request else { return String::new() };
    match kind {
        Kind::Renew | Kind::Keep if token > 0 => format!("renew with {token}"),
        kind => format!("{kind:?}").to_lowercase(),
    }
}

fn answer(answer: Answer) -> String {
    match answer {
        Answer::Granted { counter, .. } if counter > 0 => format!(": granted with {counter}"),
        Answer::Granted { .. } => ": granted".into(),
        Answer::Uncounted { .. } => ": granted, in quarantine".into(),
        Answer::Refused(by) => format!(": refused for {}", name(by.client)),
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
        (Phase::Holding { .. }, Phase::Idle) => " and has lost the lock".into(),
        _ => String::new(),
    }
}
