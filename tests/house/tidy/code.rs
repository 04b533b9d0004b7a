//! Rust source without comments and strings, line by line, as rustfmt leaves it.

/// The code of each line. From its second line on, a string counts as code: at worst a word of a
/// text is found that is none of the code.
pub(crate) fn code(text: &str) -> Vec<String> {
    text.lines().map(code_of).collect()
}

fn code_of(line: &str) -> String {
    let line = line.replace(r"\\", "").replace("\\\"", "").replace("'\"'", "");
    let outside: Vec<_> = line.split('"').step_by(2).collect();
    outside.join("\"\"").split("//").next().unwrap_or_default().to_owned()
}

/// Whether the code has these signs, and not as a part of a longer word.
pub(crate) fn names(code: &str, what: &str) -> bool {
    let is_apart = |at: usize| {
        let (before, after) = (&code[..at], &code[at + what.len()..]);
        let goes_on_before = before.ends_with(in_word) && what.starts_with(in_word);
        let goes_on_after = after.starts_with(in_word) && what.ends_with(in_word);
        !goes_on_before && !goes_on_after
    };
    code.match_indices(what).any(|(at, _)| is_apart(at))
}

pub(crate) fn in_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

/// The word that the text begins with; empty where it begins with none.
pub(crate) fn first_word(text: &str) -> &str {
    text.split(|sign| !in_word(sign)).next().unwrap_or_default()
}

#[test]
fn only_code_is_read() {
    let text = "a(\"b // c\", d) // e \"f\" g\n\"h \\\" i\", '\"', j\n/// k\nlet l = \"m";
    assert_eq!(code(text), ["a(\"\", d) ", "\"\", , j", "", "let l = "]);
    assert!(names("use fred::prelude", "fred") && names("x.rng()", "rng()"));
    assert!(!names("alfred::fred_x", "fred") && !names("string()", "rng()"));
}
