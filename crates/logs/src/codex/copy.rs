//! Writes a new rollout of Codex. Unchanged items keep their lines, and so do events that Codex displays;
//! measurements of the old history are removed.

use std::borrow::Cow;

use plimsoll_foreign::Unit;
use plimsoll_wire::__internals::{RawObject, quoted};
use serde_json::json;

use crate::copy::{Copy, Sources, groups, keys};
use crate::error::LogError;
use crate::ids::Ids;
use crate::session::SessionLog;

/// The keys of a payload that may contain the id of the session.
const IDS: [&str; 3] = ["id", "session_id", "thread_id"];

pub(crate) fn write(log: &SessionLog, units: &[Unit<'_>], ids: &mut Ids) -> Result<Copy, LogError> {
    let id = ids.uuid();
    let groups = groups(log, units);
    let sources = Sources::read(&log.path, &groups)?;
    let first = keys(groups.iter().find_map(|group| sources.of(group)));
    let mut time = first.get("timestamp").unwrap_or("null");
    let name = name(time, &id);
    let is_numbered = first.get("ordinal").is_some();
    // Newer logs number their lines without gaps.
    let ordinal = |number: usize| ("ordinal", is_numbered.then(|| number.to_string()));
    let new = |time: &str, number: usize, kind: &str, payload: Cow<'_, str>| {
        RawObject::default().with(&[
            ("timestamp", Some(time.to_owned())),
            ordinal(number),
            ("type", Some(quoted(kind))),
            ("payload", Some(payload.into_owned())),
        ])
    };
    let mut lines: Vec<String> = Vec::new();
    // Codex does not find a rollout without its first line, which may be damaged.
    if log.id.is_empty() {
        let begin = json!({
            "id": id, "timestamp": time.trim_matches('"'), "originator": "plimsoll",
            "cwd": log.directory.as_deref().unwrap_or("/"), "cli_version": "0.0.0",
        });
        lines.push(new(time, 0, "session_meta", begin.to_string().into()));
    }
    for group in &groups {
        let own = keys(sources.of(group));
        time = own.get("timestamp").unwrap_or(time);
        let ordinal = ordinal(lines.len());
        if group.units.is_empty() {
            let payload = keys(own.get("payload"));
            let of_session =
                { IDS.iter() }.filter(|key| payload.get(key) == Some(&quoted(&log.id)));
            let renamed: Vec<_> = of_session.map(|key| (*key, Some(quoted(&id)))).collect();
            lines.push(own.with(&[ordinal, ("payload", Some(payload.with(&renamed)))]));
        } else if group.same && own.get("type") == Some("\"response_item\"") {
            lines.push(own.with(&[ordinal]));
        } else {
            for unit in &group.units {
                lines.push(new(time, lines.len(), "response_item", unit.json()));
            }
        }
    }
    let title = json!({
        "type": "thread_name_updated", "thread_id": id, "thread_name": log.copy_title(),
    });
    let title = title.to_string().into();
    lines.push(new(time, lines.len(), "event_msg", title));
    Ok(Copy {
        path: log.path.with_file_name(name),
        text: lines.join("\n") + "\n",
        id,
    })
}

/// Returns the file name of the copy. Codex finds a rollout by a name with the time of its begin and its id.
fn name(time: &str, id: &str) -> String {
    let is_time = |byte: u8| byte.is_ascii_digit() || b"-T:".contains(&byte);
    let time = time.trim_matches('"').get(..19);
    let time = time.filter(|time| time.bytes().all(is_time));
    let time = time.unwrap_or("2000-01-01T00:00:00");
    format!("rollout-{}-{id}.jsonl", time.replace(':', "-"))
}
