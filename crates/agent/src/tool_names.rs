//! [`ToolNames`]: finds the tool that a model means by an unknown name.
//!
//! The decision depends only on the list of tools, so a resumed run decides the same. Permission rules
//! apply afterwards.

use plimsoll_context::snake_case;

/// Maximum number of typing errors in a tool name.
pub const MAX_NAME_EDITS: usize = 2;
/// Maximum length of a name that is compared, in characters. A longer name is not a typing error, and
/// comparing it would be slow.
pub const MAX_NAME: usize = 128;

/// Minimum number of letters for each typing error, so that `rm` never becomes `ls`.
const LETTERS_FOR_AN_EDIT: usize = 3;
/// Words at either end of a name that say only that it is a tool.
const NOISE: [&str; 8] = [
    "tool",
    "command",
    "cmd",
    "function",
    "functions",
    "call",
    "run",
    "execute",
];
/// Begins the prefix that some clients put before a tool of an MCP server: `mcp__server__tool`.
const MCP_PREFIX: &str = "mcp__";

/// The names of the tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolNames(Vec<String>);

impl ToolNames {
    /// Creates a list of names, in the order of the tools.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }

    /// Returns the names, in the order of the tools.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the name of the tool that a name means: the name itself if a tool has it. Another name is corrected if
    /// exactly one tool
    ///
    /// 1. has the same name except for case and separators: `Read-File` is `read_file`; or else
    /// 2. differs by at most [`MAX_NAME_EDITS`] typing errors, fewer in short words: `bsh` is `bash`.
    ///    Digits must be equal, and so must the first letter of a word, unless the model put one
    ///    letter before it: `pread` is `read`, but `get` is never `set`, `install` never `uninstall`,
    ///    and `v1` never `v2`; or else
    /// 3. has the same name without the words `tool`, `command`, `cmd`, `function`, `call`, `run` and
    ///    `execute` at its ends, and without `mcp__server__`: `bash_command` is `bash`. No other word
    ///    may be missing or added: `delete` is never `delete_user`.
    ///
    /// If several tools match equally well, none is chosen.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<&str> {
        if let Some(name) = self.iter().find(|known| *known == name) {
            return Some(name);
        }
        if name.chars().nth(MAX_NAME).is_some() {
            return None;
        }
        let (written, cores) = (words(name), cores(name));
        if written.is_empty() {
            return None;
        }
        let folded = written.concat();
        let found = self.best(|tool| (words(tool).concat() == folded).then_some(0));
        let found = found.or_else(|| self.best(|tool| edits(&written, &words(tool))));
        let is_same = |tool: &str| self::cores(tool).iter().any(|core| cores.contains(core));
        let found = found.or_else(|| self.best(|tool| is_same(tool).then_some(0)));
        match found.as_deref() {
            Some([name]) => Some(name),
            _ => None,
        }
    }

    /// Returns the names that match with the fewest errors; `None` if no name matches.
    fn best(&self, errors: impl Fn(&str) -> Option<usize>) -> Option<Vec<&str>> {
        let matching = self.iter().filter_map(|name| Some((errors(name)?, name)));
        let matching: Vec<(usize, &str)> = matching.collect();
        let fewest = matching.iter().map(|(errors, _)| *errors).min()?;
        let best = matching.iter().filter(|(errors, _)| *errors == fewest);
        Some(best.map(|(_, name)| *name).collect())
    }
}

/// Returns the words of a name without noise, with and without the prefix of an MCP server.
fn cores(name: &str) -> Vec<String> {
    let of_server = name.strip_prefix(MCP_PREFIX);
    let tool = of_server.and_then(|name| name.split_once("__"));
    let names = [Some(name), of_server, tool.map(|it| it.1)];
    let cores = names.into_iter().flatten();
    let cores = cores.map(|name| without_noise(&words(name)).concat());
    cores.filter(|core| !core.is_empty()).collect()
}

/// Removes noise words from both ends.
fn without_noise(mut words: &[String]) -> &[String] {
    let is_noise = |word: &String| NOISE.contains(&word.as_str());
    while let Some((_, rest)) = words.split_first().filter(|(first, _)| is_noise(first)) {
        words = rest;
    }
    while let Some((_, rest)) = words.split_last().filter(|(last, _)| is_noise(last)) {
        words = rest;
    }
    words
}

/// Splits a name into words, without case and separators; `readFile` has two words.
fn words(name: &str) -> Vec<String> {
    let name = snake_case(name);
    let words = name.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Returns the number of typing errors between two names; `None` if they differ in another way.
fn edits(written: &[String], tool: &[String]) -> Option<usize> {
    if written.len() != tool.len() {
        return None;
    }
    let words = written.iter().zip(tool);
    let edits: usize = words
        .map(|(written, tool)| word_edits(written, tool))
        .sum::<Option<usize>>()?;
    (edits <= MAX_NAME_EDITS).then_some(edits)
}

fn word_edits(written: &str, tool: &str) -> Option<usize> {
    let digits = |word: &str| -> String { word.chars().filter(|c| c.is_numeric()).collect() };
    let has_letter_before = written.chars().skip(1).eq(tool.chars());
    let begins_alike = written.chars().next() == tool.chars().next() || has_letter_before;
    if !begins_alike || digits(written) != digits(tool) {
        return None;
    }
    let letters = written.chars().count().min(tool.chars().count());
    let edits = strsim::osa_distance(written, tool);
    (edits * LETTERS_FOR_AN_EDIT <= letters).then_some(edits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_means_the_only_tool_that_is_near_enough() {
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
            // The model added or omitted words that mean nothing.
            (&["bash", "read"], "bash_command", Some("bash")),
            (&["bash", "read"], "run-bash", Some("bash")),
            (&["bash", "read"], "functions.bash", Some("bash")),
            (&["bash", "read"], "executeBashTool", Some("bash")),
            (&["bash", "read"], "call:bash", Some("bash")),
            (&["bash_tool", "read"], "bash", Some("bash_tool")),
            (
                &["mcp__fs__read_file"],
                "read_file",
                Some("mcp__fs__read_file"),
            ),
            (&["read_file"], "mcp__my_fs__read_file", Some("read_file")),
            (
                &["fs_read_file"],
                "mcp__fs__read_file",
                Some("fs_read_file"),
            ),
            // Other words are never added or omitted: the tool would do something else.
            (&["read_file", "write_file"], "read", None),
            (&["send_email"], "do_not_send_email", None),
            (&["order"], "cancel_order", None),
            (&["deploy"], "deploy_dry_run", None),
            (&["pay"], "pay_preview", None),
            (&["write"], "write_preview", None),
            (&["delete_file"], "undo_delete_file", None),
            (&["delete_user"], "user", None),
            (&["drop_table"], "table", None),
            (&["kubectl_delete"], "delete", None),
            (&["delete_user"], "delete", None),
            (&["run_tool"], "call", None),
            // Several tools match.
            (&["run_bash", "bash_tool"], "bash", None),
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
            (&["lock"], "unlock", None),
            (&["read"], "pread", Some("read")),
            (&["pread"], "read", None),
            (&["activate"], "deactivate", None),
            (&["export"], "import", None),
            (&["rm_tree"], "rn_tree", None),
            (&["query_v2"], "query_v1", None),
            (&["query2024"], "query2023", None),
            (&["read"], "write", None),
            (&["bash"], "", None),
            (&["bash"], "_-_", None),
            (&["bash"], "bash_bash_", None),
            (&[], "bash", None),
        ];
        for (tools, asked, means) in table {
            let names = ToolNames::new(tools.iter().copied());
            assert_eq!(names.resolve(asked), *means, "{asked} among {tools:?}");
        }
    }

    #[test]
    fn a_very_long_name_is_unknown() {
        let names = ToolNames::new(["bash"]);
        assert_eq!(names.resolve(&"bash_".repeat(100_000)), None);
    }

    proptest! {
        #[test]
        fn two_letters_never_cross(one in "[a-z]{1,2}", other in "[a-z]{1,2}") {
            prop_assume!(one != other);
            let names = ToolNames::new([other]);
            prop_assert_eq!(names.resolve(&one), None);
        }

        #[test]
        fn the_order_of_the_tools_changes_nothing(
            mut tools in prop::collection::btree_set("[a-c_]{1,6}", 1..6),
            asked in "[a-cA-C_-]{0,7}",
        ) {
            let one = ToolNames::new(tools.clone());
            let backwards: Vec<String> = tools.clone().into_iter().rev().collect();
            let other = ToolNames::new(backwards);
            prop_assert_eq!(one.resolve(&asked), other.resolve(&asked));
            if let Some(name) = one.resolve(&asked).filter(|name| *name != asked) {
                prop_assert!(tools.contains(name) && !tools.contains(&asked));
            }
            // The name of an existing tool is never changed.
            if let Some(tool) = tools.pop_first() {
                prop_assert_eq!(one.resolve(&tool), Some(tool.as_str()));
            }
        }

        #[test]
        fn no_name_breaks_it(tools in prop::collection::vec(".{0,8}", 0..4), asked in ".{0,12}") {
            let _ = ToolNames::new(tools).resolve(&asked);
        }
    }
}
