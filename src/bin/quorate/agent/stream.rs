//! A connection as bytes: a socket, or standard input and output.

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    unistd::{read, write},
};
use tokio::io::{Interest, unix::AsyncFd};

pub(super) struct Stream {
    input: Arc<AsyncFd<OwnedFd>>,
    output: Arc<AsyncFd<OwnedFd>>,
}

impl Stream {
    /// Of one that does not block.
    pub(super) fn of_socket(socket: UnixStream) -> io::Result<Self> {
        let both = watch(OwnedFd::from(socket), Interest::READABLE | Interest::WRITABLE)?;
        let both = Arc::new(both);
        Ok(Self { input: Arc::clone(&both), output: both })
    }

    /// Pipes or sockets, as a parent gives them to its child.
    pub(super) fn of_process() -> io::Result<Self> {
        let open = |fd: OwnedFd, interest| {
            fcntl(&fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            watch(fd, interest).map(Arc::new)
        };
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let (input, output) = (open(input, Interest::READABLE)?, open(output, Interest::WRITABLE)?);
        Ok(Self { input, output })
    }

    /// Nothing at the end.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.async_io(Interest::READABLE, |fd| Ok(read(fd, buffer)?)).await
    }

    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.output.async_io(Interest::WRITABLE, |fd| Ok(write(fd, bytes)?)).await
    }

    /// As much as finds room at once: for the last that is said.
    pub(super) fn write_now(&self, bytes: &[u8]) {
        let _ = write(self.output.get_ref(), bytes);
    }
}

/// Has the runtime say when there is something to be done.
#[allow(deprecated, reason = "what is to be called instead came with tokio 1.53.3")]
pub(super) fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}
