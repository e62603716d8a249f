//! Explains the requests of Chat Completions.

use plimsoll_judge::Rule;
use plimsoll_wire::openai_chat::{
    CacheMarks, CallIds, Dialect, EchoReasoning, EmptyReasoning, NoContent, Reach, ToolStyle,
    takes_temperature,
};

use super::sentences::{
    CACHE_BY_KEY, CACHE_UNASKED, NO_MEDIA, NO_TEMPERATURE, minimum, peculiarity, those,
};
use super::{Explanation, Peculiarity};
use crate::connection::Connection;
use crate::efforts::goes;
use crate::model_ref::ModelRef;
use crate::vendor::ServerLocation;

/// Returns the peculiarities of a dialect.
fn peculiarities(of: &Dialect) -> Vec<Peculiarity> {
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
            of.completion_tokens_key,
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
            of.joins_texts,
            "Several texts of one message are joined into one.",
            &[Rule::Shape],
        ),
        (
            of.merges_roles,
            "Messages of one role in a row become one: roles alternate.",
            &[Rule::T1],
        ),
        (
            !of.user_after_tool,
            "A short assistant message stands between a tool's result and a user's message.",
            &[Rule::T2, Rule::Oc7],
        ),
        (
            of.call_ids == CallIds::NineAlphanumeric,
            "Ids of tool calls are mapped to nine letters or digits.",
            &[Rule::Oc7],
        ),
        (
            of.call_ids == CallIds::UpTo40 || of.plain_names,
            "Ids of tool calls with more than 40 characters are mapped, names that a model made up get `_` for what no name may have.",
            &[Rule::Shape],
        ),
        (
            of.object_arguments,
            "Arguments that are no JSON object are sent inside one.",
            &[Rule::Oc4],
        ),
        (
            of.system_first,
            "One system message, at the beginning; later ones are said in the user's role.",
            &[Rule::T3],
        ),
        (
            of.developer_role,
            "System messages have the role `developer`.",
            &[Rule::Shape],
        ),
        (
            of.needs_user,
            "There is always a message of the user's.",
            &[Rule::T4],
        ),
        (
            !of.parallel_calls,
            "Calls made at once are sent one message each.",
            &[Rule::T5],
        ),
        (
            !of.prefill,
            "The assistant never has the last word: a short user message follows.",
            &[Rule::Oc8],
        ),
        (
            of.asks_for_usage,
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

/// Returns the rules of Chat Completions that apply to a dialect.
pub(crate) fn rules(of: &Dialect) -> Vec<&'static str> {
    let peculiar: Vec<&str> = peculiarities(of)
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

/// Explains the requests of a dialect.
pub(crate) fn explain(of: &Dialect, connection: &Connection) -> Explanation {
    let mut peculiarities = peculiarities(of);
    peculiarities.extend(thinking(&connection.model));
    let mut caching = those([
        (of.cache == CacheMarks::Unasked, CACHE_UNASKED, &[]),
        (of.cache == CacheMarks::Key, CACHE_BY_KEY, &[]),
        (
            of.cache == CacheMarks::Parts,
            "`cache_control` marks the system prompt and the newest messages, four at most.",
            &[Rule::Am11],
        ),
    ]);
    caching.extend(minimum(&connection.facts));
    let limitations = those([
        (!of.images, NO_MEDIA, &[Rule::Shape]),
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
    Explanation {
        peculiarities,
        caching,
        limitations,
        images: of.images,
    }
}

/// Returns the peculiarities of a model's thinking over Chat Completions.
fn thinking(model: &ModelRef) -> Vec<Peculiarity> {
    let name = model.name();
    let all = format!("openai-responses/{name} takes all of it.");
    let says = match goes(model) {
        Reach::Whole => None,
        Reach::ToolsUnasked => Some("With tools it is not asked to think: this API refuses both"),
        Reach::ToolsAtNone => Some("With tools it is told not to think: this API refuses both"),
        Reach::NoTools => Some("It thinks always, and this API refuses tools then"),
        Reach::Nothing => Some("This API does not serve it"),
    };
    let said = says.map(|says| peculiarity(format!("{says}; {all}"), &[Rule::Shape]));
    let cold =
        !takes_temperature(name, None, 0.0) && model.vendor().place != ServerLocation::ThisMachine;
    let cold = cold.then(|| peculiarity(NO_TEMPERATURE, &[Rule::Shape]));
    said.into_iter().chain(cold).collect()
}
