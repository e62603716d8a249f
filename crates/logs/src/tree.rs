//! [`Tree`]: the entries of a log in which each entry names its parent. The active branch is the path from
//! one entry to the root.

use std::collections::{HashMap, HashSet};

use plimsoll_foreign::Role;
use serde_json::Value;

use crate::error::LogError;
use crate::input::{Entry, EntryPlace, changed};
use crate::session::{SessionLog, text};

/// The id of an entry, an answer or a call: a hash of its text, since the links of a large log have to fit into
/// memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LinkId(blake3::Hash);

impl LinkId {
    pub(crate) fn of(id: impl AsRef<str>) -> Self {
        Self(blake3::hash(id.as_ref().as_bytes()))
    }
}

/// An entry of a tree.
#[derive(Debug, Default)]
pub(crate) struct Node<T> {
    pub(crate) place: EntryPlace,
    pub(crate) parent: Option<LinkId>,
    /// Whether it belongs to a sub-agent.
    pub(crate) is_side: bool,
    pub(crate) data: T,
}

/// The entries of a log, in file order.
#[derive(Debug, Default)]
pub(crate) struct Tree<T> {
    pub(crate) nodes: Vec<Node<T>>,
    by_id: HashMap<LinkId, usize>,
}

impl<T> Tree<T> {
    /// Adds an entry. If its id is known, it replaces the entry with this id.
    pub(crate) fn push(&mut self, id: LinkId, node: Node<T>) {
        let known = self.find(id);
        match known.and_then(|at| self.nodes.get_mut(at)) {
            Some(same) => *same = node,
            None => {
                self.by_id.insert(id, self.nodes.len());
                self.nodes.push(node);
            }
        }
    }

    /// Removes an entry, and all behind it in the file.
    pub(crate) fn remove_from(&mut self, at: usize) {
        self.nodes.truncate(at);
        self.by_id.retain(|_, node| *node < at);
    }

    /// Returns the index of an entry by its id.
    pub(crate) fn find(&self, id: LinkId) -> Option<usize> {
        self.by_id.get(&id).copied()
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
            let Some(parent) = node.parent else { break };
            let known = self.find(parent);
            next = known.filter(|at| !seen.contains(at));
            if next.is_some() {
                continue;
            }
            let is_before = |at: &usize| {
                !seen.contains(at) && self.nodes.get(*at).is_some_and(|node| !node.is_side)
            };
            next = (0..at).rev().find(is_before);
            log.is_part |= next.is_none();
            let what = match (next, known) {
                (None, _) => "the beginning of the session is missing",
                (Some(_), None) => {
                    "the entry before it is missing; joined it to the one before that"
                }
                (Some(_), Some(_)) => "its parents form a circle; joined it to the entry before it",
            };
            log.damaged(node.place, 0, what);
        }
        branch.reverse();
        branch
    }
}

/// The part of an entry that a model sees.
#[derive(Debug, Default)]
pub(crate) struct EntryContent {
    /// The blocks, each with its number in the entry. Those of an answer are the model's, except results of tools.
    pub(crate) blocks: Vec<(usize, Value)>,
    /// Whether a copy contains the entry even if it has no blocks.
    pub(crate) is_kept: bool,
    /// The part of it that a copy leaves out, in words.
    pub(crate) reduced: Option<&'static str>,
    /// The model from this entry on.
    pub(crate) model: Option<String>,
    /// For an answer, its tokens and its error.
    pub(crate) answer: Option<(u64, Option<String>)>,
}

/// Reads these entries of a log again, and adds the content that `read` returns for each, in the given order.
/// Entries whose messages cannot be read are damage.
///
/// # Errors
///
/// Those of [`LogFile::text`](crate::input::LogFile::text).
pub(crate) fn push_again<T>(
    log: &mut SessionLog,
    nodes: &[&Node<T>],
    mut read: impl FnMut(&Entry<'_>, &T) -> serde_json::Result<EntryContent>,
) -> Result<(), LogError> {
    log.begin = nodes.first().map_or(0, |node| node.place.number);
    for node in nodes {
        let again = log.file.text(node.place);
        let again = again.map_err(LogError::read(&log.path))?;
        let entry = Entry::parse(node.place, &again);
        let entry = entry.map_err(|_| LogError::read(&log.path)(changed()))?;
        let content = match read(&entry, &node.data) {
            Ok(content) => content,
            Err(error) => {
                log.unread(&entry, "its message", &error);
                continue;
            }
        };
        let is_answer = content.answer.is_some();
        let blocks = content.blocks.into_iter().map(|(at, block)| {
            let is_models = is_answer && text(&block, "/type") != Some("tool_result");
            let role = if is_models {
                Role::Assistant
            } else {
                Role::User
            };
            (at, role, block)
        });
        if content.is_kept || blocks.len() > 0 {
            log.push(node.place, blocks);
            if let Some(entry) = log.branch.last_mut() {
                entry.is_reduced = content.reduced.is_some();
            }
        }
        if let Some(left_out) = content.reduced {
            log.repaired(node.place, format!("left out {left_out}"));
        }
        log.model = content.model.or(log.model.take());
        if let Some((tokens, error)) = content.answer {
            log.last_error = error;
            log.report(tokens);
        }
    }
    Ok(())
}
