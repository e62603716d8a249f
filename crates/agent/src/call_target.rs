//! [`CallTarget`]: what a tool call acts on, as permission rules see it.
//!
//! A rule that compares the text of an argument is easily missed: `./.env` is `.env`, and
//! `true; rm x` is two commands. A tool that knows better says what a call acts on. Which calls may
//! run is decided in `permission.rs`.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::pattern::Pattern;

/// What a tool call acts on, as far as permission rules look at it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CallTarget {
    /// Rules compare the texts of the arguments.
    #[default]
    Arguments,
    /// The call reads or changes a file or a directory.
    Path(PathTarget),
    /// The call runs a shell command.
    Command(CommandTarget),
    /// The call runs another tool.
    Tool(ToolTarget),
}

/// A file or directory that a call reads or changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathTarget {
    /// The arguments that name it, in the order in which the tool looks for them.
    pub fields: &'static [&'static str],
    /// The path relative to the workspace root, with `/` between names; `.` is the root.
    pub path: String,
    /// The same path from the root of the file system.
    pub absolute: String,
    /// The path as the model wrote it.
    pub written: String,
    /// Other tools that do the same with a file. Their rules with a path hold for this call too.
    pub same_as: &'static [&'static str],
    /// Whether a person is asked unless a rule allows exactly this path.
    pub is_protected: bool,
}

/// A shell command that a call runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandTarget {
    /// The arguments that hold it, in the order in which the tool looks for them.
    pub fields: &'static [&'static str],
    /// The command as the model wrote it.
    pub written: String,
    /// The command if it is a single one whose words are all literal.
    pub simple: Option<SimpleCommand>,
    /// Every simple command in it, wherever it stands. `None` if it was not understood.
    pub commands: Option<Vec<Vec<ShellText>>>,
}

/// A command of literal words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Its words with one blank between them, quoted where the shell needs it.
    pub text: String,
    /// The beginning of the text that a pattern must spell out: no `*` stands for a part of it.
    pub spelled: String,
}

/// A part of a simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellText {
    /// Text that the shell takes as it stands.
    Literal(String),
    /// Text that is known only when the command runs, such as that of `$HOME`.
    Unknown,
}

/// A tool that a call runs in place of the tool that is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolTarget {
    /// Its name, in each way in which a rule may spell it.
    pub names: Vec<String>,
    /// The arguments that it gets.
    pub arguments: Value,
}

/// Tells what the calls of one tool act on.
///
/// This is a pure function of the arguments: a resumed run decides as the run before it.
#[derive(Clone)]
pub struct TargetOf(Arc<dyn Fn(&Value) -> CallTarget + Send + Sync>);

impl TargetOf {
    /// Creates one from a function.
    pub fn new(target: impl Fn(&Value) -> CallTarget + Send + Sync + 'static) -> Self {
        Self(Arc::new(target))
    }

    pub(crate) fn of(&self, arguments: &Value) -> CallTarget {
        (self.0)(arguments)
    }
}

impl Default for TargetOf {
    fn default() -> Self {
        Self::new(|_| CallTarget::Arguments)
    }
}

impl fmt::Debug for TargetOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TargetOf(..)")
    }
}

impl CallTarget {
    /// The arguments that a rule compares with the target in place of their texts.
    pub(crate) fn fields(&self) -> &'static [&'static str] {
        match self {
            Self::Path(path) => path.fields,
            Self::Command(command) => command.fields,
            Self::Arguments | Self::Tool(_) => &[],
        }
    }

    /// Whether the target certainly is what a pattern describes; only then is a call allowed by it.
    pub(crate) fn fits(&self, pattern: &Pattern) -> bool {
        match self {
            Self::Path(path) => {
                let mut spellings = path.spellings().into_iter();
                spellings.any(|path| pattern.fits(&path))
            }
            Self::Command(command) => command.simple.as_ref().is_some_and(|simple| {
                pattern.begins(&simple.spelled)
                    && (pattern.fits(&simple.text) || pattern.fits(command.written.trim()))
            }),
            Self::Arguments | Self::Tool(_) => false,
        }
    }

    /// Whether the target may be what a pattern describes; that is enough to deny a call or to ask.
    pub(crate) fn may_fit(&self, pattern: &Pattern) -> bool {
        match self {
            Self::Path(path) => {
                let spellings = path.spellings();
                let mut paths = spellings.iter().flat_map(|path| with_parents(path));
                pattern.fits(&path.written) || paths.any(|path| pattern.fits(path))
            }
            Self::Command(command) => {
                let may_fit = |text: &Vec<ShellText>| may_fit(pattern, text);
                let parts = command.commands.as_ref();
                pattern.fits(command.written.trim())
                    || parts.is_none_or(|parts| parts.iter().any(may_fit))
            }
            Self::Arguments | Self::Tool(_) => false,
        }
    }
}

impl PathTarget {
    /// The ways in which a rule may spell the path.
    fn spellings(&self) -> [String; 3] {
        let Self { path, absolute, .. } = self;
        [path.clone(), format!("./{path}"), absolute.clone()]
    }
}

/// A path and the directories above it, without the root.
fn with_parents(path: &str) -> impl Iterator<Item = &str> {
    let parents = path.rmatch_indices('/');
    let parents = parents.filter_map(|(at, _)| path.get(..at));
    let is_root = |path: &&str| matches!(*path, "" | ".");
    std::iter::once(path).chain(parents.filter(move |path| !is_root(path)))
}

fn may_fit(pattern: &Pattern, text: &[ShellText]) -> bool {
    let parts = text.iter().map(|part| match part {
        ShellText::Literal(text) => Some(text.as_str()),
        ShellText::Unknown => None,
    });
    pattern.may_fit_parts(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_what_is_in_it_and_the_root_for_itself() {
        let all = |path| with_parents(path).collect::<Vec<_>>();
        assert_eq!(all("a/b/c"), ["a/b/c", "a/b", "a"]);
        assert_eq!(all("/a/b"), ["/a/b", "/a"]);
        assert_eq!(all("./a/b"), ["./a/b", "./a"]);
        assert_eq!(all("."), ["."]);
    }
}
