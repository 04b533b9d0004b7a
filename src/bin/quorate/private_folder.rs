//! A folder of this process alone.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// Nobody else may read it. Removed with the value, and all that is in it.
#[derive(Debug)]
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
