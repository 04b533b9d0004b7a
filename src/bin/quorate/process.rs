//! This process: its signals, its terminal, a folder of its own, and the same program once more.

use std::{
    env,
    ffi::CStr,
    fs::{self, DirBuilder, File, OpenOptions},
    future::poll_fn,
    io::{self, IsTerminal},
    mem,
    os::unix::{fs::DirBuilderExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
    task::Poll,
};

use nix::{
    sys::{
        signal::{SigSet, Signal, kill, killpg},
        termios::{SetArg, Termios, tcgetattr, tcsetattr},
    },
    unistd::{Pid, getpgrp, getpid, getppid, getsid, tcgetpgrp, tcsetpgrp},
};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use crate::console::Failure;

/// Those that would end this process, stop it, or tell of the command.
const HEARD: [Signal; 9] = {
    use Signal::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
    [SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT]
};

/// Those that ask this program to end, where no command runs under a lock.
pub(crate) const INTERRUPTS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

pub(crate) struct Signals(Vec<(Signal, Stream)>);

impl Signals {
    /// From here on none of them ends this process.
    pub(crate) fn listen(heard: &[Signal]) -> Result<Self, Failure> {
        let streams =
            heard.iter().map(|kind| Ok((*kind, signal(SignalKind::from_raw(*kind as i32))?)));
        let streams = streams.collect::<io::Result<_>>();
        streams.map(Self).map_err(Failure::system("signals"))
    }

    /// All that matter to a command. One that was ignored before stays so, as for a program under
    /// `nohup`.
    pub(crate) fn listen_for_command() -> Result<Self, Failure> {
        let ignored = ignored();
        let is_heard =
            |kind: &Signal| *kind == Signal::SIGCHLD || ignored >> (*kind as i32 - 1) & 1 == 0;
        Self::listen(&HEARD.into_iter().filter(is_heard).collect::<Vec<_>>())
    }

    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (kind, stream) in &mut self.0 {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*kind);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// A bit for each; nothing is known of it except on Linux.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The terminal that controls this process, if one does. It is the command's, as it would be
/// without this program.
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
        let was_given = mem::take(&mut self.is_given);
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

/// A folder that nobody else may read. Removed with the value, and all that is in it.
pub(crate) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    pub(crate) fn create(within: &Path) -> io::Result<Self> {
        let folder = within.join(format!("quorate-{:016x}", rand::random::<u64>()));
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the same file, also where another one was installed in its place meanwhile.
pub(crate) fn again() -> Command {
    let of_this_process = PathBuf::from("/proc/self/exe");
    let path = if cfg!(target_os = "linux") && of_this_process.exists() {
        of_this_process
    } else {
        env::current_exe().unwrap_or_else(|_| "quorate".into())
    };
    let mut command = Command::new(path);
    command.arg0("quorate");
    command
}

/// What lists of processes call it, where that is not by the name of the file.
pub(crate) fn rename(name: &CStr) {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(name);
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}
