//! Many leaders, one after the other: machines die, are shut down, or stand still.

use std::{env, fs, path::Path, time::Duration};

use quorate_support::eventually;
use quorate_tests::standing::make_old;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::{program::Running, voters::Voters};

const LEASE: Duration = Duration::from_secs(1);

/// What leaders have written: their names, their tokens, and when, in nanoseconds since 1970.
fn written(file: &Path) -> Vec<(String, u64, u64)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let line = |line: &str| {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("a line has three words");
        (word().to_owned(), word().parse().unwrap(), word().parse().unwrap())
    };
    whole.lines().map(line).collect()
}

/// A machine that leads again and again. Its work writes for as long as it leads.
fn machine(voters: &Voters, name: &str, file: &Path) -> Running {
    let write = format!("echo {name} $QUORATE_TOKEN $(date +%s%N) >> {}", file.display());
    let work = format!("while {write}; do sleep 0.02; done");
    let arguments = ["lead", "job", "--again", "--value", name, "--", "sh", "-c", &work];
    let mut command = voters.quorate(&arguments);
    command.env("QUORATE_LEASE", "1s").env("QUORATE_LONGEST_LEASE", "1s");
    Running::start_soon(command.env("QUORATE_VOTER_DEADLINE", "100ms"))
}

// `QUORATE_TEST_TAKEOVERS=200` for a long run.
#[test]
fn no_two_lead_and_nobody_leads_for_a_lease_and_a_second_at_most_however_leaders_end() {
    let takeovers = env::var("QUORATE_TEST_TAKEOVERS").map_or(12, |count| count.parse().unwrap());
    let voters = Voters::start();
    make_old(&voters.0);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("leaders");
    let mut machines = ["one", "two", "three"].map(|name| (name, machine(&voters, name, &file)));
    let (mut latest, mut stopped) = (0, None);
    for takeover in 0..takeovers {
        let mut leader = String::new();
        eventually("the next one leads", || {
            let next = written(&file).pop().filter(|(_, token, _)| *token > latest);
            next.is_some_and(|(name, token, _)| {
                (leader, latest) = (name, token);
                true
            })
        });
        // One that stood still comes back when another has taken over.
        if let Some(back) = stopped.take() {
            let (_, machine): &(_, Running) = &machines[back];
            machine.signal(Signal::CONT);
        }
        let at = machines.iter().position(|(name, _)| *name == leader).expect("it is one of them");
        let (name, running) = &mut machines[at];
        match takeover % 3 {
            0 => running.signal(Signal::STOP),
            end => {
                running.signal(if end == 1 { Signal::KILL } else { Signal::TERM });
                running.wait();
                *running = machine(&voters, name, &file);
            }
        }
        stopped = (takeover % 3 == 0).then_some(at);
    }
    drop(machines);
    let lines = written(&file);
    let mut longest = Duration::ZERO;
    for pair in lines.windows(2) {
        let [(before, old, last), (after, new, first)] = pair else { unreachable!() };
        assert!(old <= new, "{before} works with {old} while {after} does with {new}");
        if old < new {
            longest = longest.max(Duration::from_nanos(first.saturating_sub(*last)));
        }
    }
    println!("{takeovers} takeovers, {} lines, the longest gap {longest:?}", lines.len());
    assert!(longest <= LEASE + Duration::from_secs(1), "{longest:?}");
}
