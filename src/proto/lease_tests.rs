use proptest::prelude::*;

use super::*;
use crate::proto::at;

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn the_default_drift_is_a_hundredth_and_two_milliseconds() {
    assert_eq!(Drift::DEFAULT.over(MS(30_000)), MS(302));
    assert_eq!(Terms::new(MS(30_000), Drift::DEFAULT).validity(), MS(29_698));
}

#[test]
fn a_lease_that_the_drift_eats_has_no_validity() {
    for lease_ms in 0..=2 {
        let terms = Terms::new(MS(lease_ms), Drift::DEFAULT);
        assert_eq!(terms.deadline(Moment::from_nanos(9)), Moment::from_nanos(9));
    }
}

proptest! {
    #[test]
    fn trust_never_reaches_the_end_of_the_lease(
        started: u64, lease in 1_u64..=u64::MAX / 2, ppm: u32, fixed in 1_u64..=u64::MAX,
    ) {
        let drift = Drift { ppm, fixed: Duration::from_nanos(fixed) };
        let lease = Duration::from_nanos(lease);
        let started = Moment::from_nanos(started);
        let deadline = Terms::new(lease, drift).deadline(started);
        prop_assert!(deadline >= started);
        prop_assert!(deadline.since(started) < lease);
    }
}

const TERMS: fn(u64) -> Terms = |lease_ms| Terms::new(MS(lease_ms), Drift::DEFAULT);

fn lease(renewed: bool) -> Lease {
    Lease::new(TERMS(30_000), at(0), renewed, None)
}

#[test]
fn it_renews_from_a_third_of_the_lease_on_and_trust_ends_at_the_deadline() {
    let (renewed, fixed, deadline) = (lease(true), lease(false), at(29_698));
    let before = deadline - Duration::from_nanos(1);
    assert_eq!(renewed.duty(at(0)), Duty::Sleep(at(10_000)));
    assert_eq!([at(10_000), before].map(|now| renewed.duty(now)), [Duty::Renew; 2]);
    assert_eq!([at(0), before].map(|now| fixed.duty(now)), [Duty::Sleep(deadline); 2]);
    assert_eq!([renewed, fixed].map(|lease| lease.duty(deadline)), [Duty::Lost; 2]);
}

#[test]
fn it_may_be_made_to_renew_at_once_unless_it_is_fixed() {
    let (mut renewed, mut fixed) = (lease(true), lease(false));
    renewed.renew_now(at(500));
    fixed.renew_now(at(500));
    let duties = (renewed.duty(at(500)), fixed.duty(at(500)));
    assert_eq!(duties, (Duty::Renew, Duty::Sleep(at(29_698))));
    assert!(renewed.renewed(TERMS(30_000), at(500), at(501)));
    assert_eq!(renewed.duty(at(501)), Duty::Sleep(at(10_500)));
}

#[test]
fn what_passed_while_the_client_stood_still_is_gone_and_no_more() {
    let mut lease = lease(true);
    lease.shorten(MS(12_000));
    assert_eq!(lease.deadline(), at(17_698));
    assert!(lease.renewed(TERMS(30_000), at(1_000), at(1_100)), "it is renewed as before");
    assert_eq!(lease.deadline(), at(30_698), "from the start of the renewal on");
    lease.shorten(MS(40_000));
    assert_eq!(lease.duty(at(1_200)), Duty::Lost);
    assert!(!lease.renewed(TERMS(30_000), at(1_200), at(1_300)));
}

#[test]
fn it_ends_with_its_limit_however_often_it_is_renewed() {
    let limit = HoldLimit::new(MS(60_000), at(100));
    let mut lease = Lease::new(TERMS(30_000), at(0), true, Some(limit));
    assert_eq!((lease.deadline(), lease.limit_that_ends_it()), (at(29_698), None));
    for started in [20_000, 40_000] {
        assert!(lease.renewed(TERMS(30_000), at(started), at(started + 1)));
    }
    assert_eq!((lease.deadline(), lease.votes_end()), (at(60_100), at(69_698)));
    lease.widen(TERMS(90_000), true, at(45_000));
    assert!(lease.renewed(TERMS(90_000), at(50_000), at(50_001)));
    assert_eq!((lease.deadline(), lease.limit_that_ends_it()), (at(60_100), Some(limit)));
    // The time in which the client stood still is part of it.
    lease.shorten(MS(1_000));
    let last = at(59_100) - Duration::from_nanos(1);
    assert_eq!((lease.duty(last), lease.duty(at(59_100))), (Duty::Sleep(at(59_100)), Duty::Lost));
    assert!(!lease.renewed(TERMS(30_000), at(59_000), at(59_100)), "nothing revives it");
}

#[test]
fn a_limit_longer_than_a_fixed_lease_does_not_end_it() {
    let limit = |at_most| Some(HoldLimit::new(MS(at_most), at(0)));
    let longer = Lease::new(TERMS(30_000), at(0), false, limit(29_699));
    assert_eq!((longer.deadline(), longer.limit_that_ends_it()), (at(29_698), None));
    let shorter = Lease::new(TERMS(30_000), at(0), false, limit(29_697));
    assert_eq!((shorter.deadline(), shorter.limit_that_ends_it()), (at(29_697), limit(29_697)));
}

#[test]
fn a_round_that_asked_for_less_than_the_lease_has_become_is_trusted_for_what_it_asked() {
    let mut lease = lease(true);
    lease.widen(TERMS(60_000), true, at(5_000));
    assert!(lease.renewed(TERMS(30_000), at(4_000), at(5_001)));
    assert_eq!(lease.deadline(), at(33_698));
}

#[test]
fn a_failed_round_is_repeated_after_a_short_pause() {
    let mut lease = lease(true);
    lease.failed(at(10_200), 0);
    assert_eq!(lease.duty(at(10_200)), Duty::Sleep(at(10_205)));
    assert_eq!(lease.duty(at(10_205)), Duty::Renew);
    lease.failed(at(10_400), 0);
    assert_eq!(lease.duty(at(10_400)), Duty::Sleep(at(10_410)), "the pause doubles");
}

#[test]
fn another_entry_never_shortens_the_lease_and_may_have_it_renewed() {
    let mut lease = lease(false);
    lease.widen(Terms::new(MS(10_000), Drift::DEFAULT), false, at(0));
    assert_eq!((lease.terms().lease, lease.duty(at(0))), (MS(30_000), Duty::Sleep(at(29_698))));
    lease.widen(Terms::new(MS(60_000), Drift::DEFAULT), true, at(5_000));
    assert_eq!(lease.deadline(), at(29_698), "what no voter has granted yet is not trusted");
    assert_eq!(lease.duty(at(5_000)), Duty::Sleep(at(25_000)));
    assert!(lease.renewed(TERMS(60_000), at(5_000), at(5_001)));
    assert_eq!(lease.deadline(), at(65_000 - 602));
}

proptest! {
    /// However renewals succeed and fail, trust never reaches past the last successful round's own
    /// lease, nor past the limit, and once ended it stays ended.
    #[test]
    fn the_deadline_is_bounded_by_the_last_renewal_and_ends_for_good(
        lease_ms in 0..100_000_u64,
        at_most_ms in prop::option::of(1..300_000_u64),
        start in prop_oneof![Just(0), any::<u64>(), Just(u64::MAX - 10)],
        steps in prop::collection::vec((any::<bool>(), 0..20_000_u64, 0..500_u64), 0..60),
    ) {
        let terms = Terms::new(MS(lease_ms), Drift::DEFAULT);
        let start = Moment::from_nanos(start);
        let limit = at_most_ms.map(|ms| HoldLimit::new(MS(ms), start));
        let mut lease = Lease::new(terms, start, true, limit);
        let (mut now, mut last, mut lost) = (start, start, false);
        for (succeeds, wait, round_trip) in steps {
            let started = now + MS(wait);
            now = started + MS(round_trip);
            if succeeds {
                if lease.renewed(terms, started, now) {
                    prop_assert!(!lost);
                    last = started;
                }
            } else {
                lease.failed(now, 0);
            }
            prop_assert!(lease.deadline() <= terms.deadline(last));
            prop_assert!(at_most_ms.is_none_or(|ms| lease.deadline() <= start + MS(ms)));
            lost |= lease.duty(now) == Duty::Lost;
            prop_assert_eq!(lost, lease.duty(now) == Duty::Lost);
        }
    }
}
