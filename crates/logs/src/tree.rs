//! [`Tree`]: the entries of a log in which each entry names its parent. The active branch is the path from
//! one entry to the root.

use std::collections::{HashMap, HashSet};

use plimsoll_foreign::Role;
use serde_json::Value;

use crate::input::Entry;
use crate::session::SessionLog;

/// An entry of a tree.
#[derive(Debug)]
pub(crate) struct Node<'a, T> {
    pub(crate) line: usize,
    pub(crate) text: &'a [u8],
    pub(crate) parent: Option<String>,
    /// Whether it belongs to a sub-agent.
    pub(crate) is_side: bool,
    pub(crate) data: T,
}

/// The entries of a log, in file order.
#[derive(Debug)]
pub(crate) struct Tree<'a, T> {
    pub(crate) nodes: Vec<Node<'a, T>>,
    by_id: HashMap<String, usize>,
}

impl<T> Default for Tree<'_, T> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            by_id: HashMap::new(),
        }
    }
}

impl<'a, T> Tree<'a, T> {
    /// Adds an entry. If its id is known, it replaces the entry with this id.
    pub(crate) fn push(&mut self, id: String, node: Node<'a, T>) {
        let known = self.find(&id);
        match known.and_then(|at| self.nodes.get_mut(at)) {
            Some(same) => *same = node,
            None => {
                self.by_id.insert(id, self.nodes.len());
                self.nodes.push(node);
            }
        }
    }

    /// Returns the index of an entry by its id.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Returns the branch that ends with an entry, from its beginning. If a parent is missing, or is one of
    /// the entries behind it, the branch continues with the entry before it in the file.
    pub(crate) fn branch(&self, leaf: Option<usize>, log: &mut SessionLog) -> Vec<usize> {
        let mut branch = Vec::new();
        let mut seen = HashSet::new();
        let mut next = leaf;
        while let Some((at, node)) = next.and_then(|at| Some((at, self.nodes.get(at)?))) {
            seen.insert(at);
            branch.push(at);
            let Some(parent) = &node.parent else { break };
            let known = self.find(parent);
            next = known.filter(|at| !seen.contains(at));
            if next.is_some() {
                continue;
            }
            let is_before = |at: &usize| {
                !seen.contains(at) && self.nodes.get(*at).is_some_and(|node| !node.is_side)
            };
            next = (0..at).rev().find(is_before);
            let what = match (next, known) {
                (None, _) => "the beginning of the session is missing",
                (Some(_), None) => {
                    "the entry before it is missing; joined it to the one before that"
                }
                (Some(_), Some(_)) => "its parents form a circle; joined it to the entry before it",
            };
            log.damaged(node.line, what);
        }
        branch.reverse();
        branch
    }
}

/// The part of an entry that a model sees.
#[derive(Debug, Default)]
pub(crate) struct EntryContent {
    /// The blocks, each with its number in the entry.
    pub(crate) blocks: Vec<(usize, Role, Value)>,
    /// Whether a copy contains the entry even if it has no blocks.
    pub(crate) is_kept: bool,
    /// The model from this entry on.
    pub(crate) model: Option<String>,
    /// For an answer, its tokens and its error.
    pub(crate) answer: Option<(u64, Option<String>)>,
}

/// Adds the content that `read` returns for each of these entries, in the given order. Entries that cannot be read are
/// damage.
pub(crate) fn push_all<T>(
    log: &mut SessionLog,
    nodes: &[&Node<'_, T>],
    read: impl Fn(&Entry<'_>, &T) -> serde_json::Result<EntryContent>,
) {
    for node in nodes {
        let entry = Entry::parse(node.line, node.text);
        let content = match entry.and_then(|entry| read(&entry, &node.data)) {
            Ok(content) => content,
            Err(error) => {
                log.damaged(node.line, format!("its message cannot be read: {error}"));
                continue;
            }
        };
        if content.is_kept || !content.blocks.is_empty() {
            log.push(node.line, node.text, content.blocks);
        }
        log.model = content.model.or(log.model.take());
        if let Some((tokens, error)) = content.answer {
            log.last_error = error;
            log.report(tokens);
        }
    }
}
