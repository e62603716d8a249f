//! [`render`]: a view of a transcript as the bytes of a Messages request. Deterministic: the same
//! view gives the same bytes. Repairs nothing but the order within one batch; a view that parts a
//! batch is rendered parted, and `validate.rs` says so.

use std::collections::BTreeSet;

use plimsoll_context::{Breakpoint, CachePlan, Message, Opaque, ToolSpec};
use serde_json::{Map, Value};

use super::binding::Prefix;
use super::loops;
use super::object::{Object, array};
use super::pause;
use super::profile::{Profile, UnaskedThinking};
use super::settings::{self, Settings};
use super::shape::{MARK, ORIGIN, Shaper, legal_name, newest, says};
use super::turn::{Block, Role, Turn, What, blocks, marked};
use crate::error::WireError;
use crate::frames;
use crate::openai_chat::{Delivery, Prefill, ToolChoice};
use crate::raw::RawObject;

/// Files by id.
pub(super) const FILES: &str = "files-api-2025-04-14";
/// Context editing, where somebody asks for it in further keys.
pub(super) const CONTEXT_MANAGEMENT: &str = "context-management-2025-06-27";

/// Everything of a request besides its messages.
#[derive(Debug, Clone, Default)]
pub struct RenderInput<'a> {
    /// The model's name.
    pub model: &'a str,
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The tools; they are sent sorted by name, so that their order is never a change.
    pub tools: &'a [ToolSpec],
    /// The provider's own tools, as they are, behind the others; blocks of other wires are left out.
    pub hosted_tools: &'a [Opaque],
    /// Whether and what the model may call; `Auto` is not sent.
    pub tool_choice: ToolChoice,
    /// Output limit in tokens; the wire must have one, so the profile's stands for none.
    pub max_output: Option<u64>,
    /// What is left of the window behind the request; the limit that stands for none is no more.
    pub room: Option<u64>,
    /// How hard the model thinks.
    pub thinking: Thinking,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Texts that end the reply.
    pub stop: &'a [String],
    /// Whether the reply is streamed.
    pub delivery: Delivery,
    /// What holds for this request only; it is sent after the history, in the user's role, so
    /// that it never breaks what the provider has cached.
    pub context: Option<&'a str>,
    /// What is asked of the prompt cache.
    pub cache: Option<&'a CachePlan>,
    /// How long the cache is to live.
    pub ttl: Ttl,
    /// Further keys of the body, sent last; one that is known replaces what is set here.
    pub extra: Option<&'a Map<String, Value>>,
}

/// How hard a model thinks before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thinking {
    /// As the model does if nothing is asked for.
    #[default]
    Unasked,
    /// Not at all.
    Off,
    /// As little as can be.
    Minimal,
    /// A little.
    Low,
    /// As most work wants it.
    Medium,
    /// As much as can be.
    High,
}

/// How long the cache is to live. A longer life never follows a shorter one (AM11), because tools
/// and system prompt come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ttl {
    /// Five minutes.
    #[default]
    FiveMinutes,
    /// Tools and system prompt an hour, messages five minutes.
    HourForHead,
    /// An hour.
    Hour,
}

/// A rendered request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The body as JSON.
    pub body: Vec<u8>,
    /// What the body does not hold or holds in another form; in message order.
    pub notes: Vec<Note>,
    /// For each message of the body, the messages of the view that it says, counted from 0 without
    /// the system prompt; none where it only stands between others. Leading system messages are
    /// said in `system`.
    pub from: Vec<Vec<usize>>,
    /// What the thinking of the reply is bound to: give the reply to [`Prefix::bind`].
    pub prefix: Prefix,
    /// What the `anthropic-beta` header has to name for the API to take the body; none as a rule.
    pub betas: Vec<&'static str>,
}

/// Something that a request does not hold as the transcript does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Which message, counted from 0 without the system prompt; `None` for a setting.
    pub message: Option<usize>,
    /// What.
    pub what: LeftOut,
}

/// What a request may not hold as the transcript or its settings do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// An assistant message that says nothing is left out; it is refused.
    SilentAssistant,
    /// A note stands for an image or a file that the API does not read.
    Attachment,
    /// A block of another provider is left out.
    ForeignBlock,
    /// Citations whose text was changed are left out.
    Citations,
    /// A call of the provider's own tool that stayed without a result is left out.
    ServerCall,
    /// Thinking that this provider did not sign is left out, in the whole tool loop.
    ForeignThinking,
    /// Thinking of another model is left out, in the whole tool loop.
    OtherModel,
    /// Thinking that is bound to what is no longer there is left out, in the whole tool loop.
    OtherPrefix,
    /// Thinking of an earlier tool loop of which it is not known what it is bound to is left out.
    UnknownPrefix,
    /// Thinking is left out: the model is not asked to think on, and in the tool loop under way it
    /// would be refused.
    UnaskedThinking,
    /// Thinking at the end of a message is left out; it is refused.
    LastThinking,
    /// Arguments that are not a JSON object are sent inside one.
    BrokenArguments,
    /// A tool's name with characters that no name has is sent without them.
    ToolName,
    /// A tool with the name of another is left out: the first one counts.
    RepeatedTool,
    /// The model does not think: this tool loop began without it, a tool is forced, or the reply
    /// has no room for it.
    ThinkingOff,
    /// The model may think although it should not: no switch is known that turns its thinking off.
    ThinkingOn,
    /// The model is not made to call a tool: it cannot be.
    ToolForced,
    /// The temperature is not sent: the model thinks, or takes none.
    TemperatureOff,
    /// The temperature is sent as 1, the most there is.
    TemperatureCapped,
    /// A stop sequence of nothing but white space is not sent.
    StopBlank,
    /// The output limit is sent as the model's own.
    OutputCapped,
}

/// Renders a view.
///
/// # Errors
///
/// None in practice: only a value that is no JSON could fail.
pub fn render<'a>(
    input: &RenderInput<'a>,
    messages: impl IntoIterator<Item = &'a Message>,
    profile: &Profile,
) -> Result<Rendered, WireError> {
    let messages: Vec<&'a Message> = messages.into_iter().collect();
    let mut tools: Vec<&ToolSpec> = input.tools.iter().collect();
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    let given = tools.len();
    let renamed = tools.iter().any(|tool| legal_name(&tool.name) != tool.name);
    let renamed = renamed.then_some(LeftOut::ToolName);
    let mut names = BTreeSet::new();
    tools.retain(|tool| names.insert(legal_name(&tool.name)));
    let repeated = (tools.len() < given).then_some(LeftOut::RepeatedTool);
    // What was paused goes back as it stands: nothing is said after it.
    let paused = pause::is_paused(&messages);
    let waiting = paused || pause::is_waiting(&messages);
    let context = input.context.filter(|_| !waiting);
    let input = &RenderInput {
        context,
        ..input.clone()
    };
    let mut verdict = loops::judge(input, &tools, &messages, profile);
    let shape = |without: &[Option<LeftOut>]| {
        let mut shaper = Shaper::new(input, without, pause::unanswered(&messages));
        // Leading system messages follow the prompt, which carries the breakpoint.
        if let Some(system) = input.system.filter(|system| says(system)) {
            shaper.system(system);
        }
        for message in &messages {
            shaper.message(message);
        }
        shaper.finish(input.context)
    };
    let mut shaped = shape(&verdict.without);
    let began = |turns: &[Turn<'_>]| match paused {
        true => settings::paused_loop_began(turns),
        false => settings::loop_began(turns),
    };
    let mut settings = Settings::of(input, profile, began(&shaped.turns));
    // Whether the model thinks is known only now.
    if !settings.thinks
        && profile.unasked_thinking == UnaskedThinking::Refused
        && loops::forget(&mut verdict.without, &messages)
    {
        shaped = shape(&verdict.without);
        settings = Settings::of(input, profile, began(&shaped.turns));
    }
    let hosted = hosted(input.hosted_tools, &mut shaped.notes);
    if !paused {
        last_word(&mut shaped.turns, profile, &settings);
    }
    shaped
        .notes
        .extend(renamed.into_iter().chain(repeated).map(|what| Note {
            message: None,
            what,
        }));
    shaped.notes.extend(settings.notes.iter().cloned());

    let managed = settings
        .keys
        .iter()
        .any(|(key, _)| key == "context_management");
    let needs = [(shaped.files, FILES), (managed, CONTEXT_MANAGEMENT)];
    let needed = needs.into_iter().filter(|(needed, _)| *needed);
    let mut betas: Vec<&'static str> = needed.map(|(_, beta)| beta).collect();
    let announced = input.hosted_tools.iter().filter_map(beta_of);
    for beta in announced {
        if !betas.contains(&beta) {
            betas.push(beta);
        }
    }

    let mut body = Object::new().text("model", input.model);
    if !tools.is_empty() || !hosted.is_empty() {
        body = body.raw("tools", &tools_json(&tools, hosted, input)?);
    }
    if !shaped.system.is_empty() {
        body = body.raw("system", &blocks(&shaped.system));
    }
    let turns: Vec<String> = shaped.turns.iter().map(Turn::json).collect();
    let turns = array(turns.iter().map(String::as_str));
    body = body.raw("messages", &turns);
    for (key, value) in &settings.keys {
        body = body.value(key, value);
    }
    let from = shaped.turns.into_iter().map(|turn| turn.from);
    Ok(Rendered {
        body: body.end().into_bytes(),
        notes: shaped.notes,
        from: from.collect(),
        prefix: verdict.prefix,
        betas,
    })
}

/// The assistant does not have the last word where the model refuses that (AM8), and never while it
/// thinks; where it has, no white space ends it (AM6).
fn last_word(turns: &mut Vec<Turn<'_>>, profile: &Profile, settings: &Settings) {
    let Some(last) = turns.last_mut() else {
        return;
    };
    if last.role != Role::Assistant {
        return;
    }
    if profile.prefill == Prefill::Refused || settings.thinks {
        let mut turn = Turn::new(Role::User);
        turn.blocks.push(Block::text(frames::GO_ON));
        turns.push(turn);
        return;
    }
    if let Some(Block {
        what: What::Text(text),
        ..
    }) = last.blocks.last_mut()
    {
        *text = text.trim_end().to_owned().into();
    }
}

/// The provider's own tools without breakpoints; those of other wires are told of.
fn hosted(tools: &[Opaque], notes: &mut Vec<Note>) -> Vec<String> {
    let mut hosted = Vec::with_capacity(tools.len());
    for tool in tools {
        let own = (tool.origin == ORIGIN)
            .then(|| serde_json::from_str::<RawObject<'_>>(&tool.data).ok())
            .flatten();
        match own.filter(|object| object.get("type").is_some()) {
            Some(object) if object.get(MARK).is_some() => hosted.push(object.with(&[(MARK, None)])),
            Some(_) => hosted.push(tool.data.trim().to_owned()),
            None => notes.push(Note {
                message: None,
                what: LeftOut::ForeignBlock,
            }),
        }
    }
    hosted
}

/// What announces one of the provider's own tools.
fn beta_of(tool: &Opaque) -> Option<&'static str> {
    let own = Some(&tool.data).filter(|_| tool.origin == ORIGIN)?;
    let tool: Value = serde_json::from_str(own).ok()?;
    super::hosted::beta_of(tool.get("type")?.as_str()?)
}

fn tools_json(
    tools: &[&ToolSpec],
    hosted: Vec<String>,
    input: &RenderInput<'_>,
) -> Result<String, WireError> {
    let marks = input.cache.map_or(&[][..], |plan| &plan.breakpoints);
    let cached = newest(marks).contains(&Breakpoint::Tools);
    let mut list = Vec::with_capacity(tools.len());
    for tool in tools {
        let schema = schema(&tool.schema)?;
        let json = Object::new()
            .text("name", &legal_name(&tool.name))
            .text("description", &tool.description)
            .raw("input_schema", &schema);
        list.push(json.end());
    }
    list.extend(hosted);
    if let (true, Some(last)) = (cached, list.last_mut()) {
        *last = marked(last, input.ttl.of_head());
    }
    Ok(array(list.iter().map(String::as_str)))
}

/// A schema as the API takes it: an object's, and it says so.
fn schema(schema: &Value) -> Result<String, WireError> {
    let typed = match schema {
        Value::Object(keys) if keys.get("type").is_some_and(|kind| kind == "object") => {
            serde_json::to_string(schema)
        }
        Value::Object(keys) => {
            let mut typed = keys.clone();
            typed.insert("type".into(), "object".into());
            serde_json::to_string(&typed)
        }
        _ => Ok(r#"{"type":"object"}"#.to_owned()),
    };
    typed.map_err(|error| WireError::not_json(&error))
}

impl Ttl {
    pub(super) fn of_head(self) -> Self {
        match self {
            Self::FiveMinutes => Self::FiveMinutes,
            Self::HourForHead | Self::Hour => Self::Hour,
        }
    }

    pub(super) fn of_messages(self) -> Self {
        match self {
            Self::FiveMinutes | Self::HourForHead => Self::FiveMinutes,
            Self::Hour => Self::Hour,
        }
    }

    pub(super) fn json(self) -> &'static str {
        match self {
            Self::FiveMinutes | Self::HourForHead => r#"{"type":"ephemeral"}"#,
            Self::Hour => r#"{"type":"ephemeral","ttl":"1h"}"#,
        }
    }
}
