//! [`BranchRecord`]: what one branch of a parallel evaluation came to, for the log; and how a session
//! takes over what the chosen one has said. Not the choice.

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::run::Run;
use crate::spend::Spend;
use crate::state::{FoldError, State};
use crate::step::Step;

/// One branch: a run of the same prompt by another agent, in a fork of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BranchRecord {
    /// The fork, by its name. Its log has all that the branch did.
    pub session: String,
    /// The agent's configuration.
    pub config: String,
    /// The model, as `provider/name`.
    pub model: String,
    /// How it ended, in one word: an end of a run, or `died`, `cancelled`, `refused`.
    pub outcome: String,
    /// Why, where it did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What it has used.
    #[serde(default)]
    pub spent: Spend,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl Run {
    /// Begins the log where it is empty, so that it can be forked.
    pub fn open_log(&mut self) {
        self.open();
    }

    /// Takes over what was said elsewhere after the view that this session has: how several branches
    /// ended, and the entries of the one that was chosen. All of it or nothing.
    ///
    /// # Errors
    /// Where the entries do not follow on the view; nothing has changed then.
    pub fn adopt(&mut self, branched: Entry, entries: Vec<Entry>) -> Result<(), FoldError> {
        let mut state = self.state.clone();
        state.absorb(&branched)?;
        for entry in &entries {
            state.absorb(entry)?;
        }
        self.state = state;
        self.queue.push_back(Step::Record(branched));
        self.queue.extend(entries.into_iter().map(Step::Record));
        Ok(())
    }
}

impl State {
    /// What the branches have used that were not chosen, and whoever chose. The entries of the one
    /// that was follow, and are counted as they come.
    pub(crate) fn branched(
        &mut self,
        branches: &[BranchRecord],
        winner: Option<usize>,
        judged: &Spend,
    ) {
        let losers = branches.iter().enumerate();
        let losers = losers.filter(|(index, _)| Some(*index) != winner);
        for spent in losers.map(|(_, branch)| &branch.spent).chain([judged]) {
            self.spend(spent);
        }
    }
}
