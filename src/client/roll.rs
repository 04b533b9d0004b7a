//! The voters of a client, out of the sets that the user names.

use super::{
    VoterSet,
    source::{Origin, Source},
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
    read(new, "address", security)?;
    old.map_or(Ok(()), |old| read(old, "replaced address", security))?;
    let Sorted { new, both, old: replaced } = Sorted::of(new, old, security)?;
    let all: Vec<&Source> = [&*new, &both, &replaced].concat();
    #[cfg(feature = "tls")]
    if security.tls.is_some() && !all.iter().any(|source| source.has_tls()) {
        return Err(Error::invalid("TLS is set up, but no address asks for it by `rediss`"));
    }
    let (mut origins, mut clusters, mut counts) = (Vec::new(), Vec::new(), [0; 3]);
    // Of each source the number of its cluster.
    let mut numbers = Vec::<usize>::new();
    for (at, source) in all.iter().enumerate() {
        let mut number = origins.len();
        for (before, known) in all[..at].iter().zip(&numbers) {
            if before.is_of_one_cluster(source, security)? {
                number = *known;
            }
        }
        numbers.push(number);
        let voters = source.origins(security, number < origins.len())?;
        let part = usize::from(at >= new.len()) + usize::from(at >= new.len() + both.len());
        counts[part] += voters.len();
        clusters.extend(voters.iter().map(|_| number));
        origins.extend(voters);
    }
    let quorum = match (old, counts) {
        (None, [all, ..]) => Quorum::of(all),
        (Some(_), [only_new, both, only_old]) => Quorum::joint(only_new, both, only_old),
    };
    Ok(Roll { origins, quorum, clusters })
}

/// Whether all addresses of a set can be read. Messages do not show an address in which a password
/// may be, so they say which one it is.
fn read(set: &VoterSet, what: &str, security: &Security) -> Result<(), Error> {
    let sources = &set.sources;
    for (at, source) in sources.iter().enumerate() {
        source.read(security).map_err(|why| match (source, sources.len()) {
            (Source::Address(_), 2..) => Error::invalid(format!("{what} {}: {why}", at + 1)),
            _ => why,
        })?;
    }
    Ok(())
}

/// The sources of one set or two, without those that are named twice: what is only new, what is in
/// both, and what is only old, in this order. With one set everything is new.
#[derive(Debug, Default)]
struct Sorted<'a> {
    new: Vec<&'a Source>,
    both: Vec<&'a Source>,
    old: Vec<&'a Source>,
}

impl<'a> Sorted<'a> {
    /// Servers are the same where they are written alike, but for the login; clusters where they
    /// have an address in common and as many votes.
    fn of(
        new: &'a VoterSet,
        old: Option<&'a VoterSet>,
        security: &Security,
    ) -> Result<Self, Error> {
        let mut sorted = Self { new: new.sources.iter().collect(), ..Self::default() };
        for source in old.into_iter().flat_map(|old| &old.sources) {
            let mut same = None;
            for (at, known) in sorted.new.iter().enumerate() {
                if known.is_same(source, security)? {
                    same = Some(at);
                    break;
                }
            }
            match same {
                Some(at) => sorted.both.push(sorted.new.remove(at)),
                None => sorted.old.push(source),
            }
        }
        Ok(sorted)
    }
}
