//! The figures of a bench on a page of the documentation: what stands between two markers.

const END: &str = "<!-- end -->";

/// Where the figures are from, the tables, and the missed bars, from what the bench printed.
pub fn block(bench: &str, setting: &str, output: &str) -> Result<String, String> {
    // Tables have an empty line between them.
    let lines = output.lines().filter(|line| line.starts_with('|') || line.is_empty());
    let tables = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
    let bars: Vec<Vec<&str>> = output
        .lines()
        .filter_map(|line| Some(line.strip_prefix("BAR ")?.split(' ').collect()))
        .collect();
    let verdict = output.lines().find_map(|line| match line.strip_prefix("missed: ") {
        None => (line == "all bars hold").then(|| "All bars hold.".to_owned()),
        Some(missed) => Some(missed.split(", ").fold("Missed:".to_owned(), |text, missed| {
            let bar = bars.iter().find(|bar| bar[0] == missed);
            let values = bar.map_or(String::new(), |bar| format!("{}, limit {}", bar[1], bar[2]));
            format!("{text}\n- `{missed}`: {values}")
        })),
    });
    match verdict {
        Some(verdict) if !tables.is_empty() => Ok(format!(
            "`cargo bench -p {} --bench {bench}` {setting}:\n\n{tables}\n\n{verdict}",
            package(bench)
        )),
        _ => Err(format!("{bench} printed no tables or no verdict; nothing is written")),
    }
}

/// The package that a bench is in.
pub fn package(bench: &str) -> &'static str {
    if matches!(bench, "peers" | "languages") { "quorate-peers" } else { "quorate-benches" }
}

/// The bench that the README shows a part of.
pub const DIGEST: &str = "from peers";

/// What the README shows: where the figures are from, and throughput and times of four rows.
///
/// `page` has the figures of `peers`. Nothing is measured here.
pub fn digest(page: &str) -> Option<String> {
    let block = figures(page, "peers")?;
    let origin = block.lines().find(|line| line.starts_with('`'))?;
    let mut lines = block.lines().skip_while(|line| !line.starts_with("| multi: servers, tasks |"));
    let columns: Vec<_> = cells(lines.next()?).collect();
    let at = |name: &str| columns.iter().position(|column| column.starts_with(name));
    let (rate, half, tail) = (at("quorate, a second")?, at("p50, us: ours")?, at("p99, us")?);
    let rows: Vec<Vec<&str>> = lines.map(|line| cells(line).collect()).collect();
    let mut table = vec![
        "| servers | tasks | locks per second | median | 99th percentile |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for wanted in ["3, 1", "3, 64", "5, 1", "5, 64"] {
        let row = rows.iter().find(|row| row.first() == Some(&wanted))?;
        let (servers, tasks) = wanted.split_once(", ")?;
        let (median, slowest) = (in_ms(row.get(half)?)?, in_ms(row.get(tail)?)?);
        let rate = row.get(rate)?;
        table.push(format!("| {servers} | {tasks} | {rate} | {median} | {slowest} |"));
    }
    Some(format!("{origin}\n\n{}", table.join("\n")))
}

/// What stands between the markers of the bench.
pub fn figures<'a>(page: &'a str, bench: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&begin(bench))?;
    Some(rest.split_once(END)?.0)
}

/// The cells of a line of a table.
pub fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.trim_matches('|').split('|').map(str::trim)
}

/// Of `microseconds / those of another library` the first.
fn in_ms(cell: &str) -> Option<String> {
    let us: f64 = cell.split(' ').next()?.trim_matches('*').parse().ok()?;
    Some(format!("{:.2} ms", us / 1000.0))
}

pub fn begin(bench: &str) -> String {
    format!("<!-- figures: {bench} -->")
}

/// The page with this block between the markers of the bench, which must be there once.
pub fn with_block(page: &str, bench: &str, block: &str) -> Option<String> {
    let begin = begin(bench);
    let (before, rest) = page.split_once(&begin)?;
    let (old, after) = rest.split_once(END)?;
    let is_alone = !old.contains("<!-- figures") && !after.contains(&begin);
    is_alone.then(|| format!("{before}{begin}\n{block}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
raw 1.0

| a | b |
|---|---|
| 1 | **2.00** |

| c |
|---|
| 3 |

BAR growth 2.00 1.50
BAR cost 1.00 1.50
missed: growth
";

    #[test]
    fn a_block_says_where_the_figures_are_from_and_which_bars_are_missed() {
        let expected = "\
`cargo bench -p quorate-benches --bench rw` at commit `1`:

| a | b |
|---|---|
| 1 | **2.00** |

| c |
|---|
| 3 |

Missed:
- `growth`: 2.00, limit 1.50";
        assert_eq!(block("rw", "at commit `1`", OUTPUT), Ok(expected.to_owned()));
        let holds = OUTPUT.replace("missed: growth", "all bars hold");
        let held = block("rw", "", &holds).expect("it is whole");
        assert!(held.ends_with("| 3 |\n\nAll bars hold."), "{held}");
        for incomplete in ["| a |\nBAR growth 1.00 1.50\n", "BAR cost 1.00 1.50\nall bars hold\n"] {
            assert!(block("rw", "", incomplete).is_err(), "{incomplete}");
        }
    }

    #[test]
    fn the_figures_of_the_readme_are_those_of_the_page_on_performance() {
        let of_the_page = digest(include_str!("../docs/performance.md")).expect("it has them");
        let readme = include_str!("../README.md");
        let expected = with_block(readme, DIGEST, &of_the_page).expect("it has the markers");
        assert_eq!(
            readme, expected,
            "`cargo run -p quorate-benches --bin figures digest` writes them"
        );
    }

    #[test]
    fn a_digest_takes_the_rows_by_their_names() {
        let page = "\
<!-- figures: peers -->
`cargo bench` at commit `1`:

| multi: servers, tasks | quorate, a second | other | p50, us: ours / other | p99, us |
|---|---|---|---|---|
| 3, 1 | 10 | 9 | 241 / 9 | 1435 / 9 |
| 3, 64 | 11 | 9 | 1 / 9 | 1 / 9 |
| 5, 1 | 12 | 9 | 1 / 9 | **2500** / 9 |
| 5, 64 | 13 | 9 | 1 / 9 | 1 / 9 |
<!-- end -->
";
        let digest = digest(page).expect("it has all rows");
        assert!(digest.starts_with("`cargo bench` at commit `1`:\n\n| servers |"), "{digest}");
        assert!(digest.contains("\n| 3 | 1 | 10 | 0.24 ms | 1.44 ms |\n"), "{digest}");
        assert!(digest.contains("\n| 5 | 1 | 12 | 0.00 ms | 2.50 ms |\n"), "{digest}");
        assert_eq!(super::digest(&page.replace("3, 64", "3, 65")), None);
    }

    #[test]
    fn only_what_is_between_the_markers_of_the_bench_changes() {
        let page =
            "a\n<!-- figures: rw -->\nold\n<!-- end -->\nb\n<!-- figures: x -->\n<!-- end -->";
        let expected = page.replace("old", "new");
        assert_eq!(with_block(page, "rw", "new"), Some(expected.clone()));
        assert_eq!(with_block(&expected, "rw", "new"), Some(expected));
        assert_eq!(with_block(page, "handoff", "new"), None);
        assert_eq!(with_block(&page.replacen(END, "", 1), "rw", "new"), None);
        assert_eq!(with_block(&format!("{page}{page}"), "rw", "new"), None);
    }
}
