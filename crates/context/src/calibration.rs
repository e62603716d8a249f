//! [`Calibration`]: converts between the counter's tokens and the tokens that a provider reports.

use serde::{Deserialize, Serialize};

use crate::tokens::{Ppm, Tokens};

/// The minimum size of a request, or of the difference between two requests, from which a ratio is
/// computed.
const LEAST_SAMPLE: Tokens = Tokens(256);
/// The lowest accepted ratio. A provider that reports too few tokens makes the view larger by a
/// third at most.
const LOWEST: Ppm = Ppm(750_000);
/// The highest accepted ratio: the tokenizers of llama.cpp's smallest models need five tokens for
/// one of o200k's.
const HIGHEST: Ppm = Ppm(8_000_000);
/// The ratio above which a first report is explained by a hidden prompt, such as a gateway's own,
/// rather than by an expensive tokenizer. The second report distinguishes the two cases.
const PLAUSIBLE: Ppm = Ppm(2_000_000);
/// The maximum size of a hidden prompt. The largest known ones are smaller.
const MOST_HIDDEN: Tokens = Tokens(32_000);

/// The relation between counted and reported tokens: the size of a hidden prompt, and a ratio per
/// counted token.
///
/// The estimate rises at once, because a count that is too low leads to a refused request. It falls
/// by an eighth of the distance per request, because a report can be low for other reasons (a
/// truncating server). For the latest request it is never below the reported number, so the split
/// between hidden prompt and ratio only matters for later requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
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
    /// ```
    pub fn observe(&mut self, counted: Tokens, reported: Tokens) {
        let sample = Sample {
            counted,
            reported,
            refused: false,
        };
        let between = self.last.and_then(|last| last.slope(sample));
        if reported == Tokens::ZERO || (counted < LEAST_SAMPLE && between.is_none()) {
            return;
        }
        self.last = Some(sample);
        let whole = sample.ratio();
        if self.hidden == Tokens::ZERO && whole <= PLAUSIBLE.max(self.ratio) {
            self.ratio = follow(self.ratio, whole.clamp(LOWEST, HIGHEST));
            return;
        }
        match between {
            Some(between) => self.fit(sample, between),
            None => {
                self.ratio = self.ratio.max(Ppm::ONE).min(whole.max(Ppm::ONE));
                let hidden = reported.minus(counted.share(self.ratio)).min(MOST_HIDDEN);
                self.hidden = Tokens(follow(Ppm(self.hidden.0), Ppm(hidden.0)).0);
            }
        }
    }

    /// Takes the ratio from the difference between two requests, since a hidden prompt cancels out
    /// in it. The rest of the newer request is taken as the hidden prompt.
    fn fit(&mut self, sample: Sample, between: Ppm) {
        self.ratio = between.min(sample.ratio()).clamp(LOWEST, HIGHEST);
        let visible = sample.counted.share(self.ratio);
        self.hidden = sample.reported.minus(visible).min(MOST_HIDDEN);
    }

    /// Checks whether a report is too low to be believed.
    #[must_use]
    pub fn is_too_low(counted: Tokens, reported: Tokens) -> bool {
        counted >= LEAST_SAMPLE && reported > Tokens::ZERO && reported < counted.share(LOWEST)
    }

    /// Records the result of a count request: `reported` tokens for a request counted as `counted`.
    ///
    /// A server never truncates such a request. A low number is therefore accepted at once, down to
    /// three quarters of our own count.
    ///
    /// ```
    /// use plimsoll_context::{Calibration, Tokens};
    /// let mut calibration = Calibration::default();
    /// calibration.measured(Tokens(9_000), Tokens(7_200));
    /// assert_eq!(calibration.reported(Tokens(9_000)).0.div_ceil(10), 720);
    /// ```
    pub fn measured(&mut self, counted: Tokens, reported: Tokens) {
        self.observe(counted, reported);
        let says_something = counted >= LEAST_SAMPLE && reported > Tokens::ZERO;
        if says_something && self.hidden == Tokens::ZERO {
            self.ratio = ratio(reported, counted).clamp(LOWEST, HIGHEST);
        }
    }

    /// Records that a request counted as `counted` was refused, and that the provider put it at
    /// `reported` tokens.
    ///
    /// Without another request to compare with, the whole excess goes into the ratio and none into
    /// the hidden prompt. A number that no tokenizer with a hidden prompt explains is ignored.
    pub fn refused(&mut self, counted: Tokens, reported: Tokens) {
        if reported > counted.share(HIGHEST) + MOST_HIDDEN {
            return;
        }
        let sample = Sample {
            counted,
            reported,
            refused: true,
        };
        let between = self.last.and_then(|last| last.slope(sample));
        if reported == Tokens::ZERO || (counted < LEAST_SAMPLE && between.is_none()) {
            return;
        }
        self.last = Some(sample);
        match between {
            Some(between) => self.fit(sample, between),
            None => {
                let visible_ratio = ratio(reported.minus(self.hidden), counted);
                self.ratio = follow(self.ratio, visible_ratio.clamp(LOWEST, HIGHEST));
            }
        }
    }

    /// Returns the most optimistic calibration for a request of `counted` tokens: the last ratio
    /// and no hidden prompt. A request that does not fit by the estimate may still fit by this one.
    ///
    /// Returns `None` if there was no report, or if the last report already shows that the request
    /// does not fit: it is larger than the last request, or as large as a refused one.
    #[must_use]
    pub fn at_best(self, counted: Tokens) -> Option<Self> {
        let last = self.last?;
        let is_smaller = counted < last.counted || (counted == last.counted && !last.refused);
        is_smaller.then_some(Self {
            ratio: last.ratio(),
            hidden: Tokens::ZERO,
            last: self.last,
        })
    }

    /// Converts counted tokens to the number that the provider would report.
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

    /// Converts reported tokens to the counter's tokens, rounded down.
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

impl Default for Calibration {
    fn default() -> Self {
        Self {
            ratio: Ppm::ONE,
            hidden: Tokens::ZERO,
            last: None,
        }
    }
}

/// Rises at once, and falls by an eighth of the distance.
fn follow(old: Ppm, seen: Ppm) -> Ppm {
    if seen >= old {
        seen
    } else {
        Ppm(old.0 - (old.0 - seen.0) / 8)
    }
}

fn ratio(reported: Tokens, counted: Tokens) -> Ppm {
    let wide = u128::from(reported.0) * u128::from(Ppm::ONE.0) / u128::from(counted.0.max(1));
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
    fn rises_at_once_and_falls_slowly() {
        let mut calibration = calibrated(&[(1000, 1250)]);
        assert_eq!(calibration.ratio(), Ppm(1_250_000));
        assert_eq!(calibration.counted(Tokens(1250)), Tokens(1000));
        calibration.observe(Tokens(1000), Tokens(850));
        assert_eq!(calibration.ratio(), Ppm(1_200_000));
        assert_eq!(calibration.hidden(), Tokens(0));
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
    fn at_best_nothing_is_hidden() {
        assert_eq!(Calibration::default().at_best(Tokens::ZERO), None);
        // A tokenizer that is four times as expensive looks like a hidden prompt at first.
        let dear = calibrated(&[(1_000, 4_000)]);
        assert_eq!(dear.reported(Tokens(100)), Tokens(3_100));
        let best = dear.at_best(Tokens(100)).unwrap();
        assert_eq!(best.reported(Tokens(100)), Tokens(400));
        assert!(
            dear.at_best(Tokens(1_000)).is_some(),
            "as large as one that was answered"
        );
        assert_eq!(dear.at_best(Tokens(1_001)), None);
        let mut refused = dear;
        refused.refused(Tokens(100), Tokens(3_100));
        assert_eq!(refused.at_best(Tokens(100)), None);
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
