//! Times as people read them.

use std::{fmt, time::Duration};

/// A time with three figures.
#[derive(Debug)]
pub struct Rounded(pub Duration);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let step = 10_u128.pow(nanos.checked_ilog10().unwrap_or(0).saturating_sub(2));
        let rounded = (nanos + step / 2) / step * step;
        let rounded = Duration::from_nanos(u64::try_from(rounded).unwrap_or(u64::MAX));
        write!(f, "{rounded:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_with_three_figures() {
        for (nanos, told) in [
            (0, "0ns"),
            (7, "7ns"),
            (5_000_482_718, "5s"),
            (1_234_567, "1.23ms"),
            (12_345_678_901, "12.3s"),
            (123_456_000_000, "123s"),
            (999_600_000, "1s"),
            (3_599_900_000_000, "3600s"),
        ] {
            assert_eq!(Rounded(Duration::from_nanos(nanos)).to_string(), told);
        }
    }
}
