//! `quorate status`: what operators and their programs see.

use std::process::Command;

use quorate::blocking::Quorate;
use quorate_support::{RedisServer, Settings, eventually};
use quorate_tests::rights;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    program::{Running, client_name, output, quorate},
    screen::Screen,
    voters::Voters,
};

/// What the program wrote as JSON, and its exit code.
pub(crate) fn json(command: &mut Command) -> (i32, Value) {
    let (code, said, errors) = output(command);
    let json = serde_json::from_str(&said);
    (code, json.unwrap_or_else(|error| panic!("{error}: {said} {errors}")))
}

/// Holds locks until it is dropped.
fn hold(voters: &Voters, arguments: &[&str]) -> Running {
    Running::start(&mut voters.run(arguments, "exec sleep 1000"))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("it is an object").keys().map(String::as_str).collect()
}

// The shape that the page promises: fields may be added, and none may go.
#[test]
fn the_voters_and_the_locks_are_there_for_programs() {
    let voters = Voters::start();
    let holder = hold(&voters, &["invoice:42"]);
    let _reader = hold(&voters, &["prices", "--read"]);
    let (code, seen) = json(&mut voters.quorate(&["status", "--json"]));
    assert_eq!((code, &seen["version"]), (0, &1.into()));
    assert_eq!(keys(&seen), ["found", "locks", "status", "survey", "version"]);
    let status = &seen["status"];
    assert_eq!((&status["has_quorum"], &status["needed"]), (&true.into(), &2.into()));
    assert_eq!(seen["found"]["is_complete"], true);
    assert_eq!(seen["survey"]["lease_ms"], 4_000);
    for (voter, server) in seen["survey"]["voters"].as_array().unwrap().iter().zip(&voters.0) {
        assert_eq!(voter["voter"], format!("127.0.0.1:{}", server.port()));
        assert_eq!((&voter["counts"], &voter["wake_error"]), (&true.into(), &Value::Null));
        assert_eq!(voter["quarantine"], Value::Null);
        assert!(voter["round_trip_us"].as_u64().is_some_and(|trip| trip > 0), "{voter}");
        let said = &voter["servers"][0];
        assert_eq!((&said["is_primary"], &said["software"]), (&true.into(), &"redis".into()));
        assert_eq!(said["eviction_policy"], "noeviction");
        assert_eq!(said["persistence"]["is_durable"], false);
        assert_eq!(
            (&said["replicas"], &said["missing_rights"]),
            (&0.into(), &Value::Array(vec![]))
        );
        assert!(said["version"].is_string() && said["clock"]["ahead_us"].is_i64(), "{said}");
    }
    let locks = seen["locks"].as_array().unwrap();
    assert_eq!(locks.len(), 2, "{seen}");
    let (mutex, rw_lock) = (&locks[0], &locks[1]);
    assert_eq!((&mutex["kind"], &rw_lock["kind"]), (&"mutex".into(), &"rw_lock".into()));
    assert_eq!((&locks[0]["name"], &locks[1]["name"]), (&"invoice:42".into(), &"prices".into()));
    let name = client_name(holder.id());
    assert_eq!(
        (&mutex["holders"][0]["client_name"], &mutex["agree"]),
        (&name.into(), &true.into())
    );
    assert!(mutex["token"].is_u64() && mutex["holders"][0]["ttl_ms"].is_u64(), "{mutex}");
    assert_eq!(
        (&rw_lock["holders"][0]["kind"], rw_lock["holders"].as_array().unwrap().len()),
        (&"read".into(), 1)
    );
}

#[test]
fn a_lock_is_shown_with_its_holder_and_its_queue_in_order() {
    let voters = Voters::start();
    let _holder = hold(&voters, &["a", "--fair"]);
    let see = || json(&mut voters.quorate(&["status", "a", "--json"])).1;
    let waiting = |count: usize| {
        eventually("it waits", || {
            let seen = see();
            seen["locks"][0]["waiting"].as_array().unwrap().len() == count
        });
    };
    let first = Running::start_soon(&mut voters.run(&["a", "--fair"], "exec sleep 1000"));
    waiting(1);
    let second = Running::start_soon(&mut voters.run(&["a", "--fair"], "exec sleep 1000"));
    waiting(2);
    let seen = see();
    let queue = seen["locks"][0]["waiting"].as_array().unwrap();
    let names = queue.iter().map(|place| place["client_name"].as_str().unwrap());
    let ids = [first.id(), second.id()].map(|id| format!(".{id}"));
    assert!(names.zip(&ids).all(|(name, id)| name.ends_with(id)), "{queue:?}");
    assert_eq!(seen["locks"][1]["is_free"], true, "another lock of the name");
    let (code, said, _) = output(&mut voters.quorate(&["status", "a"]));
    assert_eq!(code, 0);
    let hold = seen["locks"][0]["holders"][0]["hold"].as_str().unwrap();
    assert!(said.starts_with("mutex `a`: held by ") && said.contains(hold), "{said}");
    assert!(said.contains("all 3 voters agree") && said.contains("  2. "), "{said}");
    let (_, said, _) = output(&mut voters.quorate(&["status", "b"]));
    assert_eq!(said, "`b`: free, and nobody waits\n");
}

// The last of its waiters died: of `gone` there is only a queue whose places have ended.
#[test]
fn the_state_comes_first_and_all_fits_a_terminal_unless_more_is_asked_for() {
    let voters = Voters::start();
    let _holds = [hold(&voters, &["invoice:42"]), hold(&voters, &["prices", "--read"])];
    for server in &voters.0 {
        server.command(&["ZADD", "quorate:{gone}:queue", "1", "somebody"]).unwrap();
    }
    let (_, said, _) = output(&mut voters.quorate(&["status"]));
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    for server in &voters.0 {
        assert!(said.contains(&format!("\nconnected  127.0.0.1:{} ", server.port())), "{said}");
    }
    assert!(said.contains("\n2 locks held or waited for\n") && !said.contains("gone"), "{said}");
    let (_, seen) = json(&mut voters.quorate(&["status", "--json"]));
    let holder =
        &seen["locks"].as_array().unwrap().iter().find(|lock| lock["name"] == "invoice:42");
    let holder = &holder.unwrap()["holders"][0];
    let [id, client] = ["hold", "client_name"].map(|key| holder[key].as_str().unwrap());
    assert!(said.contains(client) && !said.contains(id), "{said}");
    let (_, said, errors) = output(&mut voters.quorate(&["status", "-v"]));
    assert!(said.contains(id) && said.contains("noeviction"), "{said}");
    assert_eq!(errors, "", "the log comes with the second");
    assert!(output(&mut voters.quorate(&["status", "-vv"])).2.contains("client connected"));
    // What ends soon is seen before what is long.
    let (_, said, _) = output(&mut voters.quorate(&["status", "invoice:42"]));
    let width = |line: &str| line.find(" more").or(line.find(client)).unwrap_or_default();
    assert!(said.contains(id) && said.lines().all(|line| width(line) < 80), "{said}");
}

// Of the holder and of who waits, and for whoever finds the lock taken. Nothing of it moves a
// cursor.
#[test]
fn what_a_lock_is_held_for_is_shown_to_people_and_programs() {
    let voters = Voters::start();
    let _holder = hold(&voters, &["a", "--fair", "--note", "job 42"]);
    let _waits = Running::start_soon(
        &mut voters.run(&["a", "--fair", "--note", "\u{202e}\"job\" 43"], "exec sleep 1000"),
    );
    let mut seen = Value::Null;
    eventually("it waits", || {
        seen = json(&mut voters.quorate(&["status", "a", "--json"])).1;
        seen["locks"][0]["waiting"][0].is_object()
    });
    let [held, waits] = ["holders", "waiting"].map(|list| &seen["locks"][0][list][0]["note"]);
    assert_eq!((held, waits), (&"job 42".into(), &"\u{202e}\"job\" 43".into()));
    let says = |arguments: &[&str], text: &str| {
        let (_, said, errors) = output(&mut voters.quorate(arguments));
        assert!(said.contains(text) || errors.contains(text), "{said}{errors}");
        assert!(!said.contains('\u{202e}'), "{said}");
    };
    says(&["status", "a"], " more (\"job 42\")\n");
    says(&["status", "a"], " (\"\\u{202e}\\\"job\\\" 43\"), ticket ");
    says(&["status", "-v"], "  \"job 42\"\n");
    says(&["run", "a", "--try", "--", "true"], " (\"job 42\"), for ");
    says(&["break", "a", "--yes"], " (\"job 42\") for ");
    let (code, _, errors) = output(&mut voters.run(&["b", "--note", &"n".repeat(201)], "true"));
    assert_eq!(code, 64, "{errors}");
    assert!(errors.contains("the note has 201 bytes, the limit is 200"), "{errors}");
}

#[test]
fn elections_and_semaphores_are_shown_with_what_is_theirs() {
    let voters = Voters::start();
    let client = Quorate::connect(voters.urls().split(' ')).unwrap();
    let leadership = client.election("lead").campaign("10.0.0.1:80").unwrap();
    let permits = client.semaphore("permits", 5).acquire_many(2).unwrap();
    let (code, seen) = json(&mut voters.quorate(&["status", "--json"]));
    assert_eq!(code, 0, "{seen}");
    let (election, semaphore) = (&seen["locks"][0], &seen["locks"][1]);
    assert_eq!((&election["kind"], &election["name"]), (&"election".into(), &"lead".into()));
    assert_eq!((&semaphore["kind"], &semaphore["name"]), (&"semaphore".into(), &"permits".into()));
    assert_eq!(election["holders"][0]["hold"], leadership.hold().as_str());
    assert_eq!(election["leader"]["value"], "10.0.0.1:80");
    assert_eq!(election["agree"], true);
    assert_eq!(semaphore["holders"][0]["hold"], permits.hold().as_str(), "{seen}");
    assert_eq!((&semaphore["permits"], &semaphore["free"]), (&5.into(), &3.into()), "{seen}");
    let (_, all, _) = output(&mut voters.quorate(&["status"]));
    for (name, begin, inside, row) in [
        ("lead", "election `lead`: held by ", "the leader says: 10.0.0.1:80", "election"),
        (
            "permits",
            "semaphore `permits`: 2 of 5 permits taken",
            permits.hold().as_str(),
            "2 of 5 permits taken",
        ),
    ] {
        let (_, said, _) = output(&mut voters.quorate(&["status", name]));
        assert!(said.starts_with(begin) && said.contains(inside), "{said}");
        let line = all.lines().find(|line| line.starts_with(&format!("{name}  ")));
        assert!(line.expect("it is found").contains(row), "{all}");
    }
    permits.release().unwrap();
    leadership.resign().unwrap();
}

#[test]
fn a_job_is_shown_by_its_name_with_the_firing_that_is_done() {
    let voters = Voters::start();
    let (code, _, errors) = output(&mut voters.run(&["nightly", "--once", "7"], "true"));
    assert_eq!(code, 0, "{errors}");
    let see = || output(&mut voters.quorate(&["status", "nightly"])).1;
    let mut seen = String::new();
    eventually("the slowest server has heard of it", || {
        seen = see();
        seen.contains("all 3 voters agree")
    });
    assert!(seen.starts_with("job `nightly`: free\n"), "{seen}");
    assert!(seen.contains("\n  the firing 7 is done, ") && seen.ends_with(" ago\n"), "{seen}");
    for server in &voters.0[1..] {
        server.command(&["DEL", "quorate:{nightly}:once:done"]).unwrap();
    }
    let seen = see();
    assert!(seen.contains("the voters do not agree"), "{seen}");
    assert!(seen.ends_with(" ago, which no majority knows\n"), "{seen}");
    let (_, seen) = json(&mut voters.quorate(&["status", "nightly", "--json"]));
    let job = seen["locks"].as_array().unwrap().iter().find(|lock| lock["kind"] == "once").unwrap();
    assert_eq!((&job["done"]["firing"], &job["agree"]), (&7.into(), &false.into()));
    assert!(job["done"]["when_ms"].as_u64().unwrap() > 1_700_000_000_000, "{job}");
    let of_voter = |voter: usize| &job["voters"][voter]["done"];
    assert_eq!((of_voter(0), of_voter(1)), (&job["done"], &Value::Null));
    // Only what is held or waited for is listed.
    let (_, said, _) = output(&mut voters.quorate(&["status"]));
    assert!(said.contains("0 locks held or waited for"), "{said}");
}

#[test]
fn voters_that_are_down_are_shown_and_without_a_majority_the_code_says_so() {
    let mut voters = Voters::start();
    let urls = voters.urls();
    voters.0[0].kill();
    let (code, said, _) = output(&mut voters.quorate(&["status"]));
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("2 of 3 votes count, 2 are needed\n"), "{said}");
    let line = said.lines().find(|line| line.contains("unreachable")).expect("one is down");
    assert!(line.starts_with(&format!("127.0.0.1:{}", voters.0[0].port())), "{said}");
    let (_, said, _) = output(&mut voters.quorate(&["status", "a"]));
    assert!(said.contains("`a`: free"), "{said}");
    voters.0[1].kill();
    let status = |arguments: &[&str]| {
        let mut command = quorate([&["status"], arguments].concat());
        command.env("QUORATE_VOTERS", &urls);
        command
    };
    for arguments in [&[][..], &["a"]] {
        let (code, said, errors) = output(&mut status(arguments));
        assert_eq!(code, 69, "{errors}");
        assert!(errors.starts_with("quorate: fewer than 2 of 3 voters could"), "{errors}");
        assert!(said.starts_with("STATE      VOTER\n"), "{said}");
        for (server, is_down) in voters.0.iter().zip([true, true, false]) {
            let voter = format!("127.0.0.1:{}", server.port());
            let state = if is_down { "away       " } else { "connected  " };
            assert!(said.contains(&format!("\n{state}{voter}\n")), "{said}");
            let cause = format!("\n  {voter}: unreachable: ");
            assert_eq!(errors.contains(&cause), is_down, "{errors}");
        }
    }
    let (code, seen) = json(&mut status(&["--json"]));
    assert_eq!((code, &seen["version"]), (69, &1.into()));
    assert_eq!(keys(&seen), ["error", "locks", "status", "survey", "version"]);
    assert_eq!((&seen["status"]["has_quorum"], &seen["locks"]), (&false.into(), &json!([])));
    let errors: Vec<_> = seen["survey"]["voters"].as_array().unwrap().iter().collect();
    assert!(errors[0]["error"].is_string() && errors[2]["error"].is_null(), "{seen}");
}

#[test]
fn watching_begins_without_a_majority() {
    let voters = Voters::start();
    voters.0[1..].iter().for_each(RedisServer::stop);
    let mut command = voters.quorate(&["status", "--watch", "--json", "--interval", "100ms"]);
    let mut watch = Running::start_soon(command.env("QUORATE_CONNECT_TIMEOUT", "500ms"));
    let has_quorum = |line: &str| {
        let seen: Value = serde_json::from_str(line).expect("it is JSON");
        seen["status"]["has_quorum"].as_bool().unwrap()
    };
    assert!(!has_quorum(&watch.says()));
    voters.0[1..].iter().for_each(RedisServer::resume);
    eventually("a majority is there", || has_quorum(&watch.says()));
    watch.signal(Signal::TERM);
    assert_eq!(watch.end().0, 0);
}

#[test]
fn a_lock_that_a_minority_holds_is_shown_as_it_is() {
    let voters = Voters::start();
    voters.0[2].command(&["HSET", "quorate:{a}", "somebody\x1b[2Jelse", "1"]).unwrap();
    let (code, said, _) = output(&mut voters.quorate(&["status", "a"]));
    assert_eq!(code, 0);
    assert!(said.starts_with("mutex `a`: free\nthe voters do not agree\n"), "{said}");
    assert!(said.contains("somebody\\u{1b}[2Jelse") && !said.contains('\x1b'), "{said:?}");
    let (_, said, _) = output(&mut voters.quorate(&["status"]));
    assert!(said.contains("1 lock held or waited for") && !said.contains('\x1b'), "{said:?}");
}

#[test]
fn so_many_locks_are_looked_for_and_those_that_fit() {
    let voters = Voters::start();
    let _holds = ["invoice:1", "invoice:2", "prices"].map(|name| hold(&voters, &[name]));
    let found = |arguments: &[&str]| {
        let all = [&["status", "--json"], arguments].concat();
        let (_, seen) = json(&mut voters.quorate(&all));
        let locks = seen["locks"].as_array().unwrap().iter();
        let names: Vec<_> = locks.map(|lock| lock["name"].as_str().unwrap().to_owned()).collect();
        (names, seen["found"]["is_complete"].as_bool().unwrap())
    };
    assert_eq!(found(&[]).0, ["invoice:1", "invoice:2", "prices"]);
    let invoices = vec!["invoice:1".to_owned(), "invoice:2".to_owned()];
    assert_eq!(found(&["--match", "invoice:*"]), (invoices, true));
    assert_eq!(found(&["--limit", "1"]), (vec!["invoice:1".to_owned()], false));
    let (_, said, _) = output(&mut voters.quorate(&["status", "--limit", "1"]));
    assert!(said.contains("1 lock held or waited for, and there are more"), "{said}");
    assert_eq!(output(&mut voters.quorate(&["status", "a", "--limit", "1"])).0, 64);
}

#[test]
fn without_the_right_to_look_for_locks_the_voters_are_shown_all_the_same() {
    let documented = rights::documented().join(" ");
    let users =
        [format!("quorate on >pw {documented}"), format!("looker on >pw {documented} +scan")];
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let servers = RedisServer::start_many(&Settings::new().users(&users), 3);
    let shown = |user: &str| {
        let urls: Vec<_> = servers.iter().map(|server| server.url_as(user, "pw")).collect();
        let mut command = quorate(["status"]);
        let (code, said, errors) = output(command.env("QUORATE_VOTERS", urls.join(" ")));
        assert_eq!(code, 0, "{errors}");
        assert!(said.starts_with("3 of 3 votes count"), "{said}");
        said
    };
    let said = shown("quorate");
    assert_eq!(said.matches("not looked for on 127.0.0.1:").count(), 3, "{said}");
    assert!(said.contains("'scan' command"), "{said}");
    let said = shown("looker");
    assert!(!said.contains("not looked for"), "{said}");
}

/// Of a line, without what only changes colours or moves the cursor.
fn width(line: &str) -> usize {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().chars().count();
    let rest = parts.map(|part| {
        let end =
            part.find(|sign: char| sign.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        part[end..].chars().count()
    });
    first + rest.max().unwrap_or_default()
}

// The lines stay where they are: each look begins at the top, and the end brings back what was
// there before, with the last look below.
#[test]
fn watched_on_a_terminal_it_is_drawn_in_place_until_the_user_ends_it() {
    let voters = Voters::start();
    let holder = hold(&voters, &["a"]);
    let watch = voters.quorate(&["status", "a", "--watch", "--interval", "100ms"]);
    let mut screen = Screen::start(&watch);
    screen.shows("\x1b[?1049h\x1b[?25l\x1b[H");
    screen.shows("mutex `a`: held by ");
    eventually("it is drawn again", || screen.shown().matches("\x1b[H").count() > 3);
    // Each look begins with a line of its own.
    let shown = screen.shown().replace("\x1b[H", "\r\n");
    assert!(shown.split("\r\n").all(|line| width(line) <= 40), "{shown:?}");
    drop(holder);
    screen.shows("`a`: free, and nobody waits");
    screen.press("\x03");
    assert_eq!(screen.end(), Some(0));
    let shown = screen.shown();
    let (_, after) = shown.split_once("\x1b[?25h\x1b[?1049l").expect("the terminal is as it was");
    assert!(after.contains("`a`: free, and nobody waits"), "{after:?}");
}

#[test]
fn on_a_narrow_screen_a_name_is_shortened_and_its_holder_is_not() {
    let voters = Voters::start();
    let name = "billing/2026-11/invoices/of-the-european-branch/nr-10042";
    assert_eq!(name.len(), 56);
    let holder = hold(&voters, &[name]);
    let client = client_name(holder.id());
    for (columns, begin, end) in [(80, "billing", "10042"), (60, "bill", "0042")] {
        for arguments in [&["status", "--watch"][..], &["status", name, "--watch"]] {
            let watch = voters.quorate(arguments);
            let words: Vec<_> = [watch.get_program()].into_iter().chain(watch.get_args()).collect();
            let words: Vec<_> =
                words.iter().map(|word| word.to_str().expect("it is text")).collect();
            let line = format!("stty rows 24 cols {columns}; exec {}", words.join(" "));
            let mut screen = Screen::run(&line, &watch);
            screen.shows("\x1b[J");
            let shown = screen.shown();
            let shown = shown.split("\x1b[J").next().expect("a look").replace("\x1b[H", "\r\n");
            let lines: Vec<_> = shown.split("\r\n").collect();
            assert!(lines.iter().all(|line| width(line) <= columns), "{shown:?}");
            let named = lines.iter().position(|line| line.contains(begin)).expect("it is named");
            assert!(lines[named].contains('…') && lines[named].contains(end), "{shown:?}");
            // On a host with a long name, in the next line.
            assert!(lines[named..].concat().contains(&client), "{client}: {shown:?}");
            screen.press("\x03");
            assert_eq!(screen.end(), Some(0));
            let shown = screen.shown();
            let (_, after) = shown.rsplit_once("\x1b[?1049l").expect("it is left");
            assert!(after.contains(name), "what stays is whole: {after:?}");
        }
    }
}

#[test]
fn watched_by_a_program_each_look_is_a_line() {
    let voters = Voters::start();
    let arguments = ["status", "a", "--watch", "--json", "--interval", "100ms"];
    let mut watch = Running::start_soon(&mut voters.quorate(&arguments));
    let is_free = |line: &str| {
        let seen: Value = serde_json::from_str(line).expect("it is JSON");
        seen["locks"][0]["is_free"].as_bool().unwrap()
    };
    assert!(is_free(&watch.says()));
    let holder = hold(&voters, &["a"]);
    eventually("it is held", || !is_free(&watch.says()));
    drop(holder);
    eventually("it is free", || is_free(&watch.says()));
    watch.signal(Signal::TERM);
    assert_eq!(watch.end().0, 0);
}
