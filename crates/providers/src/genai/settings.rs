//! The settings of a request as one model accepts them: output limit, thinking, temperature, seed,
//! tool choice. What cannot be had is left out, never sent to be refused.

use genai::chat::{ChatOptions, ChatResponseFormat, ReasoningEffort, ToolChoice};
use plimsoll_agent::{Request, ThinkingLevel};
use plimsoll_wire::anthropic::{self, ThinkingStyle};
use serde_json::{Map, Value};

use super::api::{Api, Converse, Gemini, Maker};
use super::reasoning::Replay;
use super::shape::Asked;
use crate::thinking_off::ThinkingOff;

/// The key of arguments that are no JSON object.
pub(super) const MALFORMED: &str = "malformed_arguments";
/// Seeds have 31 bits at Google's.
const MAX_SEED: u64 = i32::MAX as u64;
/// A budget of thinking below this is refused by some of Google's models.
const MIN_GEMINI_BUDGET: u64 = 512;

/// What a request asks for besides its messages.
pub(super) fn options(
    request: &Request,
    api: &Api,
    extra: &Map<String, Value>,
    asked: &Asked,
) -> ChatOptions {
    let sampling = &request.sampling;
    let mut options = ChatOptions {
        temperature: sampling.temperature.filter(|wanted| wanted.is_finite()),
        max_tokens: request.max_output.map(|max| narrow(max.0)),
        seed: sampling.seed.map(|seed| seed & MAX_SEED),
        ..ChatOptions::default()
    };
    match api {
        Api::Gemini(gemini) | Api::Vertex(gemini) => {
            think_as_gemini(&mut options, request, gemini);
            let none = request.tool_choice == plimsoll_agent::ToolChoice::None;
            // A choice without tools is refused.
            if none && asked.request.tools.is_some() {
                options.tool_choice = Some(ToolChoice::None);
            }
            if !extra.is_empty() {
                options.extra_body = Some(Value::Object(extra.clone()));
            }
        }
        Api::Converse(converse) => think_as_converse(&mut options, request, converse, asked),
        Api::Ollama(ollama) => {
            options.reasoning_effort = match sampling.thinking {
                Some(ThinkingLevel::Off) => Some(ReasoningEffort::Zero),
                level => effort(level),
            };
            options.reasoning_effort = options.reasoning_effort.filter(|_| ollama.thinks);
            // The library cannot send a schema here; that it is JSON it can.
            options.response_format = request
                .format
                .as_ref()
                .map(|_| ChatResponseFormat::JsonMode);
        }
    }
    options
}

/// Tokens that a Claude may think, where that is budgeted; `None` where no budget leaves room for
/// an answer.
pub(super) fn budget_of(request: &Request, profile: &anthropic::Profile) -> Option<u32> {
    let wanted = match request.sampling.thinking? {
        ThinkingLevel::Off => return None,
        ThinkingLevel::Minimal => anthropic::MIN_BUDGET,
        ThinkingLevel::Low => 2_048,
        ThinkingLevel::Medium => 8_192,
        ThinkingLevel::High => 32_000,
    };
    let max = limit_of(request, profile, wanted);
    let budget = wanted.min(max.saturating_sub(max / 4 + 1));
    (budget >= anthropic::MIN_BUDGET).then(|| narrow(budget))
}

/// The output limit of a Claude: thinking is a part of it.
fn limit_of(request: &Request, profile: &anthropic::Profile, budget: u64) -> u64 {
    let usual = profile.default_output.saturating_add(budget);
    let wanted = request.max_output.map_or(usual, |max| max.0).max(1);
    profile.max_output.map_or(wanted, |max| wanted.min(max))
}

fn think_as_converse(
    options: &mut ChatOptions,
    request: &Request,
    converse: &Converse,
    asked: &Asked,
) {
    let level = request.sampling.thinking;
    match &converse.maker {
        Maker::Anthropic(profile) => {
            let budget = budget_of(request, profile).filter(|_| asked.replay == Replay::Given);
            let wanted = budget.map_or(0, u64::from);
            options.max_tokens = Some(narrow(limit_of(request, profile, wanted)));
            let refused = profile.temperature == anthropic::Temperature::Refused;
            if budget.is_some() || refused {
                options.temperature = None;
            }
            options.temperature = options.temperature.map(|wanted| wanted.clamp(0.0, 1.0));
            options.reasoning_effort = budget.map(ReasoningEffort::Budget);
        }
        // Only the second generation reasons. With the most effort it takes no output limit, and
        // a limit is worth more than effort.
        Maker::Amazon if converse.id.contains("nova-2") => {
            options.reasoning_effort = match effort(level) {
                Some(ReasoningEffort::High) if options.max_tokens.is_some() => {
                    Some(ReasoningEffort::Medium)
                }
                effort => effort,
            };
        }
        // It always thinks.
        Maker::OpenAi => {
            options.reasoning_effort = match level {
                Some(ThinkingLevel::Off) => Some(ReasoningEffort::Low),
                level => effort(level),
            };
        }
        Maker::Amazon | Maker::Another => {}
    }
}

/// Models before the third generation think by a budget, the later ones by a level.
fn think_as_gemini(options: &mut ChatOptions, request: &Request, gemini: &Gemini) {
    // Nothing is asked for; without this the library reads it out of the model's name.
    options.reasoning_effort = Some(ReasoningEffort::Zero);
    let level = request.sampling.thinking;
    let generation = match generation(&gemini.name) {
        Generation::Plain if gemini.thinks => Generation::Budget,
        generation => generation,
    };
    let pro = gemini.name.contains("pro");
    let thinking = match (level, generation) {
        (None, _) | (_, Generation::Plain) => return,
        // The smaller ones can do without.
        (Some(ThinkingLevel::Off), Generation::Budget) if !pro => ReasoningEffort::Budget(0),
        (Some(level), Generation::Budget) => {
            let wanted = match level {
                ThinkingLevel::Off | ThinkingLevel::Minimal => MIN_GEMINI_BUDGET,
                ThinkingLevel::Low => 2_048,
                ThinkingLevel::Medium => 8_192,
                ThinkingLevel::High => 24_576,
            };
            // Thoughts are a part of the output: half of it is for the answer.
            let max = request.max_output.map_or(u64::MAX, |max| max.0 / 2);
            let budget = wanted.min(max);
            if budget < MIN_GEMINI_BUDGET {
                return;
            }
            ReasoningEffort::Budget(narrow(budget))
        }
        (Some(level), Generation::Level) => {
            match level {
                ThinkingLevel::Off | ThinkingLevel::Minimal if !pro => ReasoningEffort::Minimal,
                ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => {
                    ReasoningEffort::Low
                }
                // The first of them knew only the least and the most.
                ThinkingLevel::Medium if gemini.name.contains("gemini-3-pro") => {
                    ReasoningEffort::High
                }
                ThinkingLevel::Medium => ReasoningEffort::Medium,
                ThinkingLevel::High => ReasoningEffort::High,
            }
        }
    };
    options.reasoning_effort = Some(thinking);
    // So that it also says what it thinks.
    options.capture_reasoning_content = Some(true);
}

/// Returns how thinking is turned off over this library.
pub(super) fn thinking_off(api: &Api) -> ThinkingOff {
    match api {
        Api::Gemini(gemini) | Api::Vertex(gemini) => match generation(&gemini.name) {
            Generation::Plain => ThinkingOff::NotThinking,
            Generation::Budget if !gemini.name.contains("pro") => ThinkingOff::NotThinking,
            Generation::Budget | Generation::Level => ThinkingOff::Never,
        },
        Api::Converse(converse) => match &converse.maker {
            // The library has no word for it, and the newest think unless they are told not to.
            Maker::Anthropic(profile) if profile.thinking == ThinkingStyle::Adaptive => {
                ThinkingOff::Unknown
            }
            Maker::Anthropic(_) | Maker::Amazon => ThinkingOff::NotThinking,
            Maker::OpenAi => ThinkingOff::Never,
            Maker::Another => ThinkingOff::Unknown,
        },
        Api::Ollama(_) => ThinkingOff::NotThinking,
    }
}

/// How a model of Google's is told how hard to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    /// Not at all.
    Plain,
    Budget,
    Level,
}

fn generation(name: &str) -> Generation {
    let speaks = ["image", "tts", "audio", "live", "embedding"];
    let Some((_, version)) = name.split_once("gemini-") else {
        return Generation::Plain;
    };
    if speaks.iter().any(|other| version.contains(other)) {
        return Generation::Plain;
    }
    if version.starts_with("2.5") {
        Generation::Budget
    } else if version.starts_with('3') {
        Generation::Level
    } else if version.starts_with(['1', '2']) {
        Generation::Plain
    } else {
        // `gemini-flash-latest`: of any generation that is served, and all take a budget.
        Generation::Budget
    }
}

fn effort(level: Option<ThinkingLevel>) -> Option<ReasoningEffort> {
    Some(match level? {
        ThinkingLevel::Off => return None,
        ThinkingLevel::Minimal | ThinkingLevel::Low => ReasoningEffort::Low,
        ThinkingLevel::Medium => ReasoningEffort::Medium,
        ThinkingLevel::High => ReasoningEffort::High,
    })
}

fn narrow(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
