//! What the model is told of a tool. Not the tool itself; that is a door of `core`.

use serde::{Deserialize, Serialize};

/// Name, description and input schema of one tool, as every request carries them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// What the model calls it by: letters, digits, `_` and `-`, 64 at most.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its input object. Keys keep their order, so that the bytes of a
    /// request stay the same from turn to turn.
    pub schema: serde_json::Value,
}
