//! A connection as bytes: a socket, or standard input and output.

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    unistd::write,
};
use tokio::net::unix::pipe::{Receiver, Sender};

/// The two ends of a connection.
// Pipes for the runtime, whatever they are: a parent may give its child sockets (Node does).
pub(super) struct Stream {
    pub(super) input: Receiver,
    pub(super) output: Sender,
}

impl Stream {
    pub(super) fn of_socket(socket: UnixStream) -> io::Result<Self> {
        Self::new(socket.try_clone()?.into(), socket.into())
    }

    pub(super) fn of_process() -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        Self::new(input, io::stdout().as_fd().try_clone_to_owned()?)
    }

    fn new(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        // Fails for a file (`quorate agent < file`): it is always readable, so nobody can wait for
        // it.
        for end in [&input, &output] {
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        let input = Receiver::from_owned_fd_unchecked(input)?;
        Ok(Self { input, output: Sender::from_owned_fd_unchecked(output)? })
    }

    /// Writes as much as finds room at once: for the last words of a connection.
    pub(super) fn write_now(&self, bytes: &[u8]) {
        let _ = write(&self.output, bytes);
    }
}
