//! How times are written. The program includes this file.

// One file for the environment, the file of settings and the command line: when there were two, the
// program took `--wait 5` for seconds, and the library refused `QUORATE_LEASE=5`.

use std::time::Duration;

/// Reads `500ms`, `30s`, `5m`, `1h`, `7d`, or seconds without a unit. The error says what is
/// expected.
pub(super) fn parse_time(text: &str) -> Result<Duration, &'static str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => 0,
    };
    let number = number.parse::<u64>().ok().filter(|_| unit_ms > 0);
    let time_ms = number.and_then(|number| number.checked_mul(unit_ms));
    let expected = "a time is a whole number of seconds, or one with `ms`, `s`, `m`, `h` or `d`, \
                    as in `500ms`";
    time_ms.map(Duration::from_millis).ok_or(expected)
}
