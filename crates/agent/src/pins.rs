//! Pins: messages that stay in the view unshortened until the host unpins them.
//!
//! Only the host can set pins, up to [`MAX_PINS`]. No text of a model or a tool can.

use plimsoll_context::{CannotFit, Exchange, Item, Message, Seq, Tokens};

/// Maximum number of pins of one session. Each is sent with every request.
pub const MAX_PINS: usize = 64;

/// The reason why something cannot be pinned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// The item is not in the view in its original form.
    #[error(
        "{0} cannot be pinned: it is no longer in the view in its original form; recall it and \
         pin the result"
    )]
    NotInView(Seq),
    /// A run is in progress, or tool calls of the last answer have no results.
    #[error(
        "nothing can be pinned during a run or while a tool call is open; wait for its end, or \
         continue the session first"
    )]
    Pending,
    /// The session already has [`MAX_PINS`] pins.
    #[error("{MAX_PINS} things are pinned already; unpin one first")]
    TooMany,
    /// The text is empty.
    #[error("an empty text cannot be pinned; give the text to pin")]
    Empty,
    /// The pins would leave too few tokens for anything else.
    #[error(
        "it cannot be pinned: with it {pinned} tokens would be pinned, and all of a request may weigh {limit}, of which at most half may be pinned; pin less, or allow a larger window"
    )]
    TooLarge {
        /// The total size of all pins.
        pinned: Tokens,
        /// Maximum size of a request, including system prompt and tools.
        limit: Tokens,
    },
    /// System prompt and tools alone exceed the budget.
    #[error(transparent)]
    CannotFit(#[from] CannotFit),
}

/// The start of the notice that something could not be pinned.
pub(crate) const REFUSAL: &str = "[Not pinned:";

/// The start of the message of a rule.
const RULE: &str = "[Pinned: this holds for the whole session.]\n";

/// Returns a rule as the message that enters the view.
pub(crate) fn rule(text: &str) -> Message {
    Message::Notice {
        text: format!("{RULE}{}", text.trim()),
    }
}

/// Returns the text of a rule's message.
pub(crate) fn rule_text(message: &Message) -> Option<&str> {
    match message {
        Message::Notice { text } => text.strip_prefix(RULE),
        _ => None,
    }
}

/// Returns the number of pins, including `one_more`, and the size of all messages that they keep in
/// the view: their exchanges, except for other tool results, which can be removed.
pub(crate) fn held(items: &[Item], one_more: Option<Seq>) -> (usize, Tokens) {
    let is_pinned = |item: &Item| item.pin.is_some() || Some(item.seq) == one_more;
    let (mut count, mut weight) = (0, Tokens::ZERO);
    for exchange in Exchange::of(items) {
        let items = items.get(exchange.at).unwrap_or_default();
        let pinned = items.iter().filter(|item| is_pinned(item)).count();
        if pinned > 0 {
            let is_result = |item: &Item| matches!(*item.message, Message::ToolResult(_));
            let stays = items
                .iter()
                .filter(|item| is_pinned(item) || !is_result(item));
            count += pinned;
            weight += stays.map(|item| item.tokens).sum();
        }
    }
    (count, weight)
}
