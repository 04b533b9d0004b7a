//! The socket of a daemon, in a folder that only its users can enter.

use std::{
    fs::{self, DirBuilder, Permissions},
    io::ErrorKind,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, chown},
        net::UnixStream,
    },
    path::{Path, PathBuf},
};

use nix::unistd::{Group, geteuid};
use tokio::net::UnixListener;

use crate::console::{Code, Failure};

/// A listening socket. Its file is removed with the value.
pub(super) struct Socket {
    path: PathBuf,
    pub(super) listener: UnixListener,
}

impl Socket {
    pub(super) fn bind(path: &Path, group: Option<&str>) -> Result<Self, Failure> {
        let group = group.map(find_group).transpose()?;
        // By the folder, and not only by the mode of the socket: between `bind` and the change of
        // its mode, everybody could connect.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        check_folder(folder.unwrap_or(Path::new(".")), group)?;
        remove_old(path)?;
        let refused = || Failure::system(path.display());
        let listener = UnixListener::bind(path).map_err(refused())?;
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        let permitted = chown(path, None, group);
        let permitted =
            permitted.and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)));
        permitted.map_err(refused())?;
        Ok(Self { path: path.to_owned(), listener })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn find_group(name: &str) -> Result<u32, Failure> {
    let found = Group::from_name(name).map_err(Failure::system(format!("--group {name}")))?;
    let missing = || Failure::new(Code::Config, format!("--group {name}: there is no such group"));
    Ok(found.ok_or_else(missing)?.gid.as_raw())
}

/// Makes the folder, and checks that only this user, or the group, can enter it.
fn check_folder(folder: &Path, group: Option<u32>) -> Result<(), Failure> {
    // Whoever can enter can use the locks of this user, and see their names
    // (`a_socket_is_in_a_folder_that_nobody_else_enters`).
    let refused = || Failure::system(folder.display());
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {
            chown(folder, None, group).map_err(refused())?;
            let mode = if group.is_some() { 0o750 } else { 0o700 };
            fs::set_permissions(folder, Permissions::from_mode(mode)).map_err(refused())?;
        }
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
        Err(cause) => return Err(refused()(cause)),
    }
    // Also a folder that was there before: another user may have made it to replace the socket.
    let found = fs::metadata(folder).map_err(refused())?;
    let others = if group.is_some() { 0o027 } else { 0o077 };
    let why = if found.uid() != geteuid().as_raw() {
        "is another user's"
    } else if found.mode() & others != 0 {
        "lets others enter: set its mode to 0700, or to 0750 with --group"
    } else if group.is_some_and(|group| group != found.gid()) {
        "is not of the group of --group"
    } else {
        return Ok(());
    };
    Err(Failure::new(Code::Config, format!("the folder {} {why}", folder.display())))
}

/// Removes a socket that another agent has left behind.
// A killed agent removes nothing, and `bind` fails while the file is there. If an agent answers,
// this fails, too: to take its socket away would split its clients.
fn remove_old(path: &Path) -> Result<(), Failure> {
    let refused = || Failure::system(path.display());
    let taken = |what: &str| Failure::new(Code::Config, format!("{}: {what}", path.display()));
    match fs::symlink_metadata(path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(refused()(cause)),
        Ok(found) if !found.file_type().is_socket() => return Err(taken("it is no socket")),
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(taken("another agent listens there")),
        Err(_) => fs::remove_file(path).map_err(refused()),
    }
}
