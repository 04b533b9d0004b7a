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
    if bench == "peers" { "quorate-peers" } else { "quorate-benches" }
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
