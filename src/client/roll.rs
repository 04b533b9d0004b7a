//! The voters of a client, out of the sets that the user names.

use super::{
    VoterSet,
    source::{Origin, ReadSource, Source},
};
use crate::{
    proto::{Error, Quorum},
    voter::Security,
};

/// The voters of a client, and how their votes are counted.
pub(super) struct Roll {
    pub(super) origins: Vec<Origin>,
    pub(super) quorum: Quorum,
    /// A number for each voter, the same for all that are parts of one cluster.
    pub(super) clusters: Vec<usize>,
}

/// Reads the addresses. What is in both of two sets is one voter.
pub(super) fn roll(
    new: &VoterSet,
    old: Option<&VoterSet>,
    security: &Security,
) -> Result<Roll, Error> {
    if new.sources.is_empty() {
        return Err(Error::invalid("there are no voters"));
    }
    if old.is_some_and(|old| old.sources.is_empty()) {
        return Err(Error::invalid("there are no voters to replace"));
    }
    let mut only_new = read(new, "address", security)?;
    let replaced = old.map(|old| read(old, "replaced address", security)).transpose()?;
    let (mut both, mut only_old) = (Vec::new(), Vec::new());
    for source in replaced.into_iter().flatten() {
        match only_new.iter().position(|known| known.is_same(&source)) {
            Some(at) => both.push(only_new.remove(at)),
            None => only_old.push(source),
        }
    }
    let ends = [only_new.len(), only_new.len() + both.len()];
    let all: Vec<_> = only_new.into_iter().chain(both).chain(only_old).collect();
    #[cfg(feature = "tls")]
    if security.tls.is_some() && !all.iter().any(ReadSource::has_tls) {
        return Err(Error::invalid("TLS is set up, but no address asks for it by `rediss`"));
    }
    let (mut origins, mut clusters, mut counts) = (Vec::new(), Vec::new(), [0; 3]);
    // Of each source the number of its cluster.
    let mut numbers = Vec::<usize>::new();
    for (at, source) in all.iter().enumerate() {
        let mut before = all[..at].iter().zip(&numbers);
        let known = before.rfind(|(before, _)| before.is_of_one_cluster(source));
        let number = known.map_or(origins.len(), |(_, number)| *number);
        numbers.push(number);
        let voters = source.origins(number < origins.len())?;
        counts[ends.iter().filter(|end| at >= **end).count()] += voters.len();
        clusters.extend(voters.iter().map(|_| number));
        origins.extend(voters);
    }
    let quorum = match (old, counts) {
        (None, [all, ..]) => Quorum::of(all),
        (Some(_), [only_new, both, only_old]) => Quorum::joint(only_new, both, only_old),
    };
    Ok(Roll { origins, quorum, clusters })
}

/// Reads all addresses of a set. Messages do not show an address in which a password may be, so
/// they say which one it is.
fn read<'a>(
    set: &'a VoterSet,
    what: &str,
    security: &Security,
) -> Result<Vec<ReadSource<'a>>, Error> {
    let read = |(at, source): (usize, &'a Source)| {
        source.read(security).map_err(|why| match (source, set.sources.len()) {
            (Source::Address(_), 2..) => Error::invalid(format!("{what} {}: {why}", at + 1)),
            _ => why,
        })
    };
    set.sources.iter().enumerate().map(read).collect()
}
