//! Writes a new session of Claude Code. Entries with unchanged blocks keep everything except their
//! links; the others are written in the format of Claude Code.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::copy::{Copy, Group, JsonEntry, groups, parsed, sources};
use crate::error::LogError;
use crate::ids::Ids;
use crate::match_up::MatchedBlock;
use crate::session::{Role, SessionLog};

/// Keys with session data, which are copied to new entries.
const OF_SESSION: [&str; 6] = [
    "userType",
    "entrypoint",
    "cwd",
    "version",
    "gitBranch",
    "slug",
];
/// Keys that refer to entries which may be missing in the copy.
const POINTERS: [&str; 3] = ["logicalParentUuid", "forkedFrom", "toolUseResult"];

pub(crate) fn write(
    log: &SessionLog,
    blocks: &[MatchedBlock],
    tokens: Option<u64>,
    ids: &mut Ids,
) -> Result<Copy, LogError> {
    let id = ids.uuid();
    let groups = groups(log, blocks);
    let sources = sources(&log.path, &groups)?;
    let first = groups.iter().find_map(|group| group.source);
    let mut template = first.and_then(|line| sources.get(&line)).cloned();
    let mut writer = ClaudeWriter {
        log,
        id: &id,
        tokens,
        ids,
        parent: Value::Null,
        used: HashSet::new(),
        text: String::new(),
    };
    for group in &groups {
        let source = group.source.and_then(|line| sources.get(&line));
        if let Some(source) = source {
            template = Some(source.clone());
        }
        writer.entry(group, source, template.as_ref())?;
    }
    let text = writer.text;
    Ok(Copy {
        path: log.path.with_file_name(format!("{id}.jsonl")),
        resume: format!("claude --resume {id}"),
        text,
        id,
    })
}

struct ClaudeWriter<'a> {
    log: &'a SessionLog,
    id: &'a str,
    tokens: Option<u64>,
    ids: &'a mut Ids,
    parent: Value,
    /// The ids of the written entries.
    used: HashSet<String>,
    text: String,
}

impl ClaudeWriter<'_> {
    fn entry(
        &mut self,
        group: &Group<'_>,
        source: Option<&JsonEntry>,
        template: Option<&JsonEntry>,
    ) -> Result<(), LogError> {
        let mut entry = match source {
            Some(source) if group.same => source.clone(),
            _ => self.new_entry(group, source, template)?,
        };
        let uuid = entry.get("uuid").and_then(Value::as_str);
        let uuid = match uuid.filter(|uuid| !self.used.contains(*uuid)) {
            Some(uuid) => uuid.to_owned(),
            None => self.ids.uuid(),
        };
        self.used.insert(uuid.clone());
        entry.insert("parentUuid".to_owned(), std::mem::take(&mut self.parent));
        entry.insert("uuid".to_owned(), uuid.clone().into());
        entry.insert("sessionId".to_owned(), self.id.into());
        self.parent = uuid.into();
        entry.shift_remove("logicalParentUuid");
        if let (Some(tokens), Role::Assistant) = (self.tokens, group.role)
            && let Some(Value::Object(message)) = entry.get_mut("message")
        {
            message.insert("usage".to_owned(), usage(tokens));
        }
        self.text.push_str(&Value::Object(entry).to_string());
        self.text.push('\n');
        Ok(())
    }

    /// Returns an entry with blocks that differ from the log's.
    fn new_entry(
        &mut self,
        group: &Group<'_>,
        source: Option<&JsonEntry>,
        template: Option<&JsonEntry>,
    ) -> Result<JsonEntry, LogError> {
        let content = group.blocks.iter().map(|block| parsed(&block.json));
        let content: Vec<Value> = content.collect::<Result<_, _>>()?;
        let role = match group.role {
            Role::Assistant => "assistant",
            Role::User | Role::Other => "user",
        };
        let is_message =
            |entry: &&JsonEntry| entry.get("type").and_then(Value::as_str) == Some(role);
        if let Some(source) = source.filter(is_message) {
            let mut entry = source.clone();
            for key in POINTERS {
                entry.shift_remove(key);
            }
            if let Some(Value::Object(message)) = entry.get_mut("message") {
                message.insert("content".to_owned(), content.into());
            }
            return Ok(entry);
        }
        let mut entry = JsonEntry::new();
        entry.insert("parentUuid".to_owned(), Value::Null);
        entry.insert("isSidechain".to_owned(), false.into());
        for key in OF_SESSION {
            if let Some(value) = template.and_then(|template| template.get(key)) {
                entry.insert(key.to_owned(), value.clone());
            }
        }
        entry.insert("type".to_owned(), role.into());
        let message = match group.role {
            Role::Assistant => json!({
                "id": format!("msg_{}", self.ids.hex(24)),
                "type": "message",
                "role": role,
                "model": self.log.model,
                "content": content,
                "stop_reason": null,
                "stop_sequence": null,
                "usage": usage(0),
            }),
            Role::User | Role::Other => json!({ "role": role, "content": content }),
        };
        entry.insert("message".to_owned(), message);
        if let Some(time) = template.and_then(|template| template.get("timestamp")) {
            entry.insert("timestamp".to_owned(), time.clone());
        }
        Ok(entry)
    }
}

/// Returns the usage of an answer. Claude Code takes the last one for the size of the context.
fn usage(tokens: u64) -> Value {
    json!({
        "input_tokens": tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 0,
    })
}
