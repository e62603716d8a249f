//! Tool calls for small local models.
//!
//! A schema forces every turn to be one JSON object, either a tool call or the final answer. The server
//! only needs `response_format`, not tool support. Models that can call tools should use the native
//! way, which is better.

use plimsoll_context::{
    CallId, Delta, Message, Part, Reply, StopReason, ToolCall, ToolResult, ToolSpec, Usage,
};
use serde_json::{Map, Value, json};

use super::dialect::{Dialect, ToolStyle};
use super::stream::ChatStreamState;
use crate::compose::RequestRenderer;
use crate::decoder::StreamDecoder;
use crate::error::WireError;
use crate::open_reply::OpenContent;
use crate::prompt_texts::JSON_TURNS;
use crate::request::{EncodedRequest, LeftOut, Note, RenderInput, ToolChoice};
use crate::tools::{is_json_object, object_text};

/// The maximum number of characters in a string of a turn. Otherwise a confused small model may fill
/// its whole output with one string. Grammars of llama.cpp count only up to 2,000.
const MAX_STRING: u64 = 1_500;

/// The longest escape in a JSON string: two surrogates.
const MAX_ESCAPE: usize = 12;

/// Renders a view in which calls, results and answers are plain texts.
pub(super) fn render(
    input: &RenderInput<'_>,
    messages: &[&Message],
    dialect: &Dialect,
) -> EncodedRequest {
    let mut tools: Vec<&ToolSpec> = input.tools.iter().collect();
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    let system = system(input, &tools);
    let format = response_format(input, &tools);
    let mut extra = input.extra.cloned().unwrap_or_default();
    extra.insert("response_format".to_owned(), format);
    let plain_input = RenderInput {
        system: Some(&system),
        tools: &[],
        tool_choice: ToolChoice::Auto,
        extra: Some(&extra),
        ..input.clone()
    };
    let dialect = Dialect {
        tools: ToolStyle::Native,
        ..dialect.clone()
    };
    let turns: Vec<Message> = (0..messages.len())
        .filter_map(|index| plain(messages, index))
        .collect();
    let turns: Vec<&Message> = turns.iter().collect();
    let mut rendered = dialect.render(&plain_input, &turns);
    let broken = messages.iter().enumerate();
    let broken = broken.filter(|(_, message)| message.calls().any(is_broken));
    rendered.notes.extend(broken.map(|(index, _)| Note {
        message: Some(index),
        what: LeftOut::BrokenArguments,
    }));
    // Notes about settings come last.
    let of = |note: &Note| note.message.unwrap_or(usize::MAX);
    rendered.notes.sort_by_key(of);
    rendered
}

/// A decoder for replies that are one JSON object: a tool call or an answer. The text of an answer is
/// streamed, the rest of the object is not.
#[derive(Debug)]
pub struct TurnDecoder {
    chat: ChatStreamState,
    /// The length of the answer that was reported.
    told: usize,
    number: usize,
}

impl TurnDecoder {
    /// Creates a decoder. The call's id is derived from `number`; use the number of messages in the
    /// request.
    #[must_use]
    pub fn new(number: usize) -> Self {
        Self {
            chat: ChatStreamState::new(),
            told: 0,
            number,
        }
    }

    /// Replaces the new JSON text with the part of the answer in it.
    fn told(&mut self, mut deltas: Vec<Delta>) -> Vec<Delta> {
        let mut blocks = self.chat.reply.blocks().iter();
        let turn = blocks.find(|block| matches!(block.content, OpenContent::Text(_)));
        let answer = answer_so_far(turn.map_or("", |turn| turn.text())).unwrap_or_default();
        deltas.retain(|delta| !matches!(delta, Delta::Text { .. }));
        if let Some(text) = answer.get(self.told..).filter(|text| !text.is_empty()) {
            let text = text.to_owned();
            deltas.push(Delta::Text { text });
            self.told = answer.len();
        }
        deltas
    }
}

impl StreamDecoder for TurnDecoder {
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        let deltas = self.chat.push(data)?;
        Ok(self.told(deltas))
    }

    fn push_whole(&mut self, body: &str) -> Result<Vec<Delta>, WireError> {
        let deltas = self.chat.push_whole(body)?;
        Ok(self.told(deltas))
    }

    fn has_ended(&self) -> bool {
        self.chat.has_ended()
    }

    fn is_complete(&self) -> bool {
        self.chat.is_complete()
    }

    fn partial(&self) -> Reply {
        self.chat.partial()
    }

    fn usage(&self) -> Option<Usage> {
        self.chat.usage()
    }

    fn finish(&self) -> Result<Reply, WireError> {
        Ok(read_turn(self.chat.finish()?, self.number))
    }
}

/// Returns the answer in the beginning of a turn, as far as it can be decoded. `None` if the turn is none.
fn answer_so_far(turn: &str) -> Option<String> {
    let mut rest = turn.trim_start();
    for token in ["{", "\"answer\"", ":"] {
        rest = rest.strip_prefix(token)?.trim_start();
    }
    let closed = |text: &str| {
        let mut texts = serde_json::Deserializer::from_str(text).into_iter::<String>();
        texts.next()?.ok()
    };
    // The last escape may not be whole yet.
    let before = |cut| Some(format!("{}\"", rest.get(..rest.len().checked_sub(cut)?)?));
    closed(rest).or_else(|| (0..=MAX_ESCAPE).find_map(|cut| closed(&before(cut)?)))
}

/// Converts the JSON object in the text of such a reply to a call or an answer.
///
/// The call's id is derived from `number`. An object that was cut off is dropped. Thinking is kept.
fn read_turn(reply: Reply, number: usize) -> Reply {
    let texts: Vec<&str> = reply.parts.iter().filter_map(Part::as_text).collect();
    let turn: Map<String, Value> = serde_json::from_str(texts.concat().trim()).unwrap_or_default();
    let thoughts = reply.parts.iter();
    let thoughts = thoughts.filter(|part| matches!(part, Part::Thinking(_)));
    let mut parts: Vec<Part> = thoughts.cloned().collect();
    let mut stop = reply.stop;
    match (turn.get("answer"), turn.get("tool")) {
        (Some(Value::String(answer)), _) => parts.push(Part::text(answer.as_str())),
        (_, Some(Value::String(name))) => {
            let arguments = turn.get("arguments").cloned();
            parts.push(Part::ToolCall(ToolCall {
                id: CallId(format!("call_{number}")),
                name: name.clone(),
                arguments: arguments.unwrap_or_else(|| json!({})).to_string(),
                opaque: None,
            }));
            if stop == StopReason::Stop {
                stop = StopReason::ToolCalls;
            }
        }
        _ => {}
    }
    Reply {
        parts,
        stop,
        ..reply
    }
}

/// Returns the system prompt with the rules for turns and the tools. The examples of tools have the
/// required parameters only, because small models copy everything they see.
fn system(input: &RenderInput<'_>, tools: &[&ToolSpec]) -> String {
    let mut text = input.system.unwrap_or_default().trim_end().to_owned();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(JSON_TURNS);
    text.push('\n');
    for tool in tools {
        let required = tool.schema.get("required").and_then(Value::as_array);
        let properties = tool.schema.get("properties").and_then(Value::as_object);
        let (mut example, mut optional) = (Map::new(), Vec::new());
        for (name, property) in properties.into_iter().flatten() {
            if required.is_some_and(|required| required.iter().any(|one| one == name.as_str())) {
                let value = match first_type(property) {
                    Some("integer" | "number") => json!(1),
                    Some("boolean") => json!(false),
                    Some("array") => json!([]),
                    Some("object") => json!({}),
                    _ => json!(name.to_uppercase()),
                };
                example.insert(name.clone(), value);
            } else {
                optional.push(name.as_str());
            }
        }
        let turn = json!({ "tool": tool.name, "arguments": example });
        text.push_str(&format!("\n{turn}  {}", tool.description.trim()));
        if !optional.is_empty() {
            text.push_str(&format!(" (may have {})", optional.join(", ")));
        }
    }
    text.push_str("\n{\"answer\":\"TEXT\"}  ends the task with the final answer");
    text
}

fn first_type(property: &Value) -> Option<&str> {
    match property.get("type")? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|kind| *kind != "null")
        }
        _ => None,
    }
}

fn response_format(input: &RenderInput<'_>, tools: &[&ToolSpec]) -> Value {
    let may_call = input.tool_choice == ToolChoice::Auto;
    let open = tools.iter().filter(|_| may_call);
    let mut turns: Vec<Value> = open.map(|tool| call_schema(tool)).collect();
    let answer = json!({ "type": "string", "minLength": 1, "maxLength": MAX_STRING });
    turns.push(json!({
        "type": "object",
        "properties": { "answer": answer },
        "required": ["answer"],
        "additionalProperties": false,
    }));
    let schema = json!({ "name": "turn", "strict": true, "schema": { "anyOf": turns } });
    json!({ "type": "json_schema", "json_schema": schema })
}

/// Returns the schema of a call. All strings of the top level have a maximum length.
fn call_schema(tool: &ToolSpec) -> Value {
    let mut arguments = tool.schema.clone();
    let properties = arguments
        .get_mut("properties")
        .and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        let is_string = first_type(property) == Some("string");
        if let Some(property) = property.as_object_mut().filter(|_| is_string) {
            property.remove("description");
            let length = property.entry("maxLength");
            length.or_insert_with(|| json!(MAX_STRING));
        }
    }
    if let Some(object) = arguments.as_object_mut() {
        object.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    json!({
        "type": "object",
        "properties": { "tool": { "const": tool.name }, "arguments": arguments },
        "required": ["tool", "arguments"],
        "additionalProperties": false,
    })
}

/// Converts a message to plain text: calls and answers become the JSON that the model wrote, results
/// become user messages that name their call.
fn plain(messages: &[&Message], index: usize) -> Option<Message> {
    let (before, message) = (messages.get(..index)?, *messages.get(index)?);
    Some(match message {
        Message::Assistant { parts } => {
            let lines = parts.iter().filter_map(|part| match part {
                Part::Text { text } => Some(json!({ "answer": text }).to_string()),
                Part::ToolCall(call) => {
                    let arguments = serde_json::from_str(&object_text(&call.arguments));
                    let arguments: Value = arguments.unwrap_or_default();
                    Some(json!({ "tool": call.name, "arguments": arguments }).to_string())
                }
                _ => None,
            });
            Message::assistant(lines.collect::<Vec<_>>().join("\n"))
        }
        Message::ToolResult(result) => {
            let mut turns = before.iter().rev();
            let turn = turns.find(|message| matches!(message, Message::Assistant { .. }));
            let mut calls = turn.into_iter().flat_map(|turn| turn.calls());
            result_message(result, calls.find(|call| call.id == result.call))
        }
        other => other.clone(),
    })
}

/// Returns `true` if the arguments of a call must be sent inside an object.
fn is_broken(call: &ToolCall) -> bool {
    !call.arguments.trim().is_empty() && !is_json_object(&call.arguments)
}

fn result_message(result: &ToolResult, call: Option<&ToolCall>) -> Message {
    let head = match call {
        Some(call) => {
            let arguments: Map<String, Value> =
                serde_json::from_str(&call.arguments).unwrap_or_default();
            let values = arguments.values().map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            let values: Vec<String> = values.collect();
            format!("Result of {}({}):", call.name, values.join(", "))
        }
        None => "Result:".to_owned(),
    };
    let mut parts = vec![Part::text(head)];
    parts.extend(result.parts.iter().cloned());
    let texts: Option<Vec<&str>> = parts.iter().map(Part::as_text).collect();
    match texts {
        Some(texts) => Message::user(texts.join("\n")),
        None => Message::User { parts },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<ToolSpec> {
        vec![ToolSpec {
            name: "read".into(),
            description: "Reads a page of a file.".into(),
            schema: json!({ "type": "object", "required": ["path"], "properties": {
                "path": { "type": "string" }, "offset": { "type": ["integer", "null"] } } }),
        }]
    }

    fn body(messages: &[Message], tool_choice: ToolChoice) -> Value {
        let tools = tools();
        let input = RenderInput {
            system: Some("Be brief."),
            tools: &tools,
            tool_choice,
            ..RenderInput::default()
        };
        let dialect = Dialect {
            tools: ToolStyle::JsonSchema,
            ..Dialect::compatible()
        };
        let rendered = crate::compose::render(&input, messages, &dialect).unwrap();
        serde_json::from_slice(&rendered.body).unwrap()
    }

    fn reply(text: &str) -> Reply {
        Reply {
            parts: vec![Part::text(text)],
            stop: StopReason::Stop,
            usage: None,
            model: None,
        }
    }

    #[test]
    fn a_view_becomes_plain_turns_under_a_schema() {
        let call = read_turn(
            reply(r#"{"tool": "read", "arguments": {"path": "a.md", "offset": 1}}"#),
            1,
        );
        assert_eq!(call.stop, StopReason::ToolCalls);
        let id = CallId("call_1".into());
        let messages = [
            Message::user("go"),
            Message::Assistant { parts: call.parts },
            Message::result(id, "# A"),
        ];
        let request = body(&messages, ToolChoice::Auto);
        assert_eq!(
            request["messages"][0]["content"],
            "Be brief.\n\nEach turn, reply with one JSON object and nothing else: one tool call, or the final answer.\n\
             \n{\"tool\":\"read\",\"arguments\":{\"path\":\"PATH\"}}  Reads a page of a file. (may have offset)\
             \n{\"answer\":\"TEXT\"}  ends the task with the final answer"
        );
        assert_eq!(
            request["messages"][2]["content"],
            r#"{"tool":"read","arguments":{"path":"a.md","offset":1}}"#
        );
        assert_eq!(request["messages"][3]["role"], "user");
        assert_eq!(
            request["messages"][3]["content"],
            "Result of read(a.md, 1):\n# A"
        );
        let turns = &request["response_format"]["json_schema"]["schema"]["anyOf"];
        assert_eq!(turns.as_array().unwrap().len(), 2);
        assert!(request.get("tools").is_none());
        let last = body(&messages, ToolChoice::None);
        let turns = &last["response_format"]["json_schema"]["schema"]["anyOf"];
        assert_eq!(turns.as_array().unwrap().len(), 1, "only an answer");
        assert_eq!(last["messages"], request["messages"], "the prefix stays");
    }

    #[test]
    fn what_was_thought_stays_and_broken_arguments_are_kept_and_told() {
        let thought = Part::Thinking(plimsoll_context::Thinking {
            text: "hm".into(),
            opaque: None,
        });
        let mut answer = reply(r#"{"answer": "4 rungs"}"#);
        answer.parts.insert(0, thought.clone());
        assert_eq!(read_turn(answer, 0).parts, [thought, Part::text("4 rungs")]);
        let call = Part::ToolCall(ToolCall {
            id: CallId("a".into()),
            name: "read".into(),
            arguments: "{\"path\":".into(),
            opaque: None,
        });
        let messages = [
            Message::user("go"),
            Message::Assistant { parts: vec![call] },
            Message::result(CallId("a".into()), "no"),
        ];
        let tools = tools();
        let input = RenderInput {
            tools: &tools,
            ..RenderInput::default()
        };
        let dialect = Dialect {
            tools: ToolStyle::JsonSchema,
            ..Dialect::compatible()
        };
        let rendered = crate::compose::render(&input, &messages, &dialect).unwrap();
        let body: Value = serde_json::from_slice(&rendered.body).unwrap();
        assert_eq!(
            body["messages"][2]["content"],
            r#"{"tool":"read","arguments":{"malformed_arguments":"{\"path\":"}}"#
        );
        assert_eq!(
            rendered.notes,
            [Note {
                message: Some(1),
                what: LeftOut::BrokenArguments
            }]
        );
    }

    #[test]
    fn an_answer_is_text_and_a_cut_object_says_nothing() {
        assert_eq!(
            read_turn(reply(r#"{"answer": "4 rungs"}"#), 0).parts,
            [Part::text("4 rungs")]
        );
        assert_eq!(read_turn(reply(r#"{"answer": "4 run"#), 0).parts, []);
        assert_eq!(read_turn(reply("[]"), 0).parts, []);
    }

    #[test]
    fn the_answer_can_be_read_along() {
        let turn = r#" { "answer" : "a \"b\"\n\u00e9 \ud83e\udd80 ü" , "x": 1}"#;
        for step in 1..turn.len() {
            let mut decoder = TurnDecoder::new(0);
            let mut answer = String::new();
            let mut rest = turn;
            while !rest.is_empty() {
                let cut = (step..=rest.len())
                    .find(|at| rest.is_char_boundary(*at))
                    .unwrap_or(rest.len());
                let (piece, after) = rest.split_at(cut);
                let chunk = json!({"choices": [{"delta": {"content": piece}}]});
                for delta in decoder.push(&chunk.to_string()).unwrap() {
                    match delta {
                        Delta::Text { text } => answer.push_str(&text),
                        other => panic!("{other:?}"),
                    }
                }
                rest = after;
            }
            assert_eq!(answer, "a \"b\"\né 🦀 ü", "{step}");
        }
        assert_eq!(answer_so_far(r#"{"tool": "read"}"#), None);
    }
}
