//! [`Calibration`]: what a provider's tokens are in the counter's tokens. Not a counter: the
//! provider has the last word, and this is how it is heard.

use serde::{Deserialize, Serialize};

use crate::tokens::{Ppm, Tokens};

/// Below this many tokens a request, or the difference of two, says nothing of the ratio.
const LEAST_SAMPLE: Tokens = Tokens(256);
/// The lowest ratio that is believed. A provider that reports too little makes the view larger by a
/// third at most.
const LOWEST: Ppm = Ppm(750_000);
/// The highest ratio that is believed: llama.cpp's smallest models need five tokens for one of
/// o200k's.
const HIGHEST: Ppm = Ppm(8_000_000);
/// A first report above this ratio is rather of a prompt that we do not see, such as a gateway's own,
/// than of a dear tokenizer. The second report tells them apart.
const PLAUSIBLE: Ppm = Ppm(2_000_000);
/// A hidden prompt is no larger than this: the largest known are below it.
const MOST_HIDDEN: Tokens = Tokens(32_000);

/// What a provider reports of a request: its hidden prompt, and so much for each counted token.
///
/// It rises at once, because a count that is too low ends in a refusal, and falls by an eighth of
/// the distance a request, because a report can be low for other reasons (a truncating server). Of
/// what it has heard last it is never below what was reported, so the line between hidden prompt
/// and ratio only matters for what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    ratio: Ppm,
    /// What is reported besides what is counted.
    #[serde(default)]
    hidden: Tokens,
    /// The last request that said something.
    #[serde(default)]
    last: Option<Sample>,
}

/// One request, as it was counted and as it was reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Sample {
    counted: Tokens,
    reported: Tokens,
    refused: bool,
}

impl Calibration {
    /// Hears that a request counted as `counted` was reported as `reported`.
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

    /// Takes what lies between two requests for the ratio, since it has no hidden prompt in it, and
    /// the rest of the newer one for the hidden prompt.
    fn fit(&mut self, sample: Sample, between: Ppm) {
        self.ratio = between.min(sample.ratio()).clamp(LOWEST, HIGHEST);
        let seen = sample.counted.share(self.ratio);
        self.hidden = sample.reported.minus(seen).min(MOST_HIDDEN);
    }

    /// Checks whether a report is so low that it is not believed.
    #[must_use]
    pub fn is_too_low(counted: Tokens, reported: Tokens) -> bool {
        counted >= LEAST_SAMPLE && reported > Tokens::ZERO && reported < counted.share(LOWEST)
    }

    /// Hears what the provider says that a request weighs which it was only asked about. Nobody cuts
    /// such a request, so a low number is believed at once, down to three quarters of ours.
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

    /// Hears that a request counted as `counted` was refused as one of `reported`. If no other request
    /// says what of it is hidden, all of it is made smaller, so nothing more is taken to be hidden. A
    /// number that no tokenizer with a hidden prompt explains is not believed.
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
                let seen = ratio(reported.minus(self.hidden), counted);
                self.ratio = follow(self.ratio, seen.clamp(LOWEST, HIGHEST));
            }
        }
    }

    /// Returns the same with nothing hidden: the least that a request of `counted` tokens can be
    /// reported as, if what was heard last is true. A request that the estimate leaves no room for
    /// may still fit then. Returns `None` if nothing was heard, or if what was heard says that the
    /// request does not fit: it is no smaller than one that was refused, or larger than the last one.
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

    /// Counted tokens as the provider would report them.
    #[must_use]
    pub fn reported(self, counted: Tokens) -> Tokens {
        counted.share(self.ratio) + self.hidden
    }

    /// Returns the fewest tokens that the provider may allow for [`counted`](Self::counted) to yield
    /// `counted`.
    #[must_use]
    pub fn allowing(self, counted: Tokens) -> Tokens {
        let wide = u128::from(counted.0) * u128::from(self.ratio.0);
        let wide = wide.div_ceil(u128::from(Ppm::ONE.0));
        Tokens(u64::try_from(wide).unwrap_or(u64::MAX)) + self.hidden
    }

    /// Reported tokens in the counter's tokens, rounded down.
    #[must_use]
    pub fn counted(self, reported: Tokens) -> Tokens {
        if reported == Tokens::MAX {
            return reported;
        }
        let seen = reported.minus(self.hidden);
        let wide = u128::from(seen.0) * u128::from(Ppm::ONE.0) / u128::from(self.ratio.0.max(1));
        Tokens(u64::try_from(wide).unwrap_or(u64::MAX))
    }

    /// What one more counted token is reported as.
    #[must_use]
    pub fn ratio(self) -> Ppm {
        self.ratio
    }

    /// What is reported besides what is counted: a prompt that we do not see.
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
    match seen >= old {
        true => seen,
        false => Ppm(old.0 - (old.0 - seen.0) / 8),
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

    /// The ratio of what lies between two requests; `None` if that is too little, or if the larger one
    /// is not reported as larger.
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

    fn heard(reports: &[(u64, u64)]) -> Calibration {
        let mut calibration = Calibration::default();
        for (counted, reported) in reports {
            calibration.observe(Tokens(*counted), Tokens(*reported));
        }
        calibration
    }

    #[test]
    fn rises_at_once_and_falls_slowly() {
        let mut calibration = heard(&[(1000, 1250)]);
        assert_eq!(calibration.ratio(), Ppm(1_250_000));
        assert_eq!(calibration.counted(Tokens(1250)), Tokens(1000));
        calibration.observe(Tokens(1000), Tokens(850));
        assert_eq!(calibration.ratio(), Ppm(1_200_000));
        assert_eq!(calibration.hidden(), Tokens(0));
    }

    #[test]
    fn ignores_what_says_nothing() {
        let nothing = heard(&[(10, 40), (1000, 0)]);
        assert_eq!(nothing, Calibration::default());
        let fault = heard(&[(1000, 1_000_000)]);
        assert_eq!(fault.hidden(), MOST_HIDDEN, "no more is believed");
        assert_eq!(fault.counted(Tokens::MAX), Tokens::MAX);
    }

    #[test]
    fn a_hidden_prompt_is_told_from_a_dear_tokenizer() {
        // 5,000 hidden tokens, and then 1.25 for each counted one.
        let hidden = |counted: u64| (counted, 5_000 + counted * 5 / 4);
        let first = heard(&[hidden(300)]);
        assert_eq!(first.ratio(), Ppm::ONE);
        let second = heard(&[hidden(300), hidden(1_300)]);
        assert_eq!(second.ratio(), Ppm(1_250_000));
        assert_eq!(second.reported(Tokens(40_000)), Tokens(55_000));
        // A tokenizer that is three times as dear, with nothing hidden: the second report shows it.
        let dear = heard(&[(1_000, 3_000), (3_000, 9_000)]);
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
        let mut calibration = heard(&[(300, 5_300)]);
        calibration.refused(Tokens(10_000), Tokens(20_000));
        assert_eq!(calibration.reported(Tokens(10_000)), Tokens(20_000));
        calibration.refused(Tokens(600), Tokens(90_000));
        calibration.refused(Tokens(10), Tokens(20_000));
        assert_eq!(calibration.reported(Tokens(10_000)), Tokens(20_000));
    }

    #[test]
    fn at_best_nothing_is_hidden() {
        assert_eq!(Calibration::default().at_best(Tokens::ZERO), None);
        // A tokenizer four times as dear looks like a hidden prompt at first.
        let dear = heard(&[(1_000, 4_000)]);
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
            let calibration = heard(reports);
            let (counted, reported) = reports.last().unwrap();
            let said = calibration.reported(Tokens(*counted));
            assert!(said.0 + 1 >= *reported, "{reports:?}: {calibration:?}");
            assert!(calibration.counted(said).0 <= *counted);
        }
    }
}
