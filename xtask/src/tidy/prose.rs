//! Warns of phrases in added doc comments that a reader would have to parse twice, and of terms for
//! which Plimsoll uses another one. A warning fails no check: the author decides.
//!
//! "Added" means since the merge base with the main branch, or in the last commit on it.

use std::path::Path;

use regex::Regex;

use super::fault::Fault;
use crate::command::Job;

/// The branches that changes are compared with. The first one that exists is used.
const BASES: [&str; 2] = ["origin/main", "main"];
/// Maximum number of warnings: more would hide the faults of other rules.
const MAX_WARNINGS: usize = 40;

/// Patterns in doc comments, without regard to case, and the advice. Code in backticks is ignored.
const PUZZLING: [(&str, &str); 9] = [
    (
        r"^(it|its name|why|how|the (one|same))\.?$",
        "name the thing",
    ),
    (r"\bwhat\b", "name the thing instead of `what`"),
    (
        r"\b(who|whom|whoever)\b",
        "name the actor: the caller, the user, the model",
    ),
    (r"\bwhere (it|there|none|no|nothing)\b", "write `if`"),
    (
        r"\b(is|are) (said|told|asked)\b",
        "name the actor: Plimsoll reports …",
    ),
    (r"\bconversations?\b", "write session or transcript"),
    (r"\bobservations?\b", "write tool result"),
    (
        r"\b(condense[drs]?|function call(s|ing)?)\b",
        "write compact, or tool call",
    ),
    (
        r"\b(helpers?|utils?|managers?)\b",
        "name it for its purpose",
    ),
];

/// Returns the warnings for the changes of the working tree; none if git cannot compare it.
pub(crate) fn warnings(root: &Path) -> Vec<Fault> {
    let git = |args: &[&str]| Job::new("git", root).args(args).read().ok();
    let existing = BASES.iter().find(|base| {
        let exists = ["rev-parse", "--verify", "--quiet", base];
        Job::new("git", root).args(exists).succeeds()
    });
    let revision = |args: &[&str]| git(args).map(|text| text.trim().to_owned());
    let head = revision(&["rev-parse", "HEAD"]);
    let base = existing.and_then(|base| revision(&["merge-base", "HEAD", base]));
    let since = match base {
        Some(base) if Some(&base) != head.as_ref() => base,
        _ => "HEAD~1".to_owned(),
    };
    let exists = ["rev-parse", "--verify", "--quiet", &since];
    if !Job::new("git", root).args(exists).succeeds() {
        return Vec::new();
    }
    let diff = git(&["diff", "--unified=0", "--no-color", &since, "--", "*.rs"]);
    puzzling(&diff.unwrap_or_default())
}

/// Returns the warnings for the lines that a diff without context adds.
fn puzzling(diff: &str) -> Vec<Fault> {
    let compile = |pattern: &str| Regex::new(&format!("(?i){pattern}")).ok();
    let patterns: Vec<(Regex, &str)> = PUZZLING
        .iter()
        .filter_map(|(pattern, advice)| Some((compile(pattern)?, *advice)))
        .collect();
    let (mut path, mut line, mut found) = ("", 0, Vec::new());
    for text in diff.lines() {
        if let Some(name) = text.strip_prefix("+++ b/") {
            path = name;
        } else if let Some(hunk) = text.strip_prefix("@@ ") {
            line = first_line(hunk).unwrap_or_default();
        } else if let Some(added) = text.strip_prefix('+') {
            let added = added.trim_start();
            let doc = ["///", "//!"]
                .iter()
                .find_map(|mark| added.strip_prefix(mark));
            if let Some(doc) = doc {
                // Every second part is in backticks.
                let prose: String = doc.split('`').step_by(2).collect();
                let hits = patterns
                    .iter()
                    .filter(|(rule, _)| rule.is_match(prose.trim()));
                found.extend(hits.map(|(_, advice)| Fault::at(path, line, *advice)));
            }
            line += 1;
        }
    }
    found.truncate(MAX_WARNINGS);
    found
}

/// Returns the first added line of a hunk's header, such as `-3,0 +4,2 @@`.
fn first_line(hunk: &str) -> Option<usize> {
    let (_, added) = hunk.split_once('+')?;
    added.split([',', ' ']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fault::places;

    #[test]
    fn puzzling_phrases_are_found_in_added_docs_only() {
        let diff = "\
diff --git a/a.rs b/a.rs
--- a/a.rs
+++ b/a.rs
@@ -3,2 +10,4 @@ fn a() {
-/// What leaves.
+    /// What leaves.
+    /// Returns the evicted messages.
+    // What a plain comment says.
+    /// It.
@@ -9 +20 @@
+//! As `ConversationBuffer` does; a condensed observation.
";
        assert_eq!(
            places(&puzzling(diff)),
            ["a.rs:10", "a.rs:13", "a.rs:20", "a.rs:20"]
        );
    }
}
