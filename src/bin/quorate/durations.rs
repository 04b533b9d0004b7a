//! Times on the command line: `500ms`, `30s`, `5m`, `1h`, and seconds where no unit follows.

use std::time::Duration;

pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let number = number.parse::<u64>().ok().filter(|_| unit_ms > 0);
    let time_ms = number.and_then(|number| number.checked_mul(unit_ms));
    let expected =
        "a time is a whole number of seconds, or one with `ms`, `s`, `m` or `h`, as in `500ms`";
    time_ms.map(Duration::from_millis).ok_or_else(|| expected.to_owned())
}

/// The time between two looks. Each look asks all servers for all their keys.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_millis(100);
    let interval = parse(text)?;
    if interval < LEAST { Err(format!("it is at least {LEAST:?}")) } else { Ok(interval) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_whole_number_of_seconds_unless_it_has_a_unit() {
        for (text, ms) in
            [("500ms", 500), ("0s", 0), ("5", 5_000), ("2m", 120_000), ("1h", 3_600_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)));
        }
        for wrong in ["", "s", "1.5s", "-1s", "5 s", "5d", "99999999999999999999s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn servers_are_not_asked_without_a_pause() {
        assert_eq!(parse_interval("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_interval("99ms").unwrap_err(), "it is at least 100ms");
    }
}
