//! Who clients believe the voters to be.

use std::{fmt, time::Duration};

use super::{HoldId, Rounded, Whose};

/// What a client believes of its voters, as far as clients can compare it: addresses of one server
/// may differ, and are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Belief {
    /// Which voters they are, by the number that the user gives and counts up.
    pub(crate) number: u32,
    pub(crate) voters: usize,
    /// How many voters are replaced, where the client has two sets.
    pub(crate) replaced: Option<usize>,
    pub(crate) longest_lease: Duration,
}

impl Belief {
    /// As voters keep it: the step, the voters, the old ones, and the longest lease. Steps are in
    /// order: with the old voters, with both, with the new ones.
    pub(crate) fn text(&self) -> String {
        let Self { number, voters, replaced, longest_lease } = self;
        let step = 2 * u64::from(*number) - u64::from(replaced.is_some());
        format!("{step} {voters} {} {}", replaced.unwrap_or(0), longest_lease.as_millis())
    }

    fn parse(text: [&str; 4]) -> Option<Self> {
        let [step, voters, replaced, longest_ms] = text;
        let step: u64 = step.parse().ok()?;
        let replaced: usize = replaced.parse().ok()?;
        Some(Self {
            number: u32::try_from(step.div_ceil(2)).ok()?,
            voters: voters.parse().ok()?,
            replaced: (step % 2 == 1).then_some(replaced),
            longest_lease: Duration::from_millis(longest_ms.parse().ok()?),
        })
    }
}

impl fmt::Display for Belief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, voters, replaced, longest_lease } = self;
        let s = if *voters == 1 { "" } else { "s" };
        write!(f, "roster {number} with {voters} voter{s}")?;
        if let Some(replaced) = replaced {
            write!(f, " that replace {replaced}")?;
        }
        write!(f, " and a longest lease of {}", Rounded(*longest_lease))
    }
}

/// What clients of the same voters believe these to be, and when one of them was last there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RosterEntry {
    /// The number of the [roster](crate::Builder::roster).
    pub number: u32,
    /// How many voters there are; of clients with two sets, how many are new.
    pub voters: usize,
    /// How many voters are [replaced](crate::Builder::replacing), where the clients have two sets.
    pub replaced: Option<usize>,
    /// The [longest lease](crate::Builder::longest_lease).
    pub longest_lease: Duration,
    /// How long ago a client that believes this was last there.
    pub seen: Duration,
    /// The id of that client, with which the ids of its holds begin.
    pub client: String,
    /// What that client is [called](crate::Builder::client_name), if it has a name.
    pub client_name: Option<String>,
    /// Whether it clashes with what this client believes.
    pub clashes: bool,
}

impl RosterEntry {
    /// A line of the reply of `voter/roster`.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut words = line.splitn(8, ' ');
        let clashes = words.next()? == "1";
        let belief = [words.next()?, words.next()?, words.next()?, words.next()?];
        let Belief { number, voters, replaced, longest_lease } = Belief::parse(belief)?;
        let seen = Duration::from_millis(words.next()?.parse().ok()?);
        let client = words.next()?.to_owned();
        let client_name = words.next().map(str::to_owned);
        Some(Self { number, voters, replaced, longest_lease, seen, client, client_name, clashes })
    }

    pub(crate) fn belief(&self) -> Belief {
        let Self { number, voters, replaced, longest_lease, .. } = *self;
        Belief { number, voters, replaced, longest_lease }
    }

    /// Whose it is, as voters keep it.
    pub(crate) fn who(&self) -> String {
        who(&self.client, self.client_name.as_deref())
    }
}

/// A client as voters keep it in a roster.
pub(crate) fn who(client: &str, name: Option<&str>) -> String {
    name.map_or_else(|| client.to_owned(), |name| format!("{client} {name}"))
}

impl fmt::Display for RosterEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hold = HoldId::parse(&self.client);
        let whose = Whose { hold: &hold, client_name: self.client_name.as_deref() };
        write!(f, "{}, last seen {} ago by {whose}", self.belief(), Rounded(self.seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECS: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn steps_are_in_order_and_are_read_again() {
        let belief =
            |number, replaced| Belief { number, voters: 5, replaced, longest_lease: SECS(30) };
        let steps = [belief(1, None), belief(2, Some(3)), belief(2, None), belief(3, Some(5))];
        let texts = steps.map(|step| step.text());
        assert_eq!(texts, ["2 5 0 30000", "3 5 3 30000", "4 5 0 30000", "5 5 5 30000"]);
        for (step, text) in steps.into_iter().zip(texts) {
            let line = format!("1 {text} 12000 0b2c web 1: main");
            let entry = RosterEntry::read(&line).expect("it is one");
            assert_eq!((entry.belief(), entry.seen, entry.clashes), (step, SECS(12), true));
            assert_eq!(entry.who(), "0b2c web 1: main");
        }
        assert_eq!(RosterEntry::read("0 2 5 0 30000 1"), None, "nobody's");
    }

    #[test]
    fn an_entry_says_what_is_believed_by_whom_and_when() {
        let entry = RosterEntry::read("0 3 5 3 60000 12000 c web-1").unwrap();
        assert_eq!(
            entry.to_string(),
            "roster 2 with 5 voters that replace 3 and a longest lease of 60s, last seen 12s ago \
             by c (web-1)"
        );
    }
}
