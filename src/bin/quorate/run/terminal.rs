//! The terminal: it is the command's, as it would be without this program.

use std::{
    fs::{File, OpenOptions},
    io::{self, IsTerminal},
};

use nix::{
    sys::{
        signal::{SigSet, Signal, kill, killpg},
        termios::{SetArg, Termios, tcgetattr, tcsetattr},
    },
    unistd::{Pid, getpgrp, getpid, getppid, getsid, tcgetpgrp, tcsetpgrp},
};

/// The terminal that controls this process, if one does.
#[derive(Debug)]
pub(crate) struct Terminal {
    device: Option<File>,
    own: Pid,
    modes: Option<Termios>,
    is_given: bool,
}

impl Terminal {
    pub(crate) fn open() -> Self {
        let device = OpenOptions::new().read(true).write(true).open("/dev/tty").ok();
        let modes = device.as_ref().and_then(|device| tcgetattr(device).ok());
        if device.is_some() {
            // Whoever is in the background and takes the terminal back, or writes to it, would be
            // stopped.
            let _ = SigSet::from(Signal::SIGTTOU).thread_block();
        }
        Self { device, own: getpgrp(), modes, is_given: false }
    }

    /// Whether input and output are on a terminal: then nobody else of a pipeline reads it.
    pub(crate) fn is_for_one() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    pub(crate) fn is_there(&self) -> bool {
        self.device.is_some()
    }

    /// Gives it to a process group, if this process has it; says whether it had.
    pub(crate) fn give(&mut self, group: Pid) -> bool {
        let Some(device) = &self.device else { return false };
        if tcgetpgrp(device) != Ok(self.own) {
            return false;
        }
        self.is_given = tcsetpgrp(device, group).is_ok();
        self.is_given
    }

    /// Takes back what was given; says whether it was.
    pub(crate) fn take_back(&mut self) -> bool {
        let was_given = std::mem::take(&mut self.is_given);
        if let Some(device) = self.device.as_ref().filter(|_| was_given) {
            let _ = tcsetpgrp(device, self.own);
        }
        was_given
    }

    /// For a command that was killed, and could not do it itself.
    pub(crate) fn restore_modes(&self) {
        if let (Some(device), Some(modes)) = (&self.device, &self.modes)
            && tcgetpgrp(device) == Ok(self.own)
        {
            let _ = tcsetattr(device, SetArg::TCSADRAIN, modes);
        }
    }

    /// Whether there is somebody who would continue this process if it stopped.
    pub(crate) fn has_shell(&self) -> bool {
        // The first process of a container has no parent.
        let parent = Some(getppid()).filter(|parent| parent.as_raw() > 0);
        let shell = parent.and_then(|parent| getsid(Some(parent)).ok());
        self.is_there() && shell.is_some_and(|shell| getsid(None) == Ok(shell))
    }

    /// Stops this process group, as the key did that stopped the command: this process hears the
    /// signal as well. Returns when it is continued.
    pub(crate) fn stop_group(&self) {
        let _ = killpg(self.own, Signal::SIGTSTP);
        stop();
    }
}

/// Stops this process; returns when it is continued.
pub(crate) fn stop() {
    let _ = kill(getpid(), Signal::SIGSTOP);
}
