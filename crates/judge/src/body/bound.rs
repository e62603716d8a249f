//! [`Bound`]: which thinking is bound to what came before it (AM10), by tool loops. Not what a block
//! is bound to in a session of our own; the wire's `binding.rs` knows that from what was signed.

use plimsoll_context::Message;

use crate::canonical::{Target, loops, thinking};

/// The messages that think bound, each with the number of its tool loop; none where thinking is
/// bound to nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Bound {
    thinking: Vec<(usize, usize)>,
}

impl Bound {
    pub(super) fn of(messages: &[Message], target: &Target) -> Self {
        if !target.form().binds_thinking() {
            return Self::default();
        }
        let loops = loops(messages);
        let of = |index: usize| Some((index, *loops.get(index)?));
        Self {
            thinking: thinking(messages).into_iter().filter_map(of).collect(),
        }
    }

    /// The messages that may not think once `first` has changed: what comes behind it, in whole loops.
    pub(super) fn behind(&self, first: usize) -> Vec<usize> {
        let after = self.thinking.iter().find(|(index, _)| *index > first);
        let Some((_, from)) = after else {
            return Vec::new();
        };
        let gone = self.thinking.iter().filter(|(_, number)| number >= from);
        gone.map(|(index, _)| *index).collect()
    }
}
