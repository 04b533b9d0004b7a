//! What a bench has found, as `benches/results` keeps it: where it is from, and its tables.

/// The file of a bench from what it printed; nothing where it was not done.
pub fn page(bench: &str, setting: &str, output: &str) -> Result<String, String> {
    // Tables have an empty line between them.
    let lines = output.lines().filter(|line| line.starts_with('|') || line.is_empty());
    let tables = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
    let ended = output.lines().any(|line| line.starts_with("missed: ") || line == "all bars hold");
    if tables.is_empty() || !ended {
        return Err(format!("{bench} printed no tables or no verdict; nothing is written"));
    }
    let command = format!("cargo bench -p {} --bench {bench}", package(bench));
    Ok(format!("# {bench}\n\n`{command}` {setting}:\n\n{tables}\n"))
}

/// The package that a bench is in.
pub fn package(bench: &str) -> &'static str {
    if matches!(bench, "peers" | "languages") { "quorate-peers" } else { "quorate-benches" }
}

/// The cells of a line of a table.
pub fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.trim_matches('|').split('|').map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_tables_of_a_bench_that_came_to_its_end() {
        let output = "raw 1.0\n\n| a |\n|---|\n| **2** |\n\n| c |\n\nBAR a 2.00 1.50\nmissed: a\n";
        let expected = "# rw\n\n`cargo bench -p quorate-benches --bench rw` at commit `1`:\n\n\
            | a |\n|---|\n| **2** |\n\n| c |\n";
        assert_eq!(page("rw", "at commit `1`", output), Ok(expected.to_owned()));
        for incomplete in ["| a |\nBAR growth 1.00 1.50\n", "BAR cost 1.00 1.50\nall bars hold\n"] {
            assert!(page("rw", "", incomplete).is_err(), "{incomplete}");
        }
    }
}
