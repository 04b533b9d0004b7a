//! The plots of the page on performance, drawn from the tables of `benches/results`. They are as
//! narrow as a phone shows them without making their letters too small to read.

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
    /// One picture for the rows that begin so, with a title. They stand one below the other.
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
            ("on the caller's runtime", "on your own runtime"),
            ("rslock", "rslock"),
            ("distributed-lock", "distributed-lock"),
            ("plain, redis-rs", "plain"),
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
const WIDTH: u32 = 480;
/// The height of a picture, of what stands below the last one, and of a line with two names.
const PANEL: u32 = 200;
const ACROSS: u32 = 20;
const NAMES: u32 = 24;
/// Of letters and axes: as easy to read on a white page as on a dark one, and the ground is the
/// page's. So are the colours of the lines.
const GREY: RGBColor = RGBColor(122, 128, 138);

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
        let count = u32::try_from(panels.len())?;
        let names = NAMES * u32::try_from(self.lines.len().div_ceil(2))?;
        let height = count * PANEL + ACROSS + names;
        let area = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
        let all = || panels.iter().flatten().flatten();
        let (across, upwards) =
            (range(all().map(|point| point.0)), range(all().map(|point| point.1)));
        let (names, mut rest) = area.split_vertically(names);
        self.draw_names(&names)?;
        for (at, points) in panels.iter().enumerate() {
            let is_last = at + 1 == panels.len();
            let (panel, below) = rest.split_vertically(PANEL + if is_last { ACROSS } else { 0 });
            self.draw_panel(&panel, at, points, &across, &upwards)?;
            rest = below;
        }
        area.present()?;
        Ok(())
    }

    fn draw_names(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Box<dyn Error>> {
        for (at, ((_, name), color)) in (0..).zip(self.lines.iter().zip(COLORS)) {
            let (left, top) = (20 + at % 2 * 230, 16 + at / 2 * 24);
            area.draw(&PathElement::new([(left, top), (left + 20, top)], color.stroke_width(3)))?;
            area.draw(&Text::new(*name, (left + 28, top - 8), letters()))?;
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
        let is_last = at + 1 == self.panels.len();
        let title = match title {
            "" => self.upwards.to_owned(),
            title => format!("{title}: {}", self.upwards),
        };
        let mut chart = ChartBuilder::on(area);
        chart.margin(8).margin_right(20).y_label_area_size(68).caption(title, letters());
        chart.x_label_area_size(if is_last { 30 + ACROSS } else { 30 });
        let mut chart =
            chart.build_cartesian_2d((*left..*right).log_scale(), (*bottom..*top).log_scale())?;
        chart
            .configure_mesh()
            .x_desc(if is_last { self.across } else { "" })
            .label_style(letters())
            .axis_style(GREY)
            .bold_line_style(GREY.mix(0.3))
            .light_line_style(TRANSPARENT)
            .x_labels(6)
            .y_labels(5)
            .x_label_formatter(&|value| plain(*value))
            .y_label_formatter(&|value| plain(*value))
            .draw()?;
        for (line, color) in points.iter().zip(COLORS) {
            chart.draw_series(LineSeries::new(line.iter().copied(), color.stroke_width(3)))?;
            let dots = line.iter().map(|point| Circle::new(*point, 4, color.filled()));
            chart.draw_series(dots)?;
        }
        Ok(())
    }
}

fn letters() -> TextStyle<'static> {
    ("sans-serif", 18).into_font().color(&GREY)
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
        let svg = plot.draw(table).unwrap();
        assert_eq!(svg.matches("<circle").count(), 4);
        let is_for_one_ground = ["#000000", "#FFFFFF", "<rect"].iter().any(|it| svg.contains(it));
        assert!(!is_for_one_ground, "{svg}");
        for lacking in ["| servers", "| 1000 ", "0.22"].map(|cell| table.replacen(cell, "| -", 1)) {
            assert!(plot.draw(&lacking).is_err(), "{lacking}");
        }
    }
}
