//! The use of a window: a gauge, and a table of its parts and of the results by tool. `WindowUse` counts the tokens.

use std::cmp::Reverse;

use console::Term;
use plimsoll::Tokens;
use plimsoll::context::{Contents, Share, WindowUse};
use plimsoll::machine::Entry;
use plimsoll::tokens::MESSAGE_OVERHEAD;

use crate::error::CliError;
use crate::listing;
use crate::sessions::fold;
use crate::status::gauge;
use crate::terminal;
use crate::view::started;

/// Width of the gauge, in cells. It fits a terminal of 40 columns.
const GAUGE: u64 = 36;
const HEADING: [&str; 4] = ["part", ">count", ">tokens", ">share"];

/// A part of the window: its name, the number of its messages or tools, and its size.
type WindowPart = (String, Option<usize>, Tokens);

/// Describes the view of a log. Its tools and window are unknown, because they are not in the log.
pub(crate) fn of_log(log: &[Entry]) -> Result<Vec<String>, CliError> {
    let state = fold(log)?;
    let view = state.transcript();
    let system = match &*started(log).1 {
        "" => Tokens::ZERO,
        text => MESSAGE_OVERHEAD + view.counter().text(text),
    };
    let of = WindowUse {
        system,
        used: system + view.tokens(),
        view: Contents::of(&state),
        ..WindowUse::default()
    };
    let headline = format!("{} tokens, without the schemas of the tools", of.used);
    Ok(lines(&of, headline, log))
}

/// Describes the use of a session's window, line by line.
pub(crate) fn of_window(of: &WindowUse, log: &[Entry]) -> Vec<String> {
    let used = of.used;
    let headline = match of.window_counted.or(of.window) {
        Some(window) => format!("{used} of {window} tokens, {}", percent(used, window)),
        None => {
            format!("{used} tokens; the window is unknown until the provider refuses a request")
        }
    };
    lines(of, headline, log)
}

fn lines(of: &WindowUse, headline: String, log: &[Entry]) -> Vec<String> {
    let window = of.window_counted.or(of.limit);
    let all = window.unwrap_or(of.used);
    let rows = parts(of).into_iter().map(|(name, count, tokens)| {
        let count = count.map_or_else(String::new, |count| count.to_string());
        [name, count, tokens.to_string(), percent(tokens, all)]
    });
    let width = terminal::columns(&Term::stdout());
    let gauge = window.map(|window| gauge(of.used, of.trigger, window, GAUGE));
    let trigger = of.trigger.map(|trigger| {
        let end = of.target.map(|target| format!(", ends at {target}"));
        format!("┊ compacts at {trigger}{}", end.unwrap_or_default())
    });
    let last = log.iter().rev().find_map(|entry| match entry {
        // The number of removed messages depends on the view at that time.
        Entry::PlanApplied { plan } => Some(format!("last plan: {plan}")),
        _ => None,
    });
    let table = listing::columns(HEADING, rows, width);
    let head = [headline].into_iter().chain(gauge).chain(trigger);
    head.chain(table).chain(last).collect()
}

/// Returns the parts that are not empty, roughly in the order in which they are sent.
fn parts(of: &WindowUse) -> Vec<WindowPart> {
    let part = |name: &str, count, tokens| (name.to_owned(), count, tokens);
    let share = |name: &str, share: Share| part(name, Some(share.messages), share.tokens);
    let view = &of.view;
    let mut parts = vec![
        part("system prompt", None, of.system),
        part("tools", Some(of.tool_count), of.tools),
        share("pins", view.pins),
        share("summaries", view.summaries),
        share("user", view.user),
        share("assistant", view.answers),
        share("tool results", view.all_results()),
    ];
    let mut tools: Vec<(&String, &Share)> = view.results.iter().collect();
    tools.sort_by_key(|(name, share)| (Reverse(share.tokens), *name));
    let tools = tools.into_iter();
    parts.extend(tools.map(|(name, results)| share(&format!("  {name}"), *results)));
    parts.extend([
        share("notices of the run", view.notices),
        share("system messages", view.system),
        part("dynamic context", None, of.dynamic_context),
    ]);
    parts.retain(|(.., tokens)| *tokens > Tokens::ZERO);
    let free = of.limit.map(|limit| limit.minus(of.used));
    parts.extend(free.map(|free| part("free", None, free)));
    let reserve = of.reserve;
    parts.extend(reserve.map(|reserve| part("answer reserve", None, reserve)));
    parts
}

fn percent(tokens: Tokens, all: Tokens) -> String {
    let permille = tokens.0.saturating_mul(1_000) / all.0.max(1);
    format!("{}.{} %", permille / 10, permille % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(messages: usize, tokens: u64) -> Share {
        Share {
            messages,
            tokens: Tokens(tokens),
        }
    }

    fn window() -> WindowUse {
        let mut view = Contents {
            user: share(1, 20),
            answers: share(20, 280),
            ..Contents::default()
        };
        for n in 0..20_u64 {
            view.results.insert(format!("tool{n:02}"), share(1, 10 + n));
        }
        WindowUse {
            system: Tokens(40),
            tools: Tokens(60),
            tool_count: 4,
            dynamic_context: Tokens::ZERO,
            used: Tokens(400 + view.all_results().tokens.0),
            view,
            reserve: Some(Tokens(250)),
            window: Some(Tokens(2_000)),
            window_counted: Some(Tokens(2_000)),
            limit: Some(Tokens(1_750)),
            trigger: Some(Tokens(1_400)),
            target: Some(Tokens(900)),
        }
    }

    #[test]
    fn every_part_has_a_row_below_the_gauge() {
        let lines = of_window(&window(), &[]);
        let text = lines.join("\n");
        let expected = "790 of 2000 tokens, 39.5 %\n\
            ██████████████░░░░░░░░░░░┊░░░░░░░░░░\n\
            ┊ compacts at 1400, ends at 900\n\
            part            count  tokens   share\n";
        assert!(text.starts_with(expected), "{text}");
        for row in [
            "system prompt              40   2.0 %",
            "tools               4      60   3.0 %",
            "user                1      20   1.0 %",
            "tool results       20     390  19.5 %",
            "  tool19            1      29   1.4 %",
            "free                      960  48.0 %",
            "answer reserve            250  12.5 %",
        ] {
            assert!(text.contains(row), "no {row}:\n{text}");
        }
        assert!(
            !text.contains("pins") && !text.contains("dynamic"),
            "{text}"
        );
    }

    #[test]
    fn an_unknown_window_is_said_to_be_unknown() {
        let of = WindowUse {
            view: Contents::default(),
            tools: Tokens::ZERO,
            used: Tokens(40),
            reserve: None,
            window: None,
            window_counted: None,
            limit: None,
            trigger: None,
            target: None,
            ..window()
        };
        let lines = of_window(&of, &[]);
        assert!(lines.first().is_some_and(|line| line.contains("unknown")));
    }
}
