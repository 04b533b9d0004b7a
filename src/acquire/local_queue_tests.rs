use futures::FutureExt;

use super::*;
use crate::proto::Refusal;

fn enter(queues: &Arc<LocalQueues>) -> LocalPlace {
    queues.enter(&Arc::from("a"), "", Moment::BEGINNING, Duration::from_millis(200))
}

#[test]
fn two_that_leave_at_one_moment_take_the_queue_along() {
    let queues = Arc::new(LocalQueues::new(1));
    let (one, other) = (enter(&queues), enter(&queues));
    // The other one has left the table, and not let go of the queue yet.
    let leaving = Arc::clone(&one.queue);
    drop(other);
    drop(one);
    assert!(queues.queues.lock().unwrap().is_empty());
    drop(leaving);
}

#[tokio::test]
async fn others_may_ask_first_after_four_grants_in_a_row() {
    let queues = Arc::new(LocalQueues::new(1));
    let place = enter(&queues);
    let turn = place.turn().await;
    let yields = |grants: u32| {
        (0..grants).for_each(|_| turn.count_grant());
        turn.yields()
    };
    assert_eq!([yields(3), yields(1), yields(3)], [false, true, false]);
}

#[tokio::test]
async fn turns_come_in_the_order_of_coming_and_an_empty_queue_is_forgotten() {
    let queues = Arc::new(LocalQueues::new(1));
    let places: Vec<_> = (0..3).map(|_| enter(&queues)).collect();
    let first = places[0].turn().await;
    let mut second = Box::pin(places[1].turn());
    let mut third = Box::pin(places[2].turn());
    assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
    drop(first);
    assert!((&mut third).now_or_never().is_none(), "the second stands before");
    drop(second);
    assert!((&mut third).now_or_never().is_some(), "the second has left");
    drop(third);
    drop(places);
    assert!(queues.queues.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_first_is_kept_from_asking_only_while_it_waits_for_leave() {
    let queues = Arc::new(LocalQueues::new(1));
    let (one, other) = (enter(&queues), enter(&queues));
    let turn = one.try_turn().unwrap();
    assert!(!other.is_kept_from_asking(), "it is about to ask");
    turn.wait_for_leave();
    assert!(other.is_kept_from_asking());
    turn.ask();
    assert!(!other.is_kept_from_asking());
    turn.wait_for_leave();
    drop(turn);
    assert!(!other.is_kept_from_asking(), "it waits no more");
}

fn is_reported_by(turn: &Turn<'_>, place: &LocalPlace) -> bool {
    let before = place.queue.report.read(|report| report.number);
    turn.report(Denial::Held(Refusal::default()));
    place.queue.report.read(|report| report.number) > before
}

/// Each of them would wake everybody who waits, again and again.
#[tokio::test]
async fn of_several_that_have_the_turn_one_reports_and_then_the_next_with_something_to_report() {
    let queues = Arc::new(LocalQueues::new(2));
    let places: Vec<_> = (0..4).map(|_| enter(&queues)).collect();
    let (one, other) = (places[0].try_turn().unwrap(), places[1].try_turn().unwrap());
    assert!(places[2].try_turn().is_none(), "two have the turn");
    assert!(is_reported_by(&other, &places[3]) && !is_reported_by(&one, &places[3]));
    drop(other);
    let third = places[2].turn().await;
    assert!(is_reported_by(&one, &places[3]) && !is_reported_by(&third, &places[3]));
    drop(one);
    assert!(is_reported_by(&third, &places[3]));
}

#[tokio::test]
async fn the_first_reports_to_the_others_what_the_voters_said() {
    let queues = Arc::new(LocalQueues::new(1));
    let (one, other) = (enter(&queues), enter(&queues));
    let turn = one.try_turn().unwrap();
    assert!(other.try_turn().is_none());
    assert!(other.verdict().now_or_never().is_none());
    turn.report(Denial::Held(Refusal::default()));
    other.verdict().await;
    assert!(matches!(other.last_denial(), Some(Denial::Held(_))));
}
