//! Runs chats through `plimsoll compact`, like those of users. Kept messages and the summary are
//! judged together.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_context::{Bpe, Message, Part, TokenCounter};
use serde_json::{Value, json};

use super::sessions::sent;
use crate::error::Error;

/// The policy that is judged.
const POLICY: &str = "extract";

/// Compacts each chat to its budget. `None` stands for a chat that was refused.
pub(super) fn compact<'m>(
    root: &Path,
    chats: impl Iterator<Item = (&'m [Message], u64)>,
) -> Result<Vec<Option<Vec<Message>>>, Error> {
    let built = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["build", "--quiet", "--package", "plimsoll-cli"])
        .current_dir(root)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err(Error::Failed("cargo build --package plimsoll-cli"));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into());
    let target = root.join(target);
    let input = target.join("judge-chats.jsonl");
    let mut file = std::fs::File::create(&input).map_err(Error::file(&input))?;
    for (messages, budget) in chats {
        let messages: Vec<Value> = messages.iter().map(written).collect();
        let chat = json!({ "model": "gpt-4o", "budget_tokens": budget, "messages": messages });
        writeln!(file, "{chat}").map_err(Error::file(&input))?;
    }
    let plimsoll = target.join(format!("debug/plimsoll{}", std::env::consts::EXE_SUFFIX));
    // A chat that is refused is a result, so the exit status does not matter.
    let printed = Command::new(&plimsoll)
        .args(["compact", "--lines", "--quiet", "--policy", POLICY])
        .arg(&input)
        .stderr(Stdio::inherit())
        .output()
        .map_err(Error::file(&plimsoll))?;
    let printed = String::from_utf8_lossy(&printed.stdout);
    let read = |line: &str| {
        let chat: Value = serde_json::from_str(line).map_err(|error| Error::Unreadable {
            what: "a chat that was compacted".to_owned(),
            why: error.to_string(),
        })?;
        let messages = chat.get("messages").and_then(Value::as_array);
        Ok(messages.map(|messages| messages.iter().map(sent).collect()))
    };
    printed.lines().map(read).collect()
}

/// Returns the tokens of messages.
pub(super) fn tokens(messages: &[Message]) -> u64 {
    let counter = Bpe::o200k();
    messages
        .iter()
        .map(|message| counter.message(message).0)
        .sum()
}

/// Converts a message to OpenAI's form, without thinking.
fn written(message: &Message) -> Value {
    let text = message.text();
    match message {
        Message::System { .. } => json!({ "role": "system", "content": text }),
        Message::Assistant { parts } => {
            let calls = parts.iter().filter_map(|part| match part {
                Part::ToolCall(call) => Some(json!({
                    "id": call.id.0, "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments },
                })),
                _ => None,
            });
            let calls: Vec<Value> = calls.collect();
            if calls.is_empty() {
                return json!({ "role": "assistant", "content": text });
            }
            json!({ "role": "assistant", "content": text, "tool_calls": calls })
        }
        Message::ToolResult(result) => {
            json!({ "role": "tool", "tool_call_id": result.call.0, "content": text })
        }
        Message::User { .. } | Message::Notice { .. } | Message::Summary { .. } => {
            json!({ "role": "user", "content": text })
        }
    }
}
