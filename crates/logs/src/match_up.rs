//! Finds the original block in the log for each block of a repaired and compacted history.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::blocks;
use crate::error::LogError;
use crate::session::{HistoryBlock, Role, SessionLog, Wire};

/// A block of the new history.
#[derive(Debug)]
pub(crate) struct MatchedBlock {
    pub(crate) role: Role,
    pub(crate) json: String,
    /// The index of the block in the log; `None` if the block is new.
    pub(crate) origin: Option<usize>,
    /// Whether the block is unchanged.
    pub(crate) same: bool,
    /// The index of its message.
    pub(crate) turn: usize,
}

#[derive(Deserialize)]
struct History<'t> {
    #[serde(borrow, default)]
    messages: Vec<&'t RawValue>,
    #[serde(borrow, default)]
    input: Vec<&'t RawValue>,
}

#[derive(Deserialize)]
struct HistoryTurn<'t> {
    #[serde(default)]
    role: String,
    #[serde(borrow)]
    content: &'t RawValue,
}

/// The keys that identify a block.
#[derive(Deserialize, Default)]
#[serde(default)]
struct MatchKeys<'t> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    text: Option<Cow<'t, str>>,
    id: Option<String>,
    tool_use_id: Option<String>,
    call_id: Option<String>,
    #[serde(borrow)]
    thinking: Option<Cow<'t, str>>,
}

/// Matches the blocks of a history with those of the log from which it was made.
pub(crate) fn match_up(log: &SessionLog, history: &str) -> Result<Vec<MatchedBlock>, LogError> {
    let mut places: HashMap<(Role, String), VecDeque<usize>> = HashMap::new();
    for (at, block) in log.blocks.iter().enumerate() {
        let key = (block.role, identity(&block.json));
        places.entry(key).or_default().push_back(at);
    }
    let mut matched = split(log.wire, history)?;
    let mut last = None;
    for block in &mut matched {
        let Some(candidates) = places.get_mut(&(block.role, identity(&block.json))) else {
            continue;
        };
        let behind = candidates.iter().position(|at| Some(*at) > last);
        block.origin = candidates.remove(behind.unwrap_or_default());
        last = last.max(block.origin);
        let origin = block.origin.and_then(|at| log.blocks.get(at));
        block.same = origin.is_some_and(|origin: &HistoryBlock| origin.json == block.json);
    }
    Ok(matched)
}

/// Splits a history into its blocks.
fn split(wire: Wire, history: &str) -> Result<Vec<MatchedBlock>, LogError> {
    let parsed: History<'_> = serde_json::from_str(history).map_err(LogError::write)?;
    let mut blocks = Vec::new();
    for (turn, raw) in parsed.input.iter().chain(&parsed.messages).enumerate() {
        let mut push = |role: Role, json: String| {
            blocks.push(MatchedBlock {
                role,
                json,
                origin: None,
                same: false,
                turn,
            });
        };
        if wire != Wire::Messages {
            push(Role::Other, raw.get().to_owned());
            continue;
        }
        let message: HistoryTurn<'_> = serde_json::from_str(raw.get()).map_err(LogError::write)?;
        let role = match message.role.as_str() {
            "assistant" => Role::Assistant,
            _ => Role::User,
        };
        if let Ok(text) = serde_json::from_str::<String>(message.content.get()) {
            push(role, blocks::text(&text).to_string());
            continue;
        }
        let content: Vec<&RawValue> =
            serde_json::from_str(message.content.get()).map_err(LogError::write)?;
        for block in content {
            push(role, block.get().to_owned());
        }
    }
    Ok(blocks)
}

/// Returns the text that identifies a block: the id of its call, its text, or the whole block.
fn identity(json: &str) -> String {
    let keys: MatchKeys<'_> = serde_json::from_str(json).unwrap_or_default();
    let MatchKeys {
        kind,
        text,
        id,
        tool_use_id,
        call_id,
        thinking,
    } = keys;
    let id = tool_use_id
        .or(call_id)
        .or(id.filter(|_| kind == "tool_use"));
    let thinking = thinking.filter(|text| !text.is_empty());
    match (id, text, thinking) {
        (Some(id), ..) => format!("{kind} {id}"),
        (_, Some(text), _) => format!("{kind} {text}"),
        (_, _, Some(thinking)) => format!("{kind} {thinking}"),
        _ => json.to_owned(),
    }
}
