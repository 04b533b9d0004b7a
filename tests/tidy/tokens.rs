//! Rust source as words and signs, without comments, strings and characters.

/// A word (`crate`, `Mutex`, `42`) or a sign (`{`, `::`), and the line it stands on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) text: String,
}

pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let (mut found, mut line, mut at) = (Vec::new(), 1, 0);
    while at < chars.len() {
        let rest = &chars[at..];
        let (length, is_code) = match skipped(rest) {
            0 => (code(rest), !rest[0].is_whitespace()),
            length => (length.min(rest.len()), false),
        };
        if is_code {
            found.push(Token { line, text: rest[..length].iter().collect() });
        }
        line += rest[..length].iter().filter(|&&sign| sign == '\n').count();
        at += length;
    }
    found
}

/// The token texts from `at` on begin with `pattern`.
pub(crate) fn reads(tokens: &[Token], at: usize, pattern: &[&str]) -> bool {
    let here = tokens[at..].iter().map(|token| token.text.as_str());
    tokens.len() - at >= pattern.len() && here.zip(pattern).all(|(text, &wanted)| text == wanted)
}

pub(crate) fn is_word(text: &str) -> bool {
    text.starts_with(in_word)
}

fn in_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

fn code(rest: &[char]) -> usize {
    match rest {
        [':', ':', ..] => 2,
        [first, ..] if in_word(*first) => {
            rest.iter().position(|&sign| !in_word(sign)).unwrap_or(rest.len())
        }
        _ => 1,
    }
}

/// The length of the comment, string or character that starts here; 0 where none does.
fn skipped(rest: &[char]) -> usize {
    match rest {
        ['/', '/', ..] => rest.iter().position(|&sign| sign == '\n').unwrap_or(rest.len()),
        ['/', '*', ..] => block_comment(rest),
        ['"', ..] | ['b' | 'c', '"', ..] => string(rest),
        ['r', '"' | '#', ..] => raw_string(rest, 1),
        ['b' | 'c', 'r', '"' | '#', ..] => raw_string(rest, 2),
        // The first sign after the backslash may be a quote itself.
        ['\'', '\\', ..] => {
            let end = rest.iter().skip(3).position(|&sign| sign == '\'');
            end.map_or(0, |at| at + 4)
        }
        ['\'', _, '\'', ..] => 3,
        _ => 0,
    }
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string(rest: &[char]) -> usize {
    let mut at = rest.iter().position(|&sign| sign == '"').unwrap_or(0) + 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// 0 for a raw identifier.
fn raw_string(rest: &[char], prefix: usize) -> usize {
    let hashes = rest[prefix..].iter().take_while(|&&sign| sign == '#').count();
    let start = prefix + hashes;
    if rest.get(start) != Some(&'"') {
        return 0;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let body = rest[start + 1..].windows(end.len()).position(|window| window == end);
    body.map_or(rest.len(), |length| start + 1 + length + end.len())
}

#[test]
fn only_code_is_read() {
    let text = "a // b\n/* c /* d */ e */ f::g \"h\\\" i\" 'j' '\\'' 'k l\n\
                r#\"m\" n\"# br\"o\" r#p '\"' q";
    let read = tokens(text);
    let words: Vec<_> = read.iter().map(|token| token.text.as_str()).collect();
    assert_eq!(words, ["a", "f", "::", "g", "'", "k", "l", "r", "#", "p", "q"]);
    assert_eq!(read.iter().map(|token| token.line).collect::<Vec<_>>()[..5], [1, 2, 2, 2, 2]);
    assert_eq!(read.last().map(|token| token.line), Some(3));
}
