//! [`ToolSpec`]: the description of a tool for the model. Tools themselves are a trait of `core`.

use serde::{Deserialize, Serialize};

/// The name, description and input schema of one tool, as sent in every request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name that the model uses: at most 64 letters, digits, `_` and `-`.
    pub name: String,
    /// A description of the tool's effect and of when to use it.
    pub description: String,
    /// JSON Schema of its input object. Keys keep their order, so the bytes of a request stay the
    /// same from turn to turn.
    pub schema: serde_json::Value,
}
