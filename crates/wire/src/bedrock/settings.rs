//! The settings of a request to Converse besides its messages, without those that the model does not accept.

use serde_json::{Value, json};

use super::{ConverseProfile, Maker};
use crate::anthropic::settings::MAX_BUDGET;
use crate::anthropic::{self, MIN_BUDGET, ThinkingStyle};
use crate::object::{Settings, some_members};
use crate::request::{Effort, LeftOut, Note, RenderInput};

/// The keys of the body that are not settings.
const NOT_SETTINGS: [&str; 4] = ["model", "messages", "system", "toolConfig"];
/// A part of the ids of Amazon's models with reasoning.
const REASONING_NOVA: &str = "nova-2";

pub(super) fn settings(
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
    let inference = some_members([
        ("maxTokens", most.map(Value::from)),
        ("temperature", temperature.map(Value::from)),
    ]);
    let thinking = match budget {
        Some(tokens) => Some(json!({"thinking": {"type": "enabled", "budget_tokens": tokens}})),
        None => effort(input, profile),
    };
    let is_asked = input.effort.is_some_and(|effort| effort != Effort::None);
    if is_asked && thinking.is_none() {
        notes.push(Note::setting(LeftOut::Effort));
    }
    let mut settings = Settings::default();
    settings.set("inferenceConfig", inference.map(Value::from));
    settings.set("additionalModelRequestFields", thinking);
    settings.merge(input.extra, &NOT_SETTINGS);
    settings
}

impl ConverseProfile {
    /// Checks whether requests tell the model with this id how much to think.
    #[must_use]
    pub fn takes_effort(&self, model: &str) -> bool {
        match &self.maker {
            Maker::Anthropic(claude) => by_budget(claude),
            Maker::Amazon => model.contains(REASONING_NOVA),
            Maker::OpenAi => true,
            Maker::Other => false,
        }
    }
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

pub(super) fn by_budget(claude: &anthropic::MessagesProfile) -> bool {
    matches!(
        claude.thinking,
        ThinkingStyle::Budget | ThinkingStyle::Either | ThinkingStyle::Unknown
    )
}

/// Returns the thinking budget of a Claude in tokens. `None` if no budget leaves space for an answer.
pub(super) fn budget(input: &RenderInput<'_>, claude: &anthropic::MessagesProfile) -> Option<u64> {
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
