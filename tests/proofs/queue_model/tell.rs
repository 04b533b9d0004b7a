//! Steps in words.

use crate::queue_model::{
    kind::Kind,
    moves::Move,
    requests::Request,
    rules::{Rules, Turn, Wish},
    state::{Answer, Phase, State},
    voter::OWN,
};

/// The step from this state.
pub(crate) fn tell(state: &State, step: Move, rules: &Rules) -> String {
    let at = |voter: usize| format!("voter {}", state.names[voter]);
    let name = |place: usize| place_name(place, rules);
    match step {
        Move::Call(place) => format!("{} asks to {}", name(place), wish(place, rules)),
        Move::Win(place) => format!("{} wins", name(place)),
        Move::Lose(place, loss) => {
            let after = &state.after(step, rules).places[place];
            let then = if after.phase == Phase::Bidding { "bids again at once" } else { "waits" };
            let last = if loss.undo_last { ", then undoes the others" } else { "" };
            let heard = (0..rules.voters()).filter(|at| loss.heard >> at & 1 > 0);
            let heard: Vec<String> = heard.map(|at| state.names[at].to_string()).collect();
            let (heard, ticket) = (heard.join(" and "), after.ticket);
            format!("{} has lost, hearing {heard}: ticket {ticket}, {then}{last}", name(place))
        }
        Move::BidAgain(place) => format!("{} bids again", name(place)),
        Move::GiveUp(place) => format!("{} gives up", name(place)),
        Move::Renew(place) => format!("{} renews", name(place)),
        Move::Read(place) => format!("{} asks to read under its write", name(place)),
        Move::EndRead(place) => format!("{} gives up the read under its write", name(place)),
        Move::Release(place) => format!("{} releases", name(place)),
        Move::Pass(place) => format!("a deadline of {} passes", name(place)),
        Move::Arrive(client, voter) => {
            let first = state.voters[voter].lines[client].queue.first();
            let answer = state.voters[voter].clone().run_next(client, rules);
            let answer = answer.and_then(|(_, answer)| answer);
            format!("{} arrives at {}{}", request(first, rules), at(voter), told(answer))
        }
        Move::ArriveLate(client, voter) => {
            let first = state.voters[voter].lines[client].late.first();
            format!("late, {} arrives at {}", request(first, rules), at(voter))
        }
        Move::WriteEnds(voter) => format!("the vote of {} to write ends", at(voter)),
        Move::ReadEnds { voter, place, slot } => {
            let under = if slot == OWN { " under its write" } else { "" };
            format!("the vote of {} for {} to read{under} ends", at(voter), name(place))
        }
        Move::EntryEnds(place, voter) => {
            format!("the entry of {} at {} ends", name(place), at(voter))
        }
        Move::CountsAgain(voter) => format!("{} counts again", at(voter)),
        Move::Cut(client, voter) => {
            format!("the connection of {} to {} breaks", client_name(client), at(voter))
        }
        Move::Crash { voter, keeps_data: true } => format!("{} restarts", at(voter)),
        Move::Crash { voter, keeps_data: false } => {
            format!("{} restarts and has forgotten everything", at(voter))
        }
        Move::Die(client) => format!("{} dies", client_name(client)),
    }
}

fn client_name(client: usize) -> &'static str {
    ["ada", "ben", "cleo"][client]
}

fn place_name(place: usize, rules: &Rules) -> String {
    let name = client_name(rules.client_of(place));
    let first = rules.is_first_of_its_client(place);
    if first { name.into() } else { format!("{name}'s second") }
}

fn wish(place: usize, rules: &Rules) -> &'static str {
    match rules.wish(place) {
        Wish::Write => "write",
        Wish::Read(Turn::First) => "read before writers",
        Wish::Read(Turn::Next) => "read in turn",
        Wish::Read(Turn::Last) => "read after writers",
    }
}

fn request(request: Option<Request>, rules: &Rules) -> String {
    let Some(Request { kind, place, bid, ticket }) = request else { return String::new() };
    let name = place_name(place, rules);
    match kind {
        Kind::Bid if ticket > 0 => format!("bid {bid} of {name} with ticket {ticket}"),
        Kind::Bid => format!("bid {bid} of {name}"),
        Kind::Try => format!("the try of {name}"),
        Kind::Undo => format!("the undo of bid {bid} of {name}"),
        Kind::Leave => format!("the leaving of {name}"),
        Kind::Renew | Kind::RenewRead => format!("the renewal of {name}"),
        Kind::Read => format!("the read of {name} under its write"),
        Kind::EndRead => format!("the end of the read of {name} under its write"),
    }
}

fn told(answer: Option<Answer>) -> String {
    let Some(Answer { granted, uncounted, ticket, stands }) = answer else { return String::new() };
    let outcome = if granted { "granted" } else { "refused" };
    let uncounted = if uncounted { ", in quarantine" } else { "" };
    let stands = if stands { format!(", stands with ticket {ticket}") } else { String::new() };
    format!(": {outcome}{uncounted}{stands}")
}
