//! [`MessageList`]: the messages of a view, in blocks that are shared with the requests made from
//! it.

use std::fmt;
use std::iter::FlatMap;
use std::slice;
use std::sync::Arc;

use crate::message::Message;

/// The number of messages in a block. Copying a list copies one pointer per block. Changing a
/// shared block copies one pointer for each of its messages.
const BLOCK: usize = 128;

type MessageBlock = Vec<Arc<Message>>;
type BlockIter<'l> = slice::Iter<'l, Arc<Message>>;

/// An iterator over the messages of a [`MessageList`].
pub type MessageIter<'l> = FlatMap<
    slice::Iter<'l, Arc<MessageBlock>>,
    BlockIter<'l>,
    fn(&'l Arc<MessageBlock>) -> BlockIter<'l>,
>;

/// A list of messages whose copies share their blocks: copying a list of 10,000 messages copies 79
/// pointers.
#[derive(Clone, Default, PartialEq)]
pub struct MessageList {
    /// Blocks of [`BLOCK`] messages; the last one may be shorter.
    blocks: Vec<Arc<MessageBlock>>,
}

impl MessageList {
    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.blocks.split_last() {
            Some((last, full)) => full.len() * BLOCK + last.len(),
            None => 0,
        }
    }

    /// Returns `true` if there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the message at an index, or `None` beyond the end.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Arc<Message>> {
        self.blocks.get(index / BLOCK)?.get(index % BLOCK)
    }

    /// Returns the last message, or `None` if the list is empty.
    #[must_use]
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.blocks.last()?.last()
    }

    /// Iterates over the messages.
    pub fn iter(&self) -> MessageIter<'_> {
        self.blocks.iter().flat_map(|block| block.iter())
    }

    /// Appends a message.
    pub fn push(&mut self, message: Arc<Message>) {
        match self.blocks.last_mut().filter(|last| last.len() < BLOCK) {
            Some(last) => Arc::make_mut(last).push(message),
            None => self.blocks.push(Arc::new(vec![message])),
        }
    }

    /// Keeps only the first `len` messages.
    pub fn truncate(&mut self, len: usize) {
        self.blocks.truncate(len.div_ceil(BLOCK));
        let full = self.blocks.len().saturating_sub(1) * BLOCK;
        if let Some(last) = self.blocks.last_mut()
            && full + last.len() > len
        {
            Arc::make_mut(last).truncate(len - full);
        }
    }
}

impl Extend<Arc<Message>> for MessageList {
    fn extend<I: IntoIterator<Item = Arc<Message>>>(&mut self, messages: I) {
        messages.into_iter().for_each(|message| self.push(message));
    }
}

impl FromIterator<Arc<Message>> for MessageList {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        let mut list = Self::default();
        list.extend(messages);
        list
    }
}

impl FromIterator<Message> for MessageList {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        messages.into_iter().map(Arc::new).collect()
    }
}

impl From<Vec<Arc<Message>>> for MessageList {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        messages.into_iter().collect()
    }
}

impl<'l> IntoIterator for &'l MessageList {
    type Item = &'l Arc<Message>;
    type IntoIter = MessageIter<'l>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for MessageList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(range: std::ops::Range<usize>) -> Vec<Arc<Message>> {
        let text = |n: usize| Arc::new(Message::user(n.to_string()));
        range.map(text).collect()
    }

    #[test]
    fn a_list_is_what_was_put_into_it() {
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let all = messages(0..len);
            let list = MessageList::from(all.clone());
            assert_eq!((list.len(), list.is_empty()), (len, len == 0));
            assert!(list.iter().eq(&all) && list.iter().rev().eq(all.iter().rev()));
            assert_eq!((list.last(), list.get(len)), (all.last(), None));
            let copy = list.clone();
            for cut in [3 * BLOCK, len, len.saturating_sub(1), BLOCK, 1, 0] {
                let mut list = list.clone();
                list.truncate(cut);
                assert!(list.iter().eq(all.iter().take(cut)), "{len} {cut}");
                assert!(copy.iter().eq(&all), "the copy is unchanged");
            }
        }
    }

    #[test]
    fn a_copy_keeps_its_messages() {
        let all = messages(0..2 * BLOCK + 3);
        let mut list = MessageList::from(all.clone());
        let copy = list.clone();
        list.extend(messages(0..BLOCK));
        assert!(copy.iter().eq(&all) && list.iter().take(all.len()).eq(&all));
    }
}
