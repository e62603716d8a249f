//! [`PermissionMode`]: the decision about tool calls that no rule matches.

use std::str::FromStr;

/// The tool calls that may run without approval if no [rule](crate::Permissions) matches. The strictest
/// mode is the smallest value.
///
/// | mode | reads | changes files | anything else that asks |
/// |---|---|---|---|
/// | `read-only` | runs | refused | refused |
/// | `ask` | runs | asks | asks |
/// | `auto-edit` | runs | runs | asks |
/// | `yes` | runs | runs | runs |
///
/// A rule that allows or denies a call takes precedence over the mode. A call that needs approval
/// because of a rule or a protected file is refused in `read-only` and runs in `yes`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PermissionMode {
    /// Only calls without side effects run.
    ReadOnly,
    /// Changes to files need approval, and so do other calls that ask.
    Ask,
    /// Files of the workspace are changed without approval. The default.
    #[default]
    AutoEdit,
    /// No call needs approval.
    Yes,
}

/// The error for an unknown permission mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no permission mode; write ask, auto-edit, yes or read-only")]
pub struct NoPermissionMode(String);

impl PermissionMode {
    /// All names as used in configuration files.
    pub const NAMES: [&'static str; 4] = ["ask", "auto-edit", "yes", "read-only"];

    /// Returns the name as used in configuration files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AutoEdit => "auto-edit",
            Self::Yes => "yes",
            Self::ReadOnly => "read-only",
        }
    }
}

impl FromStr for PermissionMode {
    type Err = NoPermissionMode;

    fn from_str(word: &str) -> Result<Self, NoPermissionMode> {
        match word {
            "ask" => Ok(Self::Ask),
            "auto-edit" => Ok(Self::AutoEdit),
            "yes" => Ok(Self::Yes),
            "read-only" => Ok(Self::ReadOnly),
            other => Err(NoPermissionMode(other.to_owned())),
        }
    }
}
