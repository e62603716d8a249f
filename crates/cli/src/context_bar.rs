//! Draws the use of a window: a bar of segments, and a legend with the numbers. `WindowUse` counts
//! the tokens.

use console::Style;
use plimsoll::context::{Contents, Share, WindowUse};
use plimsoll::machine::Entry;
use plimsoll::policy::Plan;
use plimsoll::store::SqliteStore;
use plimsoll::{Session, SessionStore, Tokens};

use crate::error::CliError;
use crate::terminal::style::{BLUE, BOLD, CYAN, Colours, DIM, GREEN, MAGENTA, RED, YELLOW};
use crate::terminal::text::clean;

/// Cells of the bar.
const BAR: u64 = 60;
/// Number of tools with a row of their own, the heaviest first. The others share one.
const TOOL_ROWS: usize = 12;
/// Indentation of each line.
const MARGIN: &str = "  ";

/// A part of the window.
struct WindowPart {
    name: &'static str,
    /// The character of the part in the bar if there are no colours.
    letter: char,
    style: Style,
    count: Option<usize>,
    tokens: Tokens,
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

/// Draws a view whose window and tools are unknown.
pub(crate) fn view(
    system: Tokens,
    view: &Contents,
    last: Option<&Plan>,
    colours: Colours,
) -> Vec<String> {
    let parts = view_parts(view).into_iter();
    let used = system + parts.map(|part| part.tokens).sum();
    let of = WindowUse {
        system,
        view: view.clone(),
        used,
        tools: Tokens::ZERO,
        tool_count: 0,
        dynamic_context: Tokens::ZERO,
        reserve: None,
        window: None,
        window_counted: None,
        limit: None,
        trigger: None,
        target: None,
    };
    let headline = format!("{MARGIN}{used} tokens, without the schemas of the tools");
    draw(&of, headline, last, colours)
}

/// Draws the use of a window, line by line.
fn picture(of: &WindowUse, last: Option<&Plan>, colours: Colours) -> Vec<String> {
    draw(of, headline(of), last, colours)
}

fn draw(of: &WindowUse, headline: String, last: Option<&Plan>, colours: Colours) -> Vec<String> {
    let mut parts = vec![
        part("system prompt", 'S', BLUE, None, of.system),
        part("tools", 'T', CYAN, Some(of.tool_count), of.tools),
    ];
    parts.extend(view_parts(&of.view));
    parts.push(part("dynamic context", 'D', DIM, None, of.dynamic_context));
    parts.retain(|part| part.tokens > Tokens::ZERO);
    let all = of.window_counted.or(of.limit).unwrap_or(of.used);
    let mut lines = vec![headline, bar(&parts, of, all, colours)];
    lines.extend(trigger(of, all, colours));
    lines.extend(legend(&parts, &of.view, all, colours));
    if let Some(limit) = of.limit {
        let mark = colours.paint(DIM, "░");
        lines.push(row(&mark, "free", None, limit.minus(of.used), all));
    }
    if let Some(reserve) = of.reserve {
        let mark = colours.paint(DIM, "·");
        lines.push(row(&mark, "kept for the answer", None, reserve, all));
    }
    // The number of removed messages depends on the view at that time.
    lines.extend(last.map(|plan| format!("{MARGIN}last plan: {plan}")));
    lines
}

/// Returns the newest plan of a log.
pub(crate) fn newest_plan(log: &[Entry]) -> Option<&Plan> {
    log.iter().rev().find_map(|entry| match entry {
        Entry::PlanApplied { plan } => Some(plan),
        _ => None,
    })
}

fn part(
    name: &'static str,
    letter: char,
    style: Style,
    count: Option<usize>,
    tokens: Tokens,
) -> WindowPart {
    WindowPart {
        name,
        letter,
        style,
        count,
        tokens,
    }
}

/// Returns the parts of a view, roughly in the order in which they are sent.
fn view_parts(view: &Contents) -> Vec<WindowPart> {
    let of = |name: &'static str, letter: char, style: Style, share: Share| {
        part(name, letter, style, Some(share.messages), share.tokens)
    };
    let user = Share {
        messages: view.task.messages + view.messages.messages,
        tokens: view.task.tokens + view.messages.tokens,
    };
    vec![
        of("pins", 'P', RED, view.pins),
        of("summaries", 'M', BOLD, view.summaries),
        of("user", 'U', GREEN, user),
        of("assistant", 'A', MAGENTA, view.answers),
        of("tool results", 'R', YELLOW, view.all_results()),
        of("notices of the run", 'N', DIM, view.notices),
        of("system messages", 'I', BLUE, view.system),
    ]
}

/// Formats the headline, for example "8120 of 20000 tokens, 40.6 %".
fn headline(of: &WindowUse) -> String {
    let used = of.used;
    let text = match (of.window, of.window_counted) {
        (Some(window), Some(counted)) if counted != window => format!(
            "{used} of {counted} tokens, {} (a window of {window} as the provider counts)",
            percent(used, counted)
        ),
        (Some(window), _) => format!("{used} of {window} tokens, {}", percent(used, window)),
        (None, _) => format!(
            "{used} tokens; the window is unknown until the provider refuses a \
                              request"
        ),
    };
    format!("{MARGIN}{text}")
}

fn mark(part: &WindowPart, colours: Colours) -> String {
    match colours {
        Colours::None => part.letter.to_string(),
        Colours::Ansi => colours.paint(part.style.clone(), "█"),
    }
}

/// Draws the parts, the free tokens, and the reserve for the answer.
fn bar(parts: &[WindowPart], of: &WindowUse, all: Tokens, colours: Colours) -> String {
    let mut bar = MARGIN.to_owned();
    let limit = of.limit.map_or(BAR, |limit| cell(limit, all));
    let mut sum = Tokens::ZERO;
    let ends = parts.iter().map(|part| {
        sum += part.tokens;
        (cell(sum, all), mark(part, colours))
    });
    let ends: Vec<(u64, String)> = ends.collect();
    for at in 0..BAR {
        bar.push_str(&match ends.iter().find(|(end, _)| at < *end) {
            Some((_, mark)) => mark.clone(),
            None if at < limit => colours.paint(DIM, "░"),
            None => colours.paint(DIM, "·"),
        });
    }
    bar
}

/// Draws the line that points to the trigger.
fn trigger(of: &WindowUse, all: Tokens, colours: Colours) -> Option<String> {
    let trigger = of.trigger?;
    let mut text = format!("compacts at {trigger}");
    if let Some(target) = of.target {
        text.push_str(&format!(", ends at {target}"));
    }
    let at = usize::try_from(cell(trigger, all).min(BAR)).ok()?;
    let before = text.chars().count() + 1;
    let line = match at.checked_sub(before) {
        Some(blanks) => format!("{}{text} ▲", " ".repeat(blanks)),
        None => format!("{}▲ {text}", " ".repeat(at)),
    };
    Some(format!("{MARGIN}{}", colours.paint(DIM, &line)))
}

fn legend(parts: &[WindowPart], view: &Contents, all: Tokens, colours: Colours) -> Vec<String> {
    let mut lines = Vec::new();
    for part in parts {
        let mark = mark(part, colours);
        lines.push(row(&mark, part.name, part.count, part.tokens, all));
        if part.name == "tool results" {
            lines.extend(results(view, all));
        }
    }
    lines
}

/// Returns the rows of the results, by tool.
fn results(view: &Contents, all: Tokens) -> Vec<String> {
    let mut tools: Vec<(&String, &Share)> = view.results.iter().collect();
    tools.sort_by_key(|(name, share)| (std::cmp::Reverse(share.tokens), *name));
    let (heavy, light) = tools.split_at(tools.len().min(TOOL_ROWS));
    let mut rows: Vec<(String, Share)> = heavy
        .iter()
        .map(|(name, share)| (clean(name), **share))
        .collect();
    let mut rest = Share::default();
    for (_, share) in light {
        rest.messages += share.messages;
        rest.tokens += share.tokens;
    }
    rows.push(("other tools".to_owned(), rest));
    rows.retain(|(_, share)| share.messages > 0);
    rows.iter()
        .map(|(name, share)| {
            let name = format!("  {name}");
            row(" ", &name, Some(share.messages), share.tokens, all)
        })
        .collect()
}

/// Formats a row, for example "■ tool results                 12       9120   57.0 %".
fn row(mark: &str, name: &str, count: Option<usize>, tokens: Tokens, all: Tokens) -> String {
    let count = count.map_or_else(String::new, |count| count.to_string());
    format!(
        "{MARGIN}{mark} {name:<26} {count:>6} {:>10} {:>8}",
        tokens.to_string(),
        percent(tokens, all)
    )
}

fn percent(tokens: Tokens, all: Tokens) -> String {
    let permille = tokens.0.saturating_mul(1_000) / all.0.max(1);
    format!("{}.{} %", permille / 10, permille % 10)
}

fn cell(tokens: Tokens, all: Tokens) -> u64 {
    tokens.0.saturating_mul(BAR) / all.0.max(1)
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
            STTAAAAAAAAARRRRRRRRRRR░░░░░░░░░░░░░░░░░░░░░░░░░░░░░········\n              \
            compacts at 1400, ends at 900 ▲";
        assert!(text.starts_with(expected), "{text}");
        for row in [
            "  S system prompt                             40    2.0 %",
            "  T tools                           4         60    3.0 %",
            "  U user                            1         20    1.0 %",
            "  R tool results                   20        390   19.5 %",
            "      tool19                        1         29    1.4 %",
            "      other tools                   8        108    5.4 %",
            "  ░ free                                     960   48.0 %",
            "  · kept for the answer                      250   12.5 %",
        ] {
            assert!(text.contains(row), "no {row}:\n{text}");
        }
        assert!(
            !text.contains("pins") && !text.contains("dynamic"),
            "{text}"
        );
        assert!(
            !text.contains("tool07 "),
            "the lightest share a row\n{text}"
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
