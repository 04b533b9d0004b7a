//! Services are upgraded one by one, so programs of two releases ask the same servers. They share
//! locks; or the second is refused, as clients that keep other records have another configuration.
//!
//! `tests/run upgrade COMMIT` has the program of that commit as the other one. Without it both are
//! this one.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use quorate_support::eventually;
use rustix::process::Signal;

use crate::{
    program::{Running, output, program, quorate_by},
    voters::{LEASE, Voters},
};

/// Each with options for one who has the lock and for another who has to wait.
const KINDS: [[&[&str]; 2]; 5] = [
    [&[], &[]],
    [&["--fair"], &["--fair"]],
    [&["--read"], &["--write"]],
    [&["--write"], &["--read"]],
    [&["--permits", "1"], &["--permits", "1"]],
];

const BUSY: i32 = 75;
const CONFIGURATION_MISMATCH: i32 = 78;

fn other() -> PathBuf {
    env::var_os("QUORATE_OLD_PROGRAM").map_or_else(|| program().to_owned(), PathBuf::from)
}

struct Pair {
    voters: Voters,
    first: PathBuf,
    second: PathBuf,
}

impl Pair {
    fn run(&self, program: &Path, options: &[&str], script: &str) -> Command {
        let arguments = [&["run", "a"], options, &["--", "sh", "-c", script]].concat();
        let mut command = quorate_by(program, arguments);
        command.env("QUORATE_VOTERS", self.voters.urls()).env("QUORATE_VOTER_DEADLINE", "400ms");
        command
    }

    fn hold(&self, options: &[&str]) -> Running {
        let script = "echo $$; echo $QUORATE_TOKEN; exec sleep 1000";
        Running::start(&mut self.run(&self.first, options, script))
    }

    /// Whoever comes second gets the lock when the first has left, and has the later token.
    fn share(&self, [held, wanted]: [&[&str]; 2]) {
        let mut holder = self.hold(held);
        let before = holder.says();
        let tries = [wanted, &["--try"]].concat();
        let (code, _, errors) = output(&mut self.run(&self.second, &tries, "true"));
        assert_eq!(code, BUSY, "{wanted:?} beside {held:?}: {errors}");
        let script = "echo $QUORATE_TOKEN";
        let mut waiter = Running::start_soon(&mut self.run(&self.second, wanted, script));
        holder.signal(Signal::TERM);
        assert_eq!(holder.end().0, 128 + Signal::TERM.as_raw());
        let after = waiter.says();
        assert_eq!(waiter.end().0, 0);
        if let (Ok(before), Ok(after)) = (before.parse::<u64>(), after.parse::<u64>()) {
            assert!(after > before, "{wanted:?}: {after} after {before}");
        }
    }

    /// Whoever comes second takes no lock, and the first keeps its own.
    #[expect(clippy::disallowed_methods, reason = "real servers live in real time")]
    fn refuse(&self) {
        let mut holder = self.hold(&[]);
        let since = Instant::now();
        eventually("two leases have passed", || {
            let (code, _, errors) = output(&mut self.run(&self.second, &[], "true"));
            assert_eq!(code, CONFIGURATION_MISMATCH, "{errors}");
            assert!(errors.contains("mismatch"), "{errors}");
            since.elapsed() > 2 * LEASE
        });
        assert!(!holder.has_ended(), "what is held stays held");
        holder.signal(Signal::TERM);
        assert_eq!(holder.end().0, 128 + Signal::TERM.as_raw());
    }
}

#[test]
fn programs_of_two_releases_share_locks_or_refuse_each_other() {
    let codes = [(other(), program().to_owned()), (program().to_owned(), other())].map(|pair| {
        let (first, second) = pair;
        let pair = Pair { voters: Voters::start(), first, second };
        let mut holder = pair.hold(&[]);
        let (code, _, errors) = output(&mut pair.run(&pair.second, &["--try"], "true"));
        holder.signal(Signal::TERM);
        holder.wait();
        match code {
            BUSY => KINDS.into_iter().for_each(|kind| pair.share(kind)),
            CONFIGURATION_MISMATCH => pair.refuse(),
            code => panic!("the second ends with {code}: {errors}"),
        }
        code
    });
    assert_eq!(codes[0], codes[1], "whichever comes second");
    println!("they {}", if codes[0] == BUSY { "share locks" } else { "refuse each other" });
}
