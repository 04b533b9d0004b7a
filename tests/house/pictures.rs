//! The pictures of the documentation: each SVG file is drawn from a text of the same name.
//!
//! In a text, `-` and `|` draw lines, `~` and `:` broken ones, `+` a corner, `v` below a line an
//! arrow. Everything else is shown as it stands.

use std::{env, fmt::Write, fs, path::Path};

use quorate_support::ROOT;

/// Size of one letter.
const WIDTH: usize = 9;
const HEIGHT: usize = 18;

/// A text as a grid of signs.
struct Grid(Vec<Vec<char>>);

impl Grid {
    fn read(text: &str) -> Self {
        Self(text.lines().map(|line| line.chars().collect()).collect())
    }

    fn at(&self, x: usize, y: usize) -> char {
        self.0.get(y).and_then(|line| line.get(x)).copied().unwrap_or(' ')
    }

    fn columns(&self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn left_of(&self, x: usize, y: usize) -> char {
        if x == 0 { ' ' } else { self.at(x - 1, y) }
    }

    fn above(&self, x: usize, y: usize) -> char {
        if y == 0 { ' ' } else { self.at(x, y - 1) }
    }

    /// A sign of a line that goes from left to right, and no sign of a text.
    fn is_across(&self, x: usize, y: usize, sign: char) -> bool {
        let ends = |at| at == sign || at == '+';
        self.at(x, y) == sign && (ends(self.left_of(x, y)) || ends(self.at(x + 1, y)))
    }

    fn is_down(&self, x: usize, y: usize, sign: char) -> bool {
        let ends = |at| at == sign || at == '+' || at == 'v';
        let stands_alone = !self.left_of(x, y).is_alphanumeric() && self.at(x + 1, y) == ' ';
        let is_in_a_line = ends(self.above(x, y)) || ends(self.at(x, y + 1)) || stands_alone;
        self.at(x, y) == sign && is_in_a_line
    }

    fn is_arrow(&self, x: usize, y: usize) -> bool {
        self.at(x, y) == 'v' && self.left_of(x, y) == ' ' && self.at(x + 1, y) == ' '
    }

    fn is_corner(&self, x: usize, y: usize) -> bool {
        self.at(x, y) == '+'
    }

    fn is_drawn(&self, x: usize, y: usize) -> bool {
        let is_line = ['-', '~'].iter().any(|sign| self.is_across(x, y, *sign))
            || ['|', ':'].iter().any(|sign| self.is_down(x, y, *sign));
        is_line || self.is_arrow(x, y) || self.is_corner(x, y)
    }
}

/// The picture of a text.
fn draw(text: &str) -> String {
    let grid = Grid::read(text);
    let (width, height) = ((grid.columns() + 2) * WIDTH, (grid.0.len() + 1) * HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"monospace\" font-size=\"15\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#ffffff\"/>\n"
    );
    for y in 0..grid.0.len() {
        for x in 0..grid.columns() {
            draw_sign(&grid, x, y, &mut svg);
        }
        draw_words(&grid, y, &mut svg);
    }
    svg + "</svg>\n"
}

/// The middle of a sign.
fn middle(x: usize, y: usize) -> (usize, usize) {
    ((x + 1) * WIDTH + WIDTH / 2, y * HEIGHT + HEIGHT)
}

fn draw_sign(grid: &Grid, x: usize, y: usize, svg: &mut String) {
    let (at_x, at_y) = middle(x, y);
    let mut line = |(from_x, from_y): (usize, usize), (to_x, to_y): (usize, usize), broken| {
        let style = if broken {
            "stroke=\"#b35900\" stroke-dasharray=\"3 3\""
        } else {
            "stroke=\"#24292f\""
        };
        writeln!(svg, "<path d=\"M{from_x} {from_y}L{to_x} {to_y}\" {style}/>").expect("a string");
    };
    for (sign, broken) in [('-', false), ('~', true)] {
        // A line reaches the middle of the corner that it ends at.
        if grid.is_across(x, y, sign) {
            let from = if grid.is_corner(x.wrapping_sub(1), y) { WIDTH } else { WIDTH / 2 };
            let to = if grid.is_corner(x + 1, y) { WIDTH } else { WIDTH - WIDTH / 2 };
            line((at_x - from, at_y), (at_x + to, at_y), broken);
        }
    }
    for (sign, broken) in [('|', false), (':', true)] {
        if grid.is_down(x, y, sign) {
            let from = if grid.is_corner(x, y.wrapping_sub(1)) { HEIGHT } else { HEIGHT / 2 };
            let to = if grid.is_corner(x, y + 1) { HEIGHT } else { HEIGHT / 2 };
            line((at_x, at_y - from), (at_x, at_y + to), broken);
        }
    }
    if grid.is_arrow(x, y) {
        let (left, right, top, tip) = (at_x - 5, at_x + 5, at_y - HEIGHT / 2, at_y + HEIGHT / 2);
        writeln!(svg, "<path d=\"M{left} {top}L{right} {top}L{at_x} {tip}Z\" fill=\"#24292f\"/>")
            .expect("a string");
    }
}

/// Words that stand together are one text, so that they can be copied.
fn draw_words(grid: &Grid, y: usize, svg: &mut String) {
    let mut x = 0;
    while x < grid.columns() {
        let is_gap = |at: usize| grid.is_drawn(at, y) || grid.at(at, y) == ' ';
        if is_gap(x) {
            x += 1;
            continue;
        }
        let start = x;
        while !(is_gap(x) && (is_gap(x + 1) || grid.is_drawn(x, y))) {
            x += 1;
        }
        let words: String = (start..x).map(|at| grid.at(at, y)).collect();
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        let (left, base) = ((start + 1) * WIDTH, y * HEIGHT + HEIGHT + 5);
        writeln!(svg, "<text x=\"{left}\" y=\"{base}\" fill=\"#24292f\">{words}</text>")
            .expect("a string");
    }
}

#[test]
fn lines_arrows_and_words_are_told_apart() {
    let svg = draw("+--+ :\n|a | a:b <c-d\n+~~+ v");
    assert_eq!(svg.matches("stroke-dasharray").count(), 3, "{svg}");
    assert_eq!(svg.matches("<path").count(), 2 + 2 + 2 + 1 + 1, "{svg}");
    assert!(svg.contains(">a</text>") && svg.contains(">a:b &lt;c-d</text>"), "{svg}");
}

#[test]
fn every_picture_is_drawn_from_its_text() {
    let folder = Path::new(ROOT).join("docs/pictures");
    let writes = env::var("QUORATE_PICTURES").is_ok_and(|mode| mode == "write");
    let paths = fs::read_dir(&folder).expect("there are pictures");
    let mut paths: Vec<_> = paths.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    for path in paths {
        let (text, svg) = (path.with_extension("txt"), path.with_extension("svg"));
        let text = fs::read_to_string(&text);
        let text = text.unwrap_or_else(|_| panic!("{}: there is no text for it", path.display()));
        if writes {
            fs::write(&svg, draw(&text)).expect("the picture is written");
        }
        let is_drawn = fs::read_to_string(&svg).is_ok_and(|drawn| drawn == draw(&text));
        assert!(is_drawn, "{}: `tests/run pictures` draws it", svg.display());
    }
}
