//! Writes a new rollout of Codex. Unchanged items keep their lines, and so do events that Codex displays;
//! measurements of the old history are removed.

use plimsoll_wire::__internals::{RawObject, quoted};
use serde_json::json;

use crate::copy::{CopiedEntry, Copy, EntryWriter, keys};
use crate::session::SessionLog;

/// The keys of a payload that may contain the id of the session.
const IDS: [&str; 3] = ["id", "session_id", "thread_id"];

/// Returns the file name of a copy. Codex finds a rollout by a name with the time of its begin and its id.
pub(crate) fn name(log: &SessionLog, id: &str) -> String {
    let is_time = |byte: u8| byte.is_ascii_digit() || b"-T:".contains(&byte);
    let time = log.began.as_deref().and_then(|time| time.get(..19));
    let time = time.filter(|time| time.bytes().all(is_time));
    let time = time.unwrap_or("2000-01-01T00:00:00");
    format!("rollout-{}-{id}.jsonl", time.replace(':', "-"))
}

#[derive(Default)]
pub(crate) struct CodexWriter {
    /// The number of lines.
    lines: usize,
}

impl CodexWriter {
    /// Writes a line with changes, and with the time of `near`. Newer logs number their lines without gaps.
    fn line(
        &mut self,
        new: &mut Copy<'_>,
        (own, near): (&RawObject<'_>, &RawObject<'_>),
        changes: Vec<(&str, Option<String>)>,
    ) {
        let number = near.get("ordinal").map(|_| self.lines.to_string());
        let time = near.get("timestamp").map(str::to_owned);
        let place = [("timestamp", time), ("ordinal", number)];
        new.line(&own.with(&[place.to_vec(), changes].concat()));
        self.lines += 1;
    }

    fn new_line(&mut self, new: &mut Copy<'_>, near: &RawObject<'_>, kind: &str, payload: String) {
        let changes = vec![("type", Some(quoted(kind))), ("payload", Some(payload))];
        self.line(new, (&RawObject::default(), near), changes);
    }
}

impl EntryWriter for CodexWriter {
    /// Codex does not find a rollout without its first line, which may be damaged.
    fn begin(&mut self, new: &mut Copy<'_>, first: &RawObject<'_>) {
        if new.log.id.is_empty() {
            let begin = json!({
                "id": new.id, "timestamp": first.text("timestamp"), "originator": "plimsoll",
                "cwd": new.directory.as_deref().unwrap_or("/"), "cli_version": "0.0.0",
            });
            self.new_line(new, first, "session_meta", begin.to_string());
        }
    }

    fn entry(&mut self, new: &mut Copy<'_>, entry: &CopiedEntry<'_>) {
        let CopiedEntry { group, own, near } = entry;
        let is_item = own.get("type") == Some("\"response_item\"");
        let payload = match group.units.as_slice() {
            [] => {
                let payload = keys(own.get("payload"));
                let id = quoted(&new.log.id);
                let of_session = { IDS.iter() }.filter(|key| payload.get(key) == Some(id.as_str()));
                let renamed = of_session.map(|key| (*key, Some(quoted(&new.id))));
                payload.with(&renamed.collect::<Vec<_>>())
            }
            _ if group.is_same() && is_item => return self.line(new, (own, own), Vec::new()),
            [unit] if is_item => unit.json().into_owned(),
            units => {
                for unit in units {
                    self.new_line(new, near, "response_item", unit.json().into_owned());
                }
                return;
            }
        };
        self.line(new, (own, own), vec![("payload", Some(payload))]);
    }

    fn end(&mut self, new: &mut Copy<'_>, last: &RawObject<'_>) {
        let title = json!({
            "type": "thread_name_updated", "thread_id": new.id, "thread_name": new.log.copy_title(),
        });
        self.new_line(new, last, "event_msg", title.to_string());
    }
}
