//! Estimates how much the next model calls will use of a run's limits on tokens and money.
//!
//! A call is made only if it fits into both limits, and a call that may use tools only if a last answer
//! fits after it. Input counts at its full price here, since the provider's cache may miss.

use plimsoll_context::{Money, Ppm, PriceSheet, Tokens, Usage};

use crate::limits::CountTokens;
use crate::limits::LimitKind;
use crate::outcome::EndReason;
use crate::request::Request;
use crate::run::Run;
use crate::spend::{Cost, Spend};

/// The share by which a provider may count more tokens than our calibrated counter.
///
/// New content of a view may have another token density than the content that calibrated the counter. A
/// limit of the answer that fills the window to the last token would then be refused.
pub(crate) const UNCOUNTED: Ppm = Ppm(30_000);
/// Maximum number of tokens reserved for the last answer.
const LAST_ANSWER_TOKENS: Tokens = Tokens(1_000);
/// Maximum share of a limit that is reserved for the text of the last answer.
const ANSWER_SHARE: Ppm = Ppm(50_000);
/// The size of the notice that asks for the last answer, with some reserve.
const NOTICE: Tokens = Tokens(64);
/// Answers that may be longer than this are not limited because of the run's limits. No model writes
/// more at once, and many servers reject a higher limit.
const LONGEST_ANSWER: Tokens = Tokens(131_072);

/// Tokens reserved for the result of a sub-agent, in addition to the estimate for the last call.
pub const KEPT_FOR_RESULT: Tokens = Tokens(1_000);

impl Run {
    /// Returns the part of the limits that the run keeps for itself: its next call with the results of its tools,
    /// its remaining turns, and the tool calls that have not been started. Sub-agents may only use the
    /// rest.
    #[must_use]
    pub fn keeps(&self) -> Spend {
        let result = spend(
            KEPT_FOR_RESULT,
            Tokens::ZERO,
            self.full_price(KEPT_FOR_RESULT),
        );
        let open = self.state.batch.iter().flat_map(|batch| batch.open());
        Spend {
            turns: self
                .setup
                .limits
                .max_turns()
                .saturating_sub(self.tracker().turns),
            tool_calls: open.filter(|call| !call.began).count() as u64,
            ..self.next_call().combine(result)
        }
    }

    /// Returns the estimate for a last answer that is requested now.
    fn next_call(&self) -> Spend {
        let processed = self.processed();
        self.call_of(processed, self.full_price(processed))
    }

    /// Returns the limit because of which the next call has to be the last one, if there is one.
    ///
    /// The first call of a run keeps its tools.
    pub(crate) fn has_to_be_last(&self) -> Option<EndReason> {
        let may_be_last = self.may_finalize() && self.tracker().turns > 0;
        self.no_call_after_next().filter(|_| may_be_last)
    }

    /// Returns the limit that leaves no call after the next one, if there is one.
    fn no_call_after_next(&self) -> Option<EndReason> {
        let processed = self.processed();
        let this = self.call_of(processed, self.usual_price(processed));
        self.tracker().exceeded_by(&this.combine(self.last_call()))
    }

    /// Returns the limit that allows no further call, if there is one.
    pub(crate) fn no_more_calls(&self) -> Option<EndReason> {
        let spent = self.tracker().spent(self.now.elapsed);
        spent.or_else(|| self.exceeded_by_next())
    }

    /// Returns the limit that the next call would exceed, if there is one.
    pub(crate) fn exceeded_by_next(&self) -> Option<EndReason> {
        self.tracker().exceeded_by(&self.next_call())
    }

    /// Returns the limit that a call for a summary and the last answer after it would exceed. `used` is
    /// the usage of the earlier calls for the same summary.
    pub(crate) fn exceeded_by_summary(&self, request: &Request, used: Usage) -> Option<EndReason> {
        let usage = used.combine(Usage {
            input: request.counted,
            output: request.max_output.unwrap_or_default(),
            ..Usage::default()
        });
        let model = self.setup.summary_model.as_ref();
        let cost = model.and_then(|model| model.sheet?.cost(usage));
        let call = Spend {
            usage,
            cost: Cost::of(cost),
            ..Spend::default()
        };
        self.tracker().exceeded_by(&call.combine(self.next_call()))
    }

    /// Returns how long the next answer may be without exceeding a limit. Returns `None` if the limits
    /// do not restrict it.
    pub(crate) fn answer_room(&self) -> Option<Tokens> {
        let (ledger, processed) = (self.tracker(), self.processed());
        // Not if this turns out to be the last call.
        let held = if self.may_finalize() && self.no_call_after_next().is_none() {
            self.last_call()
        } else {
            Spend::default()
        };
        let tokens = ledger.left(LimitKind::MaxTokens).map(|left| {
            let input = ledger.counts(processed) + held.usage.total_tokens();
            Tokens(left).minus(input)
        });
        let money = ledger.left(LimitKind::MaxCost).and_then(|left| {
            let usual = self.usual_price(processed) + held.cost.known;
            let input = usual.max(self.full_price(processed));
            bought(Money(left).minus(input), self.sheet()?.rates.output)
        });
        let room = [tokens, money].into_iter().flatten().min()?;
        let room = room.max(self.answer());
        Some(room).filter(|room| *room < LONGEST_ANSWER)
    }

    /// Returns how many of the provider's tokens the next call has to lose to fit into the limits.
    pub(crate) fn excess(&self) -> Tokens {
        let next = self.next_call();
        let beyond = |kind| {
            let left = self.tracker().left(kind);
            left.map_or(0, |left| next.of(kind).saturating_sub(left))
        };
        let money = Money(beyond(LimitKind::MaxCost));
        let sheet = self.sheet();
        let bought = sheet.and_then(|sheet| bought(money, self.input_rate(&sheet)));
        let tokens = Tokens(beyond(LimitKind::MaxTokens));
        tokens.max(bought.unwrap_or_default())
    }

    /// Returns the estimate for the last answer after one more turn of usual growth.
    fn last_call(&self) -> Spend {
        let grows = self.state.newest_turn();
        let more = (grows + NOTICE).share(self.calibration().ratio());
        let processed = self.processed() + more;
        let mut call = self.call_of(processed, self.full_price(processed));
        if self.setup.limits.count_tokens() == CountTokens::Growth {
            // The call before it will have read the rest.
            call.usage.input = more;
        }
        call
    }

    /// Returns the estimate for a call with this input, this input price and a brief answer.
    fn call_of(&self, processed: Tokens, price: Money) -> Spend {
        let answer = self.answer();
        let output = self.sheet().map_or(Money(0), |sheet| sheet.rates.output);
        let input = self.tracker().counts(processed);
        spend(input, answer, price + output.of(answer))
    }

    /// Returns the maximum input of the next call, in the provider's tokens.
    pub(crate) fn processed(&self) -> Tokens {
        let (tokens, facts) = (self.tokens(), &self.state.facts);
        // The provider reported the size of the previous request; only the growth is estimated.
        let (known, new) = match facts.heard {
            Some((counted, usage)) if counted <= tokens => {
                let grown = tokens.minus(counted);
                (usage.processed(), grown.share(facts.calibration.ratio()))
            }
            _ => (Tokens::ZERO, facts.calibration.reported(tokens)),
        };
        known + new + new.share(UNCOUNTED) + Tokens(1)
    }

    /// Returns the prices of the next call. They depend on the length of its prompt.
    fn sheet(&self) -> Option<PriceSheet> {
        Some(self.setup.sheet?.at(self.processed()))
    }

    /// Returns the length of a brief answer, which is reserved for the last call.
    fn answer(&self) -> Tokens {
        let limits = &self.setup.limits;
        let of_tokens = limits
            .max_total_tokens
            .map(|limit| limit.share(ANSWER_SHARE));
        let of_money = limits.max_cost.and_then(|limit| {
            let share = Tokens(limit.0).share(ANSWER_SHARE);
            bought(Money(share.0), self.sheet()?.rates.output)
        });
        let most = LAST_ANSWER_TOKENS.min(self.line().reserve());
        let parts = [of_tokens, of_money].into_iter().flatten();
        parts.fold(most, Tokens::min).max(Tokens(1))
    }

    /// Returns the price of this input if nothing is cached.
    fn full_price(&self, processed: Tokens) -> Money {
        let sheet = self.sheet();
        sheet.map_or(Money(0), |sheet| self.input_rate(&sheet).of(processed))
    }

    /// Returns the price of this input if the cache still contains all tokens that the last call read and
    /// wrote there.
    fn usual_price(&self, processed: Tokens) -> Money {
        let Some(sheet) = self.sheet() else {
            return Money(0);
        };
        let read = match sheet.rates.cache_read {
            Some(_) => processed.min(self.readable()),
            None => Tokens::ZERO,
        };
        let read_rate = sheet.rates.cache_read.unwrap_or_default();
        read_rate.of(read) + self.input_rate(&sheet).of(processed.minus(read))
    }

    /// Returns the price of a million tokens of uncached input.
    fn input_rate(&self, sheet: &PriceSheet) -> Money {
        let input = sheet.rates.input;
        let writes = self.tracker().usage.cache_write > Tokens::ZERO;
        let write = if writes {
            sheet.at_most().rewrite()
        } else {
            sheet.rewrite()
        };
        input.max(write.unwrap_or_default())
    }
}

/// Returns the usage of a call with this many tokens, as the limits count them.
fn spend(input: Tokens, output: Tokens, price: Money) -> Spend {
    Spend {
        usage: Usage {
            input,
            output,
            ..Usage::default()
        },
        cost: Cost::of(Some(price)),
        ..Spend::default()
    }
}

/// Returns how many tokens an amount of money buys at a price per million; `None` if they are free.
fn bought(money: Money, rate: Money) -> Option<Tokens> {
    let tokens = (u128::from(money.0) * 1_000_000).checked_div(u128::from(rate.0))?;
    Some(Tokens(u64::try_from(tokens).unwrap_or(u64::MAX)))
}
