//! [`PermissionMode`]: what happens to tool calls that no rule decides about.

use std::str::FromStr;

/// How much may run without a question if no [rule](crate::Permissions) says so. The strictest mode is
/// the smallest.
///
/// | mode | reads | changes files | anything else that asks |
/// |---|---|---|---|
/// | `read-only` | runs | refused | refused |
/// | `ask` | runs | asks | asks |
/// | `auto-edit` | runs | runs | asks |
/// | `yes` | runs | runs | runs |
///
/// A rule that allows or denies a call goes before the mode. A rule that asks, and a protected file, are
/// refused in `read-only` and run in `yes`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PermissionMode {
    /// Nothing that changes anything runs.
    ReadOnly,
    /// A person is asked before a file is changed, and before whatever else asks.
    Ask,
    /// Files of the workspace are changed without a question. The default.
    #[default]
    AutoEdit,
    /// Nobody is asked.
    Yes,
}

/// It is no permission mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no permission mode; write ask, auto-edit, yes or read-only")]
pub struct NoPermissionMode(String);

impl PermissionMode {
    /// All names, as a configuration writes them.
    pub const NAMES: [&'static str; 4] = ["ask", "auto-edit", "yes", "read-only"];

    /// Returns the name, as a configuration writes it.
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
