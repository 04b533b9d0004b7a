//! Servers that may have forgotten locks, and programs that come while these do not count.

use quorate_support::{RedisServer, eventually};
use quorate_tests::standing::make_old;
use rustix::process::Signal;

use crate::{
    program::{Running, output},
    voters::Voters,
};

/// Two of three have restarted since any client was there. Then a quarantine takes as long as the
/// longest lease: 4 s.
fn restarted() -> Voters {
    let mut voters = Voters::start();
    make_old(&voters.0);
    voters.0[..2].iter_mut().for_each(RedisServer::restart);
    voters
}

const WAITS: &str = " for a quorum: no quorum of 2 for lock `nightly` in ";

/// Whether it was said once that a quorum is waited for, and why.
fn has_said_why(errors: &str) -> bool {
    let said: Vec<_> = errors.lines().filter(|line| line.contains(WAITS)).collect();
    matches!(said[..], [line] if line.starts_with("quorate: waiting ")
        && line.matches(": in quarantine for ").count() == 2)
}

// The first thing that README tells to do with the program, by three machines at the same time.
#[test]
fn a_nightly_job_runs_once_though_most_servers_have_restarted_since_anybody_was_there() {
    let voters = restarted();
    let arguments = ["nightly", "--try", "--keep", "3s"];
    let start = || Running::start_soon(&mut voters.run(&arguments, "exit 0"));
    let mut ended = [(); 3].map(|()| start()).map(|mut machine| machine.end());
    ended.sort_unstable();
    assert_eq!(ended.each_ref().map(|(code, _)| *code), [0, 75, 75], "{ended:?}");
    // The others have waited too, or have met the one that did.
    assert!(has_said_why(&ended[0].1), "{}", ended[0].1);
}

#[test]
fn a_quorum_that_only_a_quarantine_keeps_away_is_waited_for_however_long_one_waits_for_the_lock() {
    for limit in [&[][..], &["--try"], &["--wait", "1s"]] {
        let voters = restarted();
        let (code, _, errors) = output(&mut voters.run(&[&["nightly"], limit].concat(), "true"));
        assert_eq!(code, 0, "{limit:?}: {errors}");
        assert!(has_said_why(&errors), "{limit:?}: {errors}");
    }
    let voters = restarted();
    let lead = ["lead", "nightly", "--value", "a", "--try", "--", "echo", "leads"];
    let (code, said, errors) = output(&mut voters.quorate(&lead));
    assert_eq!((code, &*said), (0, "leads\n"), "{errors}");
    assert!(has_said_why(&errors), "{errors}");
}

#[test]
fn who_does_not_want_to_wait_for_a_quorum_does_not() {
    let voters = restarted();
    for limit in [&["--try"][..], &["--wait", "1s"]] {
        let arguments = [&["nightly", "--no-quorum-wait"], limit].concat();
        let (code, said, errors) = output(&mut voters.run(&arguments, "true"));
        assert_eq!((code, &*said), (69, ""), "{errors}");
        assert!(errors.starts_with("quorate: no quorum of 2 for lock `nightly` "), "{errors}");
        assert_eq!(errors.matches(": in quarantine for ").count(), 2, "{errors}");
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_quorum() {
    let voters = restarted();
    let mut command = voters.run(&["nightly", "--try"], "true");
    // It would be there for long.
    command.env("QUORATE_LONGEST_LEASE", "1h");
    let mut running = Running::start_soon(&mut command);
    eventually("it asks", || voters.0[2].keys().iter().any(|key| key.contains("{nightly}")));
    running.signal(Signal::TERM);
    let (code, errors) = running.end();
    assert_eq!(code, 143, "{errors}");
}

// The first thing that README tells to do with the program, by three machines at the same time, and
// by one that comes late; also where most servers have restarted since anybody was there.
#[test]
fn a_firing_is_done_once_by_all_machines_and_who_comes_late_ends_well() {
    for voters in [Voters::start(), restarted()] {
        let of_firing = |firing: &str, script: &str| {
            voters.run(&["nightly", "--once", firing], &format!("echo done; {script}"))
        };
        let mut machines = [(); 3].map(|()| Running::start_soon(&mut of_firing("7", "exit 0")));
        for machine in &mut machines {
            let (code, errors) = machine.end();
            assert!(code == 0 && !errors.contains("nightly` is"), "{errors}");
        }
        let did = machines.iter().filter(|machine| machine.has_said());
        assert_eq!(did.count(), 1);
        let (code, said, errors) = output(&mut of_firing("6", "exit 1"));
        assert_eq!((code, &*said, &*errors), (0, "", ""));
        let (code, ..) = output(&mut of_firing("8", "exit 3"));
        assert_eq!(code, 3);
        let every = ["nightly", "--every", "1h", "--offset", "10m"];
        let runs = [(); 2].map(|()| output(&mut voters.run(&every, "true")));
        assert_eq!(runs.map(|(code, said, _)| (code, said.is_empty())), [(0, false), (0, true)]);
    }
}
