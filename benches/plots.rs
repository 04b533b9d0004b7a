//! The plots of the page on performance, drawn from the tables of `benches/results`.

use std::error::Error;

use plotters::{coord::Shift, prelude::*};

use crate::results::cells;

/// A plot, and where its points stand. All scales are logarithmic.
#[derive(Debug)]
struct Plot {
    /// The name of the file, and the bench.
    name: &'static str,
    /// How the header of the table begins.
    table: &'static str,
    across: &'static str,
    upwards: &'static str,
    /// One picture for the rows that begin so, with a title.
    panels: &'static [(&'static str, &'static str)],
    /// How the headers of the columns begin, and what to call them.
    lines: &'static [(&'static str, &'static str)],
}

const SERVERS: [(&str, &str); 3] =
    [("1, ", "1 server"), ("3, ", "3 servers"), ("5, ", "5 servers")];
const ALL: [(&str, &str); 1] = [("", "")];

const PLOTS: [Plot; 4] = [
    Plot {
        name: "peers",
        table: "multi: servers, tasks",
        across: "tasks at once",
        upwards: "locks and releases a second",
        panels: &SERVERS,
        lines: &[
            ("quorate", "Quorate"),
            ("rslock", "rslock"),
            ("distributed-lock", "distributed-lock"),
            ("plain, redis-rs", "plain commands, redis-rs"),
            ("plain, fred", "plain commands, fred"),
        ],
    },
    Plot {
        name: "languages",
        table: "own locks: servers, tasks",
        across: "tasks at once",
        upwards: "locks and releases a second",
        panels: &SERVERS,
        lines: &[("quorate", "Quorate"), ("Redisson", "Redisson"), ("redsync", "redsync")],
    },
    Plot {
        name: "crowd",
        table: "clients",
        across: "clients that want one lock",
        upwards: "seconds until the last has had it",
        panels: &ALL,
        lines: &[
            ("all at once: seconds", "all ask at once"),
            ("a third of the waiters killed: seconds", "a third of the waiters killed"),
        ],
    },
    Plot {
        name: "holds",
        table: "holds",
        across: "locks kept",
        upwards: "% of a core",
        panels: &ALL,
        lines: &[("client", "the client"), ("servers", "each server")],
    },
];

const COLORS: [RGBColor; 5] = [
    RGBColor(9, 105, 218),
    RGBColor(207, 34, 46),
    RGBColor(130, 80, 223),
    RGBColor(26, 127, 55),
    RGBColor(154, 103, 0),
];
const SIZE: (u32, u32) = (330, 340);
/// The height of the line with the names.
const NAMES: u32 = 30;

/// Line after line, its points from left to right.
type Points = Vec<Vec<(f64, f64)>>;

/// The file of each plot, with what is in it. `read` gives the tables of a bench.
///
/// # Errors
///
/// Which table, column or row is not there.
pub fn draw(
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<(String, String)>, String> {
    let file = |plot: &Plot| Ok((format!("{}.svg", plot.name), plot.draw(&read(plot.name)?)?));
    PLOTS.iter().map(file).collect()
}

impl Plot {
    fn draw(&self, page: &str) -> Result<String, String> {
        let mut svg = String::new();
        let missing = |what: &str| format!("the figures of `{}` lack {what}", self.name);
        let table = self.table(page).ok_or_else(|| missing(self.table))?;
        let panels: Option<Vec<Points>> =
            self.panels.iter().map(|(rows, _)| self.points(&table, rows)).collect();
        let panels = panels.ok_or_else(|| missing("a column, a row or a number"))?;
        self.draw_on(&mut svg, &panels).map_err(|cause| cause.to_string())?;
        Ok(svg + "\n")
    }

    /// The lines of the table, with the header.
    fn table<'a>(&self, page: &'a str) -> Option<Vec<Vec<&'a str>>> {
        let mut lines = page.lines().skip_while(|line| cells(line).next() != Some(self.table));
        let header = cells(lines.next()?).collect();
        let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
        Some([header].into_iter().chain(rows.map(|row| cells(row).collect())).collect())
    }

    fn points(&self, table: &[Vec<&str>], panel: &str) -> Option<Points> {
        let (header, rows) = table.split_first()?;
        let rows = rows.iter().filter_map(|row| Some((row.first()?.strip_prefix(panel)?, row)));
        let rows: Vec<_> = rows.collect();
        let line = |(name, _): &(&str, &str)| {
            let column = header.iter().position(|cell| cell.starts_with(name))?;
            let point = |(across, row): &(&str, &Vec<&str>)| {
                Some((across.parse().ok()?, number(row.get(column)?)?))
            };
            let points: Option<Vec<(f64, f64)>> = rows.iter().map(point).collect();
            points.filter(|points| !points.is_empty())
        };
        self.lines.iter().map(line).collect()
    }

    fn draw_on(&self, svg: &mut String, panels: &[Points]) -> Result<(), Box<dyn Error>> {
        let (width, height) = SIZE;
        let count = u32::try_from(panels.len())?;
        let width = if count == 1 { width * 3 / 2 } else { width * count };
        let area = SVGBackend::with_string(svg, (width, height)).into_drawing_area();
        area.fill(&WHITE)?;
        let all = || panels.iter().flatten().flatten();
        let (across, upwards) =
            (range(all().map(|point| point.0)), range(all().map(|point| point.1)));
        let (charts, names) = area.split_vertically(height - NAMES);
        self.draw_names(&names)?;
        let areas = charts.split_evenly((1, panels.len()));
        for (at, (points, area)) in panels.iter().zip(&areas).enumerate() {
            self.draw_panel(area, at, points, &across, &upwards)?;
        }
        area.present()?;
        Ok(())
    }

    fn draw_names(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Box<dyn Error>> {
        let mut left = 62;
        for ((_, name), color) in self.lines.iter().zip(COLORS) {
            area.draw(&PathElement::new([(left, 12), (left + 16, 12)], color.stroke_width(2)))?;
            area.draw(&Text::new(*name, (left + 22, 6), ("sans-serif", 12)))?;
            // A letter takes about so much.
            left += 48 + 6 * i32::try_from(name.len())?;
        }
        Ok(())
    }

    fn draw_panel(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        at: usize,
        points: &Points,
        (left, right): &(f64, f64),
        (bottom, top): &(f64, f64),
    ) -> Result<(), Box<dyn Error>> {
        let (_, title) = self.panels[at];
        let mut chart = ChartBuilder::on(area);
        chart.margin(10).x_label_area_size(40).y_label_area_size(52);
        if !title.is_empty() {
            chart.caption(title, ("sans-serif", 15));
        }
        let mut chart =
            chart.build_cartesian_2d((*left..*right).log_scale(), (*bottom..*top).log_scale())?;
        chart
            .configure_mesh()
            .x_desc(self.across)
            .y_desc(if at == 0 { self.upwards } else { "" })
            .label_style(("sans-serif", 12))
            .light_line_style(TRANSPARENT)
            .x_labels(6)
            .y_labels(6)
            .x_label_formatter(&|value| plain(*value))
            .y_label_formatter(&|value| plain(*value))
            .draw()?;
        for (line, color) in points.iter().zip(COLORS) {
            chart.draw_series(LineSeries::new(line.iter().copied(), color.stroke_width(2)))?;
            let dots = line.iter().map(|point| Circle::new(*point, 3, color.filled()));
            chart.draw_series(dots)?;
        }
        Ok(())
    }
}

/// A cell's first number. Where it misses a bar it is bold.
fn number(cell: &str) -> Option<f64> {
    cell.split(' ').next()?.trim_matches('*').parse().ok()
}

fn range(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    (least * 0.8, values.fold(0.0, f64::max) * 1.25)
}

/// As people write it: the places of a logarithmic scale are not exact.
fn plain(value: f64) -> String {
    format!("{}", (value * 1000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_stands_where_its_number_says() {
        let plot = &PLOTS[3];
        let table = "\
| holds | client, % of a core | servers, % of a core each | lost |
|---|---|---|---|
| 1000 | 0.27 | 0.22 | 0 |
| 10000 | **15.43** | 0.62 / 3 | 0 |
";
        let points = plot.points(&plot.table(table).unwrap(), "").unwrap();
        let expected = [[(1e3, 0.27), (1e4, 15.43)], [(1e3, 0.22), (1e4, 0.62)]];
        assert_eq!(points, expected);
        assert_eq!(plot.draw(table).unwrap().matches("<circle").count(), 4);
        for lacking in ["| servers", "| 1000 ", "0.22"].map(|cell| table.replacen(cell, "| -", 1)) {
            assert!(plot.draw(&lacking).is_err(), "{lacking}");
        }
    }
}
