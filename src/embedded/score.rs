//! The numbers that members of a sorted set are ordered by.

use std::{cmp::Ordering, fmt, ops::Bound};

/// A number as a server counts with it. It is never NaN and never -0, so it has an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score(f64);

impl Score {
    /// Reads a score. Hexadecimal numbers, which a server takes, are none here.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number| !is_out_of_range(*number, text));
        number.and_then(Self::new).ok_or_else(|| "ERR value is not a valid float".into())
    }

    /// Reads an end of a range of scores: `(` in front excludes it.
    pub(super) fn parse_bound(text: &str) -> Result<Bound<Self>, String> {
        let (text, bound): (_, fn(Self) -> Bound<Self>) = match text.strip_prefix('(') {
            Some(text) => (text, Bound::Excluded),
            None => (text, Bound::Included),
        };
        // A server reads ends with fewer checks: what is too large is infinite, nothing is 0, and
        // blanks may stand in front.
        let number = match text {
            "" => Some(0.0),
            text => text.trim_ascii_start().parse().ok(),
        };
        let score = number.and_then(Self::new).ok_or("ERR min or max is not a float")?;
        Ok(bound(score))
    }

    fn new(number: f64) -> Option<Self> {
        // The sum makes 0 of -0, as the encoding of a server's small sets does.
        (!number.is_nan()).then_some(Self(number + 0.0))
    }
}

/// Whether the text says neither infinite nor zero, and the number is.
fn is_out_of_range(number: f64, text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    match number {
        f64::INFINITY | f64::NEG_INFINITY => text.contains(|c: char| c.is_ascii_digit()),
        0.0 => mantissa.contains(|c: char| matches!(c, '1'..='9')),
        _ => false,
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// How many digits a server prints, trailing zeros aside: those that tell all numbers apart.
const DIGITS: i32 = 17;

impl fmt::Display for Score {
    /// Prints as a server of version 7.0 does, which is C's `%.17g`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 && self.0.abs() < 1e15 {
            // The same digits in a fraction of the time: nearly all scores are whole numbers.
            #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
            return write!(f, "{}", self.0 as i64);
        }
        let scientific = format!("{:.*e}", precision(DIGITS - 1), self.0);
        let Some((mantissa, exponent)) = scientific.split_once('e') else {
            return write!(f, "{}", self.0); // infinite
        };
        match exponent.parse().unwrap_or(0) {
            exponent @ -4..DIGITS => {
                let fixed = format!("{:.*}", precision(DIGITS - 1 - exponent), self.0);
                f.write_str(without_trailing_zeros(&fixed))
            }
            exponent => write!(f, "{}e{exponent:+03}", without_trailing_zeros(mantissa)),
        }
    }
}

fn precision(decimals: i32) -> usize {
    usize::try_from(decimals).unwrap_or(0)
}

fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_printed_with_as_many_digits_as_a_server_prints() {
        for (read, printed) in [
            ("1763712000000", "1763712000000"),
            ("3.0", "3"),
            ("-0", "0"),
            ("+.5", "0.5"),
            ("100", "100"),
            ("0.1", "0.10000000000000001"),
            ("0.0001", "0.0001"),
            ("0.00001", "1.0000000000000001e-05"),
            ("-99999999999999984", "-99999999999999984"),
            ("99999999999999999", "1e+17"),
            ("123456789012345678", "1.2345678901234568e+17"),
            ("9007199254740993", "9007199254740992"),
            ("1.5e300", "1.5000000000000001e+300"),
            ("4.9e-324", "4.9406564584124654e-324"),
            ("INF", "inf"),
            ("-infinity", "-inf"),
        ] {
            assert_eq!(Score::parse(read).unwrap().to_string(), printed, "{read}");
        }
    }

    #[test]
    fn what_is_no_number_or_out_of_range_is_no_score() {
        for text in
            ["", ".", "-", "e5", "1e", " 1", "1 ", "1_0", "nan", "1e400", "-1e400", "1e-400"]
        {
            let message = "ERR value is not a valid float";
            assert_eq!(Score::parse(text), Err(message.into()), "{text:?}");
        }
    }

    #[test]
    fn an_end_of_a_range_is_read_more_loosely_and_may_be_excluded() {
        let score = |text| Score::parse(text).unwrap();
        for (text, bound) in [
            ("", Bound::Included(score("0"))),
            ("(", Bound::Excluded(score("0"))),
            (" 1", Bound::Included(score("1"))),
            ("(-2.5", Bound::Excluded(score("-2.5"))),
            ("1e999", Bound::Included(score("+inf"))),
            ("-inf", Bound::Included(score("-inf"))),
        ] {
            assert_eq!(Score::parse_bound(text), Ok(bound), "{text:?}");
        }
        for text in ["nan", "((1", "[1", "-", " ", "1 ", "(nan"] {
            let message = "ERR min or max is not a float";
            assert_eq!(Score::parse_bound(text), Err(message.into()), "{text:?}");
        }
    }
}
