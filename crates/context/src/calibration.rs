//! [`Calibration`]: what a provider's tokens are in the counter's tokens. Not a counter: the
//! provider has the last word, and this is how it is heard.

use serde::{Deserialize, Serialize};

use crate::tokens::{Ppm, Tokens};

/// Below this many tokens a request says more about a template's fixed text than about the ratio.
const LEAST_SAMPLE: Tokens = Tokens(256);
/// A ratio outside these bounds is a fault of the report, not of the counter.
const LOWEST: Ppm = Ppm(500_000);
const HIGHEST: Ppm = Ppm(4_000_000);

/// The ratio of reported to counted tokens.
///
/// It rises at once, because a count that is too low ends in a refusal, and falls by an eighth of
/// the distance a request, because a report can be low for other reasons (a truncating server).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    ratio: Ppm,
}

impl Calibration {
    /// Hears that a request counted as `counted` was reported as `reported`.
    pub fn observe(&mut self, counted: Tokens, reported: Tokens) {
        if counted < LEAST_SAMPLE || reported == Tokens::ZERO {
            return;
        }
        let seen = u128::from(reported.0) * u128::from(Ppm::ONE.0) / u128::from(counted.0);
        let seen = u64::try_from(seen)
            .unwrap_or(u64::MAX)
            .clamp(LOWEST.0, HIGHEST.0);
        let old = self.ratio.0;
        self.ratio = Ppm(if seen >= old {
            seen
        } else {
            old - (old - seen) / 8
        });
    }

    /// Counted tokens as the provider would report them.
    #[must_use]
    pub fn reported(self, counted: Tokens) -> Tokens {
        counted.share(self.ratio)
    }

    /// Reported tokens in the counter's tokens, rounded down.
    #[must_use]
    pub fn counted(self, reported: Tokens) -> Tokens {
        if reported == Tokens::MAX {
            return reported;
        }
        let wide =
            u128::from(reported.0) * u128::from(Ppm::ONE.0) / u128::from(self.ratio.0.max(1));
        Tokens(u64::try_from(wide).unwrap_or(u64::MAX))
    }

    /// Reported over counted.
    #[must_use]
    pub fn ratio(self) -> Ppm {
        self.ratio
    }
}

impl Default for Calibration {
    fn default() -> Self {
        Self { ratio: Ppm::ONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_at_once_and_falls_slowly() {
        let mut calibration = Calibration::default();
        calibration.observe(Tokens(1000), Tokens(1250));
        assert_eq!(calibration.ratio(), Ppm(1_250_000));
        assert_eq!(calibration.counted(Tokens(1250)), Tokens(1000));
        calibration.observe(Tokens(1000), Tokens(850));
        assert_eq!(calibration.ratio(), Ppm(1_200_000));
    }

    #[test]
    fn ignores_what_says_nothing() {
        let mut calibration = Calibration::default();
        calibration.observe(Tokens(10), Tokens(40));
        calibration.observe(Tokens(1000), Tokens(0));
        assert_eq!(calibration, Calibration::default());
        calibration.observe(Tokens(1000), Tokens(1_000_000));
        assert_eq!(calibration.ratio(), HIGHEST);
        assert_eq!(calibration.counted(Tokens::MAX), Tokens::MAX);
    }
}
