//! Tool calls for small local models.
//!
//! A schema forces every turn to be one JSON object, either a tool call or the final answer. The server
//! only needs `response_format`, not tool support. Models that can call tools should use the native
//! way, which is better.

use std::collections::HashMap;

use plimsoll_context::{
    CallId, Delta, Message, Part, Reply, StopReason, ToolCall, ToolResult, ToolSpec,
};
use serde_json::{Map, Value, json};

use super::dialect::{Dialect, ToolStyle};
use super::pieces::CallState;
use super::stream::ChatEvents;
use crate::compose::RequestRenderer;
use crate::decoder::{self, ReplyEvents};
use crate::error::WireError;
use crate::open_reply::OpenReply;
use crate::prompt_texts::JSON_TURNS;
use crate::request::{EncodedRequest, LeftOut, Note, RenderInput, ToolChoice};
use crate::tools::{is_json_object, object_text};

/// The maximum number of characters in a string of a turn. Otherwise a confused small model may fill
/// its whole output with one string. Grammars of llama.cpp count only up to 2,000.
const MAX_STRING: u64 = 1_500;

/// The number of equal calls in a row after which the model is considered stuck. Its next turn must not
/// call that tool.
const STUCK: usize = 3;

/// Renders a view in which calls, results and answers are plain texts.
pub(super) fn render(
    input: &RenderInput<'_>,
    messages: &[&Message],
    dialect: &Dialect,
) -> EncodedRequest {
    let system = match input.format {
        Some(_) => input.system.unwrap_or_default().to_owned(),
        None => system(input),
    };
    let mut extra = input.extra.cloned().unwrap_or_default();
    let mut calls = HashMap::new();
    let mut tail = Tail::default();
    let mut broken: Vec<Note> = Vec::new();
    let turns: Vec<Message> = { messages.iter() }
        .enumerate()
        .map(|(index, message)| {
            tail.see(message);
            if message.calls().any(is_broken) {
                broken.push(Note {
                    message: Some(index),
                    what: LeftOut::BrokenArguments,
                });
            }
            plain(message, &mut calls)
        })
        .collect();
    extra.insert(
        "response_format".to_owned(),
        match input.format {
            Some(schema) => json_schema("answer", schema),
            None => response_format(input, tail.stuck_in()),
        },
    );
    let plain = RenderInput {
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
    let turns: Vec<&Message> = turns.iter().collect();
    let mut rendered = dialect.render(&plain, &turns);
    rendered.from.clear();
    rendered.notes.extend(broken);
    // Notes about settings come last.
    let of = |note: &Note| note.message.unwrap_or(usize::MAX);
    rendered.notes.sort_by_key(of);
    rendered
}

/// Converts the JSON object in the text of such a reply to a call or an answer.
///
/// The call's id is derived from `number`; use the number of messages in the request. An object that
/// was cut off is dropped. Thinking is kept.
fn read_turn(reply: Reply, number: usize) -> Reply {
    let texts: Vec<&str> = reply.parts.iter().filter_map(Part::as_text).collect();
    let thought = reply.parts.iter();
    let thought = thought.filter(|part| matches!(part, Part::Thinking(_)));
    let mut parts: Vec<Part> = thought.cloned().collect();
    parts.extend(match serde_json::from_str::<Value>(texts.concat().trim()) {
        Ok(Value::Object(turn)) => turn_parts(turn, number),
        _ => Vec::new(),
    });
    let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    let stop = match reply.stop {
        StopReason::Stop if calls => StopReason::ToolCalls,
        other => other,
    };
    Reply {
        parts,
        stop,
        ..reply
    }
}

/// Extracts the answer from a turn while it arrives, so that it can be displayed.
#[derive(Debug, Default)]
struct AnswerStream {
    received: String,
    /// The number of decoded bytes of `received`. `None` before the answer begins.
    at: Option<usize>,
    over: bool,
}

impl AnswerStream {
    /// Reports the answer instead of the JSON text around it.
    fn retell(&mut self, delta: Delta) -> Option<Delta> {
        let Delta::Text { text } = delta else {
            return Some(delta);
        };
        let text = self.push(&text);
        (!text.is_empty()).then_some(Delta::Text { text })
    }

    /// Takes the next piece of JSON text and returns the new part of the answer.
    fn push(&mut self, piece: &str) -> String {
        self.received.push_str(piece);
        if self.at.is_none() {
            self.at = answer_start(&self.received);
        }
        let mut added = String::new();
        while let Some(at) = self.at.filter(|_| !self.over) {
            let rest = self.received.get(at..).unwrap_or_default();
            match next_char(rest) {
                Next::Char(c, len) => {
                    added.push(c);
                    self.at = Some(at + len);
                }
                Next::More => break,
                Next::End => self.over = true,
            }
        }
        added
    }
}

/// A decoder for replies that are one JSON object: a tool call or an answer. The text of an answer is
/// streamed, the rest of the object is not.
pub type TurnDecoder = decoder::StreamState<TurnEvents, CallState>;

/// Reads the chunks of such a reply.
#[derive(Debug)]
pub struct TurnEvents {
    chat: ChatEvents,
    answer: AnswerStream,
    number: usize,
}

impl TurnDecoder {
    /// Creates a decoder. The call's id is derived from `number`; use the number of messages in the
    /// request.
    #[must_use]
    pub fn new(number: usize) -> Self {
        Self::of(TurnEvents {
            chat: ChatEvents::default(),
            answer: AnswerStream::default(),
            number,
        })
    }
}

impl ReplyEvents<CallState> for TurnEvents {
    const DONE_ENDS: bool = ChatEvents::DONE_ENDS;

    fn open() -> OpenReply<CallState> {
        ChatEvents::open()
    }

    fn event(&mut self, data: &str, reply: &mut OpenReply<CallState>) -> Result<(), WireError> {
        self.chat.event(data, reply)?;
        reply.retell(|delta| self.answer.retell(delta));
        Ok(())
    }

    fn whole(&mut self, body: &str, reply: &mut OpenReply<CallState>) -> Result<(), WireError> {
        self.chat.whole(body, reply)?;
        reply.retell(|delta| self.answer.retell(delta));
        Ok(())
    }

    fn parts(&self, reply: &OpenReply<CallState>, stop: StopReason) -> Vec<Part> {
        self.chat.parts(reply, stop)
    }

    fn finished(&self, reply: Reply) -> Reply {
        read_turn(reply, self.number)
    }
}

/// The newest call, and the number of times it was made in a row.
#[derive(Debug, Default)]
struct Tail<'a> {
    call: Option<&'a ToolCall>,
    times: usize,
}

impl<'a> Tail<'a> {
    fn see(&mut self, message: &'a Message) {
        match message {
            Message::Assistant { .. } => {
                let call = message.calls().next();
                let same = call.zip(self.call).is_some_and(|(new, old)| {
                    new.name == old.name && new.arguments == old.arguments
                });
                self.times = if same { self.times + 1 } else { 1 };
                self.call = call;
            }
            Message::User { .. } => *self = Self::default(),
            _ => {}
        }
    }

    /// Returns the tool that is called again and again, if the model is stuck.
    fn stuck_in(&self) -> Option<&'a str> {
        self.call
            .filter(|_| self.times >= STUCK)
            .map(|call| call.name.as_str())
    }
}

enum Next {
    Char(char, usize),
    More,
    End,
}

/// Returns the start of the text after `{"answer": "`, if the turn begins with that.
fn answer_start(seen: &str) -> Option<usize> {
    let mut rest = seen;
    for token in ["{", "\"answer\"", ":", "\""] {
        rest = rest.trim_start().strip_prefix(token)?;
    }
    Some(seen.len() - rest.len())
}

/// Returns the first character in the rest of a JSON string.
fn next_char(rest: &str) -> Next {
    let Some(first) = rest.chars().next() else {
        return Next::More;
    };
    match first {
        '"' => Next::End,
        '\\' => {
            // Two surrogates are the longest escape.
            for len in [2, 6, 12] {
                let Some(escape) = rest.get(..len) else {
                    return Next::More;
                };
                if let Ok(text) = serde_json::from_str::<String>(&format!("\"{escape}\""))
                    && let Some(c) = text.chars().next()
                {
                    return Next::Char(c, len);
                }
            }
            Next::End
        }
        c => Next::Char(c, c.len_utf8()),
    }
}

fn turn_parts(mut turn: Map<String, Value>, number: usize) -> Vec<Part> {
    if let Some(Value::String(answer)) = turn.get("answer") {
        return vec![Part::text(answer.as_str())];
    }
    let Some(Value::String(name)) = turn.get("tool").cloned() else {
        return Vec::new();
    };
    let arguments = turn.remove("arguments").unwrap_or_else(|| json!({}));
    let id = CallId(format!("call_{number}"));
    vec![Part::ToolCall(ToolCall {
        id,
        name,
        arguments: arguments.to_string(),
        opaque: None,
    })]
}

/// Returns the system prompt with the rules for turns and the tools.
fn system(input: &RenderInput<'_>) -> String {
    let mut text = input.system.unwrap_or_default().trim_end().to_owned();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(JSON_TURNS);
    text.push('\n');
    for tool in sorted(input.tools) {
        let turn = json!({ "tool": tool.name, "arguments": example(&tool.schema) });
        let more = optional(&tool.schema);
        text.push_str(&format!("\n{turn}  {}{more}", tool.description.trim()));
    }
    text.push_str("\n{\"answer\":\"TEXT\"}  ends the task with the final answer");
    text
}

/// Returns example arguments with the required parameters only, because small models copy everything
/// they see.
fn example(schema: &Value) -> Value {
    let shown = parameters(schema, Need::Required).map(|(name, property)| {
        let value = match first_type(property.get("type")) {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(false),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!(name.to_uppercase()),
        };
        (name.clone(), value)
    });
    Value::Object(shown.collect())
}

/// Returns the list of optional parameters, such as ` (may have offset, limit)`.
fn optional(schema: &Value) -> String {
    let names: Vec<&str> = parameters(schema, Need::Optional)
        .map(|(name, _)| name.as_str())
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(" (may have {})", names.join(", "))
    }
}

#[derive(PartialEq, Eq)]
enum Need {
    Required,
    Optional,
}

fn parameters(schema: &Value, need: Need) -> impl Iterator<Item = (&String, &Value)> {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().filter(move |(name, _)| {
        let listed = required
            .into_iter()
            .flatten()
            .any(|one| one == name.as_str());
        listed == (need == Need::Required)
    })
}

fn first_type(kind: Option<&Value>) -> Option<&str> {
    match kind? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null"),
        _ => None,
    }
}

fn response_format(input: &RenderInput<'_>, stuck_in: Option<&str>) -> Value {
    let answer = json!({
        "type": "object",
        "properties": { "answer": { "type": "string", "minLength": 1, "maxLength": MAX_STRING } },
        "required": ["answer"],
        "additionalProperties": false,
    });
    let tools: Vec<&ToolSpec> = match &input.tool_choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Tool(name) => sorted(input.tools)
            .into_iter()
            .filter(|tool| tool.name == *name)
            .collect(),
        ToolChoice::Auto | ToolChoice::Required => sorted(input.tools),
    };
    let open = tools
        .iter()
        .filter(|tool| Some(tool.name.as_str()) != stuck_in);
    let mut turns: Vec<Value> = open.map(|tool| call_schema(tool)).collect();
    let forced = matches!(
        input.tool_choice,
        ToolChoice::Required | ToolChoice::Tool(_)
    );
    if !forced || turns.is_empty() {
        turns.push(answer);
    }
    json_schema("turn", &json!({ "anyOf": turns }))
}

fn json_schema(name: &str, schema: &Value) -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": name, "strict": true, "schema": schema } })
}

fn call_schema(tool: &ToolSpec) -> Value {
    let mut arguments = tool.schema.clone();
    bound_strings(&mut arguments);
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

/// Limits the length of all strings of the top level that have no limit yet.
fn bound_strings(schema: &mut Value) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        let is_string = first_type(property.get("type")) == Some("string");
        if let Some(property) = property.as_object_mut().filter(|_| is_string) {
            property.remove("description");
            property
                .entry("maxLength")
                .or_insert_with(|| json!(MAX_STRING));
        }
    }
}

fn sorted(tools: &[ToolSpec]) -> Vec<&ToolSpec> {
    let mut sorted: Vec<&ToolSpec> = tools.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    sorted
}

/// Converts a message to plain text: calls and answers become the JSON that the model wrote, results
/// become user messages that name their call.
fn plain(message: &Message, calls: &mut HashMap<CallId, ToolCall>) -> Message {
    match message {
        Message::Assistant { parts } => {
            calls.clear();
            let mut lines = Vec::new();
            for part in parts {
                match part {
                    Part::Text { text } => lines.push(json!({ "answer": text }).to_string()),
                    Part::ToolCall(call) => {
                        lines.push(call_line(call));
                        calls.insert(call.id.clone(), call.clone());
                    }
                    _ => {}
                }
            }
            Message::assistant(lines.join("\n"))
        }
        Message::ToolResult(result) => result_message(result, calls.get(&result.call)),
        other => other.clone(),
    }
}

fn call_line(call: &ToolCall) -> String {
    let arguments: Value = serde_json::from_str(&object_text(&call.arguments)).unwrap_or_default();
    json!({ "tool": call.name, "arguments": arguments }).to_string()
}

/// Returns `true` if the arguments of a call must be sent inside an object.
fn is_broken(call: &ToolCall) -> bool {
    !call.arguments.trim().is_empty() && !is_json_object(&call.arguments)
}

fn result_message(result: &ToolResult, call: Option<&ToolCall>) -> Message {
    let head = match call {
        Some(call) => {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            let values = arguments.as_object().into_iter().flat_map(Map::values);
            let values: Vec<String> = values
                .map(|value| {
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned)
                })
                .collect();
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
    fn a_model_that_is_stuck_in_a_call_must_do_something_else() {
        let call = |number| {
            read_turn(
                reply(r#"{"tool": "read", "arguments": {"path": "a.md"}}"#),
                number,
            )
        };
        let mut messages = vec![Message::user("go")];
        for (number, turns) in [(1, 2), (2, 2), (3, 1)] {
            messages.push(Message::Assistant {
                parts: call(number).parts,
            });
            messages.push(Message::result(CallId(format!("call_{number}")), "# A"));
            let request = body(&messages, ToolChoice::Auto);
            let open = &request["response_format"]["json_schema"]["schema"]["anyOf"];
            assert_eq!(open.as_array().unwrap().len(), turns, "after {number}");
        }
        messages.push(Message::user("again"));
        let request = body(&messages, ToolChoice::Auto);
        let open = &request["response_format"]["json_schema"]["schema"]["anyOf"];
        assert_eq!(
            open.as_array().unwrap().len(),
            2,
            "a person said something new"
        );
    }

    #[test]
    fn the_answer_can_be_read_along() {
        let turn = r#" { "answer" : "a \"b\"\n\u00e9 \ud83e\udd80 ü" , "x": 1}"#;
        for step in 1..turn.len() {
            let mut stream = AnswerStream::default();
            let mut answer = String::new();
            let mut rest = turn;
            while !rest.is_empty() {
                let cut = (step..=rest.len())
                    .find(|at| rest.is_char_boundary(*at))
                    .unwrap_or(rest.len());
                let (piece, after) = rest.split_at(cut);
                answer.push_str(&stream.push(piece));
                rest = after;
            }
            assert_eq!(answer, "a \"b\"\né 🦀 ü", "{step}");
        }
        assert_eq!(AnswerStream::default().push(r#"{"tool": "read"}"#), "");
    }

    #[test]
    fn an_answer_with_a_format_of_its_own_is_held_to_that_and_told_nothing_of_turns() {
        let schema = json!({ "type": "object" });
        let input = RenderInput {
            system: Some("Sum up."),
            format: Some(&schema),
            ..RenderInput::default()
        };
        let json = Dialect {
            tools: ToolStyle::JsonSchema,
            ..Dialect::compatible()
        };
        let question = [Message::user("all of it")];
        let sent = |dialect: &Dialect| -> Value {
            let rendered = crate::compose::render(&input, &question, dialect).unwrap();
            serde_json::from_slice(&rendered.body).unwrap()
        };
        let body = sent(&json);
        assert_eq!(body["response_format"]["json_schema"]["schema"], schema);
        assert_eq!(body["messages"][0]["content"], "Sum up.");
        let native = sent(&Dialect::compatible());
        assert!(native.get("response_format").is_none());
    }
}
