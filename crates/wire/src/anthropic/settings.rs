//! The settings of a request in the form that one model accepts: output limit, thinking, temperature,
//! tool choice. Unsupported settings are left out and noted.

use serde_json::{Value, json};

use super::{EffortSupport, MessagesProfile, NoThinking, ThinkingStyle};
use crate::object;
use crate::request::{Effort, LeftOut, Note, RenderInput, ToolChoice};

/// The smallest budget of thinking that the API accepts.
pub const MIN_BUDGET: u64 = 1_024;
/// The largest budget that Anthropic advises for a single request.
pub(crate) const MAX_BUDGET: u64 = 32_000;
/// The highest temperature that the API accepts.
const MAX_TEMPERATURE: f64 = 1.0;

/// The keys of the body that are not settings.
const NOT_SETTINGS: [&str; 4] = ["model", "messages", "tools", "system"];

/// The keys behind the messages.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) keys: object::Settings,
    pub(super) notes: Vec<Note>,
    /// Whether these settings make the model think.
    pub(super) thinks: bool,
}

impl Settings {
    /// `loop_lacks_thinking` is whether the current tool loop began without thinking.
    pub(super) fn of(
        input: &RenderInput<'_>,
        profile: &MessagesProfile,
        loop_lacks_thinking: bool,
    ) -> Self {
        let mut settings = Self {
            keys: object::Settings::default(),
            notes: Vec::new(),
            thinks: false,
        };
        let max = settings.output(input, profile);
        let has_tools = !input.tools.is_empty() || !input.hosted_tools.is_empty();
        if has_tools && input.tool_choice == ToolChoice::None {
            settings.set("tool_choice", json!({"type": "none"}));
        }
        settings.thinking(input, profile, loop_lacks_thinking, max);
        settings.temperature(input, profile);
        settings.set("stream", true.into());
        settings.keys.set_all(input.extra, &NOT_SETTINGS);
        settings
    }

    fn output(&mut self, input: &RenderInput<'_>, profile: &MessagesProfile) -> u64 {
        // Thinking is part of the output. Without a limit by the caller, there is space for both.
        let both = profile
            .default_output
            .saturating_add(usual_budget(input.effort));
        // A limit that exceeds the window together with the request would be refused.
        let fits = input.room.map_or(both, |room| both.min(room));
        let wanted = input.max_output.unwrap_or(fits).max(1);
        let max = profile.max_output.map_or(wanted, |max| wanted.min(max));
        if input.max_output.is_some_and(|wanted| max < wanted) {
            self.note(LeftOut::OutputCapped);
        }
        self.set("max_tokens", max.into());
        max
    }

    fn thinking(
        &mut self,
        input: &RenderInput<'_>,
        profile: &MessagesProfile,
        loop_lacks_thinking: bool,
        max: u64,
    ) {
        let effort = match input.effort {
            None => return,
            Some(Effort::None) => return self.no_thinking(profile),
            Some(effort) => effort,
        };
        // A quarter is left for the answer.
        let budget = usual_budget(input.effort).min(max.saturating_sub(max / 4 + 1));
        let thinking = match profile.thinking {
            ThinkingStyle::Adaptive | ThinkingStyle::Either => Some(json!({"type": "adaptive"})),
            ThinkingStyle::Budget | ThinkingStyle::Unknown
                if !loop_lacks_thinking && budget >= MIN_BUDGET =>
            {
                Some(json!({"type": "enabled", "budget_tokens": budget}))
            }
            _ => None,
        };
        match thinking {
            Some(thinking) => {
                self.set("thinking", thinking);
                self.thinks = true;
            }
            None => self.note(LeftOut::ThinkingOff),
        }
        if profile.effort == EffortSupport::Supported {
            let effort = json!({"effort": effort.name_of_three()});
            self.set("output_config", effort);
        }
    }

    /// Turns thinking off, or reduces it as far as possible.
    fn no_thinking(&mut self, profile: &MessagesProfile) {
        match (profile.thinking, profile.no_thinking) {
            (ThinkingStyle::None, _) => {}
            (_, NoThinking::Supported) => self.set("thinking", json!({"type": "disabled"})),
            (_, NoThinking::Refused | NoThinking::Unknown) => {
                self.note(LeftOut::ThinkingOn);
                if profile.effort == EffortSupport::Supported {
                    self.set(
                        "output_config",
                        json!({"effort": Effort::Minimal.name_of_three()}),
                    );
                }
            }
        }
    }

    fn temperature(&mut self, input: &RenderInput<'_>, profile: &MessagesProfile) {
        let Some(wanted) = input.temperature.filter(|wanted| wanted.is_finite()) else {
            return;
        };
        if self.thinks || !profile.temperature {
            self.note(LeftOut::Temperature);
            return;
        }
        if wanted > MAX_TEMPERATURE {
            self.note(LeftOut::TemperatureCapped);
        }
        self.set("temperature", wanted.clamp(0.0, MAX_TEMPERATURE).into());
    }

    fn set(&mut self, key: &str, value: Value) {
        self.keys.set(key, value);
    }

    fn note(&mut self, what: LeftOut) {
        self.notes.push(Note::setting(what));
    }
}

/// Returns the usual thinking budget for an effort, in tokens.
fn usual_budget(effort: Option<Effort>) -> u64 {
    let budget = effort.and_then(|effort| effort.budget(MIN_BUDGET, MAX_BUDGET));
    budget.unwrap_or_default()
}
