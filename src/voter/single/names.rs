//! The addresses of servers that are given by name.

// The system's look-up blocks a thread until a name server answers, and nobody can end it. An
// attempt to connect waits a second or a few. So a later answer is kept for the next attempt.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;

use crate::{
    clock::{Clock, Moment},
    sync::PerProcess,
    voter::SingleFlight,
};

/// For how long an answer may be used: long enough for the next attempt to connect.
const KEPT: Duration = Duration::from_secs(30);
/// The same for a failure, which the next attempt only needs in order to say why.
const FAILURE_KEPT: Duration = Duration::from_secs(1);

/// The names that clients of this process look up.
pub(super) static NAMES: Names = Names { look_up, flights: PerProcess::new() };

fn look_up(host: &str) -> io::Result<Vec<SocketAddr>> {
    (host, 0).to_socket_addrs().map(Iterator::collect)
}

/// An answer of the system, and when it came.
#[derive(Clone)]
struct Answer {
    came: Moment,
    addresses: Result<Vec<SocketAddr>, Arc<str>>,
}

impl Answer {
    fn is_recent(&self) -> bool {
        let kept = if self.addresses.is_ok() { KEPT } else { FAILURE_KEPT };
        Clock::System.now().since(self.came) < kept
    }
}

pub(super) struct Names {
    look_up: fn(&str) -> io::Result<Vec<SocketAddr>>,
    /// The names that are being looked up, or were recently.
    flights: PerProcess<BTreeMap<Arc<str>, SingleFlight<Answer>>>,
}

impl Names {
    /// The addresses of a host, by an answer that is newer than `latest`.
    // A caller uses each answer once: `latest` has led to a connection that failed or ended, so the
    // name may lead elsewhere now, as after a failover by DNS.
    pub(super) async fn addresses(
        &self,
        host: &str,
        latest: &mut Option<Moment>,
    ) -> Result<Vec<SocketAddr>, Arc<str>> {
        if let Ok(number) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok(vec![(number, 0).into()]);
        }
        let why = |why: io::Error| format!("cannot look up `{host}`: {why}");
        let Answer { came, addresses } = self.answer(host, *latest).await.map_err(why)?;
        *latest = Some(came);
        addresses
    }

    /// An answer that is newer than this moment.
    fn answer(&self, host: &str, than: Option<Moment>) -> BoxFuture<'static, io::Result<Answer>> {
        let mut flights = self.flights.lock();
        if !flights.contains_key(host) {
            flights.retain(|_, flight| flight.is_of_use(Answer::is_recent));
            flights.insert(host.into(), SingleFlight::new());
        }
        let is_newer = |answer: &Answer| than.is_none_or(|than| answer.came > than);
        let (look_up, name) = (self.look_up, host.to_owned());
        flights[host].outcome(
            |answer| answer.is_recent() && is_newer(answer),
            move || {
                let none = || io::Error::other("it has no address");
                let found = look_up(&name);
                let found =
                    found.and_then(|all| if all.is_empty() { Err(none()) } else { Ok(all) });
                let addresses = found.map_err(|why| format!("cannot look up `{name}`: {why}"));
                Answer { came: Clock::System.now(), addresses: addresses.map_err(Into::into) }
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        thread,
    };

    use futures::{FutureExt, future::join_all};
    use quorate_support::eventually;
    use tokio::time;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn names(look_up: fn(&str) -> io::Result<Vec<SocketAddr>>) -> Names {
        Names { look_up, flights: PerProcess::new() }
    }

    fn address(last: u8) -> SocketAddr {
        ([10, 0, 0, last], 0).into()
    }

    fn never() -> io::Result<Vec<SocketAddr>> {
        loop {
            thread::park();
        }
    }

    #[tokio::test]
    async fn a_number_is_not_looked_up() {
        let names = names(|host| panic!("{host}"));
        for (host, number) in [("127.0.0.1", "127.0.0.1:0"), ("[::1]", "[::1]:0")] {
            let found = names.addresses(host, &mut None).await;
            assert_eq!(found, Ok(vec![number.parse().unwrap()]));
        }
        assert!(names.flights.lock().is_empty());
    }

    #[tokio::test]
    async fn a_name_is_looked_up_once_for_all_and_an_answer_that_comes_late_is_used() {
        static LOOK_UPS: AtomicUsize = AtomicUsize::new(0);
        static ANSWERS: AtomicUsize = AtomicUsize::new(0);
        let names = names(|_| {
            let number = LOOK_UPS.fetch_add(1, SeqCst);
            eventually("it is to answer", || ANSWERS.load(SeqCst) > number);
            Ok(vec![address(u8::try_from(number).unwrap())])
        });
        let mut latest = [None, None];
        for attempt in 0..20 {
            let given_up = names.addresses("a", &mut latest[attempt % 2]).now_or_never();
            assert_eq!(given_up, None);
        }
        ANSWERS.store(1, SeqCst);
        eventually("it has answered", || !names.flights.lock()["a"].is_of_use(|_| false));
        // Each may use it once: it has led to nothing then.
        for latest in &mut latest {
            let kept = names.addresses("a", latest).now_or_never();
            assert_eq!(kept.expect("it is kept"), Ok(vec![address(0)]));
        }
        assert_eq!(LOOK_UPS.load(SeqCst), 1);
        let [one, other] = &mut latest;
        let again = names.addresses("a", one);
        ANSWERS.store(2, SeqCst);
        assert_eq!(again.await, Ok(vec![address(1)]));
        assert_eq!(names.addresses("a", other).await, Ok(vec![address(1)]));
        assert_eq!(LOOK_UPS.load(SeqCst), 2);
    }

    #[tokio::test]
    async fn names_that_are_never_answered_hold_up_no_other() {
        let names = names(|host| if host == "a" { Ok(vec![address(1)]) } else { never() });
        let silent: Vec<String> = (0..100).map(|number| format!("silent {number}")).collect();
        for _ in 0..3 {
            for name in &silent {
                assert!(names.addresses(name, &mut None).now_or_never().is_none());
            }
        }
        let found = time::timeout(SOON, names.addresses("a", &mut None)).await;
        assert_eq!(found.expect("nothing holds it up"), Ok(vec![address(1)]));
        assert_eq!(names.flights.lock().len(), 101, "one for each");
    }

    #[tokio::test]
    async fn why_there_is_no_address_is_said() {
        let names = names(|host| if host == "a" { Ok(vec![]) } else { Err(io::Error::other("x")) });
        let found = join_all(["a", "b"].map(async |host| names.addresses(host, &mut None).await));
        let told = ["cannot look up `a`: it has no address", "cannot look up `b`: x"];
        assert_eq!(found.await, told.map(|why| Err(why.into())));
    }

    #[test]
    fn an_answer_is_kept_for_a_while_and_a_failure_until_the_next_attempt() {
        let is_recent = |age, addresses| {
            let came = Clock::System.now() - age;
            Answer { came, addresses }.is_recent()
        };
        assert!(is_recent(KEPT / 2, Ok(Vec::new())) && !is_recent(KEPT, Ok(Vec::new())));
        let failure = || Err("x".into());
        assert!(is_recent(FAILURE_KEPT / 2, failure()) && !is_recent(FAILURE_KEPT, failure()));
    }
}
