//! The messages of a Chat Completions request: the parts that only this protocol has, and how a turn is
//! written.

use std::borrow::Cow;

use plimsoll_context::{Part, ToolCall};
use serde_json::{Map, Value};

use super::details;
use super::dialect::{Dialect, EchoReasoning, EmptyReasoning, NoContent};
use super::parts::{CUSTOM, ORIGIN, file_part, image_part, is_elsewhere};
use crate::compose::{Spot, Spots, TurnWriter};
use crate::normalize::{Converted, Native};
use crate::object::{Object, members, push_text};
use crate::raw::own;
use crate::request::LeftOut;
use crate::server_rules::{MessageForm, ReasoningRule, ServerRules};
use crate::turns::{Block, Content, Role, Turn, TurnCall};

/// Writes for the server of a dialect.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChatWriter<'d>(pub(super) &'d Dialect);

impl Native for ChatWriter<'_> {
    fn part(&mut self, part: &Part, role: Role, _: usize) -> Converted {
        let opaque = match part {
            Part::Image(image) => return Ok(Some(Content::Json(image_part(image)))),
            // The protocol accepts files by id and by value, but not by address.
            Part::File(file) if is_elsewhere(file) => return Err(LeftOut::Attachment),
            Part::File(file) => return Ok(Some(Content::Json(file_part(file)))),
            Part::Opaque(opaque) => opaque,
            // Reasoning is a key of the message.
            _ => return Ok(None),
        };
        if let Some(keys) = details::keys(opaque) {
            let keys = details::read_by(self.0, keys);
            return Ok((role == Role::Assistant).then_some(Content::Keys(keys)));
        }
        let part: Option<Map<String, Value>> = own(opaque, ORIGIN);
        let part = part.filter(|keys| keys.get("type").is_some_and(Value::is_string));
        let part = Value::Object(part.ok_or(LeftOut::ForeignBlock)?);
        Ok(Some(Content::Json(part.to_string())))
    }

    fn call(&mut self, call: &ToolCall) -> (bool, String, Option<String>) {
        let own = call.opaque.as_ref().and_then(|opaque| own(opaque, ORIGIN));
        let mut keys: Map<String, Value> = own.unwrap_or_default();
        let kind = keys.shift_remove("type");
        (
            kind.is_some_and(|kind| kind == CUSTOM),
            members(&keys),
            None,
        )
    }
}

impl TurnWriter for ChatWriter<'_> {
    fn write(&self, turn: &Turn, out: &mut Vec<u8>, spots: &mut Spots) {
        let role = match (turn.role, self.0.developer_role) {
            (Role::System, false) => "system",
            (Role::System, true) => "developer",
            (Role::User, _) => "user",
            (Role::Assistant, _) => "assistant",
            (Role::Tool, _) => "tool",
        };
        out.extend_from_slice(br#"{"role":"#);
        push_text(out, role);
        self.content(turn, out, spots);
        let calls: Vec<String> = turn.calls().map(call_json).collect();
        let mut rest = Object::new().optional("reasoning_content", turn.reasoning.as_deref());
        if !calls.is_empty() {
            rest = rest.list("tool_calls", calls.iter().map(String::as_str));
        }
        let answered = turn.answers.as_ref().map(|answer| answer.id.as_str());
        let rest = rest.optional("tool_call_id", answered);
        let rest = rest.members(&members(&turn.keys)).end();
        let rest = rest.strip_prefix('{').unwrap_or_default();
        if rest != "}" {
            out.push(b',');
        }
        out.extend_from_slice(rest.as_bytes());
    }
}

impl ChatWriter<'_> {
    fn content(&self, turn: &Turn, out: &mut Vec<u8>, spots: &mut Spots) {
        let is_content = |block: &&Block| !matches!(block.content, Content::Call(_));
        let blocks: Vec<&Block> = turn.blocks.iter().filter(is_content).collect();
        if blocks.is_empty() && !(turn.blocks.is_empty() && turn.keys.is_empty()) {
            let content: &[u8] = match self.0.no_content {
                NoContent::Null => br#","content":null"#,
                NoContent::Empty => br#","content":"""#,
                NoContent::Omit => b"",
            };
            return out.extend_from_slice(content);
        }
        out.extend_from_slice(br#","content":"#);
        let markable = blocks.last().filter(|block| {
            let text = block.as_text();
            text.is_some_and(|text| !text.trim().is_empty())
        });
        let texts: Option<Vec<&str>> = blocks.iter().map(|block| block.as_text()).collect();
        let joined = texts.filter(|texts| texts.len() <= 1 || self.0.joins_texts);
        if let Some(texts) = joined {
            let text = Some(out.len());
            match texts.as_slice() {
                [text] => push_text(out, text),
                texts => push_text(out, &texts.join("\n")),
            }
            let end = out.len();
            if let Some(block) = markable {
                spots.block(block, Spot { end, text });
            }
            return;
        }
        let parts = blocks.iter().filter_map(|block| block.part("text"));
        let parts: Vec<Cow<'_, str>> = parts.collect();
        out.push(b'[');
        out.extend_from_slice(parts.join(",").as_bytes());
        if let Some(block) = markable {
            let end = out.len().saturating_sub(1);
            spots.block(block, Spot { end, text: None });
        }
        out.push(b']');
    }
}

fn call_json(call: &TurnCall) -> String {
    let (kind, taken) = if call.custom {
        (CUSTOM, "input")
    } else {
        ("function", "arguments")
    };
    let called = Object::new()
        .text("name", &call.name)
        .text(taken, &call.arguments);
    Object::new()
        .text("id", &call.id)
        .text("type", kind)
        .raw(kind, &called.end())
        .members(&call.members)
        .end()
}

impl Dialect {
    /// Returns the server's requirements for the messages.
    pub(super) fn rules(&self) -> ServerRules {
        let placeholder = match self.empty_reasoning {
            EmptyReasoning::Omit => None,
            EmptyReasoning::Empty => Some(""),
            EmptyReasoning::Space => Some(" "),
        };
        let reasoning = |only_with_calls| {
            Some(ReasoningRule {
                only_with_calls,
                placeholder,
            })
        };
        ServerRules {
            form: MessageForm::Chat,
            ids: self.call_ids,
            object_arguments: self.object_arguments,
            system_first: self.system_first,
            merges_roles: self.merges_roles,
            images: self.images,
            user_first: self.merges_roles || self.needs_user,
            user_required: self.needs_user,
            user_after_result: self.user_after_tool,
            assistant_last: self.prefill,
            parallel_calls: self.parallel_calls,
            reasoning: match self.echo_reasoning {
                EchoReasoning::Never => None,
                EchoReasoning::ToolTurns => reasoning(true),
                EchoReasoning::ToolExchanges | EchoReasoning::Always => reasoning(false),
            },
            ..ServerRules::BLOCKS
        }
    }
}
