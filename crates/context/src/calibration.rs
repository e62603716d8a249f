//! [`Calibration`]: raises the counter's tokens to the tokens that a provider reports.

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::tokens::{Ppm, Tokens};

/// The minimum size of a request, or of the difference between two requests, from which a ratio is
/// computed.
const LEAST_SAMPLE: Tokens = Tokens(256);
/// The highest accepted ratio: the tokenizers of llama.cpp's smallest models need five tokens for
/// one of o200k's.
const HIGHEST: Ppm = Ppm(8_000_000);
/// The ratio above which a first report is explained by a hidden prompt, such as a gateway's own,
/// rather than by an expensive tokenizer. The second report distinguishes the two cases.
const PLAUSIBLE: Ppm = Ppm(2_000_000);
/// The maximum size of a hidden prompt. The largest known ones are smaller.
const MOST_HIDDEN: Tokens = Tokens(32_000);

/// The relation between counted and reported tokens: the size of a hidden prompt, and a ratio of at
/// least one per counted token.
///
/// Reports only raise our count. A limit therefore always holds in our own count too, and a provider
/// that reports too few tokens changes nothing. The estimate follows the latest report: it is the
/// reported number for that request, or our count if that is larger.
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    #[default(Ppm::ONE)]
    ratio: Ppm,
    /// The reported tokens that are not counted.
    hidden: Tokens,
    /// The last request with a usable report.
    last: Option<Sample>,
}

/// The counted and the reported size of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Sample {
    counted: Tokens,
    reported: Tokens,
    refused: bool,
}

impl Calibration {
    /// Records that the provider reported `reported` tokens for a request counted as `counted`.
    ///
    /// ```
    /// use plimsoll_context::{Calibration, Tokens};
    /// let mut calibration = Calibration::default();
    /// // A tiny request beside 3,000 tokens that nobody here has seen.
    /// calibration.observe(Tokens(300), Tokens(3_300));
    /// assert_eq!(calibration.reported(Tokens(20_000)), Tokens(23_000));
    /// // A low report never makes a request smaller than we count it.
    /// calibration.observe(Tokens(20_000), Tokens(9_000));
    /// assert_eq!(calibration.reported(Tokens(20_000)), Tokens(20_000));
    /// ```
    pub fn observe(&mut self, counted: Tokens, reported: Tokens) {
        self.learn(Sample {
            counted,
            reported,
            refused: false,
        });
    }

    /// Records that a request counted as `counted` was refused, and that the provider put it at
    /// `reported` tokens.
    ///
    /// Without another request to compare with, the whole excess goes into the ratio and none into
    /// the hidden prompt. A number that no tokenizer with a hidden prompt explains is ignored.
    pub fn refused(&mut self, counted: Tokens, reported: Tokens) {
        if reported <= counted.share(HIGHEST) + MOST_HIDDEN {
            self.learn(Sample {
                counted,
                reported,
                refused: true,
            });
        }
    }

    fn learn(&mut self, sample: Sample) {
        let Sample {
            counted, reported, ..
        } = sample;
        let slope = self.last.and_then(|last| last.slope(sample));
        if reported == Tokens::ZERO || (counted < LEAST_SAMPLE && slope.is_none()) {
            return;
        }
        self.last = Some(sample);
        let whole = sample.ratio();
        let is_plausible = self.hidden == Tokens::ZERO && whole <= PLAUSIBLE.max(self.ratio);
        let per_token = match slope {
            _ if is_plausible => whole,
            // A hidden prompt cancels out in the difference between two requests.
            Some(slope) => slope.min(whole),
            None if sample.refused => ratio(reported.minus(self.hidden), counted),
            None => self.ratio.min(whole),
        };
        self.ratio = per_token.clamp(Ppm::ONE, HIGHEST);
        self.hidden = reported.minus(counted.share(self.ratio)).min(MOST_HIDDEN);
    }

    /// Converts counted tokens to the number that the provider would report, or to a larger one.
    #[must_use]
    pub fn reported(self, counted: Tokens) -> Tokens {
        counted.share(self.ratio) + self.hidden
    }

    /// Returns the smallest provider limit for which [`counted`](Self::counted) yields `counted`.
    #[must_use]
    pub fn allowing(self, counted: Tokens) -> Tokens {
        let wide = u128::from(counted.0) * u128::from(self.ratio.0);
        let wide = wide.div_ceil(u128::from(Ppm::ONE.0));
        Tokens(u64::try_from(wide).unwrap_or(u64::MAX)) + self.hidden
    }

    /// Converts reported tokens to the counter's tokens, rounded down. Never returns more than
    /// `reported`.
    #[must_use]
    pub fn counted(self, reported: Tokens) -> Tokens {
        if reported == Tokens::MAX {
            return reported;
        }
        let visible = reported.minus(self.hidden);
        let wide = u128::from(visible.0) * u128::from(Ppm::ONE.0) / u128::from(self.ratio.0.max(1));
        Tokens(u64::try_from(wide).unwrap_or(u64::MAX))
    }

    /// Returns the number of reported tokens for each further counted token.
    #[must_use]
    pub fn ratio(self) -> Ppm {
        self.ratio
    }

    /// Returns the number of reported tokens that are not counted: a prompt that Plimsoll does not
    /// see.
    #[must_use]
    pub fn hidden(self) -> Tokens {
        self.hidden
    }
}

/// Returns the reported tokens for each counted one, rounded up.
fn ratio(reported: Tokens, counted: Tokens) -> Ppm {
    let wide = u128::from(reported.0) * u128::from(Ppm::ONE.0);
    let wide = wide.div_ceil(u128::from(counted.0.max(1)));
    Ppm(u64::try_from(wide).unwrap_or(u64::MAX))
}

impl Sample {
    fn ratio(self) -> Ppm {
        ratio(self.reported, self.counted)
    }

    /// Returns the ratio of the difference between two requests, or `None` if the difference is too
    /// small or the larger request is not reported as larger.
    fn slope(self, other: Self) -> Option<Ppm> {
        let (small, large) = if self.counted <= other.counted {
            (self, other)
        } else {
            (other, self)
        };
        let counted = large.counted.minus(small.counted);
        let reported = large.reported.minus(small.reported);
        (counted >= LEAST_SAMPLE && reported > Tokens::ZERO).then(|| ratio(reported, counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibrated(reports: &[(u64, u64)]) -> Calibration {
        let mut calibration = Calibration::default();
        for (counted, reported) in reports {
            calibration.observe(Tokens(*counted), Tokens(*reported));
        }
        calibration
    }

    #[test]
    fn a_low_report_never_lowers_a_count() {
        let mut calibration = calibrated(&[(1000, 1250)]);
        assert_eq!(calibration.ratio(), Ppm(1_250_000));
        assert_eq!(calibration.counted(Tokens(1250)), Tokens(1000));
        for reported in [850, 500, 1] {
            calibration.observe(Tokens(1000), Tokens(reported));
            assert_eq!(calibration.reported(Tokens(1000)), Tokens(1000));
            assert_eq!(calibration.counted(Tokens(1000)), Tokens(1000));
        }
        calibration.refused(Tokens(1000), Tokens(700));
        assert_eq!(calibration.counted(Tokens(1000)), Tokens(1000));
    }

    #[test]
    fn ignores_what_says_nothing() {
        let nothing = calibrated(&[(10, 40), (1000, 0)]);
        assert_eq!(nothing, Calibration::default());
        let fault = calibrated(&[(1000, 1_000_000)]);
        assert_eq!(fault.hidden(), MOST_HIDDEN, "no more is believed");
        assert_eq!(fault.counted(Tokens::MAX), Tokens::MAX);
    }

    #[test]
    fn a_hidden_prompt_is_told_from_a_dear_tokenizer() {
        // 5,000 hidden tokens, and 1.25 reported tokens for each counted one.
        let hidden = |counted: u64| (counted, 5_000 + counted * 5 / 4);
        let first = calibrated(&[hidden(300)]);
        assert_eq!(first.ratio(), Ppm::ONE);
        let second = calibrated(&[hidden(300), hidden(1_300)]);
        assert_eq!(second.ratio(), Ppm(1_250_000));
        assert_eq!(second.reported(Tokens(40_000)), Tokens(55_000));
        // A tokenizer that is three times as expensive, without a hidden prompt: the second report
        // shows it.
        let dear = calibrated(&[(1_000, 3_000), (3_000, 9_000)]);
        assert_eq!(dear.reported(Tokens(10_000)), Tokens(30_000), "{dear:?}");
        assert!(dear.counted(Tokens(30_000)) <= Tokens(10_000));
    }

    #[test]
    fn a_refusal_hides_nothing() {
        let mut calibration = Calibration::default();
        calibration.refused(Tokens(3_000), Tokens(9_000));
        assert_eq!(
            (calibration.ratio(), calibration.hidden()),
            (Ppm(3_000_000), Tokens(0))
        );
        let mut calibration = calibrated(&[(300, 5_300)]);
        calibration.refused(Tokens(10_000), Tokens(20_000));
        assert_eq!(calibration.reported(Tokens(10_000)), Tokens(20_000));
        calibration.refused(Tokens(600), Tokens(90_000));
        calibration.refused(Tokens(10), Tokens(20_000));
        assert_eq!(calibration.reported(Tokens(10_000)), Tokens(20_000));
    }

    #[test]
    fn what_was_heard_last_is_never_undercut() {
        for reports in [
            &[(300, 3_300), (1_300, 4_000)][..],
            &[(300, 3_300), (400, 6_000), (90_000, 100_000)],
            &[(5_000, 30_000), (6_000, 20_000), (50_000, 55_000)],
            &[(300, 9_000), (20_000, 20_000), (300, 9_000)],
            &[(1_000, 1_400), (60_000, 61_000), (61_000, 125_000)],
        ] {
            let calibration = calibrated(reports);
            let (counted, reported) = reports.last().unwrap();
            let corrected = calibration.reported(Tokens(*counted));
            assert!(corrected.0 + 1 >= *reported, "{reports:?}: {calibration:?}");
            assert!(calibration.counted(corrected).0 <= *counted);
        }
    }
}
