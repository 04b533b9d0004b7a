//! What only Unix can do with processes. Elsewhere no server is started: the tests that run there are
//! those on voters inside the process.

pub use own::Signal;
pub(crate) use own::{connect, signal, stop};

#[cfg(unix)]
mod own {
    use std::{io, os::unix::net::UnixStream, path::Path, process::Child};

    pub use rustix::process::Signal;
    use rustix::process::{Pid, WaitOptions, kill_process, waitpid};

    pub(crate) fn signal(process: &Child, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(process), signal)?)
    }

    /// Returns once it stands still.
    pub(crate) fn stop(process: &Child) {
        signal(process, Signal::STOP).expect("a child can be stopped");
        let (_, status) = waitpid(Some(Pid::from_child(process)), WaitOptions::UNTRACED)
            .expect("a child can be waited for")
            .expect("a blocking wait has an answer");
        assert!(status.stopped(), "redis-server ended instead of stopping: {status:?}");
    }

    pub(crate) fn connect(socket: &Path) -> io::Result<UnixStream> {
        UnixStream::connect(socket)
    }
}

#[cfg(not(unix))]
mod own {
    use std::{io, net::TcpStream, path::Path, process::Child};

    #[derive(Clone, Copy, Debug)]
    pub struct Signal(i32);

    impl Signal {
        pub(crate) const KILL: Self = Self(9);
        pub(crate) const CONT: Self = Self(18);

        pub(crate) fn as_raw(self) -> i32 {
            self.0
        }
    }

    pub(crate) fn signal(_: &Child, _: Signal) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn stop(_: &Child) {
        panic!("{}", io::ErrorKind::Unsupported)
    }

    pub(crate) fn connect(_: &Path) -> io::Result<TcpStream> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
