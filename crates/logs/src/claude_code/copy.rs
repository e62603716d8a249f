//! Writes a new session of Claude Code. Copied entries keep everything except their links; the others are
//! written in the form of Claude Code.

use std::borrow::Cow;

use plimsoll_foreign::{Change, Role, Unit};
use plimsoll_wire::__internals::{RawObject, quoted};
use serde_json::json;
use serde_json::value::RawValue;

use crate::copy::{Chain, Copy, Group, Sources, block_of, groups, keys};
use crate::error::LogError;
use crate::ids::Ids;
use crate::session::SessionLog;

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
const POINTERS: [&str; 3] = ["logicalParentUuid", "forkedFrom", "toolUseResult"];

pub(crate) fn write(
    log: &SessionLog,
    units: &[Unit<'_>],
    tokens: Option<u64>,
    ids: &mut Ids,
) -> Result<Copy, LogError> {
    let id = ids.uuid();
    let groups = groups(log, units);
    let sources = Sources::read(&log.path, &groups)?;
    let mut template = keys(groups.iter().find_map(|group| sources.of(group)));
    let mut chain = Chain::default();
    let mut text = String::new();
    for group in &groups {
        let own = keys(sources.of(group));
        let (uuid, parent) = chain.next(own.get("uuid"), || ids.uuid());
        // Claude Code finds entries by lines that begin with the parent.
        let mut changes = vec![("parentUuid", Some(parent.to_string()))];
        changes.extend(self::changes(log, group, &own, &template, tokens, ids));
        changes.push(("uuid", Some(uuid.to_string())));
        changes.push(("sessionId", Some(quoted(&id))));
        text.push_str(&own.with(&changes));
        text.push('\n');
        if own.get("uuid").is_some() {
            template = own;
        }
    }
    let title = json!({ "type": "custom-title", "customTitle": log.copy_title(), "sessionId": id });
    text.push_str(&format!("{title}\n"));
    Ok(Copy {
        path: log.path.with_file_name(format!("{id}.jsonl")),
        text,
        id,
    })
}

/// Returns the changes of an entry besides its links. A new entry consists of them.
fn changes(
    log: &SessionLog,
    group: &Group<'_>,
    own: &RawObject<'_>,
    template: &RawObject<'_>,
    tokens: Option<u64>,
    ids: &mut Ids,
) -> Vec<(&'static str, Option<String>)> {
    let role = match group.role {
        Role::Assistant => "assistant",
        _ => "user",
    };
    let is_message = own.get("type") == Some(quoted(role).as_str());
    let usage = tokens.filter(|_| group.role == Role::Assistant);
    let usage = usage.map(|tokens| ("usage", Some(self::usage(tokens))));
    let message = keys(own.get("message"));
    let blocks: Option<Vec<&RawValue>> = message
        .get("content")
        .and_then(|content| serde_json::from_str(content).ok());
    let blocks = blocks.unwrap_or_default();
    let content = group.units.iter().map(|unit| block(unit, &blocks));
    let content: Vec<Cow<'_, str>> = content.collect();
    let content = ("content", Some(format!("[{}]", content.join(","))));
    let mut changes = vec![("logicalParentUuid", None)];
    if group.same && own.get("uuid").is_some() {
        changes.extend(usage.map(|usage| ("message", Some(message.with(&[usage])))));
        return changes;
    }
    changes.extend(POINTERS.map(|key| (key, None)));
    let mut of_message = Vec::new();
    if !is_message {
        let is_kept = |key: &&str| own.get(key).is_none();
        let of_session = OF_SESSION.into_iter().filter(is_kept);
        changes.extend(of_session.map(|key| (key, template.get(key).map(str::to_owned))));
        changes.push(("attachment", None));
        changes.push(("isSidechain", Some("false".to_owned())));
        changes.push(("type", Some(quoted(role))));
        of_message.push(("role", Some(quoted(role))));
    }
    of_message.push(content);
    if !is_message && group.role == Role::Assistant {
        let null = || Some("null".to_owned());
        of_message.extend([
            ("id", Some(quoted(&format!("msg_{}", ids.hex(24))))),
            ("type", Some(quoted("message"))),
            ("model", log.model.as_deref().map(quoted).or_else(null)),
            ("stop_reason", null()),
            ("stop_sequence", null()),
            ("usage", Some(self::usage(tokens.unwrap_or_default()))),
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
