//! [`chat`]: a view as what the library sends: results of a batch together and before anything else
//! that is said, user and assistant in turn, nothing empty, nothing of another provider's. Every
//! decision looks only at what came before, so that a longer view begins with the same turns.

use std::collections::BTreeMap;

use genai::chat::{
    ChatMessage, ChatRequest, ContentPart, MessageContent, Tool, ToolCall, ToolName, ToolResponse,
};
use plimsoll_agent::{Request, ToolChoice};
use plimsoll_context::{Message, Part, ToolResult, ToolSpec};
use plimsoll_wire::bedrock::MixedTurn;
use plimsoll_wire::frames;
use plimsoll_wire::gemini::Signatures;
use plimsoll_wire::{CallIdForm, CallIdMap};
use serde_json::{Map, Value, json};

use super::api::Api;
use super::media::media;
use super::names::tool_name;
use super::reasoning::{self, Replay};
use super::settings;
use super::signed::{Mark, call_signature, text_parts};

/// Stands for a result without a word; a blank one is refused.
const NOTHING: &str = "(nothing)";
/// What Google takes for a call's signature where there is none to give back: the call is another
/// provider's.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// A request as the library takes it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: ChatRequest,
    /// Whether the model may be asked to think.
    pub(super) replay: Replay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

#[derive(Debug)]
struct Turn {
    role: Role,
    results: Vec<ToolResponse>,
    said: Vec<ContentPart>,
}

/// Takes messages one by one and keeps the turns.
#[derive(Debug)]
struct Shaper<'a> {
    api: &'a Api,
    replay: Replay,
    system: Vec<&'a str>,
    turns: Vec<Turn>,
    /// What results hold that their place cannot; it follows the batch.
    attachments: Vec<ContentPart>,
    ids: CallIdMap,
    /// The names of the newest calls, by their ids in the view.
    names: BTreeMap<&'a str, String>,
    /// All names of tools that were called.
    called: BTreeMap<String, ()>,
}

/// A view as what the library sends.
pub(super) fn chat(request: &Request, api: &Api) -> Asked {
    let messages: Vec<&Message> = request.messages.iter().map(AsRef::as_ref).collect();
    let replay = reasoning::replay(request, &messages, api);
    let mut shaper = Shaper {
        api,
        replay,
        system: Vec::new(),
        turns: Vec::new(),
        attachments: Vec::new(),
        ids: CallIdMap::new(CallIdForm::Word),
        names: BTreeMap::new(),
        called: BTreeMap::new(),
    };
    if says(&request.system) {
        shaper.system.push(&request.system);
    }
    for message in messages {
        shaper.message(message);
    }
    // Where none may be called, Gemini is told so beside them; elsewhere there is no word for that.
    let tools = match request.tool_choice {
        ToolChoice::None if api.gemini().is_none() => &[],
        _ => &*request.tools,
    };
    let chat = shaper.finish(request.dynamic_context.as_deref(), tools);
    Asked {
        request: chat,
        replay,
    }
}

impl<'a> Shaper<'a> {
    fn message(&mut self, message: &'a Message) {
        if !matches!(message, Message::ToolResult(_)) {
            self.end_batch();
        }
        match message {
            Message::System { parts } if self.turns.is_empty() => {
                let texts = parts.iter().filter_map(Part::as_text);
                self.system.extend(texts.filter(|text| says(text)));
            }
            Message::System { parts } => {
                let texts = parts.iter().filter_map(Part::as_text);
                let texts: Vec<&str> = texts.filter(|text| says(text)).collect();
                if !texts.is_empty() {
                    let text = format!("{}\n\n{}", frames::LATER_SYSTEM, texts.join("\n\n"));
                    self.say(Role::User, vec![ContentPart::Text(text)]);
                }
            }
            Message::User { parts } => {
                let parts = self.shown(parts);
                self.say(Role::User, parts);
            }
            Message::Summary { text } => {
                let framed = ContentPart::Text(frames::framed_summary(text));
                self.say(Role::User, vec![framed]);
            }
            Message::Notice { text } => {
                let text = says(text).then(|| ContentPart::Text(text.clone()));
                self.say(Role::User, text.into_iter().collect());
            }
            Message::Assistant { parts } => self.assistant(parts),
            Message::ToolResult(result) => self.result(result),
        }
    }

    fn finish(mut self, context: Option<&str>, tools: &[ToolSpec]) -> ChatRequest {
        self.end_batch();
        if let Some(context) = context.filter(|context| says(context)) {
            self.say(Role::User, vec![ContentPart::Text(context.to_owned())]);
        }
        match self.turns.last().map(|turn| turn.role) {
            None => self.say(
                Role::User,
                vec![ContentPart::Text(frames::OPENING.to_owned())],
            ),
            Some(Role::Assistant) => {
                self.say(
                    Role::User,
                    vec![ContentPart::Text(frames::GO_ON.to_owned())],
                );
            }
            Some(Role::User) => {}
        }
        let tools = self.tools(tools);
        let system = (!self.system.is_empty()).then(|| self.system.join("\n\n"));
        let api = self.api;
        let turns = self.turns.into_iter();
        let messages = turns.flat_map(|turn| turn.messages(api)).collect();
        ChatRequest {
            system,
            messages,
            tools: (!tools.is_empty()).then_some(tools),
            ..ChatRequest::default()
        }
    }

    /// The one place where turns meet: neighbours of one role become one, the user speaks first.
    fn say(&mut self, role: Role, parts: Vec<ContentPart>) {
        if parts.is_empty() {
            return;
        }
        if self.turns.is_empty() && role == Role::Assistant {
            self.say(
                Role::User,
                vec![ContentPart::Text(frames::OPENING.to_owned())],
            );
        }
        self.turn(role).said.extend(parts);
    }

    /// The turn that goes on in this role.
    fn turn(&mut self, role: Role) -> &mut Turn {
        let goes_on = self.turns.last().is_some_and(|turn| turn.role == role);
        let at = if goes_on {
            self.turns.len() - 1
        } else {
            self.turns.len()
        };
        if !goes_on {
            self.turns.push(Turn {
                role,
                results: Vec::new(),
                said: Vec::new(),
            });
        }
        // One was there or has just been put there.
        #[allow(clippy::indexing_slicing)]
        &mut self.turns[at]
    }

    /// What a user's message shows.
    fn shown(&self, parts: &[Part]) -> Vec<ContentPart> {
        let shown = parts.iter().filter_map(|part| match part {
            Part::Text { text } => says(text).then(|| ContentPart::Text(text.clone())),
            Part::Image(image) => Some(media(&image.source, None, self.api)),
            Part::File(file) => Some(media(&file.source, file.name.as_deref(), self.api)),
            Part::Thinking(_) | Part::ToolCall(_) | Part::Opaque(_) => None,
        });
        shown.collect()
    }

    fn assistant(&mut self, parts: &'a [Part]) {
        self.ids.batch();
        self.names.clear();
        let mut said = Vec::with_capacity(parts.len());
        let mut rest = parts;
        let mut called = Called::NotYet;
        while let Some((part, after)) = rest.split_first() {
            rest = after;
            match part {
                Part::Text { text } => {
                    let marks = self.marks(&mut rest);
                    if says(text) || !marks.is_empty() {
                        said.extend(text_parts(text, &marks));
                    }
                }
                Part::Thinking(thinking) => match Mark::of(part) {
                    Some(mark) if self.api.gemini().is_some() => {
                        said.extend(text_parts(
                            "",
                            &[Mark {
                                from: 0,
                                to: 0,
                                ..mark
                            }],
                        ));
                    }
                    _ => said.extend(reasoning::parts(thinking, self.api, self.replay)),
                },
                Part::ToolCall(call) => {
                    said.push(ContentPart::ToolCall(self.call(call, called)));
                    called = Called::Already;
                }
                Part::Image(_) | Part::File(_) => {
                    said.push(ContentPart::Text(frames::LEFT_OUT.to_owned()));
                }
                Part::Opaque(_) => {}
            }
        }
        // Reasoning that nothing came of is refused.
        let speaks =
            |part: &ContentPart| matches!(part, ContentPart::Text(_) | ContentPart::ToolCall(_));
        if said.iter().any(speaks) {
            self.say(Role::Assistant, said);
        }
    }

    /// The signatures behind a text, which they are of.
    fn marks(&self, rest: &mut &'a [Part]) -> Vec<Mark> {
        let mut marks = Vec::new();
        while let (Some((part, after)), Some(_)) = (rest.split_first(), self.api.gemini()) {
            let Some(mark) = Mark::of(part) else {
                break;
            };
            marks.push(mark);
            *rest = after;
        }
        marks
    }

    fn call(&mut self, call: &'a plimsoll_context::ToolCall, called: Called) -> ToolCall {
        let name = tool_name(&call.name, self.api).into_owned();
        self.names.insert(&call.id.0, name.clone());
        self.called.insert(name.clone(), ());
        let id = match self.api.converse() {
            Some(_) => self.ids.call(&call.id.0).into_owned(),
            None => call.id.0.clone(),
        };
        let gemini = self.api.gemini();
        let signature = gemini.and_then(|gemini| {
            let unsigned = gemini.signatures == Signatures::Required && called == Called::NotYet;
            let given = call_signature(call.opaque.as_ref());
            given.or_else(|| unsigned.then(|| UNSIGNED.to_owned()))
        });
        ToolCall {
            call_id: id,
            fn_name: name,
            fn_arguments: arguments(&call.arguments),
            thought_signatures: signature.map(|signature| vec![signature]),
        }
    }

    fn result(&mut self, result: &ToolResult) {
        let id = match self.api.converse() {
            Some(_) => self.ids.result(&result.call.0).into_owned(),
            None => result.call.0.clone(),
        };
        let texts = result.parts.iter().filter_map(Part::as_text);
        let texts: Vec<&str> = texts.filter(|text| says(text)).collect();
        let beside = self.shown(&result.parts).into_iter();
        let beside = beside.filter(|part| !matches!(part, ContentPart::Text(_)));
        let before = self.attachments.len();
        self.attachments.extend(beside);
        let text = match (texts.as_slice(), self.attachments.len() > before) {
            ([], true) => frames::ATTACHMENTS.to_owned(),
            ([], false) => NOTHING.to_owned(),
            (texts, _) => texts.join("\n"),
        };
        let response = ToolResponse {
            call_id: id,
            fn_name: self.names.get(result.call.0.as_str()).cloned(),
            content: text,
        };
        // Before what was said between call and result.
        self.turn(Role::User).results.push(response);
    }

    fn end_batch(&mut self) {
        if !self.attachments.is_empty() {
            let mut parts = vec![ContentPart::Text(frames::ATTACHMENTS.to_owned())];
            parts.append(&mut self.attachments);
            self.say(Role::User, parts);
        }
    }

    /// The tools, sorted by name so that their order is never a change. Converse must have some
    /// where there are calls in the history (BR5), also when none may be called any more.
    fn tools(&self, tools: &[ToolSpec]) -> Vec<Tool> {
        let mut tools: Vec<Tool> = tools.iter().map(|tool| spec(tool, self.api)).collect();
        if tools.is_empty() && self.api.converse().is_some() {
            let names = self.called.keys();
            tools = names
                .map(|name| tool(name.clone(), None, json!({"type": "object"})))
                .collect();
        }
        tools.sort_by(|one, other| one.name.as_str().cmp(other.name.as_str()));
        tools
    }
}

/// Whether a message has called a tool before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Called {
    NotYet,
    Already,
}

impl Turn {
    fn messages(self, api: &Api) -> Vec<ChatMessage> {
        let Self {
            role,
            results,
            said,
        } = self;
        let of = |parts: Vec<ContentPart>| MessageContent::from_parts(parts);
        if role == Role::Assistant {
            return vec![ChatMessage::assistant(of(plain(said, api)))];
        }
        let said = plain(said, api);
        let responses = |results: Vec<ToolResponse>| -> Vec<ContentPart> {
            results.into_iter().map(ContentPart::ToolResponse).collect()
        };
        let tool = |results| ChatMessage::tool(of(responses(results)));
        match (results.is_empty(), said.is_empty(), api) {
            (true, ..) => vec![ChatMessage::user(of(said))],
            // The library keeps only one result of a message here.
            (false, nothing, Api::Ollama(_)) => {
                let results = results.into_iter().map(|result| tool(vec![result]));
                let said = (!nothing).then(|| ChatMessage::user(of(said)));
                results.chain(said).collect()
            }
            (false, true, _) => vec![tool(results)],
            // Roles need not alternate, and the newest models take nothing beside results (GM4).
            (false, false, Api::Gemini(_) | Api::Vertex(_)) => {
                vec![tool(results), ChatMessage::user(of(said))]
            }
            (false, false, Api::Converse(converse)) if converse.mixed == MixedTurn::Allowed => {
                let mut parts = responses(results);
                parts.extend(said);
                vec![ChatMessage::user(of(parts))]
            }
            (false, false, Api::Converse(_)) => vec![
                tool(results),
                ChatMessage::assistant(frames::BRIDGE),
                ChatMessage::user(of(said)),
            ],
        }
    }
}

/// What the library would change by itself: it joins texts without a space for Ollama, so they are
/// one before; it drops a signature of Gemini's that a call has too, so nothing empty may follow it.
fn plain(parts: Vec<ContentPart>, api: &Api) -> Vec<ContentPart> {
    match api {
        Api::Ollama(_) => {}
        Api::Converse(_) => return parts,
        Api::Gemini(_) | Api::Vertex(_) => return once_signed(parts),
    }
    let mut plain: Vec<ContentPart> = Vec::with_capacity(parts.len());
    for part in parts {
        let said = plain.iter_mut().find_map(|part| match part {
            ContentPart::Text(said) => Some(said),
            _ => None,
        });
        match (part, said) {
            (ContentPart::Text(text), Some(said)) => {
                said.push_str("\n\n");
                said.push_str(&text);
            }
            (part, _) => plain.push(part),
        }
    }
    plain
}

fn once_signed(parts: Vec<ContentPart>) -> Vec<ContentPart> {
    let calls = parts.iter().filter_map(|part| match part {
        ContentPart::ToolCall(call) => call.thought_signatures.clone(),
        _ => None,
    });
    let taken: Vec<String> = calls.flatten().collect();
    let mut unsigned = false;
    let mut kept = parts;
    kept.retain(|part| match part {
        ContentPart::ThoughtSignature(signature) => {
            unsigned = taken.contains(signature);
            !unsigned
        }
        ContentPart::Text(text) => !(std::mem::take(&mut unsigned) && text.is_empty()),
        _ => true,
    });
    kept
}

fn spec(spec: &ToolSpec, api: &Api) -> Tool {
    let description = says(&spec.description).then(|| spec.description.clone());
    let schema = match &spec.schema {
        Value::Object(keys) if keys.contains_key("type") => spec.schema.clone(),
        Value::Object(keys) => {
            let mut typed = keys.clone();
            typed.insert("type".into(), "object".into());
            Value::Object(typed)
        }
        _ => json!({"type": "object"}),
    };
    let name = tool_name(&spec.name, api).into_owned();
    tool(name, description, schema)
}

fn tool(name: String, description: Option<String>, schema: Value) -> Tool {
    Tool {
        description,
        schema: Some(schema),
        ..Tool::new(ToolName::Custom(name))
    }
}

/// The arguments if they are a JSON object, else an object that holds them.
fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(object) => Value::Object(object),
        Err(_) => json!({settings::MALFORMED: text}),
    }
}

/// Whether a text says anything: white space alone is refused.
fn says(text: &str) -> bool {
    !text.trim().is_empty()
}
