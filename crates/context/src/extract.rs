//! [`extract`]: a summary without a model, made only of what was said and done, word for word.
//! Not a judgement of what it means, and nothing that a model wrote for it.

mod calls;
mod choice;
mod cues;
mod layout;
mod names;
mod notes;
mod pieces;
mod purse;
mod said;
mod stale;

use crate::counter::TokenCounter;
use crate::message::Message;
use crate::tokens::Tokens;

use notes::Notes;

/// How often the choice is made again with less, where the whole weighs more than its parts did.
const TRIES: u32 = 8;

/// What stands for `messages` (those that leave the view, in order) where no model sums them up:
/// at most `max` tokens by `counter`. `None` where nothing is worth saying or `max` is too small.
///
/// The user's rules and words come first, as they were said; then decisions, errors, files with
/// the names seen in them, tool calls with their outcome, and other names, newest first as far as
/// there is room. A value that the user updated later is left out. A [`Message::Summary`] among
/// the messages that is a former extract is read back and carried on; any other is quoted from.
///
/// The same messages give the same bytes. The time is `O(n log n)` of their length.
#[must_use]
pub fn extract(messages: &[&Message], max: Tokens, counter: &dyn TokenCounter) -> Option<String> {
    let texts = notes::texts(messages);
    let notes = Notes::of(&texts);
    let mut room = max.0;
    for _ in 0..TRIES {
        let text = choice::choose(&notes, room, counter)?;
        let weight = counter.text(&text).0;
        if weight <= max.0 {
            return Some(text);
        }
        room = room.checked_sub((weight - max.0).max(room / 50 + 1))?;
    }
    None
}
