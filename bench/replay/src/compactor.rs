//! Replays a recording with the compaction of another program, which works on whole messages.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_context::{Budget, Message, PriceSheet, TokenCounter, Tokens};

use crate::bill::Bill;
use crate::meter::{Cache, CutStatus, Meter, MeteredRequest, SentMessage};
use crate::recording::Recording;

/// The compaction of another program. It receives a session message by message and returns the
/// contents of each request.
pub trait Compactor {
    /// Adds a message to the context. `tokens` is its size.
    fn push(&mut self, message: &Arc<Message>, tokens: Tokens);

    /// Returns the messages of the next request, after compacting them if that is due.
    fn request(&mut self) -> Vec<Arc<Message>>;

    /// Reports the input tokens of the last request, as the provider would.
    fn sent(&mut self, tokens: Tokens);
}

/// Replays a recording with another program's compaction.
pub(crate) fn drive(
    recording: &Recording,
    compactor: &mut dyn Compactor,
    budget: &Budget,
    sheet: &PriceSheet,
    counter: &dyn TokenCounter,
) -> Bill {
    let mut meter = Meter::new(sheet, budget.limit, &recording.probes);
    let mut numbers = MessageNumbers::of(&recording.messages);
    let mut before: Vec<SentMessage> = Vec::new();
    for (at, message) in recording.messages.iter().enumerate() {
        if matches!(**message, Message::Assistant { .. }) && at > 0 {
            let mut view = Vec::new();
            for message in compactor.request() {
                let (number, is_original) = numbers.number(&message);
                let sent = (number, counter.message(&message));
                if !is_original {
                    meter.note_edited(sent, &message);
                }
                view.push(sent);
            }
            compactor.sent(view.iter().map(|(_, tokens)| *tokens).sum());
            // A view that only grew at its end was not compacted.
            let cut = if view.starts_with(&before) {
                CutStatus::None
            } else {
                CutStatus::Made
            };
            before.clone_from(&view);
            let is_cold = sheet.is_cold_after(recording.idle_before(at));
            meter.request(MeteredRequest {
                view,
                length: at,
                answer: counter.message(message),
                cut,
                cache: if is_cold { Cache::Expired } else { Cache::Warm },
            });
        }
        compactor.push(message, counter.message(message));
    }
    meter.bill()
}

/// Numbers messages by their content, which is all that a provider's cache depends on.
struct MessageNumbers {
    originals: u64,
    of: HashMap<String, u64>,
}

impl MessageNumbers {
    fn of(originals: &[Arc<Message>]) -> Self {
        let mut of = HashMap::new();
        for (number, message) in (0..).zip(originals) {
            of.entry(key(message)).or_insert(number);
        }
        Self {
            originals: originals.len() as u64,
            of,
        }
    }

    /// Returns the number of a message, and whether it is an original.
    fn number(&mut self, message: &Message) -> (u64, bool) {
        // New messages of the other program follow the originals.
        let next = self.originals + self.of.len() as u64;
        let number = *self.of.entry(key(message)).or_insert(next);
        (number, number < self.originals)
    }
}

fn key(message: &Message) -> String {
    format!("{message:?}")
}
