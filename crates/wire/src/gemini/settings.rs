//! The settings of a request to Gemini besides its messages, without those that the model does not accept.

use serde_json::{Value, json};

use super::{GeminiProfile, Thinking};
use crate::object::{Settings, some_members};
use crate::request::{Effort, LeftOut, Note, RenderInput, ToolChoice};

/// The bits of a seed that the API accepts.
const MAX_SEED: i64 = i32::MAX as i64;
/// The smallest budget of thinking that all models accept.
const MIN_BUDGET: u64 = 512;
/// The largest budget of thinking that all models accept.
const MAX_BUDGET: u64 = 24_576;
/// The keys of the body that are not settings.
const NOT_SETTINGS: [&str; 4] = ["model", "contents", "systemInstruction", "tools"];

pub(super) fn settings(
    input: &RenderInput<'_>,
    callable: bool,
    profile: &GeminiProfile,
    notes: &mut Vec<Note>,
) -> Settings {
    let mut settings = Settings::default();
    // The API refuses a choice without tools.
    let is_none = callable && input.tool_choice == ToolChoice::None;
    let choice = is_none.then(|| json!({"functionCallingConfig": {"mode": "NONE"}}));
    settings.set("toolConfig", choice);
    let thinking = thinking(input, profile);
    if input.effort.is_some() && thinking.is_none() {
        notes.push(Note::setting(LeftOut::Effort));
    }
    let temperature = input.temperature.filter(|wanted| wanted.is_finite());
    let config = some_members([
        ("maxOutputTokens", input.max_output.map(Value::from)),
        ("temperature", temperature.map(Value::from)),
        ("seed", input.seed.map(|seed| Value::from(seed & MAX_SEED))),
        ("thinkingConfig", thinking),
    ]);
    settings.set("generationConfig", config.map(Value::from));
    settings.merge(input.extra, &NOT_SETTINGS);
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
    // The reply contains summaries of the thoughts. The API refuses to include none.
    Some(match effort {
        Effort::None => json!({ key: value }),
        _ => json!({ key: value, "includeThoughts": true }),
    })
}
