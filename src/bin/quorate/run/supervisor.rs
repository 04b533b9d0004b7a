//! Watches over the command while the lock is held, and ends the command before the lock ends.

use std::{ffi::OsString, io, pin::Pin, time::Duration};

use nix::sys::signal::Signal;
use quorate::Lost;

use super::{
    DeadlineFile, Ready,
    command::{Changed, CommandEnd, ProcessGroup},
    watcher::Watcher,
};
use crate::{
    asking::PATIENCE,
    clock,
    console::{Console, Failure},
    lock::LockHeld,
    process::{self, Signals, Terminal},
    screen::{Short, quoted},
};

/// When to end a command under a lock: counted backwards from the deadline of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// From SIGTERM to SIGKILL.
    grace: Duration,
    /// From SIGKILL to the deadline.
    // For the kernel to end all processes on a busy machine, and for clocks that differ a little.
    margin: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// Nothing for this time.
    Wait(Duration),
    /// SIGTERM, and nothing more for this time.
    Terminate(Duration),
    /// SIGKILL.
    Kill,
}

impl Plan {
    /// The plan for this lease, or for the longest hold if that is shorter. If no grace is asked
    /// for, it is a third of that time, at most 10 s.
    pub(super) fn new(
        lease: Duration,
        hold_at_most: Option<Duration>,
        grace: Option<Duration>,
    ) -> Result<Self, String> {
        // By the longest hold: with the grace of a lease of 30 s, a command that may run for 3 s
        // would get SIGTERM at once.
        let (what, time) = match hold_at_most {
            Some(most) if most < lease => ("longest hold", most),
            _ => ("lease", lease),
        };
        if time < Duration::from_secs(1) {
            return Err(format!("the {what} is {time:?}: a command needs at least 1s"));
        }
        let margin = (time / 10).clamp(Duration::from_millis(100), Duration::from_secs(1));
        // A lease is renewed once a third of it has passed. If that fails, half of it is left in
        // most cases. A longer grace would end commands whose lock is renewed a moment later
        // (`renewals_have_time_to_fail_before_the_grace_begins`).
        let longest = (time / 2).saturating_sub(margin);
        let usual = (time / 3).min(Duration::from_secs(10));
        let grace = grace.unwrap_or(usual);
        if grace > longest {
            let refused = format!("the grace is {grace:?}: {longest:?} at most fit");
            return Err(format!("{refused} a {what} of {time:?}"));
        }
        Ok(Self { grace, margin })
    }

    /// What to do when so much is left until the deadline: zero, if the lock is lost.
    fn measure(self, left: Duration) -> Measure {
        let until_kill = left.saturating_sub(self.margin);
        let until_term = until_kill.saturating_sub(self.grace);
        match (until_kill.is_zero(), until_term.is_zero()) {
            (true, _) => Measure::Kill,
            (false, true) => Measure::Terminate(until_kill),
            (false, false) => Measure::Wait(until_term),
        }
    }
}

/// How far the command is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// It has got a signal, and has until this moment.
    Ending(Duration),
    Killed,
}

/// A command that runs, with its lock and its watcher.
struct Supervisor<'a> {
    lock: &'a LockHeld,
    plan: Plan,
    file: Option<DeadlineFile>,
    signals: &'a mut Signals,
    terminal: Terminal,
    watcher: Watcher,
    /// When the watcher kills the group.
    kill_at: Duration,
    console: &'a Console,
    group: ProcessGroup,
    stage: Stage,
    /// When to say which processes have not ended yet, if a terminal shows it.
    say_at: Option<Duration>,
    /// The command was ended because the lock was lost, or was not renewed in time.
    is_lost: bool,
    /// This process stops its own group, and gets that signal itself.
    stops_itself: bool,
    /// This process was continued, and has continued the command.
    // The `SIGCONT` for that is still to come, and is not passed on: somebody may have stopped the
    // command again since, and then it stays stopped (`it_stops_and_goes_on_with_its_command`).
    was_continued: bool,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunEnd {
    pub(super) end: CommandEnd,
    /// The command was ended because the lock was lost, or was not renewed in time.
    pub(super) is_lost: bool,
}

/// Runs the command under the lock. Returns when no process of its group is left.
pub(super) async fn supervise(
    name: &str,
    plan: Plan,
    ready: Ready,
    signals: &mut Signals,
    lock: &LockHeld,
    console: &Console,
) -> Result<RunEnd, Failure> {
    let Ready { mut watcher, waiting, file } = ready;
    let mut terminal = Terminal::open();
    if Terminal::is_for_one() {
        terminal.give(waiting.group());
    }
    // Before the command runs: from here on it is killed in time, whatever happens to this process
    // (`the_holder_is_stopped_past_its_lease`).
    let now = clock::now();
    let time = lock.remaining().saturating_sub(plan.margin);
    let kill_at = now + time;
    watcher.kill_at(kill_at).map_err(Failure::system("the watcher"))?;
    let file = file.filter(|file| {
        let written = DeadlineFile::write(file.folder(), clock::wall() + time);
        written
            .inspect_err(|cause| console.warn(DeadlineFile::refused(file.folder(), cause)))
            .is_ok()
    });
    let group = waiting.go(variables(name, lock, file.as_ref()));
    let supervisor = Supervisor {
        lock,
        plan,
        file,
        signals,
        terminal,
        watcher,
        kill_at,
        console,
        group,
        stage: Stage::Running,
        say_at: None,
        is_lost: false,
        stops_itself: false,
        was_continued: false,
    };
    supervisor.run().await.map_err(Failure::system("the watcher"))
}

/// The variables that the command gets.
fn variables(
    name: &str,
    lock: &LockHeld,
    file: Option<&DeadlineFile>,
) -> Vec<(&'static str, OsString)> {
    let mut variables =
        vec![("QUORATE_LOCK", name.into()), ("QUORATE_HOLD", lock.hold().to_string().into())];
    variables.extend(file.map(|file| ("QUORATE_DEADLINE_FILE", file.path().into_os_string())));
    variables.extend(lock.token().map(|token| ("QUORATE_TOKEN", token.to_string().into())));
    variables.extend(lock.slot().map(|slot| ("QUORATE_SLOT", slot.to_string().into())));
    variables
}

impl Supervisor<'_> {
    /// How often to look at the lock.
    // A renewal is only seen by looking. And no timer goes by the clock of the deadlines: after a
    // suspend of the machine it would be late.
    const STEP: Duration = Duration::from_millis(250);
    /// How often to look while processes of the group are left that are no children of this one.
    // No signal comes when they end, and the lock stays taken until then.
    const SHORT_STEP: Duration = Duration::from_millis(10);
    /// The shortest move of a deadline that is passed on.
    // A renewal moves the deadline by a third of a lease. A shorter move is only that the clock was
    // read twice.
    const JITTER: Duration = Duration::from_millis(10);

    async fn run(mut self) -> io::Result<RunEnd> {
        let mut lost = self.lock.lost();
        let mut fault = None;
        let end = loop {
            let looked = self.look();
            if let Err(cause) = self.reap().and(looked) {
                // Without a watcher nobody ends the command if this process is killed: so it ends
                // now.
                fault = Some(cause);
                self.kill();
            }
            if let Some(end) = self.group.end().filter(|_| self.group.is_empty()) {
                break end;
            }
            self.say_what_is_left();
            self.wait(Pin::new(&mut lost)).await;
        };
        self.terminal.take_back();
        if matches!(end, CommandEnd::Signaled(_)) {
            self.terminal.restore_modes();
        }
        self.watcher.dismiss();
        fault.map_or(Ok(RunEnd { end, is_lost: self.is_lost }), Err)
    }

    /// Ends the command if it is time, and passes a new deadline on.
    // First in each turn: this process may have stood still since, alone or with its machine.
    fn look(&mut self) -> io::Result<()> {
        // The clock first: if this process stands still in between, the moments are early.
        let now = clock::now();
        let left = self.lock.remaining();
        let measure = self.plan.measure(left);
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
        // A lost lock has no deadline: the watcher keeps the one that it has.
        if left.is_zero() {
            return Ok(());
        }
        self.announce(now + left.saturating_sub(self.plan.margin))
    }

    /// Lets the watcher and the command know when the command will be killed.
    fn announce(&mut self, kill_at: Duration) -> io::Result<()> {
        if kill_at.abs_diff(self.kill_at) < Self::JITTER {
            return Ok(());
        }
        self.kill_at = kill_at;
        if self.watcher.kill_at(kill_at).is_err() {
            // A watcher that was stopped and is continued finds its pipe closed. It would take that
            // for the end of this process, and kill the command.
            self.watcher.kill();
            self.replace_watcher()?;
        }
        if let Some(file) = &self.file {
            file.write_soon(kill_at);
        }
        Ok(())
    }

    /// Starts another watcher: somebody ended the one before, or stopped it for long.
    fn replace_watcher(&mut self) -> io::Result<()> {
        let folder = self.file.as_ref().map(DeadlineFile::folder);
        self.watcher = Watcher::start(folder, Some(self.group.id()))?;
        self.watcher.kill_at(self.kill_at)
    }

    fn kill(&mut self) {
        self.stage = Stage::Killed;
        self.group.signal(Signal::SIGKILL);
    }

    /// Asks the command to end until then.
    fn end(&mut self, signal: Signal, until: Duration) {
        if self.stage == Stage::Running && self.console.is_watched() {
            self.say_at = Some(clock::now() + PATIENCE);
        }
        self.stage = match self.stage {
            Stage::Running => Stage::Ending(until),
            Stage::Ending(before) => Stage::Ending(before.min(until)),
            Stage::Killed => Stage::Killed,
        };
        self.group.signal(signal);
        // A command that is stopped would not get the signal, and could not clean up.
        self.group.signal(Signal::SIGCONT);
    }

    /// Says once which processes have not ended, for a user who wonders why the program goes on.
    fn say_what_is_left(&mut self) {
        let now = clock::now();
        let Stage::Ending(until) = self.stage else { return };
        if self.say_at.take_if(|at| now >= *at).is_none() {
            return;
        }
        let left = Short(until.saturating_sub(now));
        let members = quoted(&self.group.members().join(", "));
        let when = format_args!("SIGKILL in {left}, or at Ctrl-C");
        self.console.note(format_args!("waiting for {members}: {when}"));
    }

    fn reap(&mut self) -> io::Result<()> {
        while let Some(change) = self.group.next_change() {
            match change {
                Changed::Ended => drop(self.terminal.take_back()),
                Changed::Stopped(signal) => self.stopped(signal)?,
                Changed::Other(process) if process == self.watcher.id() => {
                    self.replace_watcher()?;
                }
                Changed::Other(_) => {}
            }
        }
        // The command has ended, but not all that it started. The lock stays taken until they have
        // (`the_lock_is_kept_until_all_of_the_group_have_ended`).
        if self.group.end().is_some() && !self.group.is_empty() && self.stage == Stage::Running {
            self.end(Signal::SIGTERM, clock::now() + self.plan.grace);
        }
        Ok(())
    }

    /// Decides what to do after the command was stopped: by a key, by reading from a terminal that
    /// it does not have, or by somebody.
    fn stopped(&mut self, signal: Signal) -> io::Result<()> {
        // The command reads from the terminal, and this program is in the foreground: without this
        // program in between, the command could read.
        let wants_terminal = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
        if wants_terminal && self.terminal.give(self.group.id()) {
            self.group.signal(Signal::SIGCONT);
            return Ok(());
        }
        if !self.terminal.is_there() || self.stage != Stage::Running {
            return Ok(());
        }
        // The shell waits for this process, not for the command: it gets its prompt back when this
        // process stops, too. Without a shell nobody would continue either of them.
        if self.terminal.has_shell() {
            self.stops_itself = true;
            self.stop(Terminal::stop_group)
        } else {
            self.group.signal(Signal::SIGCONT);
            Ok(())
        }
    }

    /// Stops this process, and goes on with the command once it is continued.
    fn stop(&mut self, stop: fn(&Terminal)) -> io::Result<()> {
        let had_terminal = self.terminal.take_back();
        stop(&self.terminal);
        // The lock may have been lost in that time. Then the command is killed before it goes on.
        self.look()?;
        if had_terminal {
            self.terminal.give(self.group.id());
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
            signal = self.signals.next() => signal,
            // Before the next step: a hold that is lost or ended by force has no deadline to wait
            // for.
            _ = lost, if !is_killed => return,
            () = tokio::time::sleep(time) => return,
        };
        match signal {
            Signal::SIGCHLD => {}
            Signal::SIGTSTP if self.stops_itself => self.stops_itself = false,
            Signal::SIGCONT if self.was_continued => self.was_continued = false,
            Signal::SIGTSTP => {
                self.group.signal(signal);
                // An error comes again at the next turn.
                let _ = self.stop(|_| process::stop());
            }
            // The user does not want to wait for the grace (`a_second_ctrl_c_ends_the_grace`).
            Signal::SIGINT if matches!(self.stage, Stage::Ending(_)) => self.kill(),
            Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT => {
                self.end(signal, clock::now() + self.plan.grace);
            }
            signal => self.group.signal(signal),
        }
    }

    fn until_next(&self) -> Duration {
        let left = self.lock.remaining();
        let of_the_plan = match self.plan.measure(left) {
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
