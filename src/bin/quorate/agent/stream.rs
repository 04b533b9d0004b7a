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

/// Its ends are pipes for the runtime, whatever they are: a parent may give its child sockets.
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

    /// Files are refused: nothing happens to them that could be waited for.
    fn new(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        for end in [&input, &output] {
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        let input = Receiver::from_owned_fd_unchecked(input)?;
        Ok(Self { input, output: Sender::from_owned_fd_unchecked(output)? })
    }

    /// As much as finds room at once: for the last that is said.
    pub(super) fn write_now(&self, bytes: &[u8]) {
        let _ = write(&self.output, bytes);
    }
}
