//! Services that are rolled from some voters to others, step by step, while processes are killed,
//! and voters too: never two at once, by a witness outside of the locks, and nobody waits for long.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use quorate_support::{RedisServer, Settings, eventually};
use quorate_tests::scene::{Ending, knob};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use rustix::process::Signal;

use crate::{
    processes::is_alive,
    program::{Running, output, quorate},
    status::json,
};

const MACHINES: usize = 4;

/// The code of a service that is told that it starts too early.
const CONFIG: i32 = 78;

/// A killed holder keeps the lock for its lease.
const LEASE: Duration = Duration::from_secs(2);

/// Writes its id into a file that nobody else may have made, and takes it away at the end. A file
/// that is there is of a process that was killed, or of one that runs: that is an overlap.
const JOB: &str = r#"
    if ! (set -C; echo $$ > "$WITNESS/holder") 2>/dev/null; then
        other=$(cat "$WITNESS/holder" 2>/dev/null)
        case $(cut -d ')' -f 2 "/proc/$other/stat" 2>/dev/null) in
            '' | ' Z'* | ' X'*) ;;
            *) echo "$$ while $other runs" >> "$WITNESS/overlaps" ;;
        esac
        echo $$ > "$WITNESS/holder"
    fi
    for step in 1 2 3 4 5 6 7 8; do
        sleep 0.05
        [ "$(cat "$WITNESS/holder")" = $$ ] || echo "$$ was passed" >> "$WITNESS/overlaps"
    done
    rm "$WITNESS/holder""#;

#[test]
fn the_witness_sees_an_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let job = || {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", JOB]).env("WITNESS", folder.path()).spawn().unwrap()
    };
    let overlaps = || fs::read_to_string(folder.path().join("overlaps")).unwrap_or_default();
    fs::write(folder.path().join("holder"), "999999999\n").unwrap();
    assert!(job().wait().unwrap().success());
    assert_eq!(overlaps(), "", "whoever left it is dead");
    let both = [job(), job()];
    for mut one in both {
        drop(one.wait());
    }
    assert_ne!(overlaps(), "");
}

/// The settings of one step.
#[derive(Clone, Debug)]
struct Step {
    configuration: &'static str,
    voters: String,
    replaced: Option<String>,
}

impl Step {
    fn configuration(&self) -> String {
        let count = |urls: &str| urls.split(' ').count();
        let voters =
            format!("configuration {} with {} voters", self.configuration, count(&self.voters));
        match &self.replaced {
            Some(replaced) => format!("{voters} that replace {},", count(replaced)),
            None => format!("{voters},"),
        }
    }

    /// `quorate` with these arguments and the settings of the step.
    fn quorate(&self, arguments: &[&str]) -> Command {
        let mut command = quorate(arguments);
        command.env("QUORATE_LEASE", "2s").env("QUORATE_LONGEST_LEASE", "2s");
        command.env("QUORATE_VOTER_DEADLINE", "200ms");
        command
            .env("QUORATE_VOTER_CONFIGURATION", self.configuration)
            .env("QUORATE_VOTERS", &self.voters);
        if let Some(replaced) = &self.replaced {
            command.env("QUORATE_REPLACED_VOTERS", replaced);
        }
        command
    }

    /// Servers that nobody knew do not count for a longest lease after a client has first met them:
    /// somebody looks at them for so long.
    fn introduce(&self) {
        let mut watch = self.quorate(&["status", "--watch", "--interval", "1s"]);
        let watching = Running::start_soon(&mut watch);
        thread::sleep(2 * LEASE);
        watching.signal(Signal::TERM);
    }

    /// The code with which a process ends that wants a lock at once.
    fn tries(&self, name: &str) -> i32 {
        output(&mut self.quorate(&["run", name, "--try", "--", "true"])).0
    }

    /// Whether clients are in this step, as the doctor sees it.
    fn is_seen(&self) -> bool {
        let (_, said) = json(&mut self.quorate(&["doctor", "--json"]));
        let configuration = self.configuration();
        said["findings"].as_array().expect("it has findings").iter().any(|finding| {
            let seen = finding["seen"].as_str().unwrap_or_default();
            finding["check"] == "configuration" && seen.contains(&configuration)
        })
    }
}

/// What all machines see of each other.
struct Fleet<'a> {
    folder: &'a Path,
    over: AtomicBool,
    /// By machine.
    steps: Vec<Mutex<Step>>,
    /// How many jobs of a machine have ended well since it was given its step.
    ended: Vec<AtomicU64>,
    /// When a job last ended well or a process was killed, and the longest time from one of these
    /// until the next job had ended well.
    paused: Mutex<(Instant, Duration)>,
}

#[test]
fn services_are_rolled_from_three_voters_to_five() {
    roll(&[0, 1, 2], &[0, 1, 2, 3, 4], false);
}

#[test]
fn services_are_rolled_from_five_voters_to_three() {
    roll(&[0, 1, 2, 3, 4], &[0, 1, 2], false);
}

#[test]
fn services_are_rolled_from_three_voters_to_three_others() {
    roll(&[0, 1, 2], &[3, 4, 5], false);
}

#[test]
fn services_are_rolled_while_voters_are_killed_and_stand_still() {
    roll(&[0, 1, 2], &[2, 3, 4], true);
}

#[expect(clippy::disallowed_methods, reason = "real servers live in real time")]
fn roll(old: &[usize], new: &[usize], voters_die: bool) {
    let seed = knob("QUORATE_FAULT_SEED", rand::random());
    println!("QUORATE_FAULT_SEED={seed}");
    let count = old.iter().chain(new).max().expect("there are voters") + 1;
    let mut servers = RedisServer::start_many(&Settings::new(), count);
    let urls = |voters: &[usize]| {
        voters.iter().map(|voter| servers[*voter].url()).collect::<Vec<_>>().join(" ")
    };
    let (old, new) = (urls(old), urls(new));
    let steps = [
        Step { configuration: "1", voters: old.clone(), replaced: None },
        Step { configuration: "2", voters: new.clone(), replaced: Some(old) },
        Step { configuration: "2", voters: new, replaced: None },
    ];
    let folder = tempfile::tempdir().unwrap();
    let fleet = Fleet {
        folder: folder.path(),
        over: AtomicBool::new(false),
        steps: (0..MACHINES).map(|_| Mutex::new(steps[0].clone())).collect(),
        ended: (0..MACHINES).map(|_| AtomicU64::new(0)).collect(),
        paused: Mutex::new((Instant::now(), Duration::ZERO)),
    };
    thread::scope(|scope| {
        let _ending = Ending(&fleet.over);
        for machine in 0..MACHINES {
            let chance = StdRng::seed_from_u64(seed.wrapping_add(machine as u64));
            let fleet = &fleet;
            scope.spawn(move || fleet.work(machine, chance));
        }
        fleet.has_run();
        steps[2].introduce();
        if voters_die {
            let (fleet, servers) = (&fleet, &mut servers);
            scope.spawn(move || fleet.harm(servers, StdRng::seed_from_u64(!seed)));
        }
        let mut from = &steps[0];
        for step in &steps[1..] {
            if step.replaced.is_none() {
                // Who starts too early is told so; the others go on.
                assert_eq!(step.tries("probe"), CONFIG);
                eventually("the step may begin", || step.tries("probe") == 0);
            }
            // A lock that is held over the whole step, by a service that moves last.
            let hold = ["run", "long", "--", "sh", "-c", "echo $$; exec sleep 1000"];
            let mut long = Running::start(&mut from.quorate(&hold));
            for machine in 0..MACHINES {
                *fleet.steps[machine].lock().unwrap() = step.clone();
                fleet.ended[machine].store(0, Relaxed);
                let before = fleet.ended[(machine + 1) % MACHINES].load(Relaxed);
                if machine + 1 < MACHINES {
                    // The rest goes on as before.
                    eventually("others run", || {
                        fleet.ended[(machine + 1) % MACHINES].load(Relaxed) > before
                    });
                }
                assert_eq!(step.tries("long"), 75, "it is held by {from:?}");
            }
            assert!(!long.has_ended(), "what is held stays held");
            long.signal(Signal::TERM);
            long.wait();
            fleet.has_run();
            assert!(step.is_seen());
            from = step;
        }
    });
    let overlaps = fs::read_to_string(folder.path().join("overlaps")).unwrap_or_default();
    assert_eq!(overlaps, "");
    let longest = fleet.paused.lock().unwrap().1;
    println!("the longest time without a job: {longest:?}");
    // What a holder that was killed leaves of its lease, and a job with its process.
    assert!(longest < LEASE + Duration::from_secs(1), "{longest:?}");
}

impl Fleet<'_> {
    /// A machine that starts the job again and again, with the settings of its step, and sometimes
    /// kills what it started.
    #[expect(clippy::disallowed_methods, reason = "real servers live in real time")]
    fn work(&self, machine: usize, mut chance: StdRng) {
        while !self.over.load(Relaxed) {
            let step = self.steps[machine].lock().unwrap().clone();
            let script = format!("echo $$; {JOB}");
            let job = ["run", "job", "--wait", "5s", "--", "sh", "-c", &script];
            let mut running = Running::start_soon(step.quorate(&job).env("WITNESS", self.folder));
            if chance.random_ratio(1, 8) {
                thread::sleep(Duration::from_millis(chance.random_range(0..800)));
                if is_alive(running.id()) {
                    running.signal(Signal::KILL);
                    self.paused.lock().unwrap().0 = Instant::now();
                }
            }
            match running.wait().code() {
                Some(0) => {
                    self.ended[machine].fetch_add(1, Relaxed);
                    let now = Instant::now();
                    let mut paused = self.paused.lock().unwrap();
                    paused.1 = paused.1.max(now - paused.0);
                    paused.0 = now;
                }
                // It starts too early, and is started again as by a supervisor.
                Some(CONFIG) => thread::sleep(Duration::from_millis(500)),
                _ => {}
            }
        }
    }

    /// One voter after the other is killed and comes back empty, or stands still.
    fn harm(&self, servers: &mut [RedisServer], mut chance: StdRng) {
        let (mut killed, mut stopped) = (0, 0);
        while !self.over.load(Relaxed) {
            let (pause, voter) =
                (chance.random_range(200..1_500), chance.random_range(0..servers.len()));
            let (pause, voter) = (Duration::from_millis(pause), &mut servers[voter]);
            if chance.random_ratio(1, 2) {
                voter.kill();
                thread::sleep(pause);
                voter.restart();
                killed += 1;
                // Until it counts again another one must not forget as well.
                thread::sleep(LEASE + LEASE / 2);
            } else {
                voter.stop();
                thread::sleep(pause);
                voter.resume();
                stopped += 1;
            }
        }
        println!("voters were killed {killed} times, and stood still {stopped} times");
        assert!(killed > 0 && stopped > 0);
    }

    /// Each machine has run a job well in its step.
    fn has_run(&self) {
        let all = || self.ended.iter().all(|ended| ended.load(Relaxed) > 0);
        eventually("jobs have run in their step", all);
    }
}
