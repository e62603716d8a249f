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
/// How often it is made again with more, where the whole weighs less.
const MORE: u32 = 4;
/// Room that is not worth another try, in parts of the whole.
const SLACK: u64 = 100;

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
    let (notes, mut said) = Notes::of(&texts);
    let (mut room, mut more) = (max.0, 0);
    let mut best: Option<(u64, String)> = None;
    for _ in 0..TRIES {
        let Some(text) = choice::choose(&notes, &mut said, room, counter) else {
            break;
        };
        let weight = counter.text(&text).0;
        let Some(slack) = max.0.checked_sub(weight) else {
            if best.is_some() {
                break;
            }
            room = room.checked_sub((weight - max.0).max(room / 50 + 1))?;
            continue;
        };
        if best.as_ref().is_none_or(|(most, _)| weight > *most) {
            best = Some((weight, text));
        }
        more += 1;
        if slack * SLACK <= max.0 || more >= MORE {
            break;
        }
        room += slack;
    }
    best.map(|(_, text)| text)
}
