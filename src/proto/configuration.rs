//! Who clients believe the voters to be.

use std::{fmt, time::Duration};

use super::Rounded;

// Why clients compare at all, and when: decision 6 of `docs/design.md`.
/// What all clients of the same voters must believe alike, as far as they can compare it: addresses
/// of one server may differ, and are not compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoterConfiguration {
    /// Which voters they are, by the number that the user gives and counts up.
    pub number: u32,
    pub voters: usize,
    /// How many voters are replaced, where the client has two sets.
    pub replaced: Option<usize>,
    pub longest_lease: Duration,
    /// How far clocks may drift apart during a lease: this part of it in millionths, and so much.
    pub drift_ppm: u32,
    pub drift_fixed: Duration,
    /// Voters that may have forgotten are kept out.
    pub restart_guard: bool,
}

impl VoterConfiguration {
    /// Of all that clients keep on voters. A release that reads or writes any of it otherwise has
    /// another number, here and in `voter/configuration`.
    const FORMAT: u64 = 1;

    /// Steps are in order: with the old voters, with both, with the new ones.
    pub fn step(&self) -> u64 {
        2 * u64::from(self.number) - u64::from(self.replaced.is_some())
    }

    /// As voters keep it: the format, the step, the voters, the old ones, and what else must be
    /// alike.
    pub fn text(&self) -> String {
        let Self { voters, replaced, longest_lease, drift_ppm, drift_fixed, .. } = self;
        let (format, step, replaced) = (Self::FORMAT, self.step(), replaced.unwrap_or(0));
        let (longest_ms, fixed_us) = (longest_lease.as_millis(), drift_fixed.as_micros());
        let guard = u8::from(self.restart_guard);
        format!("{format} {step} {voters} {replaced} {longest_ms} {drift_ppm} {fixed_us} {guard}")
    }

    /// `None` where it has another format.
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

/// What clients of the same voters believe these to be, and when one of them was last there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ConfigurationEntry {
    /// The number of the [configuration](crate::Builder::voter_configuration); 0 where it was
    /// written by a release that keeps other records than this one. What such clients believe is
    /// not known.
    pub number: u32,
    /// How many voters there are; of clients with two sets, how many are new.
    pub voters: usize,
    /// How many voters are [replaced](crate::Builder::replacing), where the clients have two sets.
    pub replaced: Option<usize>,
    /// The [longest lease](crate::Builder::longest_lease).
    #[cfg_attr(
        feature = "serde",
        serde(rename = "longest_lease_ms", serialize_with = "super::millis")
    )]
    pub longest_lease: Duration,
    /// How long ago a client that believes this was last there.
    #[cfg_attr(feature = "serde", serde(rename = "seen_ms", serialize_with = "super::millis"))]
    pub seen: Duration,
    /// The id of that client, with which the ids of its holds begin. It begins with what the client
    /// is [called](crate::Builder::client_name), if it has a name.
    pub client: String,
    /// Whether it clashes with what this client believes.
    pub clashes: bool,
    /// As voters keep it.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) text: String,
    /// For how long after a client was there others must agree with it.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) counts: Duration,
}

impl ConfigurationEntry {
    /// A line of the reply of `voter/configuration`.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let (entry, client) = line.split_once('\t')?;
        let mut words = entry.splitn(4, ' ');
        let clashes = words.next()? == "1";
        let mut time = || Some(Duration::from_millis(words.next()?.parse().ok()?));
        let (seen, counts) = (time()?, time()?);
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

    /// For another voter, which hears of it `later` than this client did.
    pub(crate) fn told(&self, later: Duration) -> String {
        let Self { text, counts, client, .. } = self;
        let (age, counts) = ((self.seen + later).as_millis(), counts.as_millis());
        format!("{age} {counts} {text}\t{client}\n")
    }

    /// What several voters keep: each configuration once, the latest first.
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

    /// `None` where it has another format.
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
