//! Three machines whose timers start the same job, while machines and servers fail.

use std::{fs, path::Path};

use quorate_support::{RedisServer, eventually};
use quorate_tests::standing::make_old;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    program::{Running, output},
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
    /// It is out of reach until all have ended.
    ServerStops(usize),
    ServerEmptied(usize),
    /// A majority forgets: the firing may be done once more.
    TwoEmptied,
}

use Trouble::{MachineDies, MachineStops, Nothing, ServerEmptied, ServerStops, TwoEmptied};

const TROUBLES: [Trouble; 10] = [
    Nothing,
    MachineDies,
    ServerEmptied(0),
    ServerStops(1),
    MachineStops,
    ServerEmptied(1),
    ServerEmptied(2),
    TwoEmptied,
    MachineDies,
    Nothing,
];

impl Trouble {
    /// How often the work may be begun.
    fn most(self) -> usize {
        match self {
            Nothing | ServerStops(_) | ServerEmptied(_) => 1,
            MachineDies | MachineStops | TwoEmptied => 2,
        }
    }

    /// `job`: a line for each time the work was begun.
    fn strike(self, voters: &mut Voters, at_work: &Running, job: &Path) {
        match self {
            Nothing => {}
            MachineDies => at_work.signal(Signal::KILL),
            MachineStops => {
                at_work.signal(Signal::STOP);
                eventually("another one takes over", || begun(job) == 2);
                at_work.signal(Signal::CONT);
            }
            ServerStops(server) => voters.0[server].stop(),
            ServerEmptied(server) => voters.0[server].restart_empty(),
            TwoEmptied => voters.0[..2].iter_mut().for_each(RedisServer::restart_empty),
        }
    }
}

fn begun(job: &Path) -> usize {
    fs::read_to_string(job).map_or(0, |text| text.lines().count())
}

#[test]
fn each_firing_is_done_once_by_three_machines_but_where_one_dies_at_it_or_a_majority_forgets() {
    let mut voters = Voters::start();
    make_old(&voters.0);
    let folder = TempDir::new().unwrap();
    for (firing, trouble) in TROUBLES.into_iter().enumerate() {
        let (number, job) = (firing.to_string(), folder.path().join(firing.to_string()));
        let arguments = ["nightly", "--once", &number];
        let work = format!("echo begun >> {}; sleep 1", job.display());
        let start = |voters: &Voters| Running::start_soon(&mut voters.run(&arguments, &work));
        let mut machines = [(); 3].map(|()| start(&voters));
        let mut at_work = None;
        eventually("one is at work", || {
            // It says its id once.
            at_work = at_work.or_else(|| machines.iter().position(Running::has_said));
            at_work.is_some() && begun(&job) == 1
        });
        let at_work = at_work.expect("it has said so");
        trouble.strike(&mut voters, &machines[at_work], &job);
        for (number, machine) in machines.iter_mut().enumerate() {
            if trouble == MachineDies && number == at_work {
                machine.wait();
                continue;
            }
            let (code, errors) = machine.end();
            let may_be_lost = matches!(trouble, MachineStops | TwoEmptied) && number == at_work;
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
