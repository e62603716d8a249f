//! [`ToolNames`]: finds the tool that a model means by an unknown name.
//!
//! The decision depends only on the list of tools, so a resumed run decides the same. Permission rules
//! apply afterwards.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Maximum number of typing errors in a tool name.
pub const MAX_NAME_EDITS: usize = 2;
/// Maximum length of a name that is compared, in characters. A longer name is not a typing error, and
/// comparing it would be slow.
pub const MAX_NAME: usize = 128;

/// Minimum number of letters for each typing error, so that `rm` never becomes `ls`.
const LETTERS_FOR_AN_EDIT: usize = 3;
/// Minimum number of letters of a name that is matched with a part of another.
const LETTERS_FOR_A_PART: usize = 2;

/// The meaning of a tool name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameMatch<'a> {
    /// A tool has exactly this name.
    Known,
    /// This tool, since no other is as similar.
    Repaired(&'a str),
    /// No tool, or several equally similar ones.
    Unknown,
}

/// The names of the tools, prepared for comparison. Serialized as a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct ToolNames {
    names: Vec<Name>,
    exact: HashMap<String, usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    written: String,
    tokens: Vec<String>,
}

impl From<Vec<String>> for ToolNames {
    fn from(names: Vec<String>) -> Self {
        Self::new(names)
    }
}

impl From<ToolNames> for Vec<String> {
    fn from(names: ToolNames) -> Self {
        let names = names.names.into_iter();
        names.map(|name| name.written).collect()
    }
}

impl ToolNames {
    /// Creates a list of names, in the order of the tools.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().map(Into::into);
        let names: Vec<Name> = names
            .map(|written: String| Name {
                tokens: tokens(&written),
                written,
            })
            .collect();
        let exact = names.iter().enumerate();
        let exact = exact.map(|(at, name)| (name.written.clone(), at)).collect();
        Self { names, exact }
    }

    /// Returns the names, in the order of the tools.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| name.written.as_str())
    }

    /// Finds the tool that a name means. A name is corrected if exactly one tool
    ///
    /// 1. has the same name except for case and separators: `Read-File` is `read_file`; or else
    /// 2. differs by at most [`MAX_NAME_EDITS`] typing errors, fewer in short words: `bsh` is `bash`.
    ///    The first letter of a word and digits must be equal; otherwise `get` would become `set`,
    ///    `install` would become `uninstall`, and `v1` would become `v2`; or else
    /// 3. begins or ends with all words of the name, or the other way round: `bash_command` is `bash`.
    ///
    /// If several tools match equally well, none is chosen.
    #[must_use]
    pub fn resolve(&self, name: &str) -> NameMatch<'_> {
        if self.exact.contains_key(name) {
            return NameMatch::Known;
        }
        if name.chars().nth(MAX_NAME).is_some() {
            return NameMatch::Unknown;
        }
        let words = tokens(name);
        if words.is_empty() {
            return NameMatch::Unknown;
        }
        let found = self.only(|name| (name.tokens == words).then_some(0));
        let found = found.or_else(|| self.only(|name| slips(&words, &name.tokens)));
        let found = found.or_else(|| self.only(|name| is_part(&words, &name.tokens).then_some(0)));
        match found {
            Some(Ok(name)) => NameMatch::Repaired(name),
            Some(Err(Tie)) | None => NameMatch::Unknown,
        }
    }

    /// Returns the name that matches best; `None` if no name matches.
    fn only(&self, fits: impl Fn(&Name) -> Option<usize>) -> Option<Result<&str, Tie>> {
        let fitting = self.names.iter();
        let fitting: Vec<(usize, &Name)> = fitting
            .filter_map(|name| Some((fits(name)?, name)))
            .collect();
        let best = fitting.iter().map(|(slips, _)| *slips).min()?;
        let mut best = fitting.iter().filter(|(slips, _)| *slips == best);
        let first = best.next().map(|(_, name)| name.written.as_str())?;
        Some(match best.next() {
            Some(_) => Err(Tie),
            None => Ok(first),
        })
    }
}

/// Several tools match equally well.
struct Tie;

/// Splits a name into words, without case and separators; `readFile` has two words.
fn tokens(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (was_small && letter.is_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && letter.is_alphanumeric()
        {
            word.extend(letter.to_lowercase());
        }
        was_small = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the number of typing errors between two names; `None` if they differ in another way.
fn slips(written: &[String], tool: &[String]) -> Option<usize> {
    let slips = if written.len() == tool.len() {
        let words = written.iter().zip(tool);
        words
            .map(|(written, tool)| word_slips(written, tool))
            .sum::<Option<usize>>()?
    } else {
        // Only separators were added or omitted.
        (written.concat() == tool.concat()).then(|| written.len().abs_diff(tool.len()))?
    };
    (slips <= MAX_NAME_EDITS).then_some(slips)
}

fn word_slips(written: &str, tool: &str) -> Option<usize> {
    if written == tool {
        return Some(0);
    }
    let digits = |word: &str| -> String { word.chars().filter(|c| c.is_numeric()).collect() };
    if written.chars().next() != tool.chars().next() || digits(written) != digits(tool) {
        return None;
    }
    let letters = written.chars().count().min(tool.chars().count());
    let slips = strsim::osa_distance(written, tool);
    (slips <= MAX_NAME_EDITS && slips * LETTERS_FOR_AN_EDIT <= letters).then_some(slips)
}

/// Checks whether one name begins or ends with all words of the other.
fn is_part(one: &[String], other: &[String]) -> bool {
    let (part, whole) = if one.len() < other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let letters: usize = part.iter().map(|word| word.chars().count()).sum();
    letters >= LETTERS_FOR_A_PART && (whole.starts_with(part) || whole.ends_with(part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_name_means() {
        let table: &[(&[&str], &str, Option<&str>)] = &[
            (&["bash", "read"], "bsh", Some("bash")),
            (&["bash", "read"], "Read", Some("read")),
            (&["bash", "read"], "raed", Some("read")),
            (&["bash", "read"], "BASH", Some("bash")),
            (&["read_file"], "read-file", Some("read_file")),
            (&["read_file"], "ReadFile", Some("read_file")),
            (&["read_file"], "readfile", Some("read_file")),
            (&["readFile"], "read_fiel", Some("readFile")),
            (&["read_file"], "read_fiel", Some("read_file")),
            (&["read_file"], "raed_fiel", Some("read_file")),
            (
                &["get_tool_response"],
                "get_tools_responses",
                Some("get_tool_response"),
            ),
            // One name consists of the first or the last words of the other.
            (&["bash", "read"], "bash_command", Some("bash")),
            (&["bash", "read"], "run-bash", Some("bash")),
            (&["bash", "read"], "functions.bash", Some("bash")),
            (&["read_file", "write_file"], "read", Some("read_file")),
            (
                &["mcp__fs__read_file"],
                "read_file",
                Some("mcp__fs__read_file"),
            ),
            // Several tools match.
            (&["read_file", "read_dir"], "read", None),
            (&["bash", "command"], "bash_command", None),
            (&["Read", "read"], "READ", None),
            (&["lint", "list"], "lit", None),
            (&["bash", "bath"], "bah", None),
            (&["bash", "bash"], "bsh", None),
            // The better match wins.
            (
                &["bash", "bash_commands"],
                "bash_command",
                Some("bash_commands"),
            ),
            (
                &["read_file", "read_files"],
                "Read_Files",
                Some("read_files"),
            ),
            // Other differences than typing errors.
            (&["ls"], "rm", None),
            (&["rm"], "rn", None),
            (&["mv", "cp", "rm"], "r", None),
            (&["get"], "set", None),
            (&["bat"], "cat", None),
            (&["set_user"], "get_user", None),
            (&["user_set"], "user_get", None),
            (&["userset"], "user_get", None),
            (&["uninstall"], "install", None),
            (&["activate"], "deactivate", None),
            (&["export"], "import", None),
            (&["rm_tree"], "rn_tree", None),
            (&["query_v2"], "query_v1", None),
            (&["query2024"], "query2023", None),
            (&["read"], "write", None),
            (&["bash"], "", None),
            (&["bash"], "_-_", None),
            (&["bash"], "bash_bash_", Some("bash")),
            (&[], "bash", None),
        ];
        for (tools, asked, means) in table {
            let names = ToolNames::new(tools.iter().copied());
            let expected = means.map_or(NameMatch::Unknown, NameMatch::Repaired);
            assert_eq!(names.resolve(asked), expected, "{asked} among {tools:?}");
        }
    }

    #[test]
    fn a_name_without_end_is_nobody_s() {
        let names = ToolNames::new(["bash"]);
        assert_eq!(names.resolve(&"bash_".repeat(100_000)), NameMatch::Unknown);
    }

    proptest! {
        #[test]
        fn two_letters_never_cross(one in "[a-z]{1,2}", other in "[a-z]{1,2}") {
            prop_assume!(one != other);
            let names = ToolNames::new([other]);
            prop_assert_eq!(names.resolve(&one), NameMatch::Unknown);
        }

        #[test]
        fn the_order_of_the_tools_is_no_matter(
            mut tools in prop::collection::btree_set("[a-c_]{1,6}", 1..6),
            asked in "[a-cA-C_-]{0,7}",
        ) {
            let one = ToolNames::new(tools.clone());
            let backwards: Vec<String> = tools.clone().into_iter().rev().collect();
            let other = ToolNames::new(backwards);
            prop_assert_eq!(one.resolve(&asked), other.resolve(&asked));
            if let NameMatch::Repaired(name) = one.resolve(&asked) {
                prop_assert!(tools.contains(name) && !tools.contains(&asked));
            }
            // The name of an existing tool is never changed.
            if let Some(tool) = tools.pop_first() {
                prop_assert_eq!(one.resolve(&tool), NameMatch::Known);
            }
        }

        #[test]
        fn nothing_breaks_it(tools in prop::collection::vec(".{0,8}", 0..4), asked in ".{0,12}") {
            let _ = ToolNames::new(tools).resolve(&asked);
        }
    }
}
