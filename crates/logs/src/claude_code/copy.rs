//! Writes a new session of Claude Code. Copied entries keep everything except their links; the others are
//! written in the form of Claude Code.

use std::borrow::Cow;

use plimsoll_foreign::{Change, Role, Unit};
use plimsoll_wire::__internals::{RawObject, quoted};
use serde_json::json;
use serde_json::value::RawValue;

use crate::copy::{CopiedEntry, Copy, EntryWriter, block_of, keys};
use crate::ids::Ids;

/// Keys with session data, which are copied to new entries.
const OF_SESSION: [&str; 7] = [
    "userType",
    "entrypoint",
    "cwd",
    "version",
    "gitBranch",
    "slug",
    "timestamp",
];
/// Keys of a changed entry that refer to its old content, or to entries that may be missing.
const POINTERS: [&str; 2] = ["forkedFrom", "toolUseResult"];

pub(crate) struct ClaudeCodeWriter;

impl EntryWriter for ClaudeCodeWriter {
    fn entry(&mut self, new: &mut Copy<'_>, entry: &CopiedEntry<'_>) {
        let (uuid, parent) = new.link(entry.own.get("uuid"), Ids::uuid);
        // Claude Code finds entries by lines that begin with the parent.
        let mut changes = vec![("parentUuid", Some(parent))];
        changes.extend(self::changes(new, entry));
        changes.push(("uuid", Some(uuid)));
        changes.push(("sessionId", Some(quoted(&new.id))));
        new.line(&entry.own.with(&changes));
    }

    fn end(&mut self, new: &mut Copy<'_>, _: &RawObject<'_>) {
        let title = new.log.copy_title();
        let title = json!({ "type": "custom-title", "customTitle": title, "sessionId": new.id });
        new.line(&title.to_string());
    }
}

/// Returns the changes of an entry besides its links. A new entry consists of them.
fn changes(
    new: &mut Copy<'_>,
    CopiedEntry { group, own, near }: &CopiedEntry<'_>,
) -> Vec<(&'static str, Option<String>)> {
    let is_answer = group.role == Role::Assistant;
    let role = quoted(if is_answer { "assistant" } else { "user" });
    let is_message = own.get("type") == Some(role.as_str());
    let usage = new.tokens.filter(|_| is_answer);
    let usage = usage.map(|tokens| ("usage", Some(self::usage(tokens))));
    let message = keys(own.get("message"));
    let mut changes = vec![("logicalParentUuid", None)];
    if group.is_same() && own.get("uuid").is_some() {
        changes.extend(usage.map(|usage| ("message", Some(message.with(&[usage])))));
        return changes;
    }
    let blocks: Option<Vec<&RawValue>> = message
        .get("content")
        .and_then(|content| serde_json::from_str(content).ok());
    let blocks = blocks.unwrap_or_default();
    let content = group.units.iter().map(|unit| block(unit, &blocks));
    let content: Vec<Cow<'_, str>> = content.collect();
    changes.extend(POINTERS.map(|key| (key, None)));
    let mut of_message = Vec::new();
    if !is_message {
        let of_session = OF_SESSION.into_iter().filter(|key| own.get(key).is_none());
        changes.extend(of_session.map(|key| (key, near.get(key).map(str::to_owned))));
        changes.push(("attachment", None));
        changes.push(("isSidechain", Some("false".to_owned())));
        changes.push(("type", Some(role.clone())));
        of_message.push(("role", Some(role)));
    }
    of_message.push(("content", Some(format!("[{}]", content.join(",")))));
    if !is_message && is_answer {
        let null = || Some("null".to_owned());
        let model = new.log.model.as_deref().map(quoted);
        of_message.extend([
            ("id", Some(quoted(&format!("msg_{}", new.ids.hex(24))))),
            ("type", Some(quoted("message"))),
            ("model", model.or_else(null)),
            ("stop_reason", null()),
            ("stop_sequence", null()),
            ("usage", Some(self::usage(new.tokens.unwrap_or_default()))),
        ]);
    } else {
        of_message.extend(usage);
    }
    changes.push(("message", Some(message.with(&of_message))));
    changes
}

/// Returns the block of a unit: that of the log, if it is unchanged.
fn block<'u>(unit: &'u Unit<'_>, own: &[&'u RawValue]) -> Cow<'u, str> {
    let is_own = unit.change() == Change::Unchanged;
    let own = block_of(unit).filter(|_| is_own).and_then(|at| own.get(at));
    own.map_or_else(|| unit.json(), |own| own.get().into())
}

/// Returns the usage of an answer. Claude Code takes the last one for the size of the context.
fn usage(tokens: u64) -> String {
    let usage = json!({
        "input_tokens": tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 0,
    });
    usage.to_string()
}
