//! A process that outlives the program, and ends the command if the program cannot. It also ends
//! the servers of `quorate try`.
//!
//! It is this program once more, in a session of its own, with all signals blocked. It reads from
//! a pipe that only the program holds: which process group the command has, and when to kill it.
//! Each later moment replaces the one before. It kills the group at that moment, so the program may
//! be stopped; and when the pipe ends, so the program may be killed.

use std::{
    env,
    ffi::{CStr, OsStr, OsString},
    fs,
    io::{self, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{ffi::OsStrExt, process::CommandExt},
    },
    path::Path,
    process::{Child, ChildStdin, Stdio},
    time::Duration,
};

#[cfg(target_os = "linux")]
use nix::sys::{
    time::TimeSpec,
    timerfd::{ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{SigSet, SigmaskHow, Signal, killpg},
    unistd::{Pid, read, setsid},
};

use crate::{clock, process};

/// The hidden argument of a watcher.
pub(crate) const WATCH: &str = "__watch";

/// The name of the process, and the first word of its command line.
// Without `quorate`: `pkill -9 quorate` would end the watcher with the program, and the command
// would go on beside the next holder (`a_kill_by_the_programs_name_leaves_nothing_of_the_group`).
const NAME: &CStr = c"lock-watcher";

/// The variable with the folder.
const FOLDER: &str = "FOLDER";

/// A message to the watcher.
// All have the same length, and are shorter than what a pipe takes at once: so each is written and
// read as a whole, and never half of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    Group(Pid),
    /// A moment of the clock that both processes see alike.
    KillAt(Duration),
    /// The group is gone.
    Done,
}

impl Notice {
    const BYTES: usize = 16;

    fn write(self) -> [u8; Self::BYTES] {
        let (kind, value) = match self {
            Self::Group(group) => (1, u64::try_from(group.as_raw()).unwrap_or(0)),
            Self::KillAt(at) => (2, u64::try_from(at.as_nanos()).unwrap_or(u64::MAX)),
            Self::Done => (3, 0),
        };
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&u64::to_le_bytes(kind));
        bytes[8..].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    fn read(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let &[kind, value] = bytes.as_chunks().0 else { return None };
        let value = u64::from_le_bytes(value);
        match u64::from_le_bytes(kind) {
            1 => group_of(value).map(Self::Group),
            2 => Some(Self::KillAt(Duration::from_nanos(value))),
            3 => Some(Self::Done),
            _ => None,
        }
    }
}

/// The watcher, as the program sees it.
pub(crate) struct Watcher {
    process: Child,
    pipe: ChildStdin,
}

impl Watcher {
    /// Starts a watcher. It removes the folder if the program is killed. `running`: the group of a
    /// command that runs already.
    pub(crate) fn start(folder: Option<&Path>, running: Option<Pid>) -> io::Result<Self> {
        let mut command = process::again();
        command.arg0(OsStr::from_bytes(NAME.to_bytes())).arg(WATCH).env_clear();
        command.envs(folder.map(|folder| (FOLDER, folder)));
        // As an argument, and not by the pipe: the program may be killed before it writes.
        command.args(running.map(|group| group.to_string()));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // It inherits the mask of the thread that starts it, so only SIGKILL ends it: systemd sends
        // SIGTERM to all processes of a service
        // (`signals_for_all_processes_of_a_service_do_not_end_the_watcher`).
        let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
        let started = command.spawn();
        mask.thread_set_mask()?;
        let mut process = started?;
        let pipe = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        // If somebody stops the watcher, its pipe fills. A write must fail then, and not block the
        // program.
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self { process, pipe })
    }

    pub(crate) fn id(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.process.id()).unwrap_or(i32::MAX))
    }

    /// Fails if the watcher is gone, or has not read its pipe for long.
    pub(crate) fn watch(&mut self, group: Pid) -> io::Result<()> {
        self.send(Notice::Group(group))
    }

    /// Fails as [`watch`](Self::watch).
    pub(crate) fn kill_at(&mut self, at: Duration) -> io::Result<()> {
        // As a rest of time: the clock of deadlines is made by each process for itself.
        let left = at.saturating_sub(clock::now());
        self.send(Notice::KillAt(clock::shared() + left))
    }

    /// Ends the watcher, and not the group.
    pub(crate) fn kill(&mut self) {
        // It was not reaped, so its id is not another process's.
        let _ = self.process.kill();
    }

    /// Lets the watcher end: nothing is left to kill.
    pub(crate) fn dismiss(mut self) {
        // A watcher that is gone does no harm any more.
        let _ = self.send(Notice::Done);
    }

    fn send(&mut self, notice: Notice) -> io::Result<()> {
        self.pipe.write_all(&notice.write())
    }
}

/// The watcher itself.
pub(crate) fn watch(arguments: &[OsString]) {
    process::rename(NAME);
    // Signals of the terminal are not for it. The call fails if this process leads a session
    // already.
    let _ = setsid();
    let group = arguments.first().and_then(|group| group_of(group.to_str()?.parse().ok()?));
    let mut watched = WatchedGroup { group, kill_at: None };
    let alarm = Alarm::new();
    loop {
        match watched.next(&alarm) {
            Ok(true) => {}
            Ok(false) => return,
            // The program is gone, or the pipe is broken: in doubt the command ends.
            Err(_) => break,
        }
        if watched.kill_at.is_some_and(|at| clock::now() >= at) {
            // Otherwise the moment would stay in the past, and each wait would end at once.
            watched.kill_at = None;
            watched.kill();
        }
    }
    watched.kill();
    if let Some(folder) = env::var_os(FOLDER) {
        let _ = fs::remove_dir_all(folder);
    }
}

fn group_of(id: u64) -> Option<Pid> {
    // A signal to group 0 goes to one's own group, and a signal to group 1 to all processes.
    i32::try_from(id).ok().filter(|id| *id > 1).map(Pid::from_raw)
}

struct WatchedGroup {
    group: Option<Pid>,
    kill_at: Option<Duration>,
}

impl WatchedGroup {
    /// Waits for the moment to kill or for notices, and takes the notices. Says whether there is
    /// still something to watch. Fails if the program is gone.
    fn next(&mut self, alarm: &Alarm) -> io::Result<bool> {
        let input = io::stdin();
        if !alarm.wait(input.as_fd(), self.kill_at)? {
            return Ok(true);
        }
        // A multiple of the length of a notice, so that no notice is cut.
        let mut bytes = [0; 64 * Notice::BYTES];
        let length = match read(input.as_fd(), &mut bytes) {
            Err(Errno::EINTR | Errno::EAGAIN) => return Ok(true),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => read?,
        };
        for notice in bytes[..length].as_chunks().0 {
            match Notice::read(*notice) {
                Some(Notice::Group(group)) => self.group = Some(group),
                Some(Notice::KillAt(at)) => {
                    let left = at.saturating_sub(clock::shared());
                    self.kill_at = Some(clock::now() + left);
                }
                Some(Notice::Done) => return Ok(false),
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(true)
    }

    fn kill(&self) {
        if let Some(group) = self.group {
            // It fails if all processes of the group have ended by themselves.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

/// A timer that goes on while the machine is suspended, if there is one.
// By `poll` alone, the watcher would be late after a suspend by what was left of a step: the lease
// goes on in that time.
struct Alarm {
    #[cfg(target_os = "linux")]
    timer: Option<TimerFd>,
}

impl Alarm {
    /// How often to look at the clock.
    // No timer goes by the clock of the deadlines. The one below is slow while a time service slows
    // the clock down, by up to 8 %: a command was killed 1.7 s late.
    const STEP: Duration = Duration::from_millis(250);

    #[cfg(target_os = "linux")]
    fn new() -> Self {
        Self { timer: TimerFd::new(TimerClock::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC).ok() }
    }

    #[cfg(not(target_os = "linux"))]
    fn new() -> Self {
        Self {}
    }

    /// Waits until there is something to read (true), or the moment may have come (false).
    fn wait(&self, input: BorrowedFd<'_>, moment: Option<Duration>) -> io::Result<bool> {
        let read = PollFd::new(input, PollFlags::POLLIN);
        let left = moment.map(|moment| moment.saturating_sub(clock::now()));
        let timer = left.and_then(|left| self.set(clock::shared() + left));
        let step = left.map(|left| {
            // A millisecond more, as the rest is cut to whole ones: waking up just before the
            // moment would cost another turn.
            let left = left.min(Self::STEP) + Duration::from_millis(1);
            PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO)
        });
        let mut both = [read.clone(), timer.unwrap_or(read)];
        match poll(&mut both, step) {
            Err(Errno::EINTR) => Ok(false),
            Err(cause) => Err(cause.into()),
            Ok(_) => Ok(both[0].any().unwrap_or(true)),
        }
    }

    #[cfg(target_os = "linux")]
    fn set(&self, moment: Duration) -> Option<PollFd<'_>> {
        let timer = self.timer.as_ref()?;
        let at = Expiration::OneShot(TimeSpec::from_duration(moment));
        timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME).ok()?;
        Some(PollFd::new(timer.as_fd(), PollFlags::POLLIN))
    }

    #[cfg(not(target_os = "linux"))]
    fn set(&self, _moment: Duration) -> Option<PollFd<'_>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_read_as_it_was_written() {
        let notices = [
            Notice::Group(Pid::from_raw(4711)),
            Notice::KillAt(Duration::from_nanos(1_234_567_890_123)),
            Notice::Done,
        ];
        for notice in notices {
            assert_eq!(Notice::read(notice.write()), Some(notice));
        }
        for id in [0, 1] {
            assert_eq!(Notice::read(Notice::Group(Pid::from_raw(id)).write()), None);
        }
        assert_eq!(Notice::read([9; Notice::BYTES]), None);
    }
}
