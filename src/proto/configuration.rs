//! The voter configuration: what the clients of the same voters take for the voters.

use std::{fmt, time::Duration};

use super::Rounded;

/// What all clients of the same voters must have in common.
// A majority of the old voters and one of the new need not share a voter (design 6). Addresses are
// not compared, as one server may have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoterConfiguration {
    /// The number that the user gives and counts up with each change of the voters.
    pub number: u32,
    pub voters: usize,
    /// How many voters are replaced, if the client has two sets.
    pub replaced: Option<usize>,
    // These settings decide how long a quarantine lasts, and which votes still count. A client with
    // a shorter longest lease would count a voter whose forgotten votes are still valid (law 1).
    pub longest_lease: Duration,
    /// The drift as a part of the lease, in millionths.
    pub drift_ppm: u32,
    /// The drift that is added to that.
    pub drift_fixed: Duration,
    /// Whether voters that may have forgotten are in quarantine.
    pub restart_guard: bool,
}

impl VoterConfiguration {
    // A release that reads or writes any record of a voter in another way gets another number, here
    // and in `voter/configuration`. Then the two releases refuse each other.
    /// The format of all records that clients keep on voters.
    const FORMAT: u64 = 1;

    /// The step of a change: the old voters, both sets, the new voters.
    pub fn step(&self) -> u64 {
        // Odd for both sets. So neighbouring steps share a set, and steps that differ by two need
        // not share a voter: clients of such steps refuse each other.
        2 * u64::from(self.number) - u64::from(self.replaced.is_some())
    }

    /// The text that voters store: format, step, number of voters and of old ones, settings.
    pub fn text(&self) -> String {
        let Self { voters, replaced, longest_lease, drift_ppm, drift_fixed, .. } = self;
        let (format, step, replaced) = (Self::FORMAT, self.step(), replaced.unwrap_or(0));
        let (longest_ms, fixed_us) = (longest_lease.as_millis(), drift_fixed.as_micros());
        let guard = u8::from(self.restart_guard);
        format!("{format} {step} {voters} {replaced} {longest_ms} {drift_ppm} {fixed_us} {guard}")
    }

    /// `None` for another format.
    fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(' ').map(|number| number.parse().ok());
        let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
        let &[Self::FORMAT, step, voters, replaced, longest_ms, ppm, fixed_us, guard] = &*numbers
        else {
            return None;
        };
        let replaced = usize::try_from(replaced).ok()?;
        Some(Self {
            number: u32::try_from(step.div_ceil(2)).ok()?,
            voters: usize::try_from(voters).ok()?,
            replaced: (step % 2 == 1).then_some(replaced),
            longest_lease: Duration::from_millis(longest_ms),
            drift_ppm: u32::try_from(ppm).ok()?,
            drift_fixed: Duration::from_micros(fixed_us),
            restart_guard: guard == 1,
        })
    }
}

impl fmt::Display for VoterConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, voters, replaced, longest_lease, drift_ppm, drift_fixed, .. } = self;
        let s = if *voters == 1 { "" } else { "s" };
        write!(f, "configuration {number} with {voters} voter{s}")?;
        if let Some(replaced) = replaced {
            write!(f, " that replace {replaced}")?;
        }
        let (longest, fixed) = (Rounded(*longest_lease), Rounded(*drift_fixed));
        write!(f, ", a longest lease of {longest}, a drift of {drift_ppm} ppm and {fixed}")?;
        if self.restart_guard { Ok(()) } else { f.write_str(", no restart guard") }
    }
}

/// A voter configuration that clients have, and when one of them was last there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ConfigurationEntry {
    /// The number of the [configuration](crate::Builder::voter_configuration). 0 if a release with
    /// another format of records wrote it: then the configuration of its clients is unknown.
    pub number: u32,
    /// How many voters there are. For clients with two sets: how many new voters.
    pub voters: usize,
    /// How many voters are [replaced](crate::Builder::replacing), if the clients have two sets.
    pub replaced: Option<usize>,
    /// The [longest lease](crate::Builder::longest_lease).
    #[cfg_attr(
        feature = "serde",
        serde(rename = "longest_lease_ms", serialize_with = "super::millis")
    )]
    pub longest_lease: Duration,
    /// How long ago a client with this configuration was last there.
    #[cfg_attr(feature = "serde", serde(rename = "seen_ms", serialize_with = "super::millis"))]
    pub seen: Duration,
    /// The id of that client. The ids of its holds begin with it, and it begins with the
    /// [name](crate::Builder::client_name) of the client, if it has one.
    pub client: String,
    /// Whether it clashes with the configuration of this client.
    pub clashes: bool,
    /// The text that voters store.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) text: String,
    /// How long others must agree with a client after it was there.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) counts: Duration,
}

impl ConfigurationEntry {
    /// Parses a line of the reply of `voter/configuration`.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let (entry, client) = line.split_once('\t')?;
        let mut words = entry.splitn(4, ' ');
        let clashes = words.next()? == "1";
        let mut time = || Some(Duration::from_millis(words.next()?.parse().ok()?));
        let (seen, counts) = (time()?, time()?);
        // Also an entry of another format is kept: its clients are there, and clash.
        let text = words.next()?.to_owned();
        let VoterConfiguration { number, voters, replaced, longest_lease, .. } =
            VoterConfiguration::parse(&text).unwrap_or_default();
        Some(Self {
            number,
            voters,
            replaced,
            longest_lease,
            seen,
            client: client.to_owned(),
            clashes,
            text,
            counts,
        })
    }

    /// The line for another voter. `later`: how long ago this client read it.
    pub(crate) fn told(&self, later: Duration) -> String {
        let Self { text, counts, client, .. } = self;
        let (age, counts) = ((self.seen + later).as_millis(), counts.as_millis());
        format!("{age} {counts} {text}\t{client}\n")
    }

    /// The entries of several voters: each configuration once, the latest first.
    pub(crate) fn merge(entries: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for entry in entries {
            let Some(known) = all.iter_mut().find(|known| known.text == entry.text) else {
                all.push(entry);
                continue;
            };
            let clashes = known.clashes || entry.clashes;
            if entry.seen < known.seen {
                *known = entry;
            }
            known.clashes = clashes;
        }
        all.sort_by_key(|entry| entry.seen);
        all
    }

    /// `None` for another format.
    pub(crate) fn configuration(&self) -> Option<VoterConfiguration> {
        VoterConfiguration::parse(&self.text)
    }
}

impl fmt::Display for ConfigurationEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.configuration() {
            Some(configuration) => configuration.fmt(f),
            None => f.write_str("records in a format that this release does not know"),
        }?;
        write!(f, ", last seen {} ago by {}", Rounded(self.seen), self.client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECS: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn steps_are_in_order_and_are_read_again() {
        let configuration = |number, replaced| VoterConfiguration {
            number,
            voters: 5,
            replaced,
            longest_lease: SECS(30),
            drift_ppm: 10_000,
            drift_fixed: Duration::from_micros(2_500),
            restart_guard: true,
        };
        let steps = [
            configuration(1, None),
            configuration(2, Some(3)),
            configuration(2, None),
            configuration(3, Some(5)),
        ];
        let texts = steps.map(|step| step.text());
        let begin = ["1 2 5 0 ", "1 3 5 3 ", "1 4 5 0 ", "1 5 5 5 "];
        assert_eq!(texts, begin.map(|begin| format!("{begin}30000 10000 2500 1")));
        for (step, text) in steps.into_iter().zip(texts) {
            let line = format!("1 12000 75000 {text}\t0b2c web 1: main");
            let entry = ConfigurationEntry::read(&line).expect("it is one");
            assert_eq!(
                (entry.configuration(), entry.seen, entry.clashes),
                (Some(step), SECS(12), true)
            );
            let told = format!("13000 75000 {text}\t0b2c web 1: main\n");
            assert_eq!(entry.told(SECS(1)), told);
        }
        assert_eq!(
            ConfigurationEntry::read("0 12000 75000 1 2 5 0 30000 10000 2500 1"),
            None,
            "nobody's"
        );
    }

    #[test]
    fn an_entry_says_what_is_believed_by_whom_and_when() {
        for (configuration, number, told) in [
            (
                "1 3 5 3 60000 10000 2000 0",
                2,
                "configuration 2 with 5 voters that replace 3, a longest lease of 60s, a drift of 10000 \
                 ppm and 2ms, no restart guard",
            ),
            ("2 who knows", 0, "records in a format that this release does not know"),
        ] {
            let entry =
                ConfigurationEntry::read(&format!("0 12000 75000 {configuration}\tweb-1@c"))
                    .unwrap();
            assert_eq!(entry.to_string(), format!("{told}, last seen 12s ago by web-1@c"));
            assert_eq!(entry.told(SECS(0)), format!("12000 75000 {configuration}\tweb-1@c\n"));
            assert_eq!(entry.number, number);
        }
    }
}
