//! What befalls servers, networks, clocks and workers. All of it is within what the guarantees
//! assume: at most a minority of the voters forgets within a longest lease, and clocks step one at a
//! time.

use std::{
    fs::OpenOptions,
    io::Write,
    net::UdpSocket,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};

use quorate_tests::{
    check::MS as MILLI, event::monotonic, names::answer, prelude::*, scene::DURABLE,
};
use rand::{RngExt, rngs::StdRng, seq::SliceRandom};

pub(crate) const VOTERS: usize = 5;
/// Of five: a majority is always left.
const MINORITY: usize = 2;
/// Half of the workers reach the servers on one way, the others on the other.
pub(crate) const SIDES: usize = 2;
/// The second side has a name for the last server.
pub(crate) const NAME: &str = "voter.test";
/// Where the names come from: one server, which is silent at times.
pub(crate) const RESOLVER: &str = "nameserver 127.0.0.2\noptions timeout:5 attempts:2\n";

/// What can happen, each with what it is called in the record.
macro_rules! troubles {
    ($($trouble:ident $name:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Trouble { $($trouble),* }

        impl Trouble {
            pub(crate) const ALL: &[Self] = &[$(Self::$trouble),*];

            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$trouble => $name),* }
            }
        }
    };
}

// A minority of the servers or the ways to it; one side; one server that forgets; workers.
troubles! {
    Killed "killed", Stopped "stopped", Cut "cut", Refused "refused", Swallowed "swallowed",
    RepliesHeld "replies held", Slow "slow",
    Parted "parted", SlowThenCut "slow, then cut", Stranger "stranger",
    Emptied "emptied", Flushed "flushed", Copied "data copied", RolledBack "rolled back",
    ClockStepped "clock stepped",
    WorkerKilled "worker killed", WorkerStopped "worker stopped",
    WorkerClockStepped "worker's clock stepped", LogStalled "log stalled",
    NamesSilent "names silent",
}

impl Trouble {
    /// A server may have forgotten votes. Then no other may before the longest lease is over.
    pub(crate) fn forgets(self) -> bool {
        use Trouble::{ClockStepped, Copied, Emptied, Flushed, RolledBack};
        matches!(self, Emptied | Flushed | Copied | RolledBack | ClockStepped)
    }
}

/// A server, and the ways to it.
pub(crate) struct Voter {
    pub(crate) server: RedisServer,
    pub(crate) ways: Vec<Proxy>,
    /// When its data were copied.
    pub(crate) copied: u64,
}

/// Compiles what steps the wall clocks of other programs.
pub(crate) fn compile_clock(folder: &Path) {
    let source = format!("{ROOT}/tests/live/clock.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(folder.join("clock.so")).arg(source);
    assert!(compiler.status().expect("cc is installed").success());
}

/// For the environment of those whose clock is in this file.
pub(crate) fn stepped_clock(folder: &Path, file: &str) -> [(&'static str, String); 2] {
    let library = folder.join("clock.so").display().to_string();
    [("LD_PRELOAD", library), ("QUORATE_CLOCK", file.to_owned())]
}

/// The clocks in this file show so many seconds more than the machine's. Never is it empty.
pub(crate) fn step_clock(file: &Path, seconds: i32) {
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(file).unwrap();
    file.write_all(format!("{seconds:+05}").as_bytes()).expect("there is room");
}

/// The programs of the servers: all that `tests/run` found, or that of all tests.
fn programs() -> Vec<String> {
    let found = std::env::var("QUORATE_LIVE_SERVERS").unwrap_or_default();
    found.split(':').filter(|path| !path.is_empty()).map(str::to_owned).collect()
}

impl Voter {
    /// Servers of all versions that are installed, one after the other.
    pub(crate) async fn start_all(folder: &Path) -> Vec<Self> {
        let programs = programs();
        let start = |number: usize| {
            let mut settings = Settings::new().flags(&DURABLE).file("clock", "+0000");
            if !programs.is_empty() {
                settings = settings.program(&programs[number % programs.len()]);
            }
            for (name, value) in stepped_clock(folder, "{dir}/clock") {
                settings = settings.variable(name, &value);
            }
            RedisServer::start_as(&settings)
        };
        let mut voters = Vec::new();
        for number in 0..VOTERS {
            let server = start(number);
            let mut ways = Vec::new();
            for _ in 0..SIDES {
                ways.push(Proxy::start(server.port()).await);
            }
            voters.push(Self { server, ways, copied: u64::MAX });
        }
        voters
    }

    /// What one side knows it by.
    pub(crate) fn url(&self, number: usize, side: usize) -> String {
        let url = self.ways[side].url();
        let is_named = number + 1 == VOTERS && side + 1 == SIDES;
        if is_named { url.replace("127.0.0.1", NAME) } else { url }
    }

    pub(crate) async fn cut(&self) {
        for way in &self.ways {
            way.cut().await;
        }
    }

    /// Something that lasts.
    pub(crate) async fn suffer(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Killed => self.server.kill(),
            Trouble::Stopped => self.server.stop(),
            Trouble::Cut => self.cut().await,
            Trouble::Refused => {
                for way in &self.ways {
                    way.refuse().await;
                    way.cut().await;
                }
            }
            Trouble::Swallowed => self.ways.iter().for_each(Proxy::black_hole),
            Trouble::RepliesHeld => self.ways.iter().for_each(Proxy::hold_replies),
            _ => self.ways.iter().for_each(|way| way.delay(MS(40), MS(40))),
        }
    }

    pub(crate) fn recover(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Killed => self.server.restart(),
            Trouble::Stopped => self.server.resume(),
            Trouble::Cut => {}
            Trouble::Refused => self.ways.iter().for_each(Proxy::accept),
            _ => self.ways.iter().for_each(Proxy::pass),
        }
    }

    /// What it can be rolled back to. Clients look at a server every ten seconds, and notice that
    /// its data are older than what they saw.
    pub(crate) fn copy(&mut self) {
        self.server.copy_file();
        self.copied = monotonic();
    }

    pub(crate) fn is_copy_old(&self) -> bool {
        monotonic() > self.copied.saturating_add(25_000 * MILLI)
    }
}

/// So many of the servers, a minority.
pub(crate) fn minority(chance: &mut StdRng) -> Vec<usize> {
    let mut all: Vec<usize> = (0..VOTERS).collect();
    all.shuffle(chance);
    all.truncate(chance.random_range(1..=MINORITY));
    all
}

/// Knows every name, and is silent for as long as it is told.
pub(crate) fn serve_names(is_silent: Arc<AtomicBool>) {
    let socket = UdpSocket::bind("127.0.0.2:53").expect("this network is new");
    thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut question) {
            if !is_silent.load(SeqCst) {
                let _ = socket.send_to(&answer(&question[..length]), from);
            }
        }
    });
}
