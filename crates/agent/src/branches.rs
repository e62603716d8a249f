//! [`BranchRecord`]: the result of one branch of a parallel evaluation, for the log.
//!
//! The choice is made elsewhere. `host.rs` takes over the messages of the chosen branch.

use serde::{Deserialize, Serialize};

use crate::spend::Spend;
use crate::state::State;

/// One branch: a run of the same prompt by another agent, in a fork of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BranchRecord {
    /// The name of the forked session. Its log contains everything that the branch did.
    pub session: String,
    /// The id of the agent's configuration.
    pub config: String,
    /// The model, as `provider/name`.
    pub model: String,
    /// The result in one word: the reason why the run ended, or `died`, `cancelled`, `refused`.
    pub outcome: String,
    /// The reason why the branch did not answer, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The usage of the branch.
    pub spent: Spend,
    /// The duration in milliseconds.
    pub duration_ms: u64,
}

impl State {
    /// Adds the usage of the rejected branches and of the choice. The entries of the chosen branch
    /// follow and are counted then.
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
