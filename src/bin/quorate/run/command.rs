//! The command, from its start to the end of its process group.
//!
//! It is started in two steps. First comes this program once more, which leads a process group of
//! its own and waits at a gate. That is before the lock is asked for, so it costs no time under the
//! lock. Once the lock is held and the watcher has the group, the gate opens, and the process
//! becomes the command. If the program is killed in between, nothing runs.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirEntry, File},
    io::{self, PipeWriter, Read, Write},
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, process::CommandExt},
    },
    process::{Command, ExitCode},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, FdFlag, fcntl},
    sys::{
        signal::{Signal, killpg},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, close, getpgid, getpid, getppid},
};

use crate::{
    console::{Code, Console, Failure},
    process,
};

/// The hidden argument of the first step.
pub(crate) const START: &str = "__start";

/// The command before it may run.
pub(crate) struct WaitingCommand {
    group: Pid,
    gate: PipeWriter,
}

impl WaitingCommand {
    pub(crate) fn start(command: &[OsString]) -> io::Result<Self> {
        let (wait, gate) = io::pipe()?;
        // Only this end is inherited. No other process is started meanwhile, which would keep the
        // gate open after this program was killed.
        fcntl(&wait, FcntlArg::F_SETFD(FdFlag::empty()))?;
        let mut first = process::again();
        first.arg(START).arg(wait.as_raw_fd().to_string()).arg(getpid().to_string());
        let process = first.args(command).process_group(0).spawn()?;
        let group = Pid::from_raw(i32::try_from(process.id()).map_err(io::Error::other)?);
        Ok(Self { group, gate })
    }

    pub(crate) fn group(&self) -> Pid {
        self.group
    }

    /// Opens the gate: the command runs, with these variables in addition to its environment.
    // Through the gate, as they are not known before the lock is held: its token, for example.
    pub(crate) fn go(
        mut self,
        variables: impl IntoIterator<Item = (&'static str, OsString)>,
    ) -> ProcessGroup {
        let mut text = Vec::new();
        for (name, value) in variables {
            // No variable of an environment can have a zero byte.
            text.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
        }
        text.extend(GO);
        // If somebody has killed the process, the supervisor sees that as the end of the command.
        let _ = self.gate.write_all(&text);
        ProcessGroup { id: self.group, end: None, is_empty: false }
    }
}

/// The variables that only some commands get.
const SOME: [&str; 3] = ["QUORATE_TOKEN", "QUORATE_SLOT", "QUORATE_DEADLINE_FILE"];

/// The last bytes that come through the gate.
// Without them, a gate that closes because the program was killed would start the command
// (`a_gate_that_closes_early_lets_nobody_go`).
const GO: &[u8] = b"go";

/// The variables that came through the gate; `None` if the program ended before it opened the gate.
fn read_gate(mut gate: impl Read) -> Option<Vec<(OsString, OsString)>> {
    let mut text = Vec::new();
    gate.read_to_end(&mut text).ok()?;
    let variables = text.strip_suffix(GO)?.split(|byte| *byte == 0);
    let variables = variables.filter_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=')?;
        let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        Some((text(&variable[..at]), text(&variable[at + 1..])))
    });
    Some(variables.collect())
}

/// The first step, in its own process. It returns only if the command cannot run.
pub(crate) fn start(arguments: &[OsString]) -> Code {
    let number = |text: &OsStr| text.to_str().and_then(|text| text.parse::<i32>().ok());
    let [gate, parent, program, arguments @ ..] = arguments else { return Code::Usage };
    let (Some(gate), Some(parent)) = (number(gate), number(parent)) else { return Code::Usage };
    // The command dies with the program even if nobody watches
    // (`the_command_dies_with_the_program_also_where_nobody_watches`).
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    // Opened anew, as a number cannot be turned into a file without unsafe code. The new file is
    // closed by `exec`, and the command does not get it.
    let path = format!("/dev/fd/{gate}");
    let opened = File::open(&path);
    let _ = close(gate);
    let failure = match opened.map(read_gate) {
        Err(cause) => Failure::system(path)(cause),
        // The parent is asked after the gate: it may have died before the kernel was asked to kill
        // this process with it.
        Ok(Some(variables)) if getppid() == Pid::from_raw(parent) => {
            let mut command = Command::new(program);
            // If this program is itself the command of another `quorate run`, these are of the
            // other lock (`a_command_under_two_locks_is_told_of_the_inner_one`).
            for name in SOME {
                command.env_remove(name);
            }
            let cause = command.args(arguments).envs(variables).exec();
            let is_missing = cause.kind() == io::ErrorKind::NotFound;
            let code = if is_missing { Code::NotFound } else { Code::NotExecutable };
            Failure::new(code, format!("cannot execute `{}`: {cause}", program.display()))
        }
        // The program has ended, so nobody reads an error.
        Ok(_) => return Code::System,
    };
    Console::new(false, 0).failure(&failure);
    failure.code
}

/// Reaps the children that have ended.
pub(crate) fn reap() {
    while waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG))
        .is_ok_and(|change| change != WaitStatus::StillAlive)
    {}
}

/// Reaps the children that have ended, except for these two.
// The first process of a container gets children that others left behind. While it waits for the
// lock, nobody else would reap them (`it_waits_for_what_others_leave_while_it_waits_for_the_lock`).
pub(crate) fn reap_others(own: [Pid; 2]) {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::wait::{Id, waitid};

        let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG;
        while let Ok(change) = waitid(Id::All, ended | WaitPidFlag::WNOWAIT) {
            let Some(process) = change.pid().filter(|process| !own.contains(process)) else {
                return;
            };
            let _ = waitid(Id::Pid(process), ended);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = own;
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    Exited(u8),
    Signaled(i32),
}

impl From<CommandEnd> for ExitCode {
    fn from(end: CommandEnd) -> Self {
        match end {
            CommandEnd::Exited(code) => code.into(),
            CommandEnd::Signaled(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX).into(),
        }
    }
}

/// The command, and all processes that it started and that have not left its group.
pub(crate) struct ProcessGroup {
    id: Pid,
    end: Option<CommandEnd>,
    is_empty: bool,
}

/// What happened to a child of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// The command ended. Other processes of its group may be left.
    Ended,
    /// The command was stopped by this signal.
    Stopped(Signal),
    /// Another process ended.
    Other(Pid),
}

impl ProcessGroup {
    pub(crate) fn id(&self) -> Pid {
        self.id
    }

    /// How the command ended, once it has.
    pub(crate) fn end(&self) -> Option<CommandEnd> {
        self.end
    }

    /// Whether no process of the group is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// The processes in it, such as `sleep (4711)`, or the group if the system lists none.
    pub(crate) fn members(&self) -> Vec<String> {
        let processes = fs::read_dir("/proc").into_iter().flatten().map_while(Result::ok);
        let member = |process: DirEntry| {
            let id = process.file_name().to_str()?.parse().ok()?;
            let is_in = getpgid(Some(Pid::from_raw(id))) == Ok(self.id);
            let name = fs::read_to_string(process.path().join("comm")).ok().filter(|_| is_in)?;
            Some(format!("{} ({id})", name.trim_end()))
        };
        let members: Vec<_> = processes.filter_map(member).collect();
        if members.is_empty() { vec![format!("process group {}", self.id)] } else { members }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // A process that has ended needs no signal, and a process of another user cannot get one.
        let _ = killpg(self.id, signal);
    }

    /// The next thing that happened to a child, if anything did.
    pub(crate) fn next_change(&mut self) -> Option<Changed> {
        // Of any child: on Linux, processes of the group whose parent has ended are children of
        // this process.
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
        loop {
            let change = match waitpid(Pid::from_raw(-1), Some(flags)) {
                Err(Errno::EINTR) => continue,
                Err(_) | Ok(WaitStatus::StillAlive) => {
                    // The command was reaped, but its id is not used again while a process is in
                    // the group: so this does not ask about another group.
                    let has_ended = self.end.is_some();
                    self.is_empty |= has_ended && killpg(self.id, None) == Err(Errno::ESRCH);
                    return None;
                }
                Ok(change) => change,
            };
            let (pid, end) = match change {
                // The system gives the low eight bits.
                WaitStatus::Exited(pid, code) => {
                    (pid, CommandEnd::Exited(u8::try_from(code).unwrap_or(u8::MAX)))
                }
                WaitStatus::Signaled(pid, signal, _) => (pid, CommandEnd::Signaled(signal as i32)),
                WaitStatus::Stopped(pid, signal) if pid == self.id => {
                    return Some(Changed::Stopped(signal));
                }
                _ => continue,
            };
            if pid != self.id {
                return Some(Changed::Other(pid));
            }
            self.end = Some(end);
            return Some(Changed::Ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_that_closes_early_lets_nobody_go() {
        assert_eq!(read_gate(&b""[..]), None);
        assert_eq!(read_gate(&b"QUORATE_LOCK=a\0"[..]), None);
        let expected = [("A".into(), "b=c d".into()), ("E".into(), OsString::new())];
        assert_eq!(read_gate(&b"A=b=c d\0E=\0go"[..]).as_deref(), Some(&expected[..]));
        assert_eq!(read_gate(&b"go"[..]), Some(Vec::new()));
    }
}
