//! [`Calibration`]: what a provider's tokens are in the counter's tokens. Not a counter: the
//! provider has the last word, and this is how it is heard.

use serde::{Deserialize, Serialize};

use crate::tokens::{Ppm, Tokens};

/// Below this many tokens a request, or the difference of two, says nothing of the ratio.
const LEAST_SAMPLE: Tokens = Tokens(256);
/// A ratio outside these bounds is a fault of the report, not of the counter.
const LOWEST: Ppm = Ppm(500_000);
const HIGHEST: Ppm = Ppm(4_000_000);
/// A report above this ratio is rather of a prompt that we do not see: a gateway's own, or a chat
/// template's. No tokenizer in use is twice as dear as the counters for what agents read.
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
    /// The last request, counted and reported.
    #[serde(default)]
    last: Option<(Tokens, Tokens)>,
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
        if counted < LEAST_SAMPLE || reported == Tokens::ZERO {
            return;
        }
        let last = self.last.replace((counted, reported));
        let whole = ratio(reported, counted);
        if self.hidden == Tokens::ZERO && whole <= PLAUSIBLE {
            self.ratio = follow(self.ratio, whole.clamp(LOWEST, HIGHEST));
            return;
        }
        // What lies between two requests has no hidden prompt in it.
        let between = last.and_then(|last| slope(last, (counted, reported)));
        let ratio = between.unwrap_or(self.ratio).max(Ppm::ONE);
        self.ratio = ratio.min(whole.max(Ppm::ONE)).min(HIGHEST);
        let hidden = reported.minus(counted.share(self.ratio)).min(MOST_HIDDEN);
        self.hidden = match between {
            Some(_) => hidden,
            None => Tokens(follow(Ppm(self.hidden.0), Ppm(hidden.0)).0),
        };
    }

    /// Hears what the provider says that a request weighs which it was only asked about. Nobody cuts
    /// such a request, so a low number is believed like a high one.
    ///
    /// ```
    /// use plimsoll_context::{Calibration, Tokens};
    /// let mut calibration = Calibration::default();
    /// calibration.measured(Tokens(9_000), Tokens(6_000));
    /// assert_eq!(calibration.reported(Tokens(9_000)).0.div_ceil(10), 600);
    /// ```
    pub fn measured(&mut self, counted: Tokens, reported: Tokens) {
        self.observe(counted, reported);
        let says_something = counted >= LEAST_SAMPLE && reported > Tokens::ZERO;
        if says_something && self.hidden == Tokens::ZERO {
            self.ratio = ratio(reported, counted).clamp(LOWEST, HIGHEST);
        }
    }

    /// Hears that a request counted as `counted` was refused as one of `reported`. Then all of it is
    /// made smaller, so nothing of it is taken to be hidden that was not before.
    pub fn refused(&mut self, counted: Tokens, reported: Tokens) {
        if counted >= LEAST_SAMPLE && reported > Tokens::ZERO {
            let seen = ratio(reported.minus(self.hidden), counted);
            self.ratio = follow(self.ratio, seen.clamp(LOWEST, HIGHEST));
        }
    }

    /// Counted tokens as the provider would report them.
    #[must_use]
    pub fn reported(self, counted: Tokens) -> Tokens {
        counted.share(self.ratio) + self.hidden
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

/// The ratio of what lies between two requests; `None` where that is too little.
fn slope(one: (Tokens, Tokens), other: (Tokens, Tokens)) -> Option<Ppm> {
    let (small, large) = if one.0 <= other.0 {
        (one, other)
    } else {
        (other, one)
    };
    let counted = large.0.minus(small.0);
    (counted >= LEAST_SAMPLE).then(|| ratio(large.1.minus(small.1), counted))
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
            let calibration = heard(reports);
            let (counted, reported) = reports.last().unwrap();
            let said = calibration.reported(Tokens(*counted));
            assert!(said.0 + 1 >= *reported, "{reports:?}: {calibration:?}");
            assert!(calibration.counted(said).0 <= *counted);
        }
    }
}
