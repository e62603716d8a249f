//! Draws the use of a window: a bar of segments, and a legend with the numbers. `WindowUse` counts
//! the tokens.

use std::cmp::Reverse;

use console::{Style, Term};
use plimsoll::context::{Contents, Share, WindowUse};
use plimsoll::machine::Entry;
use plimsoll::policy::Plan;
use plimsoll::store::SqliteStore;
use plimsoll::{Session, SessionStore, Tokens};

use crate::error::CliError;
use crate::listing;
use crate::terminal::columns;
use crate::terminal::style::{BLUE, BOLD, CYAN, Colours, DIM, GREEN, MAGENTA, RED, YELLOW};
use crate::terminal::text::clean;

/// Cells of the bar, unless the terminal is too narrow.
const BAR: u64 = 60;
/// Indentation of each line.
const MARGIN: &str = "  ";
/// The name of the part that is also shown by tool.
const RESULTS: &str = "tool results";
const HEADING: [&str; 4] = ["part", ">count?2", ">tokens", ">share?1"];
/// The cell of the bar from which on a plan is due.
const TRIGGER: &str = "┊";

/// A part of the window.
struct WindowPart {
    name: &'static str,
    /// The character of the part in the bar, or a block in its colour.
    mark: String,
    count: Option<usize>,
    tokens: Tokens,
}

/// Returns the number of cells of the bar.
fn cells() -> u64 {
    let columns = columns(&Term::stdout()).saturating_sub(MARGIN.len());
    BAR.min(columns as u64)
}

/// Draws the use of a session's window, line by line.
pub(crate) async fn of_session(
    store: &SqliteStore,
    session: &Session,
    colours: Colours,
) -> Result<Vec<String>, CliError> {
    let log = store.load(session.id()).await?;
    Ok(picture(&session.window_use(), newest_plan(&log), colours))
}

/// Draws the use of a window, line by line.
fn picture(of: &WindowUse, last: Option<&Plan>, colours: Colours) -> Vec<String> {
    let used = of.used;
    let headline = match (of.window, of.window_counted) {
        (Some(window), Some(counted)) if counted != window => format!(
            "{used} of {counted} tokens, {} (a window of {window} as the provider counts)",
            percent(used, counted)
        ),
        (Some(window), _) => format!("{used} of {window} tokens, {}", percent(used, window)),
        (None, _) => {
            format!("{used} tokens; the window is unknown until the provider refuses a request")
        }
    };
    draw(of, &headline, last, colours)
}

fn draw(of: &WindowUse, headline: &str, last: Option<&Plan>, colours: Colours) -> Vec<String> {
    let mut parts = parts(of, colours);
    let all = of.window_counted.or(of.limit).unwrap_or(of.used);
    let bar = bar(&parts, of, all, colours);
    if let Some(limit) = of.limit {
        let free = limit.minus(of.used);
        parts.push(part("free", colours.paint(DIM, "░"), None, free));
    }
    if let Some(reserve) = of.reserve {
        let mark = colours.paint(DIM, "·");
        parts.push(part("kept for the answer", mark, None, reserve));
    }
    let rows = parts.iter().flat_map(|part| {
        let tools = (part.name == RESULTS).then(|| results(&of.view));
        let row = (
            format!("{} {}", part.mark, part.name),
            part.count,
            part.tokens,
        );
        std::iter::once(row).chain(tools.into_iter().flatten())
    });
    let rows = rows.map(|(name, count, tokens)| {
        let count = count.map_or_else(String::new, |count| count.to_string());
        [name, count, tokens.to_string(), percent(tokens, all)]
    });
    let width = listing::width_of(&Term::stdout());
    let width = width.map(|width| width.saturating_sub(MARGIN.len()));
    let trigger = of.trigger.map(|trigger| {
        let end = of.target.map(|target| format!(", ends at {target}"));
        format!("{TRIGGER} compacts at {trigger}{}", end.unwrap_or_default())
    });
    let head = [headline.to_owned(), bar].into_iter().chain(trigger);
    let lines = head.chain(listing::columns(HEADING, rows, width));
    // The number of removed messages depends on the view at that time.
    let lines = lines.chain(last.map(|plan| format!("last plan: {plan}")));
    lines.map(|line| format!("{MARGIN}{line}")).collect()
}

/// Returns the newest plan of a log.
fn newest_plan(log: &[Entry]) -> Option<&Plan> {
    log.iter().rev().find_map(|entry| match entry {
        Entry::PlanApplied { plan } => Some(plan),
        _ => None,
    })
}

/// Returns the parts that are not empty, roughly in the order in which they are sent.
fn parts(of: &WindowUse, colours: Colours) -> Vec<WindowPart> {
    let part = |name, letter: &str, style: Style, count, tokens| {
        let mark = match colours {
            Colours::None => letter.to_owned(),
            Colours::Ansi => colours.paint(style, "█"),
        };
        part(name, mark, count, tokens)
    };
    let share = |name, letter, style, share: Share| {
        part(name, letter, style, Some(share.messages), share.tokens)
    };
    let view = &of.view;
    let user = Share {
        messages: view.task.messages + view.messages.messages,
        tokens: view.task.tokens + view.messages.tokens,
    };
    let mut parts = vec![
        part("system prompt", "S", BLUE, None, of.system),
        part("tools", "T", CYAN, Some(of.tool_count), of.tools),
        share("pins", "P", RED, view.pins),
        share("summaries", "M", BOLD, view.summaries),
        share("user", "U", GREEN, user),
        share("assistant", "A", MAGENTA, view.answers),
        share(RESULTS, "R", YELLOW, view.all_results()),
        share("notices of the run", "N", DIM, view.notices),
        share("system messages", "I", BLUE, view.system),
        part("dynamic context", "D", DIM, None, of.dynamic_context),
    ];
    parts.retain(|part| part.tokens > Tokens::ZERO);
    parts
}

fn part(name: &'static str, mark: String, count: Option<usize>, tokens: Tokens) -> WindowPart {
    WindowPart {
        name,
        mark,
        count,
        tokens,
    }
}

/// Draws the parts, the free tokens, the reserve for the answer, and the trigger.
fn bar(parts: &[WindowPart], of: &WindowUse, all: Tokens, colours: Colours) -> String {
    let cells = cells();
    let cell = |tokens: Tokens| tokens.0.saturating_mul(cells) / all.0.max(1);
    let ends = parts.iter().scan(Tokens::ZERO, |sum, part| {
        *sum += part.tokens;
        Some((part.mark.clone(), cell(*sum)))
    });
    let free = (colours.paint(DIM, "░"), of.limit.map_or(cells, cell));
    let ends: Vec<(String, u64)> = ends.chain([free]).collect();
    let trigger = of.trigger.map(cell);
    let reserve = colours.paint(DIM, "·");
    let mark = |at| {
        let part = ends.iter().find(|(_, end)| at < *end);
        match part {
            _ if Some(at) == trigger => TRIGGER,
            Some((mark, _)) => mark.as_str(),
            None => reserve.as_str(),
        }
    };
    (0..cells).map(mark).collect()
}

/// Returns the rows of the results, by tool, the heaviest first.
fn results(view: &Contents) -> Vec<(String, Option<usize>, Tokens)> {
    let mut tools: Vec<(&String, &Share)> = view.results.iter().collect();
    tools.sort_by_key(|(name, share)| (Reverse(share.tokens), *name));
    let row = |(name, share): (&String, &Share)| {
        let name = format!("    {}", clean(name));
        (name, Some(share.messages), share.tokens)
    };
    tools.into_iter().map(row).collect()
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
            task: share(1, 20),
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
    fn every_part_has_cells_and_a_row_and_the_trigger_is_pointed_at() {
        let lines = picture(&window(), None, Colours::None);
        let text = lines.join("\n");
        let expected = "  790 of 2000 tokens, 39.5 %\n  \
            STTAAAAAAAAARRRRRRRRRRR░░░░░░░░░░░░░░░░░░░┊░░░░░░░░░········\n  \
            ┊ compacts at 1400, ends at 900\n  \
            part                   count  tokens   share\n";
        assert!(text.starts_with(expected), "{text}");
        for row in [
            "  S system prompt                   40   2.0 %",
            "  T tools                    4      60   3.0 %",
            "  U user                     1      20   1.0 %",
            "  R tool results            20     390  19.5 %",
            "      tool19                 1      29   1.4 %",
            "  ░ free                           960  48.0 %",
            "  · kept for the answer            250  12.5 %",
        ] {
            assert!(text.contains(row), "no {row}:\n{text}");
        }
        assert!(
            !text.contains("pins") && !text.contains("dynamic"),
            "{text}"
        );
        assert!(lines.iter().all(|line| line.chars().count() < 80), "{text}");
    }

    #[test]
    fn colours_stand_for_letters() {
        let lines = picture(&window(), None, Colours::Ansi);
        let bar = lines.get(1).cloned().unwrap_or_default();
        assert!(bar.contains("\u{1b}[33m█"), "{bar:?}");
        assert_eq!(console::measure_text_width(&bar), 62);
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
        let lines = picture(&of, None, Colours::None);
        assert!(lines.first().is_some_and(|line| line.contains("unknown")));
    }
}
