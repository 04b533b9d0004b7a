//! What a server of a cluster says instead of running a script.

use crate::{proto::Cause, scripts::Answer, voter::Outcome};

/// A host and a port.
pub(super) type Endpoint = (String, u16);

/// What a script is told that comes upon a key which is not here any more. It can run again: all
/// scripts come to the same when they run twice.
const HALF_WAY: &str = "access a non local key";

/// Why nothing ran, or not all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// The slot is elsewhere, for good.
    Moved(Endpoint),
    /// This time it is to be tried elsewhere.
    Ask(Endpoint),
    /// The slot is on its way, and some of the keys are here and some there.
    TryAgain,
    /// The server does not serve the slot, and does not know who does.
    Nowhere,
}

impl Redirect {
    /// `asked`: the host of the server that answered, for answers that do not name one.
    pub(super) fn read(answer: &Outcome<Answer>, asked: &str) -> Option<Self> {
        let Err(Cause::Rejected(why)) = answer else { return None };
        // Where the last of the keys that are here was deleted before this request ran.
        if why.contains(HALF_WAY) {
            return Some(Self::TryAgain);
        }
        let mut words = why.split(' ');
        let word = words.next()?;
        let mut endpoint = || endpoint(words.nth(1)?, asked);
        match word {
            "MOVED" => Some(endpoint().map_or(Self::Nowhere, Self::Moved)),
            "ASK" => Some(endpoint().map_or(Self::TryAgain, Self::Ask)),
            "TRYAGAIN" => Some(Self::TryAgain),
            "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" => Some(Self::Nowhere),
            _ => None,
        }
    }
}

/// `host:port`; the host may be missing, and may have colons of its own.
pub(super) fn endpoint(text: &str, known: &str) -> Option<Endpoint> {
    let (host, port) = text.rsplit_once(':')?;
    let host = if host.is_empty() { known } else { host };
    let port = port.parse().ok().filter(|port| *port != 0)?;
    (host != "?").then(|| (host.trim_matches(['[', ']']).to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &str) -> Option<Redirect> {
        Redirect::read(&Err(Cause::Rejected(answer.into())), "10.0.0.1")
    }

    #[test]
    fn answers_are_read_with_where_they_point_to() {
        let at = |host: &str, port| (host.to_owned(), port);
        assert_eq!(read("MOVED 3999 10.0.0.2:6381"), Some(Redirect::Moved(at("10.0.0.2", 6381))));
        assert_eq!(read("ASK 3999 ::1:6381"), Some(Redirect::Ask(at("::1", 6381))));
        assert_eq!(read("MOVED 3999 :6381"), Some(Redirect::Moved(at("10.0.0.1", 6381))));
        assert_eq!(read("MOVED 3999 ?:6381"), Some(Redirect::Nowhere));
        assert_eq!(read("TRYAGAIN Multiple keys request"), Some(Redirect::TryAgain));
        assert_eq!(read("CLUSTERDOWN Hash slot not served"), Some(Redirect::Nowhere));
        assert_eq!(read("ERR MOVED"), None);
        assert_eq!(Redirect::read(&Err(Cause::Broken("MOVED 1 a:2".into())), ""), None);
        let half_way = "ERR Script attempted to access a non local key in a cluster node script";
        assert_eq!((read(half_way), read("WRONGTYPE")), (Some(Redirect::TryAgain), None));
    }
}
