//! Watches over the command while the lock is held, and ends it in time where that ends.

use std::{io, pin::Pin, time::Duration};

use nix::sys::signal::Signal;
use quorate::Lost;

use super::{
    PATIENCE,
    command::{Changed, CommandEnd, ProcessGroup},
    deadline_file::DeadlineFile,
    plan::{Measure, Plan},
    signals::{self, Signals},
    terminal::{self, Terminal},
    watcher::Watcher,
};
use crate::{
    clock,
    console::Console,
    frame::{Short, quoted},
    lock::LockHeld,
};

/// How far the command has been ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// It was asked to end, and has until this moment.
    Ending(Duration),
    Killed,
}

/// A command that runs, and all that there is around it.
#[derive(Debug)]
pub(crate) struct Supervisor<'a> {
    lock: &'a LockHeld,
    plan: Plan,
    file: &'a DeadlineFile,
    signals: &'a mut Signals,
    terminal: Terminal,
    watcher: Watcher,
    console: &'a Console,
    group: ProcessGroup,
    stage: Stage,
    /// When to say what has not ended yet, if somebody looks.
    say_at: Option<Duration>,
    /// When the watcher kills the group.
    told: Duration,
    /// The lock ended before the command, or came so near to its end that the command had to.
    is_lost: bool,
    /// This process stops its own group, and hears that too.
    stops_itself: bool,
    /// This process was continued, and has continued the command. The signal for that is still to
    /// be heard, and is not passed on: somebody may have stopped the command again.
    was_continued: bool,
}

/// What the command is started with.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) lock: &'a LockHeld,
    pub(crate) plan: Plan,
    pub(crate) file: &'a DeadlineFile,
    pub(crate) signals: &'a mut Signals,
    pub(crate) terminal: Terminal,
    pub(crate) watcher: Watcher,
    /// What the watcher was told.
    pub(crate) kill_at: Duration,
    pub(crate) console: &'a Console,
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

    pub(crate) fn new(group: ProcessGroup, around: Surroundings<'a>) -> Self {
        let Surroundings { lock, plan, file, signals, terminal, watcher, kill_at, console } =
            around;
        Self {
            lock,
            plan,
            file,
            signals,
            terminal,
            watcher,
            console,
            group,
            stage: Stage::Running,
            say_at: None,
            told: kill_at,
            is_lost: false,
            stops_itself: false,
            was_continued: false,
        }
    }

    /// Returns when nobody of the group is left.
    pub(crate) async fn run(mut self) -> io::Result<RunEnd> {
        let mut lost = self.lock.lost();
        let mut fault = None;
        let end = loop {
            let looked = self.look();
            if let Err(cause) = self.reap().and(looked) {
                // Nobody would end the command if this process could not.
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

    /// Before all else, whenever this process runs again: however long it stood still, with its
    /// machine or without.
    fn look(&mut self) -> io::Result<()> {
        // In this order: if this process stands still in between, the moments are early.
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
        if left.is_zero() {
            return Ok(());
        }
        self.tell(now + left.saturating_sub(self.plan.margin))
    }

    /// Tells the watcher and the command when the command will be killed.
    fn tell(&mut self, kill_at: Duration) -> io::Result<()> {
        if kill_at.abs_diff(self.told) < Self::JITTER {
            return Ok(());
        }
        self.told = kill_at;
        if self.watcher.kill_at(kill_at).is_err() {
            // One that was stopped would take the end of its pipe for ours.
            self.watcher.kill();
            self.replace_watcher()?;
        }
        // Not by this thread: a file may hang.
        self.file.write_soon(kill_at);
        Ok(())
    }

    /// Somebody ended the watcher, or stopped it for long.
    fn replace_watcher(&mut self) -> io::Result<()> {
        self.watcher = Watcher::start(self.file.folder(), Some(self.group.id()))?;
        self.watcher.kill_at(self.told)
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
        self.console.note(format_args!("waiting for {members}: SIGKILL in {left}"));
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
        // The lock is not given to anybody else as long as something of it runs.
        if self.group.end().is_some() && !self.group.is_empty() && self.stage == Stage::Running {
            self.end(Signal::SIGTERM, clock::now() + self.plan.grace);
        }
        Ok(())
    }

    /// The command was stopped: by a key, by reading from a terminal that it does not have, or by
    /// somebody.
    fn stopped(&mut self, signal: Signal) -> io::Result<()> {
        let wants_terminal = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
        if wants_terminal && self.terminal.give(self.group.id()) {
            self.group.signal(Signal::SIGCONT);
            return Ok(());
        }
        if !self.terminal.is_there() || self.stage != Stage::Running {
            return Ok(());
        }
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
                let _ = self.stop(|_| terminal::stop());
            }
            signal if signals::ends(signal) => {
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
