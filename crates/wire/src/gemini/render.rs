//! [`render`]: a transcript as the body of a `generateContent` request. Deterministic: an older request,
//! up to the end of its contents, is a byte prefix of a newer one.

use serde_json::{Value, json};

use super::write::{GeminiParts, GeminiWriter, MAX_NAME, RULES, declared};
use super::{GeminiProfile, Thinking};
use crate::chunks::BodyChunks;
use crate::compose::{History, RequestRenderer, WrittenMessages};
use crate::object::{Object, Settings, array, some_members};
use crate::request::{Effort, EncodedRequest, LeftOut, Note, RenderInput, ToolChoice};
use crate::tools;
use crate::tools::legal_name;

/// The bits of a seed that the API accepts.
const MAX_SEED: i64 = i32::MAX as i64;
/// The smallest budget of thinking that all models accept.
const MIN_BUDGET: u64 = 512;
/// The largest budget of thinking that all models accept.
const MAX_BUDGET: u64 = 24_576;
/// The keys of the body that are not settings.
const NOT_SETTINGS: [&str; 4] = ["model", "contents", "systemInstruction", "tools"];

impl RequestRenderer for GeminiProfile {
    fn render(
        &self,
        written: &mut WrittenMessages,
        input: &RenderInput<'_>,
        messages: &dyn History,
    ) -> EncodedRequest<BodyChunks> {
        let composer = written.composer(RULES, input.system);
        for message in messages.since(composer.messages) {
            composer.message(message, &mut GeminiParts::default(), &GeminiWriter(self));
        }
        let mut notes = composer.normalizer.notes.clone();
        let mut head = Object::new();
        if let Some(system) = composer.normalizer.system_text() {
            let part = Object::new().text("text", &system).end();
            let parts = Object::new().raw("parts", &array([part.as_str()]));
            head = head.raw("systemInstruction", &parts.end());
        }
        let declarations = declarations(input, &mut notes);
        let callable = declarations.is_some();
        let own = input.extra.and_then(|extra| extra.get("tools"));
        let own = own.and_then(Value::as_array).into_iter().flatten();
        let tools: Vec<String> = { declarations.into_iter() }
            .chain(own.map(Value::to_string))
            .collect();
        if !tools.is_empty() {
            head = head.raw("tools", &array(tools.iter().map(String::as_str)));
        }
        let settings = settings(input, callable, self, &mut notes);
        let (head, end) = (head.open_list("contents"), composer.end(input.context));
        EncodedRequest {
            body: composer.body(head, &end, (&[], ""), &GeminiWriter(self), &settings),
            notes,
            ..EncodedRequest::default()
        }
    }
}

/// Returns the declarations of all tools as one tool, if there are any.
fn declarations(input: &RenderInput<'_>, notes: &mut Vec<Note>) -> Option<String> {
    let name = |name| match legal_name(name, MAX_NAME) {
        std::borrow::Cow::Borrowed(name) => declared(name),
        std::borrow::Cow::Owned(name) => declared(&name).into_owned().into(),
    };
    let tools = tools::named(input.tools, name, notes);
    let tools = tools.iter().map(|(name, tool)| {
        let schema = tools::typed(&tool.schema);
        let tool = tools::described(name, &tool.description);
        tool.value("parametersJsonSchema", schema).end()
    });
    let tools: Vec<String> = tools.collect();
    let list = array(tools.iter().map(String::as_str));
    (!tools.is_empty()).then(|| Object::new().raw("functionDeclarations", &list).end())
}

fn settings(
    input: &RenderInput<'_>,
    callable: bool,
    profile: &GeminiProfile,
    notes: &mut Vec<Note>,
) -> Settings {
    let mut settings = Settings::new(&[]);
    // The API refuses a choice without tools.
    let choice = match &input.tool_choice {
        _ if !callable => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"mode": "NONE"})),
        ToolChoice::Required => Some(json!({"mode": "ANY"})),
        ToolChoice::Tool(name) => {
            let name = declared(&legal_name(name, MAX_NAME)).into_owned();
            Some(json!({"mode": "ANY", "allowedFunctionNames": [name]}))
        }
    };
    let choice = choice.map(|choice| json!({ "functionCallingConfig": choice }));
    settings.set("toolConfig", choice);
    let thinking = thinking(input, profile);
    if input.effort.is_some() && thinking.is_none() {
        notes.push(Note::setting(LeftOut::Effort));
    }
    let temperature = input.temperature.filter(|wanted| wanted.is_finite());
    let stop = (!input.stop.is_empty()).then(|| Value::from(input.stop));
    let config = some_members([
        ("maxOutputTokens", input.max_output.map(Value::from)),
        ("temperature", temperature.map(Value::from)),
        ("seed", input.seed.map(|seed| Value::from(seed & MAX_SEED))),
        ("stopSequences", stop),
        ("thinkingConfig", thinking),
    ]);
    settings.set("generationConfig", config.map(Value::from));
    if let Some(extra) = input.extra {
        settings.merge(extra, &NOT_SETTINGS);
    }
    settings
}

/// Returns the thinking settings. `None` if the model has none or the request sets none.
fn thinking(input: &RenderInput<'_>, profile: &GeminiProfile) -> Option<Value> {
    let effort = input.effort?;
    let (key, value) = match &profile.thinking {
        Thinking::None => return None,
        Thinking::Budget { can_stop: true } if effort == Effort::None => {
            ("thinkingBudget", 0.into())
        }
        Thinking::Budget { .. } => {
            let wanted = effort.budget(MIN_BUDGET, MAX_BUDGET).unwrap_or(MIN_BUDGET);
            // Thoughts are part of the output, so half of it is left for the answer.
            let budget = wanted.min(input.max_output.map_or(u64::MAX, |max| max / 2));
            if budget < MIN_BUDGET {
                return None;
            }
            ("thinkingBudget", Value::from(budget))
        }
        Thinking::Levels(levels) => {
            let enough = levels.iter().find(|level| **level >= effort);
            let level = enough.or(levels.last())?.name().to_ascii_uppercase();
            ("thinkingLevel", Value::from(level))
        }
    };
    // The reply contains summaries of the thoughts.
    Some(json!({ key: value, "includeThoughts": true }))
}
