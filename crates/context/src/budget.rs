//! [`ViewLimits`]: the configured size of a view; [`Budget`]: the resulting limits for one view, in
//! tokens.
//!
//! Limits on the length of a run are in `agent`.

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::calibration::Calibration;
use crate::tokens::{Ppm, Tokens};

/// The largest default number of output tokens that are set aside.
pub const OUTPUT_RESERVE: Tokens = Tokens(4_096);
/// The assumed window of a model whose window is unknown. Most current hosted models have at least
/// this much. If a model has less, it refuses the request, and the run learns the real window from
/// the refusal.
pub const FALLBACK_WINDOW: Tokens = Tokens(200_000);
/// The default maximum size of one tool result.
pub const MAX_RESULT: Tokens = Tokens(8_000);
/// The share of the available tokens above which a plan is due.
pub const TRIGGER: Ppm = Ppm(500_000);
/// The maximum of that trigger in tokens, for large windows.
pub const WORKING_TRIGGER: Tokens = Tokens(60_000);
/// The share of the available tokens at which a plan ends.
pub const TARGET: Ppm = Ppm(260_000);
/// The maximum of that target in tokens, for large windows.
pub const WORKING_TARGET: Tokens = Tokens(40_000);
/// The minimum of a default target, as far as [`LEAST_TARGET_SHARE`] of the available tokens
/// allows. In a smaller view a model no longer sees the task together with the results that it
/// needs for it, and reads them again.
pub const LEAST_TARGET: Tokens = Tokens(4_000);
/// The share of the available tokens that [`LEAST_TARGET`] may take in a small window.
pub const LEAST_TARGET_SHARE: Ppm = Ppm(600_000);
/// The maximum size at which a plan ends if the provider's cache has expired, so that everything is
/// written again anyway. Such a plan is due halfway between this target and the trigger.
pub const COLD_TARGET: Tokens = Tokens(20_000);
/// The share of an explicit trigger at which a plan ends. An explicit target raises the default
/// trigger to at least the target divided by this share.
pub const TARGET_OF_EXPLICIT: Ppm = Ppm(700_000);
/// The share of the available tokens that one tool result may take.
pub const RESULT_SHARE: Ppm = Ppm(250_000);

/// The configured size of a view.
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewLimits {
    /// The model's window; `None` if it is unknown. An unknown window is only learned from an
    /// overflow.
    #[default(Some(FALLBACK_WINDOW))]
    pub window: Option<Tokens>,
    /// The maximum number of tokens of one answer. The smaller of this value (default
    /// [`OUTPUT_RESERVE`]) and a quarter of the window is set aside.
    pub max_output: Option<Tokens>,
    /// The size above which a plan is due. Default: [`TRIGGER`] of the available tokens, but no more
    /// than [`WORKING_TRIGGER`].
    pub trigger: Threshold,
    /// The size at which a plan ends. Default: [`TARGET`] of the available tokens, but no less than
    /// [`LEAST_TARGET`] and no more than [`WORKING_TARGET`]; or [`TARGET_OF_EXPLICIT`] of an
    /// explicit trigger.
    pub target: Option<Threshold>,
    /// The maximum size of one tool result. Default: the smaller of [`MAX_RESULT`] and
    /// [`RESULT_SHARE`].
    pub max_result: Option<Tokens>,
    /// The number of newest complete exchanges that are protected. At least 1.
    #[default(1)]
    pub keep_recent: usize,
    /// Whether the provider's cache has expired. Then the next request is written anew anyway, and
    /// the default sizes are smaller: see [`COLD_TARGET`]. Explicit sizes do not change.
    #[serde(default)]
    pub is_cold: bool,
}

/// A size, given as a share of the available tokens or as a number of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Threshold {
    /// The default.
    #[default]
    Auto,
    /// A share of window − output reserve − overhead.
    Share(Ppm),
    /// The total size of a request: system prompt, schemas and messages. As a trigger, this is the
    /// limit too: no request exceeds it.
    Sent(Tokens),
    /// The total size of a request, as a trigger only. If the protected messages exceed it, the
    /// request may exceed it too, up to the available tokens.
    Mark(Tokens),
}

/// The limits of one view in the counter's tokens, after subtracting the overhead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// The maximum size of the view in any request.
    pub limit: Tokens,
    /// The size above which a plan is due.
    pub trigger: Tokens,
    /// The size at which a plan ends, if the protected messages allow it.
    pub target: Tokens,
    /// The maximum size of one tool result.
    pub max_result: Tokens,
    /// The number of newest complete exchanges that are protected.
    pub keep_recent: usize,
    /// The size of everything that is sent besides the view: system prompt, schemas, dynamic
    /// context.
    pub overhead: Tokens,
    /// The size of the part of the view that is never removed: its system messages.
    pub instructions: Tokens,
}

/// The error if not even the protected messages fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error(
    "the request cannot be made smaller than {minimum} tokens ({overhead} of them instructions, \
     tools and dynamic context), but only {limit} are allowed; allow at least {minimum}, or shorten \
     the task, the instructions, the tools or the dynamic context"
)]
pub struct CannotFit {
    /// The smallest possible size of the request.
    pub minimum: Tokens,
    /// The part of the minimum that no plan can remove: system prompt and other instructions,
    /// tools, dynamic context.
    pub overhead: Tokens,
    /// The maximum size of a request.
    pub limit: Tokens,
}

impl ViewLimits {
    /// Returns a line of exactly `tokens` for the whole request, with equal trigger, target and
    /// limit. For filters that fill the size they are given.
    #[must_use]
    pub fn exactly(tokens: Tokens) -> Self {
        Self {
            window: None,
            trigger: Threshold::Sent(tokens),
            target: Some(Threshold::Sent(tokens)),
            max_result: Some(Tokens::MAX),
            ..Self::default()
        }
    }

    /// Returns the line changed so that exactly `tokens` may be sent, with a trigger that is no
    /// higher. A target that equalled the trigger still equals it.
    #[must_use]
    pub fn allowing(self, tokens: Tokens) -> Self {
        let moved = match self.trigger {
            Threshold::Sent(_) => Threshold::Sent(tokens),
            Threshold::Auto | Threshold::Share(_) | Threshold::Mark(_) => self.trigger,
        };
        Self {
            // The reserve is at most a quarter of the window.
            window: self.window.map(|_| {
                let third = Tokens(tokens.0.div_ceil(3));
                tokens + self.max_output.unwrap_or(OUTPUT_RESERVE).min(third)
            }),
            trigger: moved,
            target: match self.target {
                Some(target) if target == self.trigger => Some(moved),
                target => target,
            },
            ..self
        }
    }

    /// Returns the tokens that are set aside for the answer.
    #[must_use]
    pub fn reserve(&self) -> Tokens {
        let wanted = self.max_output.unwrap_or(OUTPUT_RESERVE);
        self.window
            .map_or(wanted, |window| wanted.min(Tokens(window.0 / 4)))
    }

    /// Returns the budget of a view that is sent with `overhead` and that contains `instructions`
    /// tokens which can never be removed (see
    /// [`Transcript::instructions`](crate::Transcript::instructions)). All sizes are in the
    /// counter's tokens.
    ///
    /// Available are window − output reserve − overhead − instructions. A share is a share of that;
    /// from an explicit size the overhead is subtracted. Nothing exceeds the available tokens.
    ///
    /// # Errors
    /// If the overhead alone fills the window.
    pub fn budget(
        &self,
        overhead: Tokens,
        instructions: Tokens,
        calibration: Calibration,
    ) -> Result<Budget, CannotFit> {
        let sendable = self.window.map_or(Tokens::MAX, |window| {
            calibration.counted(window.minus(self.reserve()))
        });
        let most = match self.trigger {
            Threshold::Sent(tokens) => calibration.counted(tokens).min(sendable),
            _ => sendable,
        };
        let fixed = overhead + instructions;
        if most <= overhead {
            return Err(CannotFit {
                minimum: fixed + Tokens(1),
                overhead: fixed,
                limit: most,
            });
        }
        // If no tokens are available besides the instructions, the policy reports how many would be needed.
        let (fixed, within) = match most > fixed {
            true => (fixed, instructions),
            false => (overhead, Tokens::ZERO),
        };
        let room = off(sendable, fixed);
        let target = self.target.filter(|target| *target != Threshold::Auto);
        let target_is_default = target.is_none();
        let resolve = |threshold, default: Tokens| match threshold {
            Threshold::Auto => default,
            Threshold::Share(share) => room_share(room, share),
            Threshold::Sent(tokens) | Threshold::Mark(tokens) => {
                off(calibration.counted(tokens), fixed).min(room)
            }
        };
        let least = LEAST_TARGET.min(room.share(LEAST_TARGET_SHARE));
        let default_target = match room {
            Tokens::MAX => room,
            room => room.share(TARGET).min(WORKING_TARGET).max(least),
        };
        // A plan has to free enough that it is not due again at once.
        let ends_at = target.map_or(default_target, |target| resolve(target, room));
        let default_trigger = match room {
            Tokens::MAX => room,
            room => room
                .share(TRIGGER)
                .min(WORKING_TRIGGER)
                .max(ends_at.whole_of(TARGET_OF_EXPLICIT))
                .min(room),
        };
        let trigger = resolve(self.trigger, default_trigger);
        let is_limit = matches!(self.trigger, Threshold::Sent(_));
        let limit = if is_limit { trigger } else { room };
        let target = match (target, self.trigger) {
            // If a mark exceeds the available tokens, it is lowered, and its target with it.
            (Some(target), Threshold::Mark(_)) if trigger == room => {
                resolve(target, room).min(trigger.share(TARGET_OF_EXPLICIT))
            }
            (Some(target), _) => resolve(target, room),
            (None, Threshold::Auto) => default_target,
            (None, Threshold::Share(_)) => default_target.min(trigger.share(TARGET_OF_EXPLICIT)),
            // Based on the effective trigger, which may be lower than the configured one: a target
            // at the trigger would mean a plan, and a lost cache, on every turn.
            (None, Threshold::Sent(tokens) | Threshold::Mark(tokens)) => off(
                calibration
                    .counted(tokens)
                    .min(sendable)
                    .share(TARGET_OF_EXPLICIT),
                fixed,
            ),
        };
        let target = target.min(trigger);
        let is_default = self.trigger == Threshold::Auto && target_is_default;
        let (trigger, target) = if self.is_cold && is_default && room != Tokens::MAX {
            let target = target.min(COLD_TARGET);
            (target + Tokens(trigger.minus(target).0 / 2), target)
        } else {
            (trigger, target)
        };
        let max_result = self.max_result.unwrap_or_else(|| {
            if limit == Tokens::MAX {
                limit
            } else {
                MAX_RESULT.min(limit.share(RESULT_SHARE))
            }
        });
        // The instructions are part of the view.
        let with = |tokens: Tokens| match tokens {
            Tokens::MAX => tokens,
            tokens => tokens + within,
        };
        Ok(Budget {
            limit: with(limit),
            trigger: with(trigger),
            target: with(target),
            max_result,
            keep_recent: self.keep_recent.max(1),
            overhead,
            instructions,
        })
    }
}

impl CannotFit {
    /// Converts the sizes to the provider's tokens, in which windows and limits are configured.
    #[must_use]
    pub fn reported(self, calibration: Calibration) -> Self {
        let allowing = |tokens| match tokens {
            Tokens::MAX => tokens,
            tokens => calibration.allowing(tokens),
        };
        Self {
            minimum: allowing(self.minimum),
            overhead: allowing(self.overhead),
            limit: calibration.reported(self.limit),
        }
    }

    /// Returns the smallest window that the request and an answer fit in. The answer gets
    /// `max_output` tokens (default [`OUTPUT_RESERVE`]), but no more than a quarter of the window.
    #[must_use]
    pub fn window(&self, max_output: Option<Tokens>) -> Tokens {
        let line = ViewLimits {
            max_output,
            ..ViewLimits::default()
        };
        let window = line.allowing(self.minimum).window;
        window.unwrap_or(self.minimum)
    }
}

impl Budget {
    /// Returns the error for a view that cannot be made smaller than `view` tokens.
    #[must_use]
    pub fn cannot_fit(&self, view: Tokens) -> CannotFit {
        CannotFit {
            minimum: view + self.overhead,
            overhead: self.overhead + self.instructions,
            limit: self.limit + self.overhead,
        }
    }
}

/// Returns a share of the available tokens; all of them if they are unlimited.
fn room_share(room: Tokens, share: Ppm) -> Tokens {
    match room {
        Tokens::MAX => room,
        room => room.share(share),
    }
}

fn off(tokens: Tokens, overhead: Tokens) -> Tokens {
    if tokens == Tokens::MAX {
        tokens
    } else {
        tokens.minus(overhead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(line: ViewLimits, overhead: u64) -> Budget {
        line.budget(Tokens(overhead), Tokens::ZERO, Calibration::default())
            .unwrap()
    }

    #[test]
    fn shares_are_of_room() {
        let line = ViewLimits {
            window: Some(Tokens(8_000)),
            ..ViewLimits::default()
        };
        let budget = budget(line, 1_000);
        assert_eq!(
            budget.limit,
            Tokens(5_000),
            "8,000 − a quarter for the answer − 1,000"
        );
        // 0.6 of 5,000, as 4,000 is more; and 0.6 / 0.7 of it.
        assert_eq!(
            (budget.trigger, budget.target),
            (Tokens(4_285), Tokens(3_000))
        );
        assert_eq!(budget.max_result, Tokens(1_250));
    }

    #[test]
    fn instructions_are_no_part_of_a_share() {
        let line = ViewLimits {
            window: Some(Tokens(44_096)),
            ..ViewLimits::default()
        };
        let budget = line
            .budget(Tokens(500), Tokens(500), Calibration::default())
            .unwrap();
        assert_eq!(
            (budget.limit, budget.trigger, budget.target),
            (Tokens(39_500), Tokens(20_000), Tokens(10_640)),
            "500 beside the shares of 39,000"
        );
        let exact = ViewLimits::exactly(Tokens(2_000));
        let exact = exact.budget(Tokens(500), Tokens(700), Calibration::default());
        let exact = exact.unwrap();
        assert_eq!((exact.limit, exact.target), (Tokens(1_500), Tokens(1_500)));
    }

    #[test]
    fn a_large_window_has_a_working_size() {
        for window in [200_000, 1_000_000] {
            let line = ViewLimits {
                window: Some(Tokens(window)),
                ..ViewLimits::default()
            };
            let sizes = |is_cold| {
                let line = ViewLimits { is_cold, ..line };
                let budget = line.budget(Tokens(1_000), Tokens(500), Calibration::default());
                let Budget {
                    trigger,
                    target,
                    limit,
                    ..
                } = budget.unwrap();
                assert_eq!(limit, Tokens(window - OUTPUT_RESERVE.0 - 1_000));
                (trigger, target)
            };
            assert_eq!(
                sizes(false),
                (Tokens(60_500), Tokens(40_500)),
                "beside instructions of 500"
            );
            assert_eq!(
                sizes(true),
                (Tokens(40_500), Tokens(20_500)),
                "the cache has expired"
            );
        }
    }

    #[test]
    fn an_explicit_trigger_or_target_always_wins() {
        let share = |percent: u64| Threshold::Share(Ppm(percent * 10_000));
        let sizes = |trigger, target, is_cold| {
            let line = ViewLimits {
                window: Some(Tokens(204_096)),
                trigger,
                target,
                is_cold,
                ..ViewLimits::default()
            };
            let Budget {
                trigger, target, ..
            } = budget(line, 0);
            [trigger, target].map(|Tokens(tokens)| tokens / 1_000)
        };
        let auto = Threshold::Auto;
        assert_eq!(sizes(auto, None, true), [40, 20]);
        assert_eq!(sizes(auto, Some(auto), true), [40, 20]);
        for is_cold in [false, true] {
            let sizes = |trigger, target| sizes(trigger, target, is_cold);
            assert_eq!(
                sizes(auto, Some(share(50))),
                [142, 100],
                "100 is 0.7 of 142"
            );
            assert_eq!(sizes(auto, Some(share(10))), [60, 20]);
            let target = Some(Threshold::Sent(Tokens(150_000)));
            assert_eq!(sizes(auto, target), [200, 150]);
            assert_eq!(sizes(share(80), None), [160, 40]);
            assert_eq!(sizes(share(10), None), [20, 14]);
            assert_eq!(sizes(share(80), Some(share(55))), [160, 110]);
            let sent = Threshold::Sent(Tokens(150_000));
            assert_eq!(sizes(sent, None), [150, 105]);
        }
    }

    #[test]
    fn an_explicit_size_counts_everything_that_is_sent() {
        let line = ViewLimits {
            trigger: Threshold::Sent(Tokens(10_000)),
            ..ViewLimits::default()
        };
        let budget = budget(line, 1_000);
        assert_eq!(
            (budget.limit, budget.trigger),
            (Tokens(9_000), Tokens(9_000))
        );
        assert_eq!(budget.target, Tokens(6_000), "7,000 sent");
    }

    #[test]
    fn a_mark_is_no_limit() {
        let line = ViewLimits {
            window: Some(Tokens(100_000)),
            trigger: Threshold::Mark(Tokens(81_100)),
            target: Some(Threshold::Mark(Tokens(56_800))),
            ..ViewLimits::default()
        };
        let marked = budget(line, 1_000);
        assert_eq!(
            (marked.limit, marked.trigger, marked.target),
            (Tokens(94_904), Tokens(80_100), Tokens(55_800))
        );
        // If the mark exceeds the available tokens, it is lowered, and a plan still ends well below
        // it.
        let small = ViewLimits {
            window: Some(Tokens(40_000)),
            ..line
        };
        let small = budget(small, 1_000);
        assert_eq!(
            (small.limit, small.trigger),
            (Tokens(34_904), Tokens(34_904))
        );
        assert_eq!(small.target, Tokens(34_904 * 7 / 10));
    }

    #[test]
    fn an_unknown_window_has_no_line() {
        let budget = budget(
            ViewLimits {
                window: None,
                ..ViewLimits::default()
            },
            1_000,
        );
        assert_eq!(
            (budget.limit, budget.trigger, budget.max_result),
            (Tokens::MAX, Tokens::MAX, Tokens::MAX)
        );
    }

    #[test]
    fn overhead_alone_may_not_fit() {
        let line = ViewLimits {
            trigger: Threshold::Sent(Tokens(1_000)),
            ..ViewLimits::default()
        };
        let error = line
            .budget(Tokens(50_000), Tokens::ZERO, Calibration::default())
            .unwrap_err();
        assert_eq!(
            error,
            CannotFit {
                minimum: Tokens(50_001),
                overhead: Tokens(50_000),
                limit: Tokens(1_000)
            }
        );
    }

    #[test]
    fn a_dearer_provider_lowers_the_line() {
        let mut calibration = Calibration::default();
        calibration.observe(Tokens(1_000), Tokens(2_000));
        let line = ViewLimits {
            window: Some(Tokens(8_000)),
            ..ViewLimits::default()
        };
        assert_eq!(
            line.budget(Tokens(0), Tokens::ZERO, calibration)
                .unwrap()
                .limit,
            Tokens(3_000)
        );
    }
}
