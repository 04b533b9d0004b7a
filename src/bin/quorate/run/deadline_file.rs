//! The file that tells the command its deadline.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{clock, private_folder::PrivateFolder};

const NAME: &str = "deadline";

/// Removed with the value.
#[derive(Debug)]
pub(crate) struct DeadlineFile {
    folder: PrivateFolder,
}

impl DeadlineFile {
    pub(crate) fn create() -> io::Result<Self> {
        let of_the_session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let of_the_session = of_the_session.filter(|path| path.is_absolute() && path.is_dir());
        let within = of_the_session.unwrap_or_else(env::temp_dir);
        Ok(Self { folder: PrivateFolder::create(&within)? })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join(NAME)
    }

    /// The command will be killed in this time: as milliseconds since 1970, and the end of the
    /// line. Whoever reads it sees the old text or the new one.
    pub(crate) fn write(&self, time: Duration) -> io::Result<()> {
        write(self.folder(), clock::wall() + time)
    }

    /// The same, at this moment, by another thread: a file can hang. The command loses nothing
    /// but the news where it cannot be written.
    pub(crate) fn write_soon(&self, kill_at: Duration) {
        let time = clock::wall() + kill_at.saturating_sub(clock::now());
        let folder = self.folder().to_owned();
        drop(tokio::task::spawn_blocking(move || write(&folder, time)));
    }
}

fn write(folder: &Path, time: Duration) -> io::Result<()> {
    let new = folder.join("new");
    fs::write(&new, format!("{}\n", time.as_millis()))?;
    fs::rename(new, folder.join(NAME))
}
