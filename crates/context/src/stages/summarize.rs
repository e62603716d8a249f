//! [`Summarize`]: replaces the oldest exchanges and the former summary by one new summary.
//!
//! It uses a model's text if one is ready, and [`extract`](crate::extract) otherwise. The stage
//! itself calls no model.

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::budget::Budget;
use crate::counter::{MESSAGE_OVERHEAD, SUMMARY_FRAME};
use crate::draft::Draft;
use crate::exchange::ExchangeKind;
use crate::fingerprint::Fingerprint;
use crate::handover::{extract, person_tokens};
use crate::item::Seq;
use crate::message::Message;
use crate::plan::{ReadySummary, Trigger};
use crate::policy::Stage;
use crate::stages::fill::{is_mostly_free, shorten};
use crate::tokens::{Ppm, Tokens};

/// The default maximum size of a summary.
pub const MAX_SUMMARY: Tokens = Tokens(2_000);
/// The default share of the view's target that a summary may take.
pub const SUMMARY_SHARE: Ppm = Ppm(250_000);
/// The share of the view's target that a summary without a model may take if the user's text needs
/// it: that has priority over the newest unprotected exchanges.
pub const EXTRACT_SHARE: Ppm = Ppm(600_000);
/// The maximum average size of a message in a talk.
const TALK_MESSAGE: u64 = 150;
/// The free share of the target above which a filter keeps a part of a turn.
const SPARE: Ppm = Ppm(20_000);
/// The share of the target that a summary without a model may always take.
const EXTRACT_FLOOR: Ppm = Ppm(60_000);
/// The size of a summary without a model, in percent of the user's text in it.
const EXTRACT_PERCENT: u64 = 320;
/// The minimum size of a summary without a model: its frame and a line or two.
pub(crate) const LEAST_EXTRACT: Tokens = Tokens(96);
/// How often a summary without a model is rewritten for fewer exchanges.
const REWRITES: u32 = 2;
/// The minimum size of a model's summary. A smaller one is not worth a request, and has no space
/// for its frame and a marker if it is cut.
pub const LEAST_SUMMARY: Tokens = Tokens(128);

/// The settings of [`Summarize`].
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SummaryConfig {
    /// The maximum size of a summary. Default [`MAX_SUMMARY`].
    #[default(MAX_SUMMARY)]
    pub max_summary_tokens: Tokens,
    /// The maximum share of the view's target that a summary may take. Default [`SUMMARY_SHARE`].
    #[default(SUMMARY_SHARE)]
    pub share: Ppm,
    /// The author of summaries. Default: a model.
    pub author: Author,
}

/// The author of a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A model if one is configured and its summary can be used, else [`extract`].
    #[default]
    Model,
    /// [`extract`], without a model.
    Extract,
}

/// Replaces the oldest exchanges and the former summary by one summary.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summarize(
    /// The settings.
    pub SummaryConfig,
);

impl SummaryConfig {
    /// Returns the settings without a model.
    #[must_use]
    pub fn without_model(self) -> Self {
        Self {
            author: Author::Extract,
            ..self
        }
    }

    /// Returns `true` if no size is set. A summary without a model is then as large as the user's
    /// text among the removed messages requires, up to [`EXTRACT_SHARE`] of the target.
    #[must_use]
    pub fn is_sized_by_need(&self) -> bool {
        self.share == SUMMARY_SHARE && self.max_summary_tokens == MAX_SUMMARY
    }

    /// Returns the maximum size of a summary under this budget, including message and frame.
    #[must_use]
    pub fn most(&self, budget: &Budget) -> Tokens {
        self.max_summary_tokens.min(budget.target.share(self.share))
    }
}

impl Stage for Summarize {
    fn name(&self) -> &str {
        match self.0.author {
            Author::Model => "summarize",
            Author::Extract => "extract",
        }
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        let choose = |draft: &Draft<'_>, enough| oldest(draft, enough, budget.target);
        self.choosing(draft, budget, &choose);
    }
}

impl Summarize {
    /// Runs the stage for the exchanges that `choose` returns for the number of tokens to cover.
    pub(super) fn choosing(
        &self,
        draft: &mut Draft<'_>,
        budget: &Budget,
        choose: &dyn Fn(&Draft<'_>, Tokens) -> Vec<usize>,
    ) {
        if !draft.is_due(budget) || draft.tokens() <= budget.target {
            return;
        }
        let by_model = self.0.author == Author::Model && draft.context().can_summarize;
        let need = draft.tokens().minus(budget.target);
        let allowed = self.allowed(draft, budget, choose);
        let mut chosen = choose(draft, need + allowed);
        // `chosen` is empty if there is a summary that cannot be covered: a new one would be a
        // second one.
        if chosen.is_empty() || self.splice(draft, budget, &chosen) {
            return;
        }
        let most = half_of(draft, &chosen).min(allowed);
        let least = match self.0.author {
            Author::Model => LEAST_SUMMARY,
            Author::Extract => LEAST_EXTRACT,
        };
        if most < least {
            return;
        }
        if by_model {
            let span = draft.span(&chosen, requested_size(draft, &chosen, most));
            let ready = draft.context().ready.as_ref();
            // If a summary of the same messages was just written and does not help, it is not
            // requested again.
            if ready.is_none_or(|ready| ready.fingerprint != span.fingerprint) {
                draft.want(span);
            }
        }
        let mut words = self::words(draft, &chosen, most);
        // If no model writes it, a summary that is shorter than allowed leaves space for more
        // exchanges.
        for _ in 0..REWRITES {
            let Some((_, weighs)) = &words else { return };
            if by_model || weighs.times(4) > most.times(3) {
                break;
            }
            let fewer = choose(draft, need + *weighs);
            let left = draft.tokens().minus(draft.weight_of(&fewer));
            let room = half_of(draft, &fewer).min(allowed);
            let room = room.min(budget.target.minus(left));
            if fewer.len() >= chosen.len() || room < least {
                break;
            }
            let Some(shorter) = self::words(draft, &fewer, room) else {
                break;
            };
            (chosen, words) = (fewer, Some(shorter));
        }
        let Some((words, weighs)) = words else {
            return;
        };
        // A filter is given a size to fill: a part of the newest removed turn is kept.
        if self.0.author == Author::Extract && budget.limit == budget.target {
            let left = draft.tokens().minus(draft.weight_of(&chosen)) + weighs;
            let spare = budget.target.minus(left);
            let newest = draft
                .removable(budget.target)
                .into_iter()
                .rfind(|together| together.iter().all(|index| chosen.contains(index)));
            let newest = newest.unwrap_or_default();
            let fewer: Vec<usize> = chosen
                .iter()
                .copied()
                .filter(|index| !newest.contains(index))
                .collect();
            // The state of the work matters more than an old result: the summary stays large enough.
            let room = half_of(draft, &fewer);
            if !newest.is_empty()
                && (fewer.is_empty() || weighs.min(LEAST_SUMMARY) <= room)
                && spare > budget.target.share(SPARE)
                && shorten_to(draft, &newest, spare, is_mostly_free(left, budget.target))
            {
                if fewer.is_empty() {
                    return;
                }
                let shorter = self::words(draft, &fewer, weighs.min(room));
                if let Some((words, _)) = shorter {
                    draft.summarize(&fewer, words);
                    return;
                }
            }
        }
        draft.summarize(&chosen, words);
    }

    /// Inserts the ready summary. Requires that its messages are unchanged, and that it either
    /// frees enough or covers all messages that would be chosen now.
    fn splice(&self, draft: &mut Draft<'_>, budget: &Budget, wanted: &[usize]) -> bool {
        let Some(ready) = draft.context().ready.clone() else {
            return false;
        };
        let Some(chosen) = matching(draft, &ready) else {
            return false;
        };
        let frame = draft.summary_frame(&chosen);
        let room = half_of(draft, &chosen)
            .min(self.0.most(budget))
            .minus(frame);
        // The summary was requested with the allowed size; a longer one is never cut blindly.
        let text = ready.text.to_string();
        if draft.counter().text(&text) > room {
            return false;
        }
        let frees = draft
            .weight_of(&chosen)
            .minus(draft.counter().text(&text) + frame);
        // If the view still exceeded its trigger, the next summary would follow at once, unless
        // nothing more can be summarised.
        let enough = draft.tokens().minus(frees) <= budget.trigger
            || wanted
                .iter()
                .all(|index| chosen.binary_search(index).is_ok());
        enough && draft.summarize(&chosen, text) > Tokens::ZERO
    }

    /// Returns the maximum size of the summary. Without a model, and unless a size is set, it is
    /// the size that the user's text among the removable messages requires.
    fn allowed(
        &self,
        draft: &Draft<'_>,
        budget: &Budget,
        choose: &dyn Fn(&Draft<'_>, Tokens) -> Vec<usize>,
    ) -> Tokens {
        let most = self.0.most(budget);
        if self.0.author == Author::Model || !self.0.is_sized_by_need() {
            return most.min(draft.summary_limit());
        }
        let all = choose(draft, Tokens::MAX);
        let own_words = person_tokens(&messages(draft, &all), budget.target, draft.counter());
        let wanted = Tokens(own_words.0.saturating_mul(EXTRACT_PERCENT) / 100);
        let frame = draft.summary_frame(&all);
        let is_talk = is_talk(&messages(draft, &all), draft.weight_of(&all));
        let most_of_it = if is_talk {
            // The other messages are protected, so the rest of the target is free for the summary.
            let stays = draft.tokens().minus(draft.weight_of(&all));
            budget.target.minus(stays)
        } else {
            budget.target.share(EXTRACT_SHARE)
        };
        (wanted + frame)
            .max(most)
            .max(budget.target.share(EXTRACT_FLOOR))
            .min(most_of_it)
            .min(draft.summary_limit())
    }
}

/// Shortens the largest messages of these exchanges to at most `tokens` in all. Returns `false` if
/// that is not possible. `may_empty` allows replacing results by their markers.
fn shorten_to(draft: &mut Draft<'_>, exchanges: &[usize], tokens: Tokens, may_empty: bool) -> bool {
    let rest = draft.tokens().minus(draft.weight_of(exchanges));
    shorten(draft, exchanges, rest + tokens, may_empty);
    draft.weight_of(exchanges) <= tokens
}

/// Returns the size to request from a model for a summary of `most` tokens in all. The line that
/// says how many messages it replaces is added later.
fn requested_size(draft: &Draft<'_>, chosen: &[usize], most: Tokens) -> Tokens {
    let note = draft
        .summary_frame(chosen)
        .minus(MESSAGE_OVERHEAD + SUMMARY_FRAME);
    most.minus(note)
}

/// Returns half the size of these exchanges, the maximum size of a summary of them.
fn half_of(draft: &Draft<'_>, chosen: &[usize]) -> Tokens {
    Tokens(draft.weight_of(chosen).0 / 2)
}

/// Returns `true` if messages of this total size are a talk rather than work: short, and without
/// tools.
fn is_talk(messages: &[&Message], weight: Tokens) -> bool {
    let has_results = messages
        .iter()
        .any(|message| matches!(message, Message::ToolResult(_)));
    !has_results && weight.0 <= TALK_MESSAGE.saturating_mul(messages.len() as u64)
}

/// Returns the messages of these exchanges.
fn messages<'d>(draft: &'d Draft<'_>, chosen: &[usize]) -> Vec<&'d Message> {
    let positions = draft.positions(chosen).into_iter();
    let items = positions.filter_map(|at| draft.items().get(at));
    items.map(|item| item.message.as_ref()).collect()
}

/// Returns a summary of these exchanges without a model, and its size of at most `most` tokens.
fn words(draft: &Draft<'_>, chosen: &[usize], most: Tokens) -> Option<(String, Tokens)> {
    let frame = draft.summary_frame(chosen);
    let words = extract(&messages(draft, chosen), most.minus(frame), draft.counter())?;
    let weighs = draft.counter().text(&words) + frame;
    Some((words, weighs))
}

/// Returns the former summaries and enough of the oldest exchanges to reach `enough` tokens, with
/// the markers of gaps before them.
///
/// Returns nothing if that is a single summary, which contains nothing new, or if there is a
/// summary that cannot be covered yet: there would be two.
fn oldest(draft: &Draft<'_>, enough: Tokens, turn_limit: Tokens) -> Vec<usize> {
    let is = |index: usize, kind: ExchangeKind| {
        let found = draft.exchanges().get(index);
        found.is_some_and(|exchange| exchange.kind == kind)
    };
    let all = 0..draft.exchanges().len();
    let summaries: Vec<usize> = all
        .filter(|index| is(*index, ExchangeKind::Summary))
        .collect();
    if !summaries.iter().all(|index| draft.is_coverable(*index)) {
        return Vec::new();
    }
    let mut sum = draft.weight_of(&summaries);
    let mut chosen = summaries.clone();
    for together in draft.removable(turn_limit) {
        if together.iter().any(|index| summaries.contains(index)) {
            continue;
        }
        if sum >= enough && chosen.len() > summaries.len() {
            break;
        }
        sum += draft.weight_of(&together);
        chosen.extend(together);
    }
    if chosen.len() == summaries.len() && summaries.len() < 2 {
        return Vec::new();
    }
    let last = chosen.iter().max().copied().unwrap_or(0);
    chosen.extend(
        (0..last).filter(|index| is(*index, ExchangeKind::Gap) && draft.is_coverable(*index)),
    );
    chosen.sort_unstable();
    chosen
}

/// Returns the exchanges that a ready summary replaces. Returns `None` unless all of them are still
/// there, unchanged and coverable, and include every other former summary, since only one may exist
/// at a time.
fn matching(draft: &Draft<'_>, ready: &ReadySummary) -> Option<Vec<usize>> {
    let wanted = |seq: &Seq| ready.seqs.binary_search(seq).is_ok();
    let mut chosen = Vec::new();
    let mut found = Vec::new();
    for (index, exchange) in draft.exchanges().iter().enumerate() {
        let items = draft.items().get(exchange.at.clone()).unwrap_or_default();
        let of_it = items.iter().filter(|item| wanted(&item.seq)).count();
        if of_it == 0 {
            if exchange.kind == ExchangeKind::Summary && draft.is_coverable(index) {
                return None;
            }
            continue;
        }
        if of_it != items.len() || !draft.is_coverable(index) {
            return None;
        }
        found.extend(items.iter().map(|item| item.message.as_ref()));
        chosen.push(index);
    }
    let same = found.len() == ready.seqs.len() && Fingerprint::of(found) == ready.fingerprint;
    same.then_some(chosen)
}
