//! `quorate lock`, `renew`, `unlock` and `run --ticket`: a lock for whoever has its ticket.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use quorate_support::{eventually, without_lasting};
use rustix::process::{Pid, Signal, getsid, kill_process, kill_process_group};

use crate::{
    processes::is_alive,
    program::{Running, output, with_environment_of},
    status::json,
    voters::Voters,
};

/// Takes the mutex `a` for a ticket.
fn lock(voters: &Voters, arguments: &[&str]) -> String {
    ticket(&mut voters.quorate(&[&["lock", "a"], arguments].concat()))
}

/// What it prints: a ticket in a line, and nothing else.
fn ticket(command: &mut Command) -> String {
    let (code, said, errors) = output(command);
    assert_eq!((code, &*errors), (0, ""), "{said}");
    let ticket = said.strip_suffix('\n').expect("it is a line");
    assert!(!ticket.is_empty() && !ticket.contains(char::is_whitespace), "{said}");
    ticket.to_owned()
}

fn unlock(voters: &Voters, ticket: &str) -> (i32, String, String) {
    output(&mut voters.quorate(&["unlock", ticket]))
}

/// Whether the lock is free at this moment.
fn is_free(voters: &Voters) -> bool {
    match output(&mut voters.run(&["a", "--try"], "true")) {
        (0, ..) => true,
        (75, ..) => false,
        other => panic!("{other:?}"),
    }
}

/// The process that renews the lock: the client of its holder.
fn keeper(voters: &Voters) -> u32 {
    let (_, seen) = json(&mut voters.quorate(&["status", "a", "--json"]));
    let client = seen["locks"][0]["holders"][0]["client_name"].as_str().expect("it has a holder");
    client.rsplit_once('.').expect("with its process").1.parse().expect("a number")
}

fn process(id: u32) -> Pid {
    Pid::from_raw(id.cast_signed()).expect("it is no zero")
}

/// An answer to a ticket that is good for nothing any more.
fn assert_used((code, said, errors): (i32, String, String)) {
    assert_eq!((code, &*said), (65, ""), "{errors}");
    assert!(errors.starts_with("quorate: the ticket of lock `a` "), "{errors}");
}

#[test]
fn a_lock_stays_taken_until_its_ticket_is_unlocked_and_is_then_free_at_once() {
    let voters = Voters::start();
    let ticket = lock(&voters, &[]);
    let keeper = keeper(&voters);
    assert!(!is_free(&voters));
    assert_eq!(unlock(&voters, &ticket), (0, String::new(), String::new()));
    assert!(is_free(&voters), "no lease is waited for");
    eventually("its process ends", || !is_alive(keeper));
    assert_used(unlock(&voters, &ticket));
    assert_used(output(&mut voters.quorate(&["renew", &ticket])));
    assert_used(output(
        &mut voters.quorate(&["run", "--ticket", &ticket, "--", "echo", "started"]),
    ));
    let left = || voters.0.iter().flat_map(|server| without_lasting(server.keys())).count();
    eventually("nothing is left of the lock", || left() == 0);
}

#[test]
fn a_command_runs_under_the_lock_of_a_ticket_and_frees_it() {
    let voters = Voters::start();
    let ticket = lock(&voters, &[]);
    let keeper = keeper(&voters);
    let script = "echo $QUORATE_LOCK; echo $QUORATE_TOKEN; exec sleep 1000";
    let mut first = Running::start(&mut voters.run(&["--ticket", &ticket], script));
    assert_eq!(first.says(), "a");
    let token: u64 = first.says().parse().expect("a number");
    eventually("the other process ends", || !is_alive(keeper));
    assert!(!is_free(&voters));
    assert_used(output(&mut voters.run(&["--ticket", &ticket], "echo started")));
    first.signal(Signal::TERM);
    assert_eq!(first.end().0, 143);
    let (code, next, errors) = output(&mut voters.run(&["a", "--try"], "echo $QUORATE_TOKEN"));
    assert_eq!(code, 0, "it was freed: {errors}");
    assert!(next.lines().nth(1).unwrap().parse::<u64>().unwrap() > token);
    let again = lock(&voters, &[]);
    let (code, ..) = output(&mut voters.run(&["--ticket", &again, "--keep", "4s"], "exit 7"));
    assert_eq!((code, is_free(&voters)), (7, true));
}

// A terminal sends SIGINT to the group of the shell, and SIGHUP when it is closed.
#[test]
fn the_process_of_a_ticket_has_nothing_of_its_caller_and_survives_it() {
    let voters = Voters::start();
    let folder = tempfile::tempdir().unwrap();
    let lock = voters.quorate(&["lock", "a"]);
    let mut shell = Command::new("sh");
    // The shell hands on a file: it could be one with a lock of `flock`.
    let open = folder.path().join("open");
    let script = format!("exec 9>{}; echo $$; \"$@\"; exec sleep 1000", open.display());
    shell.args(["-c", &script, "sh"]).arg(lock.get_program()).args(lock.get_args());
    let mut shell = Running::start(with_environment_of(&mut shell, &lock).process_group(0));
    let ticket = shell.says();
    let keeper = keeper(&voters);
    assert_eq!(getsid(Some(process(keeper))).unwrap(), process(keeper), "it leads a session");
    eventually("nothing but its own files is open", || {
        let files = fs::read_dir(format!("/proc/{keeper}/fd")).unwrap().map_while(Result::ok);
        let mut files = files.filter_map(|file| fs::read_link(file.path()).ok());
        let is_own = |file: PathBuf| {
            let file = file.to_string_lossy();
            ["/dev/null", "socket:", "anon_inode:"].iter().any(|own| file.starts_with(own))
        };
        files.all(is_own)
    });
    let line = fs::read_to_string(format!("/proc/{keeper}/cmdline")).unwrap();
    assert_eq!(line, "quorate\0__keep\0lock\0a\0");
    for signal in [Signal::INT, Signal::HUP] {
        // The first one may have ended all of them.
        let _ = kill_process_group(process(shell.group), signal);
    }
    shell.wait();
    assert!(is_alive(keeper) && !is_free(&voters));
    assert_eq!(unlock(&voters, &ticket).0, 0);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "real servers count real time")]
fn a_lock_whose_process_was_killed_is_free_after_its_lease_and_not_before() {
    let voters = Voters::start();
    let ticket = lock(&voters, &[]);
    kill_process(process(keeper(&voters)), Signal::KILL).unwrap();
    let deadline = voters.deadline("a");
    assert_eq!(output(&mut voters.run(&["a", "--wait", "20s"], "true")).0, 0);
    assert!(Instant::now() >= deadline, "it was given to somebody too early");
    assert_used(unlock(&voters, &ticket));
    // Who comes in time takes it over all the same.
    let ticket = lock(&voters, &[]);
    kill_process(process(keeper(&voters)), Signal::KILL).unwrap();
    assert_eq!(output(&mut voters.run(&["--ticket", &ticket], "true")).0, 0);
    assert!(is_free(&voters));
}

#[test]
fn a_ticket_ends_with_its_time() {
    let voters = Voters::start();
    let ticket = lock(&voters, &["--for", "6s"]);
    let keeper = keeper(&voters);
    assert_eq!(output(&mut voters.run(&["a", "--wait", "20s"], "true")).0, 0);
    eventually("its process ends", || !is_alive(keeper));
    assert_used(unlock(&voters, &ticket));
}

// The ticket that is renewed is an argument of the one process, and not of the other.
#[test]
fn a_renewed_ticket_replaces_the_old_one_and_lasts_longer() {
    let voters = Voters::start();
    let first = lock(&voters, &["--for", "8s"]);
    let old = keeper(&voters);
    let second = ticket(&mut voters.quorate(&["renew", &first, "--for", "1h"]));
    assert_ne!(first, second);
    eventually("the first process ends", || !is_alive(old));
    let line = fs::read_to_string(format!("/proc/{}/cmdline", keeper(&voters))).unwrap();
    assert_eq!(line, "quorate\0__keep\0renew\0-\0--for\x001h\0");
    assert_used(unlock(&voters, &first));
    // The time of the first is over, and leases more than that.
    assert_eq!(output(&mut voters.run(&["a", "--wait", "14s"], "true")).0, 75);
    assert_eq!(unlock(&voters, &second).0, 0);
    assert!(is_free(&voters));
}

#[test]
fn of_several_that_unlock_at_the_same_time_one_does() {
    let voters = Voters::start();
    for _ in 0..5 {
        let ticket = lock(&voters, &[]);
        let (ticket, voters) = (&*ticket, &voters);
        let ended = thread::scope(|scope| {
            let unlocks = [(); 3].map(|()| scope.spawn(move || unlock(voters, ticket)));
            unlocks.map(|unlocked| unlocked.join().unwrap())
        });
        let mut codes = ended.each_ref().map(|(code, ..)| *code);
        codes.sort_unstable();
        assert_eq!(codes, [0, 65, 65], "{ended:?}");
        assert!(is_free(voters));
    }
}

#[test]
fn a_ticket_comes_from_the_input_or_the_environment() {
    let voters = Voters::start();
    let from_input = |arguments: &[&str], text: &str| {
        let mut command = voters.quorate(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().unwrap();
        running.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        running.wait_with_output().unwrap()
    };
    let ticket = lock(&voters, &[]);
    let renewed = from_input(&["renew", "-"], &format!("{ticket}\n"));
    let ticket = String::from_utf8(renewed.stdout).unwrap();
    // The rest of the input is the command's.
    let ended = from_input(&["run", "--ticket", "-", "--", "cat"], &format!("{ticket}one\ntwo\n"));
    assert_eq!((ended.status.code(), &*ended.stdout), (Some(0), &b"one\ntwo\n"[..]), "{ended:?}");
    let ticket = lock(&voters, &[]);
    let mut run = voters.run(&["--ticket"], "echo $QUORATE_LOCK");
    assert_eq!(output(run.env("QUORATE_TICKET", &ticket)).0, 0);
    let ticket = lock(&voters, &[]);
    let mut renew = voters.quorate(&["renew"]);
    let renewed = self::ticket(renew.env("QUORATE_TICKET", &ticket));
    assert_eq!(output(voters.quorate(&["unlock"]).env("QUORATE_TICKET", &renewed)).0, 0);
    assert!(is_free(&voters));
    let used = &*renewed;
    for arguments in [
        &["unlock"][..],
        &["unlock", "no-ticket"],
        &["unlock", "-"],
        &["renew"],
        &["renew", "no-ticket"],
        &["lock"],
        &["lock", ""],
        &["lock", "a", "--for", "0"],
        &["lock", "a", "--read"],
        &["run", "--ticket", "no-ticket", "--", "true"],
        &["run", "--ticket", "--", "true"],
        &["run", "a", "--ticket", used, "--", "true"],
        &["run", "--ticket", used, "--fair", "--", "true"],
        &["run", "--", "true"],
    ] {
        let (code, said, errors) = output(&mut voters.quorate(arguments));
        assert_eq!((code, &*said), (64, ""), "{arguments:?}: {errors}");
        assert!(!errors.contains(used), "a secret is not repeated: {errors}");
    }
}

#[test]
fn a_lock_that_is_taken_is_waited_for_as_by_run() {
    let voters = Voters::start();
    let holder = Running::start(&mut voters.run(&["a"], "exec sleep 1000"));
    for limit in [&["--try"][..], &["--wait", "200ms"]] {
        let (code, said, errors) = output(&mut voters.quorate(&[&["lock", "a"], limit].concat()));
        assert_eq!((code, &*said), (75, ""), "{errors}");
        assert!(errors.starts_with("quorate: lock `a` is taken by "), "{errors}");
    }
    let mut waiting = Running::start_soon(&mut voters.quorate(&["lock", "a", "--fair"]));
    let is_queued = || {
        let queue = "quorate:{a}:queue".to_owned();
        voters.0.iter().any(|server| server.keys().contains(&queue))
    };
    eventually("it stands in the queue", is_queued);
    waiting.signal(Signal::INT);
    assert_eq!(waiting.wait().signal(), Some(Signal::INT.as_raw()));
    eventually("it left the queue", || !is_queued());
    let waiting = Running::start_soon(&mut voters.quorate(&["lock", "a"]));
    drop(holder);
    assert_eq!(unlock(&voters, &waiting.says()).0, 0);
}

#[test]
fn a_ticket_that_nobody_reads_keeps_nobody_out() {
    let voters = Voters::start();
    let mut full = voters.quorate(&["lock", "a"]);
    let full = full.stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
    assert_eq!(full.status().unwrap().code(), Some(71));
    eventually("it is free before its time is over", || is_free(&voters));
}

#[test]
fn a_hold_that_waits_for_its_ticket_is_shown_as_such() {
    let voters = Voters::start();
    let ticket = lock(&voters, &[]);
    let parked = || {
        let (_, said, _) = output(&mut voters.quorate(&["status", "a"]));
        said.contains("parked")
    };
    assert!(parked());
    let running = Running::start(&mut voters.run(&["--ticket", &ticket], "exec sleep 1000"));
    assert!(!parked());
    drop(running);
}
