//! What follows when a model call fails: the ladder for requests that are too long, an end for
//! everything else. Each rung is strictly smaller than what was refused; the last needs no model.

use plimsoll_context::{Budget, OUTPUT_RESERVE, Plan, Tokens, Trigger};

use crate::entry::{Entry, Lesson};
use crate::event::Event;
use crate::failure::Failure;
use crate::leave::{Next, Refused};
use crate::moment::{HookPoint, Moment};
use crate::outcome::EndReason;
use crate::request::ToolChoice;
use crate::run::{Calling, Run};

/// Rungs of the ladder: by then a request is an eighth of what was refused first, or as small as
/// it can be.
const MAX_RUNGS: u32 = 4;
/// Exchanges that stay after an overflow, where they fit: about the four newest messages.
const KEPT: usize = 2;
/// A smaller window is a misreading of the provider's text; to believe it would end the session.
const LEAST_WINDOW: Tokens = Tokens(256);
/// With less room behind it the request itself is too long: no answer is worth that little.
const LEAST_ROOM: Tokens = Tokens(256);

/// From what an overflow is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The provider says so.
    Told,
    /// The provider says so of a minute, and means no window.
    RateLimit,
    /// The answer shows it.
    Shown,
}

impl Source {
    fn lesson(self) -> Lesson {
        match self {
            Self::Told => Lesson::Told,
            Self::RateLimit | Self::Shown => Lesson::Inferred,
        }
    }
}

impl Run {
    /// A model call has failed for good; the driver has retried what may be retried.
    pub(crate) fn failed(&mut self, failure: Failure, call: Calling) {
        let (failure, source) = self.heard_of(failure);
        self.after(HookPoint::OnError, || Moment::OnError {
            message: failure.to_string(),
        });
        let rung = call.rung + 1;
        match &failure {
            _ if rung > MAX_RUNGS => {}
            Failure::Overflow { used, window, .. } => {
                let (used, window) = (*used, *window);
                self.learn(used, window, call.counted, source);
                // The answer's share of the window was too much, not what is sent. One that was cut
                // short would be cut shorter.
                // Who names the window only leaves it to our count whether that explains it.
                let reported = self.state.calibration.reported(call.counted);
                let ours = call.max_output.map(|_| reported);
                if source != Source::Shown
                    && let Some(room) = room(used.or(ours), window)
                    && call.max_output.is_none_or(|asked| asked > room)
                {
                    // Whoever asks for nothing is given more than there is, and would be again.
                    self.names_limit = true;
                    self.notify_overflow(&failure, rung);
                    return self.call(rung, Some(room));
                }
                let most = match (used, window, rung) {
                    // With numbers, the line itself says how far down to go.
                    (Some(_), _, ..=2) | (None, Some(_), 1) => None,
                    (None, _, 2..) => Some(Tokens(call.counted.0 / 4)),
                    _ => Some(Tokens(call.counted.0 / 2)),
                };
                return self.shrink(Refused {
                    failure,
                    rung,
                    counted: call.counted,
                    most,
                });
            }
            // Bytes say nothing of the window: half of it, and nothing is learned.
            Failure::BodyTooLarge { .. } => {
                return self.shrink(Refused {
                    failure,
                    rung,
                    counted: call.counted,
                    most: Some(Tokens(call.counted.0 / 2)),
                });
            }
            // The last answer is asked for in the way that was good so far; calls in it are skipped.
            Failure::Refused { .. }
                if call.tool_choice == ToolChoice::None && !self.specs.is_empty() =>
            {
                self.tool_choice_refused = true;
                self.warn(format!(
                    "the last answer is asked for again, with tools, whose calls are skipped: {failure}"
                ));
                return self.call(rung, None);
            }
            Failure::OutputTooLarge { limit, .. } if self.lower_output(*limit, call.max_output) => {
                self.notify_overflow(&failure, rung);
                return self.call(rung, None);
            }
            _ => {}
        }
        self.finish(EndReason::Failed { failure });
    }

    /// A request that was cut in silence is an overflow like any other; what its answer cost is paid.
    /// So is one that no minute can carry.
    fn heard_of(&mut self, failure: Failure) -> (Failure, Source) {
        let (used, window, usage, message) = match failure {
            Failure::Cut {
                used,
                window,
                usage,
                message,
            } => (used, window, usage, message),
            Failure::SoftWindow {
                used,
                limit,
                message,
                ..
            } => {
                let message = format!(
                    "by its rate limit, which lets {limit} tokens through in a minute: {message}"
                );
                let failure = Failure::Overflow {
                    used,
                    window: Some(limit),
                    message,
                };
                return (failure, Source::RateLimit);
            }
            failure => return (failure, Source::Told),
        };
        if let Some(usage) = usage {
            self.waste(usage);
        }
        let failure = Failure::Overflow {
            used,
            window,
            message,
        };
        (failure, Source::Shown)
    }

    fn notify_overflow(&mut self, failure: &Failure, rung: u32) {
        self.notify(Event::Overflow {
            rung,
            window: self.line().window,
            message: failure.to_string(),
        });
    }

    /// The provider has the last word on the window and on what the request weighed. Where it
    /// names no window, the window is less than what it refused.
    fn learn(
        &mut self,
        used: Option<Tokens>,
        told: Option<Tokens>,
        counted: Tokens,
        source: Source,
    ) {
        let known = self.line().window;
        let refused = used.unwrap_or_else(|| self.state.calibration.reported(counted));
        let window = told.unwrap_or_else(|| known.map_or(refused, |known| known.min(refused)));
        let news = known != Some(window) || used.is_some();
        if news && window >= LEAST_WINDOW {
            self.record(Entry::Learned {
                window,
                used: used.map(|used| (counted, used)),
                lesson: told.map_or(Lesson::Inferred, |_| source.lesson()),
            });
        }
    }

    /// Makes the view strictly lighter, down to its target and, where given, so far that all of
    /// the request weighs at most `most`, and sends it again; where it cannot be made lighter, the
    /// run ends with what the provider said.
    pub(crate) fn shrink(&mut self, refused: Refused) {
        self.notify_overflow(&refused.failure, refused.rung);
        self.go_down(refused);
    }

    /// The same once it has been told, as where a plan has to be made anew.
    pub(crate) fn go_down(&mut self, refused: Refused) {
        match self.smaller(refused.counted, refused.most) {
            Some(plan) => self.leave(plan, Next::Retry(refused)),
            None => self.finish(EndReason::Failed {
                failure: refused.failure,
            }),
        }
    }

    fn smaller(&mut self, counted: Tokens, most: Option<Tokens>) -> Option<Plan> {
        let target = match self.budget_planned() {
            Ok(budget) => budget.target,
            Err(cannot_fit) if self.may_fit(&cannot_fit) => return self.smaller(counted, most),
            Err(cannot_fit) => {
                self.warn(self.reported(cannot_fit).to_string());
                return None;
            }
        };
        let most = most.unwrap_or(counted).min(counted.minus(Tokens(1)));
        let goal = target.min(most.minus(self.overhead + self.joins));
        let budget = self.budget_at(goal);
        let means = self.means();
        let (view, why) = (&self.state.transcript, Trigger::Overflow);
        let keeping = |keep_recent| {
            let budget = Budget {
                keep_recent,
                ..budget
            };
            let recovery = &self.setup.recovery;
            recovery.best_proposal(view, &budget, why, &means).plan
        };
        // The newest exchanges stay as well, as far as that is enough.
        let kind = keeping(budget.keep_recent.max(KEPT));
        let enough = kind.filter(|plan| plan.after() <= goal);
        enough
            .or_else(|| keeping(budget.keep_recent))
            .or_else(|| self.give_up_the_past(why))
    }

    fn lower_output(&mut self, limit: Option<Tokens>, asked: Option<Tokens>) -> bool {
        let now = asked.unwrap_or(OUTPUT_RESERVE);
        let lower = limit.unwrap_or(Tokens(now.0 / 2)).min(now);
        if lower == Tokens::ZERO || asked == Some(lower) {
            return false;
        }
        self.max_output = Some(lower);
        true
    }
}

/// What a refusal leaves for the answer, where the request itself was not too long.
fn room(used: Option<Tokens>, window: Option<Tokens>) -> Option<Tokens> {
    let room = window?.minus(used?);
    (room >= LEAST_ROOM).then_some(room)
}
