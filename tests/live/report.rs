//! The table and the picture of a round.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt::Write,
    time::Duration,
};

use plotters::prelude::*;

use quorate_tests::{
    check::{Findings, Hold, MS, holds},
    event::{Event, What},
};

/// The table: locks, troubles and laws.
pub(crate) fn table(events: &[Event], findings: &Findings) -> String {
    let mut text =
        String::from("lock        asked   held   lost  failed  median wait  longest wait\n");
    let lock_of = |who: &str| who.split('.').nth(1).map(str::to_owned);
    let has_failed = |event: &&Event| matches!(event.what, What::Failed { .. });
    let count = |lock: &str, is_one: fn(&What) -> bool| {
        let events = events.iter().filter(|event| is_one(&event.what));
        events.filter(|event| lock_of(&event.who).as_deref() == Some(lock)).count()
    };
    let holds = holds(events);
    let held = holds.iter().map(|hold| hold.lock.to_owned());
    let failed = events.iter().filter(has_failed).filter_map(|event| lock_of(&event.who));
    let locks: BTreeSet<_> = held.chain(failed).collect();
    for lock in &locks {
        let held = || holds.iter().filter(|hold| hold.lock == *lock);
        let mut waits: Vec<_> = held().map(|hold| (hold.enter - hold.asked) / MS).collect();
        waits.sort_unstable();
        let [median, longest] = [waits.len() / 2, waits.len().saturating_sub(1)]
            .map(|at| waits.get(at).copied().unwrap_or_default());
        let (asked, failed) = (
            count(lock, |what| matches!(what, What::Asked { .. })),
            count(lock, |what| matches!(what, What::Failed { .. })),
        );
        let (held, lost) = (held().count(), held().filter(|hold| hold.is_lost).count());
        let _ = writeln!(
            text,
            "{lock:10} {asked:6} {held:6} {lost:6} {failed:7} {median:9} ms {longest:10} ms"
        );
    }
    let _ = writeln!(text, "\ntrouble                   times  seconds");
    let mut troubles = BTreeMap::<&str, (u64, u64)>::new();
    for event in events {
        if let What::Trouble { kind, until, .. } = &event.what {
            let (times, length) = troubles.entry(kind).or_default();
            (*times, *length) = (*times + 1, *length + until - event.at);
        }
    }
    for (kind, (times, length)) in troubles {
        let _ = writeln!(text, "{kind:24} {times:6} {:8}", length / (1_000 * MS));
    }
    let _ = writeln!(text, "\nlaw           checked  broken");
    for (law, (checked, broken)) in &findings.0 {
        let _ = writeln!(text, "{:12} {checked:8} {:7}", format!("{law:?}"), broken.len());
    }
    text
}

/// So many columns a picture has.
const COLUMNS: u32 = 1_000;
const ROW: u32 = 44;
const COLORS: [RGBColor; 8] = [
    RGBColor(9, 105, 218),
    RGBColor(207, 34, 46),
    RGBColor(26, 127, 55),
    RGBColor(130, 80, 223),
    RGBColor(191, 135, 0),
    RGBColor(0, 128, 128),
    RGBColor(188, 76, 0),
    RGBColor(87, 96, 106),
];

/// Who held which lock over time, in a colour for each process, with the troubles as bands.
pub(crate) fn picture(events: &[Event]) -> String {
    let mut svg = String::new();
    draw(&mut svg, events).expect("it can be drawn");
    svg + "\n"
}

fn draw(svg: &mut String, events: &[Event]) -> Result<(), Box<dyn Error>> {
    let holds = holds(events);
    let locks: BTreeSet<_> = holds.iter().map(|hold| hold.lock).collect();
    let (first, last) = (events[0].at, events[events.len() - 1].at);
    let seconds = |at: u64| Duration::from_nanos(at.saturating_sub(first)).as_secs_f64();
    let rows = u32::try_from(locks.len())?;
    let area = SVGBackend::with_string(svg, (COLUMNS + 20, ROW * (rows + 3))).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(10)
        .x_label_area_size(30)
        .build_cartesian_2d(0.0..seconds(last), 0.0..f64::from(rows + 2))?;
    chart.configure_mesh().disable_mesh().x_desc("seconds").y_labels(0).draw()?;
    let upright = ("sans-serif", 10).into_font().transform(FontTransform::Rotate90);
    for event in events {
        let What::Trouble { kind, until, .. } = &event.what else { continue };
        let (from, to, top) = (seconds(event.at), seconds(*until), f64::from(rows + 2));
        let band = Rectangle::new([(from, 0.0), (to, top)], RED.mix(0.08).filled());
        chart.draw_series([band])?;
        chart.draw_series([Text::new(kind.clone(), (to, top), upright.clone())])?;
    }
    for (row, lock) in (0_u32..).zip(&locks) {
        let of_lock = holds.iter().filter(|hold| hold.lock == *lock);
        let base = f64::from(row);
        for (process, from, to) in spans(of_lock, first, last) {
            let color = COLORS[process % COLORS.len()];
            let corners = [(seconds(from), base + 0.2), (seconds(to), base + 0.8)];
            chart.draw_series([Rectangle::new(corners, color.filled())])?;
        }
        let text = Text::new((*lock).to_owned(), (0.0, base + 0.95), ("sans-serif", 13));
        chart.draw_series([text])?;
    }
    area.present()?;
    drop(chart);
    Ok(())
}

/// Which process held it in each column of the picture, neighbours as one.
fn spans<'a>(
    holds: impl Iterator<Item = &'a Hold<'a>>,
    first: u64,
    last: u64,
) -> Vec<(usize, u64, u64)> {
    let width = ((last - first) / u64::from(COLUMNS)).max(1);
    let mut columns = BTreeMap::<u64, usize>::new();
    for hold in holds {
        let process = hold.who.split(['.', '-']).next().and_then(|it| it.parse().ok());
        for column in (hold.enter - first) / width..=(hold.leave.min(last) - first) / width {
            columns.entry(column).or_insert(process.unwrap_or_default());
        }
    }
    let mut spans: Vec<(usize, u64, u64)> = Vec::new();
    for (column, process) in columns {
        let (from, to) = (first + column * width, first + (column + 1) * width);
        match spans.last_mut() {
            Some((before, _, end)) if *before == process && *end == from => *end = to,
            _ => spans.push((process, from, to)),
        }
    }
    spans
}
