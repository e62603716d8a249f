//! [`render`]: a transcript as the body of a Converse request. Deterministic: an older request, up to the
//! end of its messages, is a byte prefix of a newer one with the same tools.

use std::collections::BTreeSet;

use plimsoll_context::{Breakpoint, Message};
use serde_json::{Value, json};

use super::write::{CACHE_POINT, ConverseParts, ConverseWriter, MAX_NAME, began_with_reasoning};
use super::{ConverseProfile, Maker};
use crate::anthropic::settings::MAX_BUDGET;
use crate::anthropic::{self, MIN_BUDGET, ThinkingStyle};
use crate::chunks::BodyChunks;
use crate::compose::{History, RequestRenderer, WrittenMessages};
use crate::object::{Object, Settings, array, some_members};
use crate::request::{Effort, EncodedRequest, LeftOut, Note, RenderInput, ToolChoice};
use crate::tools;
use crate::tools::legal_name;

/// The keys of the body that are not settings.
const NOT_SETTINGS: [&str; 4] = ["model", "messages", "system", "toolConfig"];
/// A part of the ids of Amazon's models with reasoning.
const REASONING_NOVA: &str = "nova-2";

/// The decisions about the messages as a whole.
#[derive(Debug, Default)]
pub(crate) struct ConverseDecisions {
    /// Whether reasoning is sent back.
    replays: bool,
    /// The number of documents so far. Their names must differ within a turn.
    documents: usize,
    /// The names of the called tools.
    called: BTreeSet<String>,
}

impl RequestRenderer for ConverseProfile {
    fn render(
        &self,
        written: &mut WrittenMessages,
        input: &RenderInput<'_>,
        messages: &dyn History,
    ) -> EncodedRequest<BodyChunks> {
        let budget = match &self.maker {
            Maker::Anthropic(claude) => budget(input, claude)
                .filter(|_| by_budget(claude) && began_with_reasoning(messages, input.model)),
            _ => None,
        };
        // A Claude accepts its reasoning only while it thinks.
        let replays = budget.is_some() || !matches!(self.maker, Maker::Anthropic(_));
        if written.bedrock.replays != replays {
            *written = WrittenMessages::default();
            written.bedrock.replays = replays;
        }
        let reasoning_of = replays.then_some(input.model);
        let mut decided = std::mem::take(&mut written.bedrock);
        let calls = messages.since(written.composed()).flat_map(Message::calls);
        for call in calls {
            let name = legal_name(&call.name, MAX_NAME);
            if !decided.called.contains(&*name) {
                decided.called.insert(name.into_owned());
            }
        }
        let mut parts = ConverseParts::new(reasoning_of, decided.documents);
        let composer = written.composer(self.rules(), input.system);
        for message in messages.since(composer.messages) {
            composer.message(message, &mut parts, &ConverseWriter(self));
        }
        let mut notes = composer.normalizer.notes.clone();
        let plan = input.cache.filter(|_| self.cache_points);
        let breakpoints = plan.map_or(&[][..], |plan| &plan.breakpoints);

        let mut head = Object::new();
        if let Some(system) = composer.normalizer.system_text() {
            let text = Object::new().text("text", &system).end();
            let mark = breakpoints.contains(&Breakpoint::System);
            let blocks = std::iter::once(text.as_str()).chain(mark.then_some(CACHE_POINT));
            head = head.raw("system", &array(blocks));
        }
        if let Some(config) = tool_config(input, &decided.called, breakpoints, &mut notes) {
            head = head.raw("toolConfig", &config);
        }
        let settings = settings(input, budget, self, &mut notes);
        let (head, end) = (head.open_list("messages"), composer.end(input.context));
        let marks = (breakpoints, "");
        let body = composer.body(head, &end, marks, &ConverseWriter(self), &settings);
        decided.documents = parts.documents;
        written.bedrock = decided;
        EncodedRequest {
            body,
            notes,
            ..EncodedRequest::default()
        }
    }
}

/// Returns the tools.
///
/// The API has no choice `none`, and requires tools if the messages contain calls (BR5). In that case
/// only the names of the called tools are declared.
fn tool_config(
    input: &RenderInput<'_>,
    called: &BTreeSet<String>,
    breakpoints: &[Breakpoint],
    notes: &mut Vec<Note>,
) -> Option<String> {
    let specs = match input.tool_choice {
        ToolChoice::None => &[],
        _ => input.tools,
    };
    let tools = tools::named(specs, |name| legal_name(name, MAX_NAME), notes);
    let tools = tools.iter().map(|(name, tool)| {
        let schema = tools::typed(&tool.schema);
        declaration(tools::described(name, &tool.description), &schema)
    });
    let mut tools: Vec<String> = tools.collect();
    if tools.is_empty() {
        let schema = json!({"type": "object"});
        let called = called.iter();
        tools = called
            .map(|name| declaration(tools::described(name, ""), &schema))
            .collect();
    }
    let choice = match &input.tool_choice {
        _ if tools.is_empty() => return None,
        ToolChoice::Auto | ToolChoice::None => None,
        ToolChoice::Required => Some(json!({"any": {}})),
        ToolChoice::Tool(name) => Some(json!({"tool": {"name": legal_name(name, MAX_NAME)}})),
    };
    if breakpoints.contains(&Breakpoint::Tools) {
        tools.push(CACHE_POINT.to_owned());
    }
    let config = Object::new().raw("tools", &array(tools.iter().map(String::as_str)));
    Some(match choice {
        Some(choice) => config.value("toolChoice", choice).end(),
        None => config.end(),
    })
}

fn declaration(tool: Object, schema: &Value) -> String {
    let schema = Object::new().value("json", schema).end();
    let spec = tool.raw("inputSchema", &schema).end();
    Object::new().raw("toolSpec", &spec).end()
}

fn settings(
    input: &RenderInput<'_>,
    budget: Option<u64>,
    profile: &ConverseProfile,
    notes: &mut Vec<Note>,
) -> Settings {
    let mut temperature = input.temperature.filter(|wanted| wanted.is_finite());
    let mut most = input.max_output;
    if let Maker::Anthropic(claude) = &profile.maker {
        most = Some(output_limit(input, claude, budget.unwrap_or_default()));
        if budget.is_some() || !claude.temperature {
            notes.extend(temperature.map(|_| Note::setting(LeftOut::Temperature)));
            temperature = None;
        }
        temperature = temperature.map(|wanted| wanted.clamp(0.0, 1.0));
    }
    let stop = (!input.stop.is_empty()).then(|| Value::from(input.stop));
    let inference = some_members([
        ("maxTokens", most.map(Value::from)),
        ("temperature", temperature.map(Value::from)),
        ("stopSequences", stop),
    ]);
    let thinking = match budget {
        Some(tokens) => Some(json!({"thinking": {"type": "enabled", "budget_tokens": tokens}})),
        None => effort(input, profile),
    };
    let is_asked = input.effort.is_some_and(|effort| effort != Effort::None);
    if is_asked && thinking.is_none() {
        notes.push(Note::setting(LeftOut::Effort));
    }
    let mut settings = Settings::new(&[]);
    settings.set("inferenceConfig", inference.map(Value::from));
    settings.set("additionalModelRequestFields", thinking);
    if let Some(extra) = input.extra {
        settings.merge(extra, &NOT_SETTINGS);
    }
    settings
}

/// Returns the additional keys that set the effort of a model without a budget.
fn effort(input: &RenderInput<'_>, profile: &ConverseProfile) -> Option<Value> {
    let name = Some(input.effort?).filter(|effort| *effort != Effort::None);
    let name = name.map(Effort::name_of_three);
    match (&profile.maker, name) {
        (Maker::Amazon, Some(name)) if input.model.contains(REASONING_NOVA) => {
            // With the highest effort, the model accepts no output limit. The limit is more important.
            let limited = name == "high" && input.max_output.is_some();
            let name = if limited { "medium" } else { name };
            let config = json!({"type": "enabled", "maxReasoningEffort": name});
            Some(json!({"inferenceConfig": {"reasoningConfig": config}}))
        }
        // The model always reasons.
        (Maker::OpenAi, name) => Some(json!({"reasoning": {"effort": name.unwrap_or("low")}})),
        _ => None,
    }
}

fn by_budget(claude: &anthropic::MessagesProfile) -> bool {
    matches!(
        claude.thinking,
        ThinkingStyle::Budget | ThinkingStyle::Either | ThinkingStyle::Unknown
    )
}

/// Returns the thinking budget of a Claude in tokens. `None` if no budget leaves space for an answer.
fn budget(input: &RenderInput<'_>, claude: &anthropic::MessagesProfile) -> Option<u64> {
    let wanted = input.effort?.budget(MIN_BUDGET, MAX_BUDGET)?;
    let most = output_limit(input, claude, wanted);
    let budget = wanted.min(most.saturating_sub(most / 4 + 1));
    (budget >= MIN_BUDGET).then_some(budget)
}

/// Returns the output limit of a Claude. Thinking is a part of the output.
fn output_limit(input: &RenderInput<'_>, claude: &anthropic::MessagesProfile, budget: u64) -> u64 {
    let usual = claude.default_output.saturating_add(budget);
    let wanted = input.max_output.unwrap_or(usual).max(1);
    claude.max_output.map_or(wanted, |most| wanted.min(most))
}
