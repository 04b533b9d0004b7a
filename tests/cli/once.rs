//! Three machines whose timers start the same job, while machines and servers fail; and a change of
//! the servers.

use std::{fs, path::Path, process::Command};

use quorate_support::{Proxy, RedisServer, eventually};
use quorate_tests::standing::make_old;
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    program::{Running, output},
    status::json,
    voters::Voters,
};

/// What happens while one of the machines is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Nothing,
    /// The machine at work dies.
    MachineDies,
    /// It stands still until another one has taken over.
    MachineStops,
    /// It cannot reach so many servers until all have ended.
    MachineCutOff(usize),
    /// It is out of reach until all have ended.
    ServerStops(usize),
    ServerEmptied(usize),
    /// A majority forgets: the firing may be done once more.
    TwoEmptied,
}

use Trouble::{
    MachineCutOff, MachineDies, MachineStops, Nothing, ServerEmptied, ServerStops, TwoEmptied,
};

const TROUBLES: [Trouble; 12] = [
    Nothing,
    MachineDies,
    ServerEmptied(0),
    ServerStops(1),
    MachineStops,
    ServerEmptied(1),
    MachineCutOff(1),
    ServerEmptied(2),
    MachineCutOff(2),
    TwoEmptied,
    MachineDies,
    Nothing,
];

impl Trouble {
    /// How often the work may be begun.
    fn most(self) -> usize {
        match self {
            Nothing | ServerStops(_) | ServerEmptied(_) | MachineCutOff(1) => 1,
            MachineDies | MachineStops | MachineCutOff(_) | TwoEmptied => 2,
        }
    }

    /// `job`: a line for each time the work was begun.
    fn strike(self, voters: &mut Voters, at_work: &Machine, job: &Path) {
        match self {
            Nothing => {}
            MachineDies => at_work.running.signal(Signal::KILL),
            MachineStops => {
                at_work.running.signal(Signal::STOP);
                eventually("another one takes over", || begun(job) == 2);
                at_work.running.signal(Signal::CONT);
            }
            MachineCutOff(servers) => at_work.ways[..servers].iter().for_each(Proxy::black_hole),
            ServerStops(server) => voters.0[server].stop(),
            ServerEmptied(server) => voters.0[server].restart_empty(),
            TwoEmptied => voters.0[..2].iter_mut().for_each(RedisServer::restart_empty),
        }
    }
}

/// A machine on which the job was started, and its ways to the servers.
struct Machine {
    running: Running,
    ways: Vec<Proxy>,
}

impl Machine {
    fn start(network: &Runtime, voters: &Voters, run: &mut Command) -> Self {
        let way = |server: &RedisServer| network.block_on(Proxy::start(server.port()));
        let ways: Vec<_> = voters.0.iter().map(way).collect();
        let urls: Vec<_> = ways.iter().map(Proxy::url).collect();
        Self { running: Running::start_soon(run.env("QUORATE_VOTERS", urls.join(" "))), ways }
    }
}

fn begun(job: &Path) -> usize {
    fs::read_to_string(job).map_or(0, |text| text.lines().count())
}

#[test]
fn each_firing_is_done_once_by_three_machines_but_where_one_is_lost_at_it_or_a_majority_forgets() {
    let network = Runtime::new().unwrap();
    let _inside = network.enter();
    let mut voters = Voters::start();
    make_old(&voters.0);
    let folder = TempDir::new().unwrap();
    for (firing, trouble) in TROUBLES.into_iter().enumerate() {
        let (number, job) = (firing.to_string(), folder.path().join(firing.to_string()));
        let arguments = ["nightly", "--once", &number];
        let work = format!("echo begun >> {}; sleep 1", job.display());
        let start = |()| Machine::start(&network, &voters, &mut voters.run(&arguments, &work));
        let mut machines = [(); 3].map(start);
        let mut at_work = None;
        eventually("one is at work", || {
            // It says its id once.
            at_work =
                at_work.or_else(|| machines.iter().position(|machine| machine.running.has_said()));
            at_work.is_some() && begun(&job) == 1
        });
        let at_work = at_work.expect("it has said so");
        trouble.strike(&mut voters, &machines[at_work], &job);
        for (number, Machine { running, .. }) in machines.iter_mut().enumerate() {
            if trouble == MachineDies && number == at_work {
                running.wait();
                continue;
            }
            let (code, errors) = running.end();
            let may_be_lost = trouble.most() > 1 && number == at_work;
            assert!(code == 0 || may_be_lost && code == 76, "{trouble:?}: {code}, {errors}");
        }
        if let ServerStops(server) = trouble {
            voters.0[server].resume();
        }
        let times = begun(&job);
        assert!((1..=trouble.most()).contains(&times), "{trouble:?}: begun {times} times");
        // A fourth one, whose timer is late.
        let (code, said, errors) = output(&mut voters.run(&arguments, &work));
        assert_eq!((code, &*said, begun(&job)), (0, "", times), "{trouble:?}: {errors}");
    }
}

// Nobody has this job in the step in which clients have both sets.
#[test]
fn in_a_change_of_the_voters_the_doctor_names_what_would_be_forgotten_until_it_is_copied() {
    let [old, new] = [(); 2].map(|()| Voters::start());
    make_old(old.0.iter().chain(&new.0));
    let (code, _, errors) = output(&mut old.run(&["nightly", "--every", "1d"], "true"));
    assert_eq!(code, 0, "{errors}");
    let both = |arguments: &[&str]| {
        let mut command = new.quorate(arguments);
        command.env("QUORATE_REPLACED_VOTERS", old.urls()).env("QUORATE_VOTER_CONFIGURATION", "2");
        command
    };
    let jobs = || {
        let (code, all) = json(&mut both(&["doctor", "--json", "--ignore", "configuration"]));
        let mut findings = all["findings"].as_array().unwrap().iter();
        let jobs = findings.find(|finding| finding["check"] == "jobs").expect("it was looked at");
        let text = |key: &str| jobs[key].as_str().unwrap().to_owned();
        (code, text("level"), text("seen"))
    };
    let (code, level, seen) = jobs();
    let expected = "one set does not know which firing is done of 1 job: nightly";
    assert_eq!((code, &*level, &*seen), (2, "error", expected));
    let (code, said, errors) = output(&mut both(&["copy-once"]));
    let expected = "1 job: a majority knows which firing is done\n";
    assert_eq!((code, &*said), (0, expected), "{errors}");
    let (code, level, seen) = jobs();
    let expected = "both sets know which firings are done";
    assert_eq!((code, &*level, &*seen), (1, "ok", expected));
    let done = |voters: &Voters| {
        let (_, seen) = json(&mut voters.quorate(&["status", "nightly", "--json"]));
        let is_job = |lock: &&serde_json::Value| lock["kind"] == "once";
        seen["locks"].as_array().unwrap().iter().find(is_job).unwrap()["done"].clone()
    };
    assert!(done(&new)["firing"].is_u64());
    assert_eq!(done(&new), done(&old));
    // There is nothing to leave in any other step.
    let (_, all) = json(&mut new.quorate(&["doctor", "--json"]));
    assert!(!all.to_string().contains("jobs"), "{all}");
}
