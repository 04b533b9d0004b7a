//! The ticket that hands a detached hold to another task or process.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use super::{
    Error, HoldId, LockName,
    ids::{decode, encoded},
};

/// The right to [resume](crate::Quorate::resume) a hold that was
/// [detached](crate::MutexGuard::detach_for), once.
///
/// It is plain data, and goes to another process as text: one line of ASCII letters, digits and
/// `-._~`, so it needs no quoting in a shell and no encoding in a URL. The feature `serde` writes
/// this text.
///
/// The text contains a secret of 128 bits. Everybody who has it can take the lock over, so keep it
/// out of logs. `Debug` leaves it out. The [id of the parked hold](Self::hold) is no secret.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), quorate::Error> {
/// # let voters = quorate::embedded::voters(3);
/// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
/// use std::time::Duration;
///
/// use quorate::HoldTicket;
///
/// let guard = quorum.mutex("invoice:42").lock().await?;
/// let message = guard.detach_for(Duration::from_secs(600)).await?.to_string();
/// // In the process that gets the message:
/// let ticket: HoldTicket = message.parse()?;
/// assert_eq!(ticket.lock(), "invoice:42");
/// assert!(!format!("{ticket:?}").contains(&message[message.len() - 32..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct HoldTicket {
    lock: LockName,
    hold: HoldId,
    secret: Arc<str>,
    lease: Duration,
    is_fair: bool,
    left: Option<HoldTimeLeft>,
}

/// How long a hold may still be held after it was detached.
// The clocks of two machines only share the time of day. So a ticket says how much was left, and
// when that was by the wall clock of the detaching client. The resuming client takes off the time
// since then by its own wall clock, and never adds any: a wrong clock may only end trust sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldTimeLeft {
    pub left: Duration,
    /// When it was detached, by the wall clock, since 1970.
    pub detached: Duration,
}

impl HoldTimeLeft {
    pub fn at(&self, wall: Duration) -> Duration {
        self.left.saturating_sub(wall.saturating_sub(self.detached))
    }
}

impl HoldTicket {
    // Another format gets another number, so that no release misreads the ticket of another.
    /// The beginning of every ticket.
    const FORMAT: &str = "qt1";
    const FIELDS: usize = 8;
    /// The number of hexadecimal digits of a secret.
    const SECRET: usize = 32;

    pub(crate) fn new(
        lock: LockName,
        hold: HoldId,
        secret: Arc<str>,
        (lease, is_fair): (Duration, bool),
        left: Option<HoldTimeLeft>,
    ) -> Self {
        Self { lock, hold, secret, lease, is_fair, left }
    }

    /// The name of the mutex.
    pub fn lock(&self) -> &str {
        self.lock.as_str()
    }

    /// The parked hold, as callers that want the lock see it. It is no secret.
    pub fn hold(&self) -> &HoldId {
        &self.hold
    }

    pub(crate) fn secret(&self) -> &Arc<str> {
        &self.secret
    }

    /// The lease of the guard that was detached, and of the one that is resumed.
    pub fn lease(&self) -> Duration {
        self.lease
    }

    pub(crate) fn is_fair(&self) -> bool {
        self.is_fair
    }

    /// What is left of `hold_at_most`, if that was set.
    pub(crate) fn left(&self) -> Option<HoldTimeLeft> {
        self.left
    }

    fn read(text: &str) -> Option<Self> {
        let fields: Vec<_> = text.split('.').collect();
        let fields: [&str; Self::FIELDS] = fields.try_into().ok()?;
        let [format, lock, hold, lease, kind, left, detached, secret] = fields;
        let lock = LockName::parse(&decode(&lock.replace('~', "%"))?).ok()?;
        let hold = HoldId::parse(&decode(&hold.replace('~', "%"))?);
        let is_secret = secret.len() == Self::SECRET
            && secret.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let millis = |text: &str| text.parse().ok().map(Duration::from_millis);
        let left = match (left, detached) {
            ("-", "-") => None,
            (left, detached) => {
                Some(HoldTimeLeft { left: millis(left)?, detached: millis(detached)? })
            }
        };
        let is_fair = match kind {
            "f" => true,
            "m" => false,
            _ => return None,
        };
        if format != Self::FORMAT || !hold.is_parked() || !is_secret {
            return None;
        }
        Some(Self::new(lock, hold, secret.into(), (millis(lease)?, is_fair), left))
    }
}

/// A text without characters that a shell or a URL would interpret, and without `.`.
// `~` in place of `%`, which a URL would decode; and `.` separates the fields of a ticket.
fn plain(text: &str) -> String {
    encoded(text).replace('%', "~").replace('.', "~2E")
}

impl fmt::Display for HoldTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lock, hold) = (plain(self.lock.as_str()), plain(self.hold.as_str()));
        let kind = if self.is_fair { "f" } else { "m" };
        write!(f, "{}.{lock}.{hold}.{}.{kind}.", Self::FORMAT, self.lease.as_millis())?;
        match self.left {
            Some(HoldTimeLeft { left, detached }) => {
                write!(f, "{}.{}", left.as_millis(), detached.as_millis())?;
            }
            None => f.write_str("-.-")?,
        }
        write!(f, ".{}", self.secret)
    }
}

impl FromStr for HoldTicket {
    type Err = Error;

    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for anything but the text of a ticket. The error does not
    /// repeat the text.
    fn from_str(text: &str) -> Result<Self, Error> {
        // Not the text itself: it may contain the secret of a ticket with a typing error.
        let length = text.len();
        Self::read(text).ok_or_else(|| {
            Error::invalid(format!("{length} bytes are no ticket: those are `qt1.` and 7 fields"))
        })
    }
}

impl fmt::Debug for HoldTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HoldTicket")
            .field("lock", &self.lock())
            .field("hold", &self.hold)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::proto::{ClientId, ClientName, HoldIds};

    fn ticket(lock: &str, client: &str, left: Option<HoldTimeLeft>) -> HoldTicket {
        let client = ClientId::new([7; 16], Some(&ClientName::parse(client).unwrap()));
        let (ids, lock) = (HoldIds::new(client, None), LockName::parse(lock).unwrap());
        let (hold, secret) = (ids.parked(&"0a".repeat(16)), ids.secret().into());
        HoldTicket::new(lock, hold, secret, (Duration::from_secs(30), left.is_some()), left)
    }

    proptest! {
        #[test]
        fn a_ticket_is_read_as_it_is_shown_and_safe_in_a_shell_and_a_url(
            lock in "(?s).{1,40}",
            client in "\\PC{1,16}",
            left in proptest::option::of((0..u64::MAX, 0..u64::MAX)),
        ) {
            let millis = Duration::from_millis;
            let left = left.map(|(left, at)| HoldTimeLeft { left: millis(left), detached: millis(at) });
            let ticket = ticket(&lock, &client, left);
            let text = ticket.to_string();
            let is_safe = |sign: char| sign.is_ascii_alphanumeric() || "-._~".contains(sign);
            prop_assert!(text.chars().all(is_safe), "{}", text);
            prop_assert_eq!(text.parse::<HoldTicket>().unwrap(), ticket);
        }
    }

    #[test]
    fn what_is_shown_for_debugging_has_no_secret() {
        let ticket = ticket("a", "web", None);
        let shown = format!("{ticket:?}");
        assert!(shown.contains(ticket.hold().as_str()) && !shown.contains(&**ticket.secret()));
    }

    #[test]
    fn what_is_no_ticket_is_refused_and_not_repeated() {
        let whole = ticket("a", "web", None).to_string();
        let (most, secret) = whole.split_at(whole.len() - 32);
        let of_a_hold = whole.replacen("~3Ap", "~3A", 1);
        let cases = ["", "qt1", most, &whole[1..], &whole[..whole.len() - 1], &of_a_hold];
        for text in cases.map(str::to_owned).into_iter().chain([whole.replacen(".m.", ".x.", 1)]) {
            let error = text.parse::<HoldTicket>().unwrap_err();
            assert!(error.is_invalid() && !error.to_string().contains(secret), "{error}");
        }
    }

    #[test]
    fn what_is_left_never_grows_by_a_clock_that_is_behind() {
        let (secs, left) = (Duration::from_secs, Duration::from_secs(60));
        let left = HoldTimeLeft { left, detached: secs(1_000) };
        let at = [900, 1_000, 1_020, 1_060, 2_000].map(|wall| left.at(secs(wall)).as_secs());
        assert_eq!(at, [60, 60, 40, 0, 0]);
    }
}
