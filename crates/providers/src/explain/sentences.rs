//! What is peculiar to a server, in a sentence each, with the rules that it is for. Data in words;
//! nothing is decided here.

use plimsoll_context::{CacheRetention, LongerCache};
use plimsoll_wire::Rule;
use plimsoll_wire::anthropic::{
    self, Binding, Effort, ForcedTools, LaterSystem, Temperature, ThinkingStyle,
};
use plimsoll_wire::openai_chat::{
    Arguments, CacheMarks, CallIds, CallNames, Dialect, EchoReasoning, EmptyReasoning, Images,
    NoContent, OutputKey, ParallelCalls, Prefill, SameRole, StreamUsage, SystemPlace, SystemRole,
    Texts, ToolStyle, UserAfterTool, UserMessage,
};
use plimsoll_wire::openai_responses::{self, CacheKey, ReasoningItems, Sampling};

use super::{Peculiarity, takes_images};
use crate::models::ModelFacts;
use crate::vendor::Wire;

pub(super) fn peculiarity(says: impl Into<String>, rules: &[Rule]) -> Peculiarity {
    Peculiarity {
        says: says.into(),
        rules: rules.iter().map(|rule| rule.name()).collect(),
    }
}

/// Those of which the condition holds.
fn those<const N: usize>(all: [(bool, &str, &[Rule]); N]) -> Vec<Peculiarity> {
    let those = all.into_iter().filter(|(holds, ..)| *holds);
    those
        .map(|(_, says, rules)| peculiarity(says, rules))
        .collect()
}

/// What is peculiar to a dialect of Chat Completions.
pub(super) fn of_dialect(of: &Dialect) -> Vec<Peculiarity> {
    let echo = match (of.echo_reasoning, of.empty_reasoning) {
        (EchoReasoning::Never, _) => None,
        (when, empty) => Some(format!(
            "Reasoning goes back in {}{}.",
            match when {
                EchoReasoning::ToolTurns => "messages that call tools",
                _ => "every assistant message",
            },
            match empty {
                EmptyReasoning::Omit => "",
                EmptyReasoning::Empty => ", an empty text where there is none",
                EmptyReasoning::Space => ", a space where there is none",
            }
        )),
    };
    let mut all = those([
        (
            of.output_key == OutputKey::MaxCompletionTokens,
            "The longest answer is `max_completion_tokens`.",
            &[Rule::Shape],
        ),
        (
            of.no_content == NoContent::Null,
            "A call without text has `content: null`.",
            &[Rule::Oc5],
        ),
        (
            of.no_content == NoContent::Empty,
            "A call without text has `content: \"\"`.",
            &[Rule::Oc5],
        ),
        (
            of.no_content == NoContent::Omit,
            "A call without text has no `content`.",
            &[Rule::Oc5],
        ),
        (
            of.texts == Texts::Joined,
            "Several texts of one message are joined into one.",
            &[Rule::Shape],
        ),
        (
            of.same_role == SameRole::Merge,
            "Messages of one role in a row become one: roles alternate.",
            &[Rule::T1],
        ),
        (
            of.user_after_tool == UserAfterTool::Bridge,
            "A short assistant message stands between a tool's result and a user's message.",
            &[Rule::T2, Rule::Oc7],
        ),
        (
            of.call_ids == CallIds::NineAlphanumeric,
            "Ids of tool calls are mapped to nine letters or digits.",
            &[Rule::Oc7],
        ),
        (
            of.call_ids == CallIds::UpTo40 || of.call_names == CallNames::Plain,
            "Ids of tool calls with more than 40 characters are mapped, names that a model made up get `_` for what no name may have.",
            &[Rule::Shape],
        ),
        (
            of.arguments == Arguments::JsonObject,
            "Arguments that are no JSON object are sent inside one.",
            &[Rule::Oc4],
        ),
        (
            of.system == SystemPlace::First,
            "One system message, at the beginning; later ones are said in the user's role.",
            &[Rule::T3],
        ),
        (
            of.system_role == SystemRole::Developer,
            "System messages have the role `developer`.",
            &[Rule::Shape],
        ),
        (
            of.user == UserMessage::Required,
            "There is always a message of the user's.",
            &[Rule::T4],
        ),
        (
            of.parallel_calls == ParallelCalls::OneAtATime,
            "Calls made at once are sent one message each.",
            &[Rule::T5],
        ),
        (
            of.prefill == Prefill::Refused,
            "The assistant never has the last word: a short user message follows.",
            &[Rule::Oc8],
        ),
        (
            of.stream_usage == StreamUsage::Ask,
            "The usage of a stream is asked for.",
            &[Rule::Shape],
        ),
        (
            of.tools == ToolStyle::JsonSchema,
            "Each turn is one JSON object under a schema: a tool call or an answer.",
            &[],
        ),
    ]);
    all.extend(echo.map(|says| peculiarity(says, &[Rule::Oc6])));
    all
}

/// The rules of Chat Completions that a dialect is judged by.
pub(super) fn rules_of_chat(of: &Dialect) -> Vec<&'static str> {
    let peculiar: Vec<&str> = of_dialect(of)
        .into_iter()
        .flat_map(|said| said.rules)
        .collect();
    let always = [
        Rule::Shape,
        Rule::Oc1,
        Rule::Oc2,
        Rule::Oc3,
        Rule::Oc4,
        Rule::Oc5,
    ];
    let always = always.map(Rule::name);
    let all = Rule::ALL.into_iter().map(Rule::name);
    all.filter(|rule| always.contains(rule) || peculiar.contains(rule))
        .collect()
}

/// The rules of a wire, by how their names begin.
pub(super) fn rules_of(prefix: &str) -> Vec<&'static str> {
    let all = Rule::ALL.into_iter().map(Rule::name);
    all.filter(|name| name.starts_with(prefix) || *name == Rule::Shape.name())
        .collect()
}

/// What is peculiar to a profile of Responses.
pub(super) fn of_responses(of: &openai_responses::Profile) -> Vec<Peculiarity> {
    let mut all = those([
        (
            true,
            "Nothing is stored at the provider: the whole history goes with each request.",
            &[Rule::Or1, Rule::Or2],
        ),
        (
            of.reasoning == ReasoningItems::Encrypted,
            "Reasoning goes back encrypted, in pairs with what came of it.",
            &[Rule::Or3, Rule::Or4],
        ),
        (
            of.reasoning == ReasoningItems::Plain,
            "Reasoning goes back as it came, in pairs with what came of it.",
            &[Rule::Or3],
        ),
        (
            of.reasoning == ReasoningItems::None,
            "The model does not reason, and is not asked to.",
            &[Rule::Or3],
        ),
        (
            true,
            "Ids of items begin as their kind does, and long ones are mapped.",
            &[Rule::Or5],
        ),
        (
            of.sampling == Sampling::Refused,
            "A temperature is not sent: the model refuses it.",
            &[Rule::Shape],
        ),
        (
            of.parallel_calls == ParallelCalls::OneAtATime,
            "Calls made at once are sent one by one.",
            &[Rule::Or1],
        ),
    ]);
    if !of.efforts.is_empty() {
        let efforts: Vec<&str> = of.efforts.iter().map(|effort| effort.name()).collect();
        let says = format!("Efforts that it takes: {}.", efforts.join(", "));
        all.push(peculiarity(says, &[]));
    }
    all
}

/// What is peculiar to a profile of Messages.
pub(super) fn of_messages(of: &anthropic::Profile) -> Vec<Peculiarity> {
    let mut all = those([
        (
            true,
            "Every tool call is answered in the next message, results first and without a gap.",
            &[Rule::Am1, Rule::Am2, Rule::Am3, Rule::Am4],
        ),
        (
            true,
            "Ids of tool calls are letters, digits, `_` and `-`; others are mapped.",
            &[Rule::Am5],
        ),
        (
            true,
            "No text is empty or white space, and the first message is the user's.",
            &[Rule::Am6, Rule::Am7],
        ),
        (
            of.prefill == Prefill::Refused,
            "The assistant never has the last word.",
            &[Rule::Am8],
        ),
        (
            of.thinking == ThinkingStyle::None,
            "The model does not think, and is not asked to.",
            &[Rule::Am9],
        ),
        (
            matches!(of.thinking, ThinkingStyle::Budget | ThinkingStyle::Unknown),
            "Thinking has a budget of tokens, 1,024 at least and less than the longest answer.",
            &[Rule::Am9],
        ),
        (
            matches!(of.thinking, ThinkingStyle::Either | ThinkingStyle::Adaptive),
            "The model thinks as it sees fit; how hard is said as an effort.",
            &[Rule::Am9],
        ),
        (
            of.thinking != ThinkingStyle::None && of.binding == Binding::Own,
            "Signed thinking goes back byte for byte, whole loops of it or none.",
            &[Rule::Am9, Rule::Am10],
        ),
        (
            of.thinking != ThinkingStyle::None && of.binding == Binding::Prefix,
            "Signed thinking is bound to all that stands before it: after an edit of that, it is \
             left out, whole loops of it.",
            &[Rule::Am9, Rule::Am10],
        ),
        (
            of.temperature == Temperature::Refused,
            "A temperature is not sent: the model refuses it.",
            &[Rule::Shape],
        ),
        (
            of.forced_tools == ForcedTools::Refused,
            "It cannot be made to call a tool.",
            &[Rule::Shape],
        ),
        (
            of.later_system == LaterSystem::Supported,
            "It would take system messages between others; they are said in the user's role.",
            &[],
        ),
        (
            of.effort != Effort::Supported && of.thinking != ThinkingStyle::None,
            "An effort is not sent.",
            &[],
        ),
    ]);
    if let Some(most) = of.max_output {
        let says = format!("An answer has {most} tokens at most; every request says a limit.");
        all.push(peculiarity(says, &[Rule::Shape]));
    }
    let says = format!("A body has {} bytes at most.", of.max_body);
    all.push(peculiarity(says, &[Rule::Am13]));
    all
}

/// What another library writes.
pub(super) fn of_genai(wire: Wire) -> Vec<Peculiarity> {
    let rules = match wire {
        Wire::Converse => "BR",
        Wire::Ollama => "T",
        _ => "GM",
    };
    vec![Peculiarity {
        says: "The genai library writes its requests, from a view that is repaired first."
            .to_owned(),
        rules: rules_of(rules),
    }]
}

pub(super) fn cache_of_chat(of: &Dialect, facts: &ModelFacts) -> Vec<Peculiarity> {
    let mut all = those([
        (
            of.cache == CacheMarks::Unasked,
            "Nothing is asked of a prompt cache: it works by itself, or there is none.",
            &[],
        ),
        (
            of.cache == CacheMarks::Key,
            "It works by itself; `prompt_cache_key` names the session.",
            &[],
        ),
        (
            of.cache == CacheMarks::Parts,
            "`cache_control` marks the system prompt and the newest messages, four at most.",
            &[Rule::Am11],
        ),
    ]);
    all.extend(minimum(facts));
    all
}

pub(super) fn cache_of_responses(
    of: &openai_responses::Profile,
    facts: &ModelFacts,
) -> Vec<Peculiarity> {
    let mut all = those([
        (
            of.cache == CacheKey::Sent,
            "It works by itself; `prompt_cache_key` names the session.",
            &[],
        ),
        (
            of.cache == CacheKey::Unsent,
            "Nothing is asked of a prompt cache: it works by itself, or there is none.",
            &[],
        ),
    ]);
    all.extend(minimum(facts));
    all
}

pub(super) fn cache_of_messages(of: &anthropic::Profile, facts: &ModelFacts) -> Vec<Peculiarity> {
    let least = facts
        .min_cacheable
        .as_ref()
        .map_or(of.min_cacheable, |fact| fact.value);
    vec![
        peculiarity(
            "Breakpoints: the tools or the system prompt, the newest message, the one before it, \
             and one between where a turn is long; four at most.",
            &[Rule::Am11],
        ),
        peculiarity(
            format!("None is set before {least} tokens: less is not cached, and nobody says so."),
            &[Rule::Am12],
        ),
    ]
}

/// What becomes of the wish to keep the cache longer, where it `gets` so much.
pub(super) fn of_retention(
    wish: CacheRetention,
    gets: CacheRetention,
    longer: Option<LongerCache>,
) -> Option<Peculiarity> {
    let name = wish.name();
    let price = longer.map_or("at a price that is not known".to_owned(), |longer| {
        let minutes = longer.lives.as_secs() / 60;
        let write = longer.cache_write;
        format!("{minutes} minutes unused, a million tokens written for {write}")
    });
    let says = match gets {
        CacheRetention::Usual if wish == gets => return None,
        CacheRetention::Usual => format!(
            "`cache.retention` is \"{name}\": it has no such thing, and entries live as usual."
        ),
        CacheRetention::Head => {
            format!("Tools and system prompt are kept longer ({price}), messages as usual.")
        }
        CacheRetention::Long => format!("All of it is kept longer ({price})."),
    };
    Some(peculiarity(says, &[]))
}

fn minimum(facts: &ModelFacts) -> Option<Peculiarity> {
    let least = facts.min_cacheable.as_ref()?.value;
    let says = format!("A prompt of less than {least} tokens is not cached.");
    Some(peculiarity(says, &[]))
}

pub(super) fn chat_cannot(of: &Dialect, facts: &ModelFacts) -> Vec<Peculiarity> {
    let mut all = those([
        (
            of.images == Images::Unsupported,
            "Images and files: a note stands in their place.",
            &[Rule::Shape],
        ),
        (
            of.echo_reasoning == EchoReasoning::Never,
            "Its own reasoning: it is not sent back.",
            &[Rule::Oc6],
        ),
        (
            of.tools == ToolStyle::Native,
            "Images in tool results: they follow the batch in a user message.",
            &[Rule::Oc3],
        ),
    ]);
    all.extend(unable(of.images, facts));
    all
}

pub(super) fn responses_cannot(
    of: &openai_responses::Profile,
    facts: &ModelFacts,
) -> Vec<Peculiarity> {
    let mut all = those([
        (
            of.images == Images::Unsupported,
            "Images and files: a note stands in their place.",
            &[Rule::Shape],
        ),
        (
            true,
            "Reasoning of another provider, or without its encrypted content.",
            &[Rule::Or4],
        ),
    ]);
    all.extend(unable(of.images, facts));
    all
}

pub(super) fn messages_cannot(of: &anthropic::Profile, facts: &ModelFacts) -> Vec<Peculiarity> {
    let mut all = those([
        (
            true,
            "Images other than JPEG, PNG, GIF and WebP, and files other than PDF: a note stands \
             in their place.",
            &[Rule::Shape],
        ),
        (
            of.thinking != ThinkingStyle::None,
            "Thinking that another model or provider wrote.",
            &[Rule::Am10],
        ),
    ]);
    all.extend(unable(Images::Supported, facts));
    all
}

/// What the model cannot do, as far as that is known.
fn unable(sent: Images, facts: &ModelFacts) -> Vec<Peculiarity> {
    let no =
        |fact: &Option<crate::models::Fact<bool>>| fact.as_ref().is_some_and(|fact| !fact.value);
    those([
        (
            sent == Images::Supported && takes_images(facts) == Some(false),
            "Images: the model is said not to take them, though its wire does.",
            &[],
        ),
        (
            no(&facts.tools),
            "Tools: the model is said not to call any.",
            &[],
        ),
        (
            no(&facts.thinking),
            "Thinking: the model is said not to think.",
            &[],
        ),
    ])
}
