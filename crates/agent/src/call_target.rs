//! [`CallTarget`]: the file or command that a call acts on, for permission rules.
//!
//! Comparing the text of an argument is easy to circumvent: `./.env` is `.env`, and `true; rm x` is two
//! commands. Therefore a tool can report the target of a call. `permission.rs` decides which calls may
//! run.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::pattern::Pattern;

/// The target of a tool call, for permission rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CallTarget {
    /// The tool reports no target; rules compare the texts of the arguments.
    #[default]
    Arguments,
    /// The call reads or changes a file or a directory.
    Path(PathTarget),
    /// The call runs a shell command.
    Command(CommandTarget),
}

/// A file or directory that a call reads or changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathTarget {
    /// The arguments that contain the path, in the order in which the tool reads them.
    pub fields: &'static [&'static str],
    /// The path relative to the workspace root, with `/` between names; `.` is the root.
    pub path: String,
    /// The same path from the root of the file system.
    pub absolute: String,
    /// The path as the model wrote it.
    pub written: String,
    /// Other tools that do the same with a file. Their path rules apply to this call too.
    pub same_as: &'static [&'static str],
    /// `true` if the call needs approval unless a rule allows exactly this path.
    pub is_protected: bool,
}

/// A shell command that a call runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandTarget {
    /// The arguments that contain the command, in the order in which the tool reads them.
    pub fields: &'static [&'static str],
    /// The command as the model wrote it.
    pub written: String,
    /// The command, if it is a single one and all its words are literal.
    pub simple: Option<SimpleCommand>,
    /// Every simple command that the shell would run, at any place.
    pub commands: Vec<Vec<ShellText>>,
    /// Texts that one of these commands may run, such as its arguments.
    pub hidden: Vec<Vec<ShellText>>,
    /// Whether a part of the command cannot be followed, for example because it cannot be parsed.
    pub is_unclear: bool,
}

/// Whether a call does what a pattern describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternMatch {
    No,
    /// It may, but that cannot be determined.
    Unclear,
    Yes,
}

/// A command that consists of literal words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The words separated by single spaces, quoted as the shell requires.
    pub text: String,
    /// The beginning of the text that a pattern must contain literally; `*` does not match any part of
    /// it.
    pub spelled: String,
}

/// A part of a simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellText {
    /// Literal text.
    Literal(String),
    /// Text that is only known when the command runs, such as the value of `$HOME`.
    Unknown,
}

/// A function that returns the target of a tool's calls.
///
/// It is a pure function of the arguments, so a resumed run makes the same decisions.
#[derive(Clone)]
pub struct TargetOf(Arc<dyn Fn(&Value) -> CallTarget + Send + Sync>);

impl TargetOf {
    /// Wraps a closure.
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
    /// Returns the arguments whose texts are replaced by the target in comparisons.
    pub(crate) fn fields(&self) -> &'static [&'static str] {
        match self {
            Self::Path(path) => path.fields,
            Self::Command(command) => command.fields,
            Self::Arguments => &[],
        }
    }

    /// Checks whether the target certainly matches a pattern, as required to allow a call.
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
            Self::Arguments => false,
        }
    }

    /// Compares the target with a pattern that denies a call or asks for approval.
    pub(crate) fn compare(&self, pattern: &Pattern) -> PatternMatch {
        match self {
            Self::Path(path) => {
                let spellings = path.spellings();
                let mut paths = spellings.iter().flat_map(|path| with_parents(path));
                let fits = pattern.fits(&path.written) || paths.any(|path| pattern.fits(path));
                PatternMatch::of(fits)
            }
            Self::Command(command) => command.compare(pattern),
            Self::Arguments => PatternMatch::No,
        }
    }
}

impl PatternMatch {
    pub(crate) fn of(matches: bool) -> Self {
        if matches { Self::Yes } else { Self::No }
    }
}

impl CommandTarget {
    fn compare(&self, pattern: &Pattern) -> PatternMatch {
        let fits = |text: &Vec<ShellText>| match text.as_slice() {
            [ShellText::Literal(text)] => pattern.fits(text),
            _ => false,
        };
        if pattern.fits(self.written.trim()) || self.commands.iter().any(fits) {
            return PatternMatch::Yes;
        }
        let may_fit = |text: &Vec<ShellText>| may_fit(pattern, text, &[]);
        // A program such as `xargs` adds arguments.
        let more = [ShellText::Literal(" ".to_owned()), ShellText::Unknown];
        let may_be_run =
            |text: &Vec<ShellText>| may_fit(text) || self::may_fit(pattern, text, &more);
        let is_unclear = self.is_unclear
            || self.commands.iter().any(may_fit)
            || self.hidden.iter().any(may_be_run);
        match is_unclear {
            true => PatternMatch::Unclear,
            false => PatternMatch::No,
        }
    }
}

impl PathTarget {
    /// Returns the spellings of the path that a rule may use.
    fn spellings(&self) -> [String; 3] {
        let Self { path, absolute, .. } = self;
        [path.clone(), format!("./{path}"), absolute.clone()]
    }
}

/// Returns a path and the directories above it, without the root.
fn with_parents(path: &str) -> impl Iterator<Item = &str> {
    let parents = path.rmatch_indices('/');
    let parents = parents.filter_map(|(at, _)| path.get(..at));
    let is_root = |path: &&str| matches!(*path, "" | ".");
    std::iter::once(path).chain(parents.filter(move |path| !is_root(path)))
}

/// Checks whether the pattern may match a text. After an unknown part, anything may follow.
fn may_fit(pattern: &Pattern, text: &[ShellText], more: &[ShellText]) -> bool {
    let mut known = String::new();
    for part in text.iter().chain(more) {
        match part {
            ShellText::Literal(text) => known.push_str(text),
            ShellText::Unknown => return pattern.may_fit(&known),
        }
    }
    pattern.fits(&known)
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
