//! `quorate break`: ends what it showed, and nothing else.

use quorate::blocking::Quorate;
use quorate_support::eventually;

use crate::{
    losses::assert_dead_at,
    program::{Running, client_name, output},
    screen::Screen,
    status::json,
    voters::Voters,
};

fn hold(voters: &Voters, arguments: &[&str]) -> Running {
    Running::start(&mut voters.run(arguments, "exec sleep 1000"))
}

/// Who has the mutex by a majority.
fn holder(voters: &Voters, name: &str) -> Option<String> {
    let (_, seen) = json(&mut voters.quorate(&["status", name, "--json"]));
    seen["locks"][0]["holders"][0]["hold"].as_str().map(str::to_owned)
}

#[test]
fn the_holder_that_was_shown_is_ended_and_learns_of_it() {
    let voters = Voters::start();
    let mut running = hold(&voters, &["a"]);
    let (before, deadline) = (holder(&voters, "a").unwrap(), voters.deadline("a"));
    let (code, said, errors) = output(&mut voters.quorate(&["break", "a", "--yes"]));
    assert_eq!(code, 0, "{errors}");
    assert!(
        said.starts_with(&format!("`a` is held by {} for ", client_name(running.id()))),
        "{said}"
    );
    let rest = format!("s left unless renewed; 3 of 3 votes, hold {before}\n");
    assert!(said.contains(&rest), "{said}");
    // Who had it, and nothing that is over.
    let last = said.lines().last().unwrap();
    let ended = format!("ended: {before} of {}, confirmed by ", client_name(running.id()));
    assert!(last.starts_with(&ended) && last.ends_with(" of 3 voters"), "{said}");
    assert_dead_at(deadline, &running);
    let (code, errors) = running.end();
    assert_eq!(code, 76, "{errors}");
    assert!(errors.contains("ended by force"), "{errors}");
    let (code, said, _) = output(&mut voters.quorate(&["break", "a", "--yes"]));
    assert_eq!((code, &*said), (0, "nobody holds `a`\n"));
}

#[test]
fn the_hold_that_was_named_is_ended_and_no_other() {
    let voters = Voters::start();
    let mut first = hold(&voters, &["a"]);
    let seen = holder(&voters, "a").unwrap();
    let (code, ..) = output(&mut voters.quorate(&["break", "a", "--hold", &seen]));
    assert_eq!(code, 0);
    assert_eq!(first.end().0, 76);
    let mut second = hold(&voters, &["a"]);
    let next = holder(&voters, "a").unwrap();
    let (code, said, errors) = output(&mut voters.quorate(&["break", "a", "--hold", &seen]));
    assert_eq!((code, &*said), (65, ""), "{errors}");
    let first_line = format!("quorate: lock `a` is not held by {seen}: nothing was ended\n");
    assert!(errors.starts_with(&first_line), "{errors}");
    assert_eq!(errors.matches(&format!("held by {next}")).count(), 3, "{errors}");
    assert_eq!(holder(&voters, "a"), Some(next));
    assert!(!second.has_ended());
    assert_eq!(output(&mut voters.quorate(&["break", "a", "--hold", &seen, "--yes"])).0, 64);
}

#[test]
fn of_several_readers_the_one_that_was_named_is_ended() {
    let voters = Voters::start();
    let mut readers = [hold(&voters, &["a", "--read"]), hold(&voters, &["a", "--read"])];
    let see = || json(&mut voters.quorate(&["status", "a", "--json"])).1;
    let seen = see();
    let holds = seen["locks"][1]["holders"].as_array().unwrap();
    let of = |reader: &Running| {
        let is_its = |hold: &&serde_json::Value| {
            let name = hold["client_name"].as_str().unwrap();
            name.ends_with(&format!(".{}", reader.id()))
        };
        holds.iter().find(is_its).expect("it reads")["hold"].as_str().unwrap()
    };
    let hold = of(&readers[0]);
    assert_eq!(output(&mut voters.quorate(&["break", "a", "--hold", hold])).0, 0);
    assert_eq!(readers[0].end().0, 76);
    eventually("one reads", || see()["locks"][1]["holders"].as_array().unwrap().len() == 1);
    assert!(!readers[1].has_ended());
}

#[test]
fn permits_and_a_lead_of_the_name_are_ended_too() {
    let voters = Voters::start();
    let client = Quorate::connect(voters.urls().split(' ')).unwrap();
    let permits = client.semaphore("a", 3).acquire_many(2).unwrap();
    let leadership = client.election("a").campaign("10.0.0.1:80").unwrap();
    let (code, said, errors) = output(&mut voters.quorate(&["break", "a", "--yes"]));
    assert_eq!(code, 0, "{errors}");
    for (held, hold) in [("held, with permits,", permits.hold()), ("led", leadership.hold())] {
        let line = said.lines().find(|line| line.starts_with(&format!("`a` is {held} by ")));
        assert!(line.expect("it is shown").ends_with(&format!(", hold {hold}")), "{said}");
    }
    assert!(client.semaphore("a", 3).inspect().unwrap().holders.is_empty());
    assert_eq!(client.election("a").leader().unwrap(), None);
    assert!(permits.release().unwrap_err().is_lost());
    assert!(leadership.resign().unwrap_err().is_lost());
}

#[test]
fn on_a_terminal_it_asks_and_goes_by_the_answer_and_elsewhere_nobody_can_be_asked() {
    let voters = Voters::start();
    let mut running = hold(&voters, &["a"]);
    let before = holder(&voters, "a");
    let (code, said, errors) = output(&mut voters.quorate(&["break", "a"]));
    assert_eq!(code, 64, "{errors}");
    assert!(said.contains(before.as_ref().unwrap()) && errors.contains("--yes"), "{said}{errors}");
    let ask = |answer: &str| {
        let mut screen = Screen::start(&voters.quorate(&["break", "a"]));
        screen.shows("End it by force? [y/N] ");
        screen.press(answer);
        screen.end()
    };
    assert_eq!([ask("n\r"), ask("\r")], [Some(1), Some(1)]);
    assert_eq!(holder(&voters, "a"), before);
    assert!(!running.has_ended());
    assert_eq!(ask("y\r"), Some(0));
    assert_eq!(running.end().0, 76);
}
