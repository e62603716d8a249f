//! [`Summarize`]: the oldest exchanges and the former summary become one new summary. Its words
//! are a model's where one has written them, else [`extract`](crate::extract)'s; it calls no model.

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::counter::{MESSAGE_OVERHEAD, SUMMARY_FRAME};
use crate::draft::Draft;
use crate::exchange::ExchangeKind;
use crate::extract::{extract, person_tokens};
use crate::fingerprint::Fingerprint;
use crate::item::Seq;
use crate::means::{Ready, Summarizer, When};
use crate::message::Message;
use crate::plan::Trigger;
use crate::stage::Stage;
use crate::stages::fill::shorten;
use crate::tokens::{Ppm, Tokens};

/// A summary, at most, where nothing else is said.
pub const MAX_SUMMARY: Tokens = Tokens(2_000);
/// The share of the view's target that a summary may take, where nothing else is said.
pub const SUMMARY_SHARE: Ppm = Ppm(250_000);
/// The share of the trigger from which on a summary is written beside the run.
pub const SOFT_MARK: Ppm = Ppm(850_000);
/// The share of the view's target that a summary without a model may take if the words of the user
/// need it: they go before the newest exchanges that nothing protects.
pub const EXTRACT_SHARE: Ppm = Ppm(600_000);
/// Messages of a talk weigh no more than this on average.
const TALK_MESSAGE: u64 = 150;
/// A filter lets a turn stay in part if more than this share of its size would be left.
const SPARE: Ppm = Ppm(20_000);
/// The share that it may take in any case.
const EXTRACT_FLOOR: Ppm = Ppm(60_000);
/// What such a summary may weigh beside the user's words, in percent of them.
const EXTRACT_PERCENT: u64 = 320;
/// The least that a summary without a model may have: its frame and a line or two.
pub(crate) const LEAST_EXTRACT: Tokens = Tokens(96);
/// How often a summary without a model is written again of fewer exchanges, at most.
const REWRITES: u32 = 2;
/// A summary of fewer tokens says nothing that is worth a request, and has no room for its frame and
/// a marker where it is cut.
pub const LEAST_SUMMARY: Tokens = Tokens(128);

/// How [`Summarize`] works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SummaryConfig {
    /// A summary in all, at most. Default [`MAX_SUMMARY`].
    pub max_summary_tokens: Tokens,
    /// The share of the view's target that it may take, at most. Default [`SUMMARY_SHARE`].
    pub share: Ppm,
    /// The share of the trigger from which on it is written beside the run; `None` writes it when
    /// the plan is due. Default [`SOFT_MARK`].
    pub soft_mark: Option<Ppm>,
    /// Who writes it. Default: a model.
    pub author: Author,
}

/// Who writes a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A model if one is configured and its summary can be used, else [`extract`].
    #[default]
    Model,
    /// [`extract`]: no model is asked.
    Extract,
}

/// Replaces the oldest exchanges, and the former summary, by one summary.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summarize(
    /// How.
    pub SummaryConfig,
);

impl Default for SummaryConfig {
    fn default() -> Self {
        Self {
            max_summary_tokens: MAX_SUMMARY,
            share: SUMMARY_SHARE,
            soft_mark: Some(SOFT_MARK),
            author: Author::default(),
        }
    }
}

impl SummaryConfig {
    /// The same where no model is asked.
    #[must_use]
    pub fn without_model(self) -> Self {
        Self {
            author: Author::Extract,
            ..self
        }
    }

    /// Returns `true` if no size is set. A summary without a model is then as large as the words of the
    /// user among the removed messages need, up to [`EXTRACT_SHARE`] of the target.
    #[must_use]
    pub fn is_sized_by_need(&self) -> bool {
        self.share == SUMMARY_SHARE && self.max_summary_tokens == MAX_SUMMARY
    }

    /// What a summary may weigh under this budget, message and frame included.
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
    /// As the stage does, of the exchanges that `choose` names when so much must be covered.
    pub(super) fn choosing(
        &self,
        draft: &mut Draft<'_>,
        budget: &Budget,
        choose: &dyn Fn(&Draft<'_>, Tokens) -> Vec<usize>,
    ) {
        let model = match self.0.author {
            Author::Model => draft.means().summarizer,
            Author::Extract => Summarizer::None,
        };
        if !draft.is_due(budget) {
            if model == Summarizer::Free {
                self.prepare(draft, budget, choose);
            }
            return;
        }
        if draft.tokens() <= budget.target {
            return;
        }
        let need = draft.tokens().minus(budget.target);
        let allowed = self.allowed(draft, budget, choose);
        let mut chosen = choose(draft, need + allowed);
        // Where nothing may be chosen, a summary stands that would be a second one.
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
        if model != Summarizer::None {
            let span = draft.span(&chosen, asked(draft, &chosen, most), When::Now);
            let ready = draft.means().ready.as_ref();
            // One that has just been written of this and does not help is not written again.
            if ready.is_none_or(|ready| ready.fingerprint != span.fingerprint) {
                draft.want(span);
            }
        }
        let mut words = self::words(draft, &chosen, most);
        // Where nobody else writes it, what needs fewer words than it may has room for exchanges.
        for _ in 0..REWRITES {
            let Some((_, weighs)) = &words else { return };
            if model != Summarizer::None || weighs.times(4) > most.times(3) {
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
        // A filter is given a size to fill: the newest turn that would leave whole stays in part.
        if self.0.author == Author::Extract && budget.limit == budget.target {
            let left = draft.tokens().minus(draft.weight_of(&chosen)) + weighs;
            let spare = budget.target.minus(left);
            if let Some(newest) = draft
                .removable(budget.target)
                .into_iter()
                .rfind(|together| together.iter().all(|index| chosen.contains(index)))
                && spare > budget.target.share(SPARE)
                && shorten_to(draft, &newest, spare)
            {
                let fewer: Vec<usize> = chosen
                    .iter()
                    .copied()
                    .filter(|index| !newest.contains(index))
                    .collect();
                let shorter = self::words(draft, &fewer, weighs.min(half_of(draft, &fewer)));
                if let Some((words, _)) = shorter {
                    draft.summarize(&fewer, words);
                    return;
                }
            }
        }
        draft.summarize(&chosen, words);
    }

    /// Asks for the summary that will be wanted at the trigger, a little before it.
    fn prepare(
        &self,
        draft: &mut Draft<'_>,
        budget: &Budget,
        choose: &dyn Fn(&Draft<'_>, Tokens) -> Vec<usize>,
    ) {
        let Some(mark) = self.0.soft_mark else {
            return;
        };
        if budget.trigger == Tokens::MAX || draft.tokens() <= budget.trigger.share(mark) {
            return;
        }
        let ready = draft.means().ready.as_ref();
        if ready.is_some_and(|ready| matching(draft, ready).is_some()) {
            return;
        }
        let need = budget.trigger.minus(budget.target);
        let allowed = self.allowed(draft, budget, choose);
        let chosen = choose(draft, need + allowed);
        let most = half_of(draft, &chosen).min(allowed);
        if most >= LEAST_SUMMARY {
            let span = draft.span(&chosen, asked(draft, &chosen, most), When::Soon);
            draft.want(span);
        }
    }

    /// Puts in the summary that is ready, if what it stands for is still what it was, and either
    /// enough or all that would be chosen now.
    fn splice(&self, draft: &mut Draft<'_>, budget: &Budget, wanted: &[usize]) -> bool {
        let Some(ready) = draft.means().ready.clone() else {
            return false;
        };
        let Some(chosen) = matching(draft, &ready) else {
            return false;
        };
        let frame = draft.summary_frame(&chosen);
        let room = half_of(draft, &chosen)
            .min(self.0.most(budget))
            .minus(frame);
        // It was asked for in the size that there was; a summary is never cut blindly.
        let text = ready.text.to_string();
        if draft.counter().text(&text) > room {
            return false;
        }
        let frees = draft
            .weight_of(&chosen)
            .minus(draft.counter().text(&text) + frame);
        // One that leaves the view over its trigger would be followed by another at once, unless
        // nothing more can be summed up.
        let enough = draft.tokens().minus(frees) <= budget.trigger
            || wanted
                .iter()
                .all(|index| chosen.binary_search(index).is_ok());
        enough && draft.summarize(&chosen, text) > Tokens::ZERO
    }

    /// Returns what the summary may weigh. One without a model gets the size that the words of the user
    /// among what may leave call for, unless a size was set.
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
        let said = person_tokens(&messages(draft, &all), draft.counter());
        let wanted = Tokens(said.0.saturating_mul(EXTRACT_PERCENT) / 100);
        let frame = draft.summary_frame(&all);
        let is_talk = is_talk(&messages(draft, &all), draft.weight_of(&all));
        let most_of_it = if is_talk {
            // What stays is protected: everything else may go into the summary.
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

/// Shortens the largest messages of these exchanges until they weigh at most `tokens`. Returns `false` if
/// they cannot.
fn shorten_to(draft: &mut Draft<'_>, exchanges: &[usize], tokens: Tokens) -> bool {
    let rest = draft.tokens().minus(draft.weight_of(exchanges));
    shorten(draft, exchanges, rest + tokens);
    draft.weight_of(exchanges) <= tokens
}

/// Returns what a model may be asked for if the summary may weigh `most` in all: the line that says what
/// it replaces is ours.
fn asked(draft: &Draft<'_>, chosen: &[usize], most: Tokens) -> Tokens {
    let note = draft
        .summary_frame(chosen)
        .minus(MESSAGE_OVERHEAD + SUMMARY_FRAME);
    most.minus(note)
}

/// Returns half the weight of these exchanges: the most that a summary of them may weigh.
fn half_of(draft: &Draft<'_>, chosen: &[usize]) -> Tokens {
    Tokens(draft.weight_of(chosen).0 / 2)
}

/// Returns `true` if messages of this weight are a talk rather than work: short, and without tools.
fn is_talk(messages: &[&Message], weight: Tokens) -> bool {
    let has_results = messages
        .iter()
        .any(|message| matches!(message, Message::ToolResult(_)));
    !has_results && weight.0 <= TALK_MESSAGE.saturating_mul(messages.len() as u64)
}

/// Returns the messages of these exchanges.
fn messages<'d>(draft: &'d Draft<'_>, chosen: &[usize]) -> Vec<&'d Message> {
    let items = draft.items();
    let at = chosen
        .iter()
        .filter_map(|index| draft.exchanges().get(*index));
    let items = at
        .filter_map(|exchange| items.get(exchange.at.clone()))
        .flatten();
    items.map(|item| item.message.as_ref()).collect()
}

/// A summary without a model of these exchanges, and what it weighs; at most `most`.
fn words(draft: &Draft<'_>, chosen: &[usize], most: Tokens) -> Option<(String, Tokens)> {
    let frame = draft.summary_frame(chosen);
    let words = extract(&messages(draft, chosen), most.minus(frame), draft.counter())?;
    let weighs = draft.counter().text(&words) + frame;
    Some((words, weighs))
}

/// Returns the former summaries and so many of the oldest exchanges that they weigh `enough`, with
/// the markers of gaps before them.
///
/// Returns nothing if that is a single summary, which has nothing new to it, or if a summary stands
/// that may not be covered yet: there would be two.
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

/// The exchanges that a ready summary stands for, if all of them are still there, unchanged, and
/// may go; with every other former summary, for only one lives at a time.
fn matching(draft: &Draft<'_>, ready: &Ready) -> Option<Vec<usize>> {
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
