//! Explains the requests of Messages.

use plimsoll_judge::Rule;
use plimsoll_wire::anthropic::{EffortSupport, MessagesProfile, ThinkingStyle};

use super::Explanation;
use super::sentences::{NO_TEMPERATURE, peculiarity, those};
use crate::models::ModelFacts;

/// Explains the requests of a profile.
pub(crate) fn explain(of: &MessagesProfile, facts: &ModelFacts) -> Explanation {
    let mut peculiarities = those([
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
            !of.prefill,
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
            of.thinking != ThinkingStyle::None && !of.binds_prefix,
            "Signed thinking goes back byte for byte, whole loops of it or none.",
            &[Rule::Am9, Rule::Am10],
        ),
        (
            of.thinking != ThinkingStyle::None && of.binds_prefix,
            "Signed thinking is bound to all that stands before it: after an edit of that, it is \
             left out, whole loops of it.",
            &[Rule::Am9, Rule::Am10],
        ),
        (!of.temperature, NO_TEMPERATURE, &[Rule::Shape]),
        (
            !of.forced_tools,
            "It cannot be made to call a tool.",
            &[Rule::Shape],
        ),
        (
            of.later_system,
            "It would take system messages between others; they are said in the user's role.",
            &[],
        ),
        (
            of.effort != EffortSupport::Supported && of.thinking != ThinkingStyle::None,
            "An effort is not sent.",
            &[],
        ),
    ]);
    if let Some(most) = of.max_output {
        let says = format!("An answer has {most} tokens at most; every request says a limit.");
        peculiarities.push(peculiarity(says, &[Rule::Shape]));
    }
    let says = format!("A body has {} bytes at most.", of.max_body);
    peculiarities.push(peculiarity(says, &[Rule::Am13]));
    let least = facts
        .min_cacheable
        .as_ref()
        .map_or(of.min_cacheable, |fact| fact.value);
    let caching = vec![
        peculiarity(
            "Breakpoints: the tools or the system prompt, the newest message, the one before it, \
             and one between where a turn is long; four at most.",
            &[Rule::Am11],
        ),
        peculiarity(
            format!("None is set before {least} tokens: less is not cached, and nobody says so."),
            &[Rule::Am12],
        ),
    ];
    let limitations = those([
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
    Explanation {
        peculiarities,
        caching,
        limitations,
        images: true,
    }
}
