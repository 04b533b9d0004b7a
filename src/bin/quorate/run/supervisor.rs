//! Watches over the command while the lock is held, and ends it in time where that ends.

use std::{io, pin::Pin, time::Duration};

use nix::sys::signal::Signal;
use quorate::Lost;

use super::{
    DeadlineFile,
    command::{Changed, CommandEnd, ProcessGroup},
    watcher::Watcher,
};
use crate::{
    asking::PATIENCE,
    clock,
    console::Console,
    lock::LockHeld,
    process::{self, Signals, Terminal},
    screen::{Short, quoted},
};

/// When to end a command under a lock: counted backwards from the deadline of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// From SIGTERM to SIGKILL.
    pub(crate) grace: Duration,
    /// From SIGKILL to the deadline: for the kernel to end all processes, also on a busy machine,
    /// and for clocks that do not run quite alike.
    pub(crate) margin: Duration,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Nothing for this time.
    Wait(Duration),
    /// SIGTERM, and nothing more for this time.
    Terminate(Duration),
    /// SIGKILL.
    Kill,
}

impl Plan {
    pub(crate) const SHORTEST_LEASE: Duration = Duration::from_secs(1);

    /// If no grace is asked for, it is a third of the lease, at most 10 s.
    ///
    /// A lease is renewed once a third of it has passed. Where that fails, half of it is still left
    /// in most cases: a grace that does not fit there would end commands whose lock is well.
    ///
    /// Where the lock may be held for less than its lease, that counts instead of the lease.
    pub(crate) fn new(
        lease: Duration,
        hold_at_most: Option<Duration>,
        grace: Option<Duration>,
    ) -> Result<Self, String> {
        let (what, time) = match hold_at_most {
            Some(most) if most < lease => ("longest hold", most),
            _ => ("lease", lease),
        };
        if time < Self::SHORTEST_LEASE {
            return Err(format!("the {what} is {time:?}: a command needs at least 1s"));
        }
        let margin = (time / 10).clamp(Duration::from_millis(100), Duration::from_secs(1));
        let longest = (time / 2).saturating_sub(margin);
        let usual = (time / 3).min(Duration::from_secs(10));
        let grace = grace.unwrap_or(usual);
        if grace > longest {
            let refused = format!("the grace is {grace:?}: {longest:?} at most fit");
            return Err(format!("{refused} a {what} of {time:?}"));
        }
        Ok(Self { grace, margin })
    }

    /// What to do while so much is left until the deadline; nothing is left of a lock that is lost.
    pub(crate) fn measure(self, left: Duration) -> Measure {
        let until_kill = left.saturating_sub(self.margin);
        let until_term = until_kill.saturating_sub(self.grace);
        match (until_kill.is_zero(), until_term.is_zero()) {
            (true, _) => Measure::Kill,
            (false, true) => Measure::Terminate(until_kill),
            (false, false) => Measure::Wait(until_term),
        }
    }
}

/// How far the command has been ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// It was asked to end, and has until this moment.
    Ending(Duration),
    Killed,
}

/// What the command is started with.
pub(crate) struct Surroundings<'a> {
    pub(crate) lock: &'a LockHeld,
    pub(crate) plan: Plan,
    pub(crate) file: Option<DeadlineFile>,
    pub(crate) signals: &'a mut Signals,
    pub(crate) terminal: Terminal,
    pub(crate) watcher: Watcher,
    /// When the watcher kills the group.
    pub(crate) kill_at: Duration,
    pub(crate) console: &'a Console,
}

/// A command that runs, and all that there is around it.
pub(crate) struct Supervisor<'a> {
    around: Surroundings<'a>,
    group: ProcessGroup,
    stage: Stage,
    /// When to say what has not ended yet, if somebody looks.
    say_at: Option<Duration>,
    /// The lock ended before the command, or came so near to its end that the command had to.
    is_lost: bool,
    /// This process stops its own group, and hears that too.
    stops_itself: bool,
    /// This process was continued, and has continued the command. The signal for that is still to
    /// be heard, and is not passed on: somebody may have stopped the command again.
    was_continued: bool,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunEnd {
    pub(crate) end: CommandEnd,
    /// The command was ended because the lock was lost, or was not renewed in time.
    pub(crate) is_lost: bool,
}

impl<'a> Supervisor<'a> {
    /// The longest time until a renewal is noticed, or that a suspended machine goes on.
    const STEP: Duration = Duration::from_millis(250);
    /// The same for processes of the group that are no children of this one.
    const SHORT_STEP: Duration = Duration::from_millis(10);
    /// By less than this a deadline does not move when the lock is renewed.
    const JITTER: Duration = Duration::from_millis(10);

    /// Returns when nobody of the group is left.
    pub(crate) async fn run(group: ProcessGroup, around: Surroundings<'a>) -> io::Result<RunEnd> {
        let (stage, say_at) = (Stage::Running, None);
        let [is_lost, stops_itself, was_continued] = [false; 3];
        let mut this = Self { around, group, stage, say_at, is_lost, stops_itself, was_continued };
        let mut lost = this.around.lock.lost();
        let mut fault = None;
        let end = loop {
            let looked = this.look();
            if let Err(cause) = this.reap().and(looked) {
                // Nobody would end the command if this process could not.
                fault = Some(cause);
                this.kill();
            }
            if let Some(end) = this.group.end().filter(|_| this.group.is_empty()) {
                break end;
            }
            this.say_what_is_left();
            this.wait(Pin::new(&mut lost)).await;
        };
        this.around.terminal.take_back();
        if matches!(end, CommandEnd::Signaled(_)) {
            this.around.terminal.restore_modes();
        }
        this.around.watcher.dismiss();
        fault.map_or(Ok(RunEnd { end, is_lost: this.is_lost }), Err)
    }

    /// Before all else, whenever this process runs again: however long it stood still, with its
    /// machine or without.
    fn look(&mut self) -> io::Result<()> {
        // In this order: if this process stands still in between, the moments are early.
        let now = clock::now();
        let left = self.around.lock.remaining();
        let measure = self.around.plan.measure(left);
        match (measure, self.stage) {
            (_, Stage::Killed) | (Measure::Kill, _) => {
                self.is_lost |= self.stage != Stage::Killed;
                self.kill();
            }
            (Measure::Terminate(time), Stage::Running) => {
                self.is_lost = true;
                self.end(Signal::SIGTERM, now + time);
            }
            (_, Stage::Ending(until)) if now >= until => self.kill(),
            (_, Stage::Running | Stage::Ending(_)) => {}
        }
        if left.is_zero() {
            return Ok(());
        }
        self.tell(now + left.saturating_sub(self.around.plan.margin))
    }

    /// Tells the watcher and the command when the command will be killed.
    fn tell(&mut self, kill_at: Duration) -> io::Result<()> {
        if kill_at.abs_diff(self.around.kill_at) < Self::JITTER {
            return Ok(());
        }
        self.around.kill_at = kill_at;
        if self.around.watcher.kill_at(kill_at).is_err() {
            // One that was stopped would take the end of its pipe for ours.
            self.around.watcher.kill();
            self.replace_watcher()?;
        }
        // Not by this thread: a file may hang.
        if let Some(file) = &self.around.file {
            file.write_soon(kill_at);
        }
        Ok(())
    }

    /// Somebody ended the watcher, or stopped it for long.
    fn replace_watcher(&mut self) -> io::Result<()> {
        let folder = self.around.file.as_ref().map(DeadlineFile::folder);
        self.around.watcher = Watcher::start(folder, Some(self.group.id()))?;
        self.around.watcher.kill_at(self.around.kill_at)
    }

    fn kill(&mut self) {
        self.stage = Stage::Killed;
        self.group.signal(Signal::SIGKILL);
    }

    /// Asks the command to end until then.
    fn end(&mut self, signal: Signal, until: Duration) {
        if self.stage == Stage::Running && self.around.console.is_watched() {
            self.say_at = Some(clock::now() + PATIENCE);
        }
        self.stage = match self.stage {
            Stage::Running => Stage::Ending(until),
            Stage::Ending(before) => Stage::Ending(before.min(until)),
            Stage::Killed => Stage::Killed,
        };
        self.group.signal(signal);
        // One that is stopped could not clean up.
        self.group.signal(Signal::SIGCONT);
    }

    /// One line, once, for whoever wonders why the program does not end.
    fn say_what_is_left(&mut self) {
        let now = clock::now();
        let Stage::Ending(until) = self.stage else { return };
        if self.say_at.take_if(|at| now >= *at).is_none() {
            return;
        }
        let left = Short(until.saturating_sub(now));
        let members = quoted(&self.group.members().join(", "));
        let when = format_args!("SIGKILL in {left}, or at Ctrl-C");
        self.around.console.note(format_args!("waiting for {members}: {when}"));
    }

    fn reap(&mut self) -> io::Result<()> {
        while let Some(change) = self.group.next_change() {
            match change {
                Changed::Ended => drop(self.around.terminal.take_back()),
                Changed::Stopped(signal) => self.stopped(signal)?,
                Changed::Other(process) if process == self.around.watcher.id() => {
                    self.replace_watcher()?;
                }
                Changed::Other(_) => {}
            }
        }
        // The lock is not given to anybody else as long as something of it runs.
        if self.group.end().is_some() && !self.group.is_empty() && self.stage == Stage::Running {
            self.end(Signal::SIGTERM, clock::now() + self.around.plan.grace);
        }
        Ok(())
    }

    /// The command was stopped: by a key, by reading from a terminal that it does not have, or by
    /// somebody.
    fn stopped(&mut self, signal: Signal) -> io::Result<()> {
        let wants_terminal = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
        if wants_terminal && self.around.terminal.give(self.group.id()) {
            self.group.signal(Signal::SIGCONT);
            return Ok(());
        }
        if !self.around.terminal.is_there() || self.stage != Stage::Running {
            return Ok(());
        }
        if self.around.terminal.has_shell() {
            self.stops_itself = true;
            self.stop(Terminal::stop_group)
        } else {
            self.group.signal(Signal::SIGCONT);
            Ok(())
        }
    }

    /// Stops this process, and goes on with the command once it is continued.
    fn stop(&mut self, stop: fn(&Terminal)) -> io::Result<()> {
        let had_terminal = self.around.terminal.take_back();
        stop(&self.around.terminal);
        self.look()?;
        if had_terminal {
            self.around.terminal.give(self.group.id());
        }
        self.group.signal(Signal::SIGCONT);
        self.was_continued = true;
        Ok(())
    }

    async fn wait(&mut self, lost: Pin<&mut Lost>) {
        let time = self.until_next();
        let is_killed = self.stage == Stage::Killed;
        let signal = tokio::select! {
            biased;
            signal = self.around.signals.next() => signal,
            _ = lost, if !is_killed => return,
            () = tokio::time::sleep(time) => return,
        };
        // The lock may have ended meanwhile: that is looked at before the command goes on.
        match signal {
            Signal::SIGCHLD => {}
            Signal::SIGTSTP if self.stops_itself => self.stops_itself = false,
            Signal::SIGCONT if self.was_continued => self.was_continued = false,
            Signal::SIGTSTP => {
                self.group.signal(signal);
                // An error comes again at the next look.
                let _ = self.stop(|_| process::stop());
            }
            // Somebody at the keyboard waits no longer.
            Signal::SIGINT if matches!(self.stage, Stage::Ending(_)) => self.kill(),
            Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT => {
                self.end(signal, clock::now() + self.around.plan.grace);
            }
            signal => self.group.signal(signal),
        }
    }

    fn until_next(&self) -> Duration {
        let left = self.around.lock.remaining();
        let of_the_plan = match self.around.plan.measure(left) {
            Measure::Wait(time) | Measure::Terminate(time) => time,
            Measure::Kill => Duration::ZERO,
        };
        match self.stage {
            Stage::Killed => Self::SHORT_STEP,
            Stage::Running => of_the_plan.min(Self::STEP),
            Stage::Ending(until) => {
                let until = until.saturating_sub(clock::now()).min(of_the_plan);
                let has_ended = self.group.end().is_some();
                until.min(if has_ended { Self::SHORT_STEP } else { Self::STEP })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{run::MAX_HOLD, setup::parse_time};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn both_signals_are_counted_backwards_from_the_deadline() {
        use Measure::{Kill, Terminate, Wait};
        let plan = Plan::new(30 * SECOND, None, Some(5 * SECOND)).unwrap();
        assert_eq!(plan, Plan { grace: 5 * SECOND, margin: SECOND });
        let measures = [20, 6, 2, 1, 0].map(|secs| plan.measure(secs * SECOND));
        let expected = [Wait(14 * SECOND), Terminate(5 * SECOND), Terminate(SECOND), Kill, Kill];
        assert_eq!(measures, expected);
        // Without grace there is only the kill.
        let plan = Plan::new(SECOND, None, Some(Duration::ZERO)).unwrap();
        assert_eq!(plan.margin, SECOND / 10);
        let measures = [SECOND / 2, SECOND / 10].map(|left| plan.measure(left));
        assert_eq!(measures, [Wait(SECOND * 4 / 10), Kill]);
    }

    #[test]
    fn the_table_of_the_option_says_when_each_signal_comes() {
        let rows = MAX_HOLD.lines().filter_map(|line| line.trim().strip_prefix("--max-hold "));
        let mut count = 0;
        for row in rows {
            let times: Vec<_> = row.split_whitespace().collect();
            let [most, rest @ .., term, kill] = &times[..] else { panic!("{row}") };
            let read = |time: &str| parse_time(time).unwrap();
            let grace = if let ["--grace", grace] = rest { Some(read(grace)) } else { None };
            let most = read(most);
            let plan = Plan::new(30 * SECOND, Some(most), grace).unwrap();
            let tenths = |time: Duration| (time.as_millis() + 50) / 100;
            let shown = [term, kill].map(|time| {
                let (seconds, part) = time.trim_end_matches('s').split_once('.').unwrap();
                format!("{seconds}{part}").parse::<u128>().unwrap()
            });
            let at_kill = most.saturating_sub(plan.margin);
            let at_term = at_kill.saturating_sub(plan.grace);
            assert_eq!(shown, [at_term, at_kill].map(tenths), "{row}");
            count += 1;
        }
        assert_eq!(count, 4);
    }

    #[test]
    fn renewals_have_time_to_fail_before_the_grace_begins() {
        for lease in [SECOND, 2 * SECOND, 30 * SECOND, 3600 * SECOND] {
            let plan = Plan::new(lease, None, None).unwrap();
            // As much as is left when the first renewal is due, without some for the drift.
            let left = lease * 65 / 100;
            assert!(matches!(plan.measure(left), Measure::Wait(_)), "{lease:?}: {plan:?}");
        }
    }

    #[test]
    fn what_leaves_a_command_no_time_is_refused_with_its_values() {
        for (refused, told) in [
            (
                Plan::new(30 * SECOND, None, Some(15 * SECOND)),
                "the grace is 15s: 14s at most fit a lease of 30s",
            ),
            (Plan::new(SECOND / 2, None, None), "the lease is 500ms: a command needs at least 1s"),
            (
                Plan::new(30 * SECOND, Some(SECOND / 2), None),
                "the longest hold is 500ms: a command needs at least 1s",
            ),
            (
                Plan::new(30 * SECOND, Some(10 * SECOND), Some(5 * SECOND)),
                "the grace is 5s: 4s at most fit a longest hold of 10s",
            ),
        ] {
            assert_eq!(refused.unwrap_err(), told);
        }
        // A longer one changes nothing, and a shorter one makes room for the command.
        let usual = Plan::new(30 * SECOND, None, None);
        assert_eq!(Plan::new(30 * SECOND, Some(60 * SECOND), None), usual);
        let shorter = Plan { grace: SECOND, margin: SECOND * 3 / 10 };
        assert_eq!(Plan::new(30 * SECOND, Some(3 * SECOND), None), Ok(shorter));
    }
}
