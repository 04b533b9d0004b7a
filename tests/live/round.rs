//! Servers, workers, and one trouble after the other.

use std::{
    collections::VecDeque,
    env, fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
};

use quorate_tests::{
    check::{self, FAIR, MS as MILLI},
    event::{self, History, What, monotonic, nanos},
    names::is_in_a_network_of_its_own,
    prelude::*,
    scene::knob,
};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::{self, Handle};

use crate::{
    report,
    troubles::{
        RESOLVER, SIDES, Trouble, VOTERS, Voter, compile_clock, minority, serve_names, step_clock,
        stepped_clock,
    },
    worker::{LEASE, PLAN, Part, Plan},
};

/// Processes with tasks of all kinds.
const CROWDS: usize = 4;
/// When the tasks have had their last turn, this is enough for each to end.
const LAST_TURN: Duration = Duration::from_secs(90);
/// Of what a worker says.
const LAST_LINES: usize = 30;

#[test]
fn a_round_of_troubles_breaks_no_law() {
    if !is_in_a_network_of_its_own("round::a_round_of_troubles_breaks_no_law", RESOLVER) {
        return;
    }
    let seed = knob("QUORATE_LIVE_SEED", rand::random());
    let seconds = knob("QUORATE_LIVE_SECONDS", 20);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("live");
    println!("QUORATE_LIVE_SEED={seed} QUORATE_LIVE_SECONDS={seconds}, in {}", folder.display());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder can be made");
    compile_clock(&folder);
    let network = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let network = network.expect("a runtime");
    network.block_on(async {
        let mut round = Round::start(seed, secs(seconds), folder.clone()).await;
        round.go_on().await;
        round.end().await;
    });
    let events = event::read(&folder);
    let findings = check::judge(&events);
    println!("{}", report::table(&events, &findings));
    let picture = folder.join("round.svg");
    fs::write(&picture, report::picture(&events)).expect("there is room");
    println!("the picture: {}", picture.display());
    let broken = findings.0.iter().filter(|(_, (_, how))| !how.is_empty());
    let broken: Vec<_> = broken.map(|(law, (_, how))| (law, &how[..how.len().min(5)])).collect();
    assert!(broken.is_empty(), "QUORATE_LIVE_SEED={seed}: {broken:#?}");
    let held = check::holds(&events);
    for lock in ["mutex", "block", FAIR, "rw", "semaphore", "election", "once", "b"] {
        assert!(held.iter().any(|hold| hold.lock == lock), "nobody held {lock}");
    }
}

struct Round {
    voters: Vec<Voter>,
    workers: Vec<Process>,
    history: Arc<History>,
    /// By the clock of events.
    until: u64,
    folder: PathBuf,
    seed: u64,
    chance: StdRng,
    /// Before that no further server may forget.
    remembers: u64,
    started: usize,
    /// Nobody reads what the workers log.
    log_stalls: Arc<AtomicBool>,
    names_are_silent: Arc<AtomicBool>,
    onlooker: JoinHandle<()>,
}

/// A worker, and what it said last.
struct Process {
    child: Child,
    name: String,
    part: Part,
    side: usize,
    said: Arc<Mutex<VecDeque<String>>>,
}

impl Process {
    fn signal(&self, signal: Signal) {
        // It may have ended.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps the last lines; stands still while it is told to.
fn listen(to: ChildStderr, stalls: Arc<AtomicBool>, said: Arc<Mutex<VecDeque<String>>>) {
    thread::spawn(move || {
        for line in BufReader::new(to).lines().map_while(Result::ok) {
            while stalls.load(SeqCst) {
                thread::sleep(MS(10));
            }
            let mut said = said.lock().expect("nobody panics");
            said.push_back(line);
            if said.len() > LAST_LINES {
                said.pop_front();
            }
        }
    });
}

impl Round {
    async fn start(seed: u64, length: Duration, folder: PathBuf) -> Self {
        let history = Arc::new(History::create(&folder, "round"));
        let names_are_silent = Arc::new(AtomicBool::new(false));
        serve_names(Arc::clone(&names_are_silent));
        let voters = Voter::start_all(&folder).await;
        let urls: Vec<_> = voters.iter().map(|voter| voter.server.url()).collect();
        // Whoever comes within the first second would not notice a loss within it.
        let first = connect_to(&urls).await;
        sleep(secs(2)).await;
        let until = monotonic() + nanos(length);
        let onlooker = tokio::spawn(look_on(first, Arc::clone(&history), until));
        let mut round = Self {
            voters,
            workers: Vec::new(),
            history,
            until,
            folder,
            seed,
            chance: StdRng::seed_from_u64(seed),
            remembers: 0,
            started: 0,
            log_stalls: Arc::default(),
            names_are_silent,
            onlooker,
        };
        for number in 0..CROWDS {
            round.start_worker(Part::Crowd, number % SIDES, until);
        }
        round.start_worker(Part::Forks, 0, until);
        round
    }

    fn start_worker(&mut self, part: Part, side: usize, until: u64) {
        let name = self.started.to_string();
        let of = if part == Part::Stranger { 3 } else { VOTERS };
        let voters = self.voters.iter().enumerate().take(of);
        let plan = Plan {
            name: name.clone(),
            seed: self.seed.wrapping_add(1 + self.started as u64),
            folder: self.folder.clone(),
            voters: voters.map(|(number, voter)| voter.url(number, side)).collect(),
            until,
            part,
        };
        let mut command = Command::new(env::current_exe().expect("this binary"));
        command.args(["--exact", "worker::works", "--nocapture"]);
        command.env(PLAN, serde_json::to_string(&plan).expect("it can be written"));
        // The clocks of one side are stepped.
        let clock = self.folder.join(format!("clock-{side}"));
        if side > 0 && part == Part::Crowd {
            step_clock(&clock, 0);
            command.envs(stepped_clock(&self.folder, &clock.display().to_string()));
        }
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let said = Arc::default();
        let log = process.stderr.take().expect("it is piped");
        listen(log, Arc::clone(&self.log_stalls), Arc::clone(&said));
        self.workers.push(Process { child: process, name, part, side, said });
        self.started += 1;
    }

    async fn go_on(&mut self) {
        for voter in &mut self.voters {
            voter.copy();
        }
        self.rest(1_000, 2_000).await;
        let mut left: Vec<Trouble> = Vec::new();
        while monotonic() < self.until {
            // Each once, in an order of chance, and then again.
            if left.is_empty() {
                left.extend(Trouble::ALL);
            }
            let may_forget = monotonic() >= self.remembers;
            let is_copy_old = self.voters.iter().any(Voter::is_copy_old);
            let fits = |trouble: &Trouble| match trouble {
                Trouble::RolledBack if !is_copy_old => false,
                trouble => may_forget || !trouble.forgets(),
            };
            let fitting: Vec<_> = left.iter().copied().filter(fits).collect();
            let Some(trouble) = fitting.choose(&mut self.chance).copied() else {
                left.clear();
                continue;
            };
            left.retain(|other| *other != trouble);
            let began = monotonic();
            let whom = self.befall(trouble).await;
            let (kind, until) = (trouble.name().to_owned(), monotonic());
            self.history.note(began, "troubles", What::Trouble { kind, whom, until });
            if trouble.forgets() {
                self.remembers = until + nanos(LEASE + secs(1));
            }
            self.rest(200, 1_500).await;
        }
    }

    async fn rest(&mut self, least: u64, most: u64) {
        sleep(MS(self.chance.random_range(least..most))).await;
    }

    /// Has it happen to somebody, and ends it; to whom it happened.
    async fn befall(&mut self, trouble: Trouble) -> String {
        let one = self.chance.random_range(0..VOTERS);
        match trouble {
            Trouble::Killed
            | Trouble::Stopped
            | Trouble::Cut
            | Trouble::Refused
            | Trouble::Swallowed
            | Trouble::RepliesHeld
            | Trouble::Slow => {
                let some = minority(&mut self.chance);
                for voter in &some {
                    self.voters[*voter].suffer(trouble).await;
                }
                self.rest(20, 1_500).await;
                for voter in &some {
                    self.voters[*voter].recover(trouble);
                }
                format!("servers {some:?}")
            }
            Trouble::Parted | Trouble::Stranger => self.part(trouble).await,
            Trouble::SlowThenCut => self.slow_then_cut().await,
            Trouble::Emptied
            | Trouble::Flushed
            | Trouble::Copied
            | Trouble::RolledBack
            | Trouble::ClockStepped => self.forget(trouble, one).await,
            Trouble::NamesSilent => {
                self.names_are_silent.store(true, SeqCst);
                self.voters[VOTERS - 1].cut().await;
                self.rest(1_000, 4_000).await;
                self.names_are_silent.store(false, SeqCst);
                format!("server {}", VOTERS - 1)
            }
            Trouble::LogStalled => {
                self.log_stalls.store(true, SeqCst);
                self.rest(1_000, 6_000).await;
                self.log_stalls.store(false, SeqCst);
                "all workers".to_owned()
            }
            Trouble::WorkerKilled | Trouble::WorkerStopped => self.harm_worker(trouble).await,
            Trouble::WorkerClockStepped => {
                let by = self.chance.random_range(-90..90);
                step_clock(&self.folder.join("clock-1"), by);
                self.rest(1_000, 4_000).await;
                "the workers of side 1".to_owned()
            }
        }
    }

    /// Each side reaches some of the servers, and none reaches all.
    async fn part(&mut self, trouble: Trouble) -> String {
        // The first side has a minority: the stranger takes it for a majority of its own.
        let few = 2;
        for (number, voter) in self.voters.iter().enumerate() {
            let cut_off = usize::from(number < few);
            voter.ways[cut_off].black_hole();
        }
        if trouble == Trouble::Stranger {
            self.start_worker(Part::Stranger, 0, monotonic() + 6_000 * MILLI);
            self.rest(5_000, 7_000).await;
        } else {
            // What the other side had has ended by then.
            self.rest(7_000, 10_000).await;
        }
        let all = self.voters.iter().flat_map(|voter| &voter.ways);
        all.for_each(Proxy::pass);
        format!("side 0 has servers 0 to {}, side 1 the others", few - 1)
    }

    /// First one side, then the other.
    async fn slow_then_cut(&mut self) -> String {
        for side in 0..SIDES {
            self.slow_replies(side).await;
            for voter in &self.voters {
                voter.ways[side].black_hole();
            }
            self.rest(5_000, 6_000).await;
            for voter in &self.voters {
                voter.ways[side].pass();
            }
        }
        "both sides".to_owned()
    }

    /// All holds of this side are renewed by answers that come late.
    async fn slow_replies(&mut self, side: usize) {
        // Less than workers wait for an answer, and more than clocks may drift.
        let late = MS(self.chance.random_range(150..300));
        for voter in &self.voters {
            voter.ways[side].delay(Duration::ZERO, late);
        }
        self.rest(2_000, 3_000).await;
    }

    /// A server loses what it knew, or some of it.
    async fn forget(&mut self, trouble: Trouble, mut one: usize) -> String {
        match trouble {
            Trouble::Emptied => self.voters[one].server.restart_empty(),
            Trouble::Flushed => {
                let flushed = self.voters[one].server.command(&["FLUSHALL"]);
                flushed.expect("it answers");
            }
            Trouble::Copied => {
                let other = (one + 1) % VOTERS;
                let [voter, other] =
                    self.voters.get_disjoint_mut([one, other]).expect("there are two");
                voter.server.restart_with_copy_of(&other.server);
                // Its own copy went there.
                other.copy();
            }
            Trouble::RolledBack => {
                let old = self.voters.iter().position(Voter::is_copy_old);
                one = old.expect("there was one");
                self.voters[one].server.restart_from_copy();
            }
            _ => {
                let by = self.chance.random_range(-30..30);
                step_clock(&self.voters[one].server.dir().join("clock"), by);
                self.rest(2_000, 4_000).await;
                return format!("server {one}, by {by} s");
            }
        }
        self.voters[one].copy();
        format!("server {one}")
    }

    async fn harm_worker(&mut self, trouble: Trouble) -> String {
        let crowds = (0..self.workers.len()).filter(|at| self.workers[*at].part == Part::Crowd);
        let crowds: Vec<_> = crowds.collect();
        let at = *crowds.choose(&mut self.chance).expect("there are some");
        let (name, side) = (self.workers[at].name.clone(), self.workers[at].side);
        self.slow_replies(side).await;
        if trouble == Trouble::WorkerStopped {
            self.workers[at].signal(Signal::STOP);
            self.rest(200, 7_000).await;
            self.workers[at].signal(Signal::CONT);
        } else {
            drop(self.workers.remove(at));
            self.rest(100, 3_000).await;
            self.start_worker(Part::Crowd, side, self.until);
        }
        self.voters.iter().for_each(|voter| voter.ways[side].pass());
        format!("worker {name}")
    }

    /// Waits for the workers, which end by themselves.
    async fn end(mut self) {
        let give_up = monotonic() + nanos(LAST_TURN);
        for mut worker in self.workers.drain(..) {
            let ended = loop {
                match worker.child.try_wait().expect("it can be waited for") {
                    None if monotonic() < give_up => sleep(MS(50)).await,
                    ended => break ended,
                }
            };
            if !ended.is_some_and(|ended: ExitStatus| ended.success()) {
                let said = worker.said.lock().expect("nobody panics");
                let said = said.iter().cloned().collect::<Vec<_>>().join("\n");
                let why = format!("the worker ended with {ended:?}: {said}");
                let who = format!("{}.end.0", worker.name);
                self.history.note(monotonic(), &who, What::Odd { why });
            }
        }
        self.onlooker.await.expect("it does not panic");
    }
}

/// Past all proxies.
async fn connect_to(urls: &[String]) -> Quorate {
    let settings = leased(Quorate::builder().voters(urls), LEASE).runtime(Handle::current());
    settings.connect_timeout(secs(60)).connect().await.expect("all are up")
}

/// Looks at the queue again and again.
async fn look_on(quorum: Quorate, history: Arc<History>, until: u64) {
    let mutex = quorum.fair_mutex(FAIR);
    while monotonic() < until {
        // A server that is down says nothing, and the others decide.
        if let Ok(seen) = mutex.inspect().await {
            let places = seen.waiting.into_iter();
            let places = places.map(|waiting| (waiting.place.to_string(), waiting.ticket));
            let (lock, places) = (FAIR.to_owned(), places.collect());
            history.note(monotonic(), "onlooker", What::Looked { lock, places });
        }
        sleep(MS(10)).await;
    }
    drop(quorum.close().await);
}
