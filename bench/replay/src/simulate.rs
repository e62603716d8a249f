//! [`simulate`]: replays a recording turn by turn. Our own policies use the transcript, the policy
//! and the budget of `context`, as in live runs.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_context::{
    Bpe, Budget, Calibration, Form, Item, Memo, Message, PriceSheet, TokenCounter, Tokens,
    Transcript, Trigger, ViewLimits,
};

use crate::bill::Bill;
use crate::compactor::{self, Compactor};
use crate::hindsight;
use crate::meter::{Cache, CutStatus, Meter, MeteredRequest, SentMessage};
use crate::recording::Recording;
use crate::rivals;
use crate::trail::Trail;
use crate::way::{PlimsollSettings, Way};

/// Returns the cost of a recording with `way`, for a model with this window and these prices.
///
/// Returns `None` if the window leaves no room. For [`Way::Hindsight`], also returns `None` if the
/// cache prices are unknown, or if the session is so long that the search would take too much
/// memory.
#[must_use]
pub fn simulate(
    recording: &Recording,
    way: Way,
    window: Tokens,
    sheet: &PriceSheet,
) -> Option<Bill> {
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(Bpe::o200k()));
    simulate_with(&counter, recording, way, window, sheet)
}

/// Like [`simulate`], with a counter that can be shared and may cache its results.
#[must_use]
pub fn simulate_with(
    counter: &Arc<dyn TokenCounter>,
    recording: &Recording,
    way: Way,
    window: Tokens,
    sheet: &PriceSheet,
) -> Option<Bill> {
    let line = line(window);
    let instructions = instructions(recording, counter);
    let budget = line.budget(Tokens::ZERO, instructions, Calibration::default());
    let budget = budget.ok()?;
    let trail = || Trail::of(recording, &budget, counter);
    Some(match way {
        Way::Plimsoll(settings) => {
            let line = settings.line(line);
            let budget = |is_cold| {
                let line = ViewLimits { is_cold, ..line };
                line.budget(Tokens::ZERO, instructions, Calibration::default())
            };
            let [warm, cold] = [budget(false).ok()?, budget(true).ok()?];
            ours(recording, settings, [&warm, &cold], sheet, counter)
        }
        Way::Fifo => {
            let trail = trail();
            rivals::window(&trail, trail.system, budget.limit, budget.limit, sheet)
        }
        Way::SlidingWindow { size } => {
            let trail = trail();
            let size = budget.limit.share(size);
            rivals::window(&trail, trail.head, size, budget.limit, sheet)
        }
        Way::Summarize { keep, reads } => rivals::summarize(&trail(), keep, reads, &budget, sheet),
        Way::Hindsight => hindsight::hindsight(&trail(), &budget, sheet)?,
    })
}

/// Returns the cost of a recording with the compaction of another program, or `None` if the window
/// leaves no room.
#[must_use]
pub fn simulate_compactor(
    counter: &Arc<dyn TokenCounter>,
    recording: &Recording,
    compactor: &mut dyn Compactor,
    window: Tokens,
    sheet: &PriceSheet,
) -> Option<Bill> {
    let instructions = instructions(recording, counter);
    let budget = line(window).budget(Tokens::ZERO, instructions, Calibration::default());
    let bill = |budget| compactor::drive(recording, compactor, &budget, sheet, counter.as_ref());
    budget.ok().map(bill)
}

fn line(window: Tokens) -> ViewLimits {
    ViewLimits {
        window: Some(window),
        ..ViewLimits::default()
    }
}

/// Returns the size of the system messages.
fn instructions(recording: &Recording, counter: &Arc<dyn TokenCounter>) -> Tokens {
    let system = recording
        .messages
        .iter()
        .filter(|message| message.is_system());
    system.map(|message| counter.message(message)).sum()
}

impl PlimsollSettings {
    /// Applies these settings to the limits.
    fn line(&self, line: ViewLimits) -> ViewLimits {
        let line = self.policy.line(line);
        ViewLimits {
            trigger: self.trigger.unwrap_or(line.trigger),
            target: self.target.or(line.target),
            ..line
        }
    }
}

/// Replays a recording with one of our policies. The second budget is for an expired cache.
fn ours(
    recording: &Recording,
    settings: PlimsollSettings,
    [warm, cold]: [&Budget; 2],
    sheet: &PriceSheet,
    counter: &Arc<dyn TokenCounter>,
) -> Bill {
    let policy = settings.policy.policy(settings.prune, settings.summary);
    let mut view = Transcript::new(Arc::clone(counter));
    let mut meter = Meter::new(sheet, warm.limit, &recording.probes);
    let mut forms = Forms::after(recording.messages.len());
    for (at, message) in recording.messages.iter().enumerate() {
        if matches!(**message, Message::Assistant { .. }) && !view.items().is_empty() {
            let is_cold = sheet.is_cold_after(recording.idle_before(at));
            let budget = if is_cold { cold } else { warm };
            let mut cut = CutStatus::None;
            // A view that does not fit is reduced as far as possible and counted.
            if let Some(plan) = policy.best_plan(&view, budget, Trigger::Request)
                && view.apply(&plan).is_ok()
                && plan.rewrites_from.is_some()
            {
                cut = CutStatus::Made;
            }
            let sent: Vec<SentMessage> = view
                .items()
                .iter()
                .map(|item| (forms.number(item), item.tokens))
                .collect();
            for (item, sent) in view.items().iter().zip(&sent) {
                if item.form != Form::Original {
                    meter.note_edited(*sent, &item.message);
                }
            }
            meter.request(MeteredRequest {
                view: sent,
                length: at,
                answer: counter.message(message),
                cut,
                cache: if is_cold { Cache::Expired } else { Cache::Warm },
            });
            view.mark_sent();
        }
        view.push(Arc::clone(message));
    }
    meter.bill()
}

/// Numbers for messages. Each changed form of a message gets a new number: a summary that replaces
/// an earlier one is a different message, even if it has the same size.
struct Forms {
    next: u64,
    changed: HashMap<u64, (Arc<Message>, u64)>,
}

impl Forms {
    /// Creates numbers for changed messages that follow those of the `originals`.
    fn after(originals: usize) -> Self {
        Self {
            next: originals as u64,
            changed: HashMap::new(),
        }
    }

    fn number(&mut self, item: &Item) -> u64 {
        if item.form == Form::Original {
            return item.seq.0;
        }
        match self.changed.get(&item.seq.0) {
            Some((message, number)) if *message == item.message => *number,
            _ => {
                let number = self.next;
                self.next += 1;
                let form = (Arc::clone(&item.message), number);
                self.changed.insert(item.seq.0, form);
                number
            }
        }
    }
}
