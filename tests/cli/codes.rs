//! How the program ends, and what the command gets.

use std::{fs, io::Write, process::Stdio};

use quorate_support::{eventually, free_port, without_lasting};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    program::{Running, client_name, output, quorate},
    status::json,
    voters::Voters,
};

#[test]
fn the_code_is_that_of_the_command_or_says_that_it_cannot_be_executed() {
    let voters = Voters::start();
    for (script, code) in
        [("true", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
    {
        assert_eq!(output(&mut voters.run(&["a"], script)).0, code, "{script}");
    }
    for (command, code) in [("/no/such/program", 127), ("no-such-program", 127), ("/etc", 126)] {
        let (ended, _, errors) = output(&mut voters.quorate(&["run", "a", "--", command]));
        assert_eq!(ended, code, "{errors}");
        assert!(errors.starts_with(&format!("quorate: cannot execute `{command}`: ")), "{errors}");
    }
    let left = || voters.0.iter().flat_map(|server| without_lasting(server.keys())).count();
    eventually("nothing is left of the locks", || left() == 0);
}

#[test]
fn a_lock_that_is_taken_names_its_holder() {
    let voters = Voters::start();
    let holder = Running::start(&mut voters.run(&["a"], "exec sleep 1000"));
    for limit in [&["--try"][..], &["--wait", "200ms"], &["--wait", "1"]] {
        let arguments = [&["a"], limit].concat();
        let (code, said, errors) = output(&mut voters.run(&arguments, "echo started"));
        assert_eq!((code, &*said), (75, ""), "{errors}");
        let name = client_name(holder.id());
        assert!(errors.starts_with("quorate: lock `a` is taken by "), "{errors}");
        assert!(errors.contains(&format!(" {name}, for ")), "{name} is not named: {errors}");
        assert!(errors.lines().count() == 1 && !errors.contains('@'), "cron mails it: {errors}");
    }
    let (_, _, errors) = output(&mut voters.run(&["a", "--try", "-v"], "true"));
    let of_voters = errors.lines().filter(|line| line.starts_with("  127.0.0.1:")).count();
    assert!(errors.contains('@') && of_voters == 3, "{errors}");
    let (code, ..) = output(&mut voters.run(&["b", "--try"], "true"));
    assert_eq!(code, 0, "another lock is free");
}

#[test]
fn who_does_not_wait_hears_of_the_holder_also_where_others_wait() {
    let voters = Voters::start();
    for kind in [&[][..], &["--fair"]] {
        let run = |more: &[&str], script: &str| voters.run(&[&["a"], kind, more].concat(), script);
        let holder = Running::start(&mut run(&[], "exec sleep 1000"));
        let _waits = Running::start_soon(&mut run(&[], "exec sleep 1000"));
        eventually("it waits", || {
            let (_, seen) = json(&mut voters.quorate(&["status", "a", "--json"]));
            let waiting = |lock: &Value| lock["waiting"].as_array().map_or(0, Vec::len);
            seen["locks"].as_array().expect("there are locks").iter().map(waiting).sum::<usize>()
                == 1
        });
        let (code, _, errors) = output(&mut run(&["--try"], "true"));
        let expected = format!("quorate: lock `a` is taken by {}", client_name(holder.id()));
        assert_eq!((code, errors.starts_with(&expected)), (75, true), "{kind:?}: {errors}");
    }
}

#[test]
fn without_a_quorum_each_voter_is_named_in_a_line() {
    let ports = [free_port(), free_port(), free_port()];
    let urls = ports.map(|port| format!("redis://127.0.0.1:{port}"));
    let mut command = quorate(["run", "a", "--", "true"]);
    let (code, _, errors) = output(command.env("QUORATE_VOTERS", urls.join(" ")));
    assert_eq!(code, 69, "{errors}");
    let lines: Vec<_> = errors.lines().collect();
    assert!(lines[0].starts_with("quorate: fewer than 2 of 3 voters could be reached"), "{errors}");
    for (line, port) in lines[1..].iter().zip(ports) {
        assert!(line.starts_with(&format!("  127.0.0.1:{port}: unreachable: ")), "{errors}");
    }
    assert_eq!(lines.len(), 4, "{errors}");
}

#[test]
fn a_command_line_that_cannot_be_used_is_refused() {
    for arguments in [
        &["run"][..],
        &["run", "a"],
        &["run", "a", "true"],
        &["run", "a", "--try", "--wait", "1s", "--", "true"],
        &["run", "a", "--read", "--write", "--", "true"],
        &["run", "a", "--wait", "1w", "--", "true"],
        &["run", "a", "--lease", "500ms", "--", "true"],
        &["run", "a", "--max-hold", "0", "--", "true"],
        &["run", "a", "--max-hold", "2s", "--grace", "1s", "--", "true"],
        &["run", "a", "--grace", "3s", "--", "true"],
        &["run", "a", "--cluster-voters", "3", "--", "true"],
        &["status", ""],
        &["break", "", "--yes"],
        &["leader", ""],
        &["no-such-subcommand"],
        &[],
    ] {
        let mut command = quorate(arguments);
        let (code, said, errors) = output(command.env("QUORATE_VOTERS", "redis://127.0.0.1:1"));
        assert_eq!((code, &*said), (64, ""), "{arguments:?}: {errors}");
        let told = ["error: ", "quorate: "].map(|start| errors.matches(start).count());
        assert!(told.iter().sum::<usize>() <= 1, "{arguments:?}: {errors}");
    }
    assert_eq!(output(&mut quorate(["run", "a", "--", "true"])).0, 64, "no voters");
    let voters = Voters::start();
    assert_eq!(output(&mut voters.run(&[""], "true")).0, 64, "no lock has this name");
}

#[test]
fn the_command_gets_its_arguments_as_they_are_and_the_input() {
    let voters = Voters::start();
    let arguments = ["a b", "$HOME", "*", "", "--try", "-q", "--", "\\'\""];
    let command = [&["run", "a", "--", "printf", "%s|"][..], &arguments].concat();
    let (code, said, _) = output(&mut voters.quorate(&command));
    assert_eq!((code, said), (0, arguments.map(|argument| format!("{argument}|")).concat()));
    let mut program = voters.quorate(&["run", "a", "--", "cat"]);
    program.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = program.spawn().unwrap();
    program.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    assert_eq!(program.wait_with_output().unwrap().stdout, b"one\ntwo\n");
}

#[test]
fn the_command_knows_its_lock_and_its_deadline() {
    let voters = Voters::start();
    let script = "echo $QUORATE_LOCK; echo $QUORATE_TOKEN; echo $QUORATE_HOLD
        echo $QUORATE_DEADLINE_FILE; exec sleep 1000";
    let running = Running::start(&mut voters.run(&["a b"], script));
    assert_eq!(running.says(), "a b");
    let token: u64 = running.says().parse().unwrap();
    let hold = running.says();
    let (_, _, errors) = output(&mut voters.run(&["a b", "--try", "-v"], "true"));
    assert!(errors.contains(&hold), "{hold}: {errors}");
    let file = running.says();
    let deadline = || fs::read_to_string(&file).unwrap().trim().parse::<u64>().unwrap();
    let first = deadline();
    // Microseconds and milliseconds of the same day.
    assert!(token / 1_000 < first && first < token / 1_000 + 86_400_000, "{token} {first}");
    eventually("it moves with each renewal", || deadline() > first + 1_000);
    drop(running);
    eventually("the file is gone", || fs::metadata(&file).is_err());
}

// The first row of the table of `--max-hold`.
#[test]
fn a_command_is_asked_to_end_a_margin_and_the_grace_before_the_longest_hold() {
    let voters = Voters::start();
    let script = "trap 'date +%s%3N; exit 0' TERM; echo $QUORATE_TOKEN
        cat $QUORATE_DEADLINE_FILE; while true; do sleep 0.01; done";
    let mut run = voters.run(&["a", "--max-hold", "3s", "--lease", "30s"], script);
    let mut running = Running::start(run.env("QUORATE_LONGEST_LEASE", "30s"));
    let number = || running.says().parse::<u64>().expect("a number");
    let [granted, killed, asked] = [number() / 1_000, number(), number()];
    // A token is about the time of the attempt.
    let after = killed - granted;
    assert!((2_600..=3_500).contains(&after), "SIGKILL after {after} ms");
    let left = killed.checked_sub(asked).expect("it was asked to end before");
    assert!((300..=1_010).contains(&left), "SIGTERM {left} ms before SIGKILL");
    assert_eq!(running.end().0, 76);
}

#[test]
fn a_command_under_two_locks_is_told_of_the_inner_one() {
    let voters = Voters::start();
    let script = "echo $QUORATE_TOKEN; exec \"$@\"";
    let inner = voters.run(&["b", "--read"], "echo $QUORATE_LOCK ${QUORATE_TOKEN-none}");
    let inner: Vec<_> = [inner.get_program()].into_iter().chain(inner.get_args()).collect();
    let inner: Vec<_> = inner.iter().map(|word| word.to_str().expect("it is text")).collect();
    let outer = [&["run", "a", "--", "sh", "-c", script, "sh"][..], &inner].concat();
    let (code, said, errors) = output(&mut voters.quorate(&outer));
    let lines: Vec<_> = said.lines().collect();
    assert_eq!((code, lines.len(), lines[2]), (0, 3, "b none"), "{said}{errors}");
    assert!(lines[0].parse::<u64>().is_ok(), "{said}");
}

#[test]
fn many_read_while_nobody_writes() {
    let voters = Voters::start();
    let sleep = "echo token:$QUORATE_TOKEN; exec sleep 1000";
    let reader = Running::start(&mut voters.run(&["a", "--read"], sleep));
    assert_eq!(reader.says(), "token:", "reads have none");
    assert_eq!(output(&mut voters.run(&["a", "--read", "--try"], "true")).0, 0);
    assert_eq!(output(&mut voters.run(&["a", "--write", "--try"], "true")).0, 75);
    assert_eq!(output(&mut voters.run(&["a", "--try"], "true")).0, 0, "a mutex is another lock");
    drop(reader);
    let writes = &["a", "--write", "--wait", "20s"];
    let writer = Running::start(&mut voters.run(writes, sleep));
    assert_ne!(writer.says(), "token:");
    assert_eq!(output(&mut voters.run(&["a", "--read", "--try"], "true")).0, 75);
}

#[test]
fn a_semaphore_runs_as_many_commands_as_it_has_permits() {
    let voters = Voters::start();
    let permits = ["a", "--permits", "2"];
    let script = "echo $QUORATE_SLOT; echo token:$QUORATE_TOKEN; exec sleep 1000";
    let running = [(); 2].map(|()| Running::start(&mut voters.run(&permits, script)));
    let mut slots = running.each_ref().map(Running::says);
    slots.sort_unstable();
    assert_eq!(slots, ["0", "1"]);
    assert_eq!(running[0].says(), "token:", "several have it at the same time");
    let more = [&permits[..], &["--try"]].concat();
    assert_eq!(output(&mut voters.run(&more, "true")).0, 75);
    let [first, _second] = running;
    drop(first);
    let more = [&permits[..], &["--wait", "20s"]].concat();
    assert_eq!(output(&mut voters.run(&more, "true")).0, 0, "its permit is free again");
    assert_eq!(output(&mut voters.run(&["a", "--permits", "0"], "true")).0, 64);
}

// The lock of a command that fails is released: another machine may do better.
#[test]
fn a_lock_is_kept_after_the_command_has_done_its_work() {
    let voters = Voters::start();
    let tried = || output(&mut voters.run(&["a", "--try"], "true")).0;
    for (script, code, then) in [("exit 3", 3, 0), ("true", 0, 75)] {
        assert_eq!(output(&mut voters.run(&["a", "--keep", "4s"], script)).0, code);
        assert_eq!(tried(), then, "{script}");
    }
    eventually("the time has passed", || tried() == 0);
    for kind in [&["--read"][..], &["--write"], &["--fair"], &["--permits", "1"]] {
        let kept = [&["b", "--keep", "4s", "--wait", "20s"][..], kind].concat();
        assert_eq!(output(&mut voters.run(&kept, "true")).0, 0, "{kind:?}");
        let other = if kind == ["--read"] { &["--write"][..] } else { kind };
        let other = [&["b", "--try"][..], other].concat();
        assert_eq!(output(&mut voters.run(&other, "true")).0, 75, "{kind:?}");
    }
    // Longer than the longest lease: refused before the command has run.
    let (code, said, errors) = output(&mut voters.run(&["c", "--keep", "1h"], "true"));
    assert_eq!((code, &*said), (64, ""), "{errors}");
    assert!(errors.starts_with("quorate: --keep: the lease of 3600s is over "), "{errors}");
}

// 75 of a command would read as a lock that is taken.
#[test]
fn a_code_of_the_command_can_be_told_from_one_of_the_program() {
    let voters = Voters::start();
    let arguments = ["a", "--command-code", "9"];
    for (script, code) in [("exit 63", 63), ("exit 64", 9), ("exit 78", 9), ("exit 79", 79)] {
        let (ended, _, errors) = output(&mut voters.run(&arguments, script));
        assert_eq!(ended, code, "{script}: {errors}");
        let told = script.replace("exit", "quorate: the command itself ended with") + "\n";
        assert_eq!(errors, if code == 9 { &*told } else { "" });
    }
    assert_eq!(output(&mut voters.run(&["a"], "exit 75")).0, 75, "unless it is asked for");
    let _holder = Running::start(&mut voters.run(&["a"], "exec sleep 1000"));
    let arguments = [&arguments[..], &["--try"]].concat();
    assert_eq!(output(&mut voters.run(&arguments, "true")).0, 75);
}

#[test]
fn a_leader_is_found_by_what_it_says_of_itself() {
    let voters = Voters::start();
    let leader = || output(&mut voters.quorate(&["leader", "a"]));
    assert_eq!(leader(), (1, String::new(), "quorate: nobody leads `a`\n".to_owned()));
    let lead = |value: &str, more: &[&str], script: &str| {
        let script = format!("echo $$; {script}");
        let lead = [&["lead", "a", "--value", value], more, &["--", "sh", "-c", &script]].concat();
        voters.quorate(&lead)
    };
    let script = "echo $QUORATE_TOKEN; exec sleep 1000";
    let token = |running: &Running| running.says().parse::<u64>().expect("a number");
    let mut running = Running::start(&mut lead("10.0.0.1:80", &[], script));
    let first = token(&running);
    eventually("all know it", || leader().1 == "10.0.0.1:80\n");
    assert_eq!(leader().0, 0);
    assert_eq!(output(&mut lead("10.0.0.2:80", &["--try"], "true")).0, 75);
    let mut next = Running::start_soon(&mut lead("10.0.0.2:80", &[], script));
    running.signal(Signal::TERM);
    assert_eq!(running.end().0, 143);
    next.group = next.says().parse().unwrap();
    assert!(token(&next) > first);
    eventually("all know it", || leader().1 == "10.0.0.2:80\n");
}
