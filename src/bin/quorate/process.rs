//! This process: its signals, its terminal, its private folder, and how it starts itself again.

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

/// The signals that matter to a command: they end or stop this process, or come from its children.
const HEARD: [Signal; 9] = {
    use Signal::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
    [SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT]
};

/// The signals that ask a subcommand without a command to end.
pub(crate) const INTERRUPTS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

pub(crate) struct Signals(Vec<(Signal, Stream)>);

impl Signals {
    /// Listens to these signals. From here on none of them ends this process.
    pub(crate) fn listen(heard: &[Signal]) -> Result<Self, Failure> {
        let streams =
            heard.iter().map(|kind| Ok((*kind, signal(SignalKind::from_raw(*kind as i32))?)));
        let streams = streams.collect::<io::Result<_>>();
        streams.map(Self).map_err(Failure::system("signals"))
    }

    /// Listens to all signals that matter to a command.
    pub(crate) fn listen_for_command() -> Result<Self, Failure> {
        // A signal that is ignored stays ignored, as `nohup` wants it
        // (`what_was_ignored_before_stays_ignored`).
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

/// The signals that are ignored, a bit for each. None, except on Linux.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The terminal that controls this process, if there is one.
// The command gets it, as it would without this program: it reads keys, and a Ctrl-C is for it.
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
            // The system stops a background process that takes the terminal back or writes to it.
            let _ = SigSet::from(Signal::SIGTTOU).thread_block();
        }
        Self { device, own: getpgrp(), modes, is_given: false }
    }

    /// Whether input and output are on a terminal.
    // Otherwise another program of a pipeline may read it, as in `quorate run a -- x | less`.
    pub(crate) fn is_for_one() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    pub(crate) fn is_there(&self) -> bool {
        self.device.is_some()
    }

    /// Gives it to a process group, if this process has it. Says whether it did.
    pub(crate) fn give(&mut self, group: Pid) -> bool {
        let Some(device) = &self.device else { return false };
        if tcgetpgrp(device) != Ok(self.own) {
            return false;
        }
        self.is_given = tcsetpgrp(device, group).is_ok();
        self.is_given
    }

    /// Takes it back, if it was given away. Says whether it was.
    pub(crate) fn take_back(&mut self) -> bool {
        let was_given = mem::take(&mut self.is_given);
        if let Some(device) = self.device.as_ref().filter(|_| was_given) {
            let _ = tcsetpgrp(device, self.own);
        }
        was_given
    }

    /// Sets the terminal as it was at the start.
    // A command that is killed leaves it as it is: without echo, if it asked for a password.
    pub(crate) fn restore_modes(&self) {
        if let (Some(device), Some(modes)) = (&self.device, &self.modes)
            && tcgetpgrp(device) == Ok(self.own)
        {
            let _ = tcsetattr(device, SetArg::TCSADRAIN, modes);
        }
    }

    /// Whether a shell would continue this process if it stopped: a parent in the same session.
    pub(crate) fn has_shell(&self) -> bool {
        // The first process of a container has no parent.
        let parent = Some(getppid()).filter(|parent| parent.as_raw() > 0);
        let shell = parent.and_then(|parent| getsid(Some(parent)).ok());
        self.is_there() && shell.is_some_and(|shell| getsid(None) == Ok(shell))
    }

    /// Stops the process group of this process, and returns when it is continued.
    pub(crate) fn stop_group(&self) {
        // All of the group, as the key would: this program may stand in a pipeline. It catches the
        // first signal itself, so it needs the second.
        let _ = killpg(self.own, Signal::SIGTSTP);
        stop();
    }
}

/// Stops this process, and returns when it is continued.
pub(crate) fn stop() {
    let _ = kill(getpid(), Signal::SIGSTOP);
}

/// A folder that only this user can read. It is removed with the value, with all its files.
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

/// A command that runs this program again.
pub(crate) fn again() -> Command {
    // By `/proc`, as another version may have been installed at the path since this one started.
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

/// Sets the name of this process in lists of processes.
pub(crate) fn rename(name: &CStr) {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(name);
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}
