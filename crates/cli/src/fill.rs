//! What fills a window, as a table and a bar. It weighs nothing; see `WindowUse`.

use plimsoll::{Contents, Share, Tokens, WindowUse};

/// Cells of the bar.
const BAR: u64 = 50;
/// Tools that have a row of their own, the heaviest first; the others share one.
const TOOL_ROWS: usize = 12;

/// A part of the window.
struct Row {
    name: String,
    count: Option<usize>,
    tokens: Tokens,
}

/// The table, line by line.
pub(crate) fn table(of: &WindowUse) -> Vec<String> {
    let mut rows = vec![Row {
        name: "system prompt".to_owned(),
        count: None,
        tokens: of.system,
    }];
    rows.push(Row {
        name: "tools".to_owned(),
        count: Some(of.tool_count),
        tokens: of.tools,
    });
    rows.extend(parts(&of.view));
    rows.push(Row {
        name: "dynamic context".to_owned(),
        count: None,
        tokens: of.dynamic_context,
    });
    rows.retain(|row| row.tokens > Tokens::ZERO);
    let of_all = of.window_counted.or(of.limit).unwrap_or(of.used);
    let mut lines: Vec<String> = rows.iter().map(|row| line(row, of_all)).collect();
    lines.push(line(
        &Row {
            name: "in all".to_owned(),
            count: None,
            tokens: of.used,
        },
        of_all,
    ));
    let Some(limit) = of.limit else {
        lines.push("the window is not known; a refusal will tell it".to_owned());
        return lines;
    };
    lines.push(line(
        &Row {
            name: "free".to_owned(),
            count: None,
            tokens: limit.minus(of.used),
        },
        of_all,
    ));
    if let Some(reserve) = of.reserve {
        lines.push(line(
            &Row {
                name: "kept for the answer".to_owned(),
                count: None,
                tokens: reserve,
            },
            of_all,
        ));
    }
    lines.push(bar(of, of_all));
    lines.push(marks(of));
    lines
}

/// The system prompt and the messages, by kind, of a view whose window nobody knows.
pub(crate) fn view(system: Tokens, view: &Contents) -> Vec<String> {
    let mut all = vec![Row {
        name: "system prompt".to_owned(),
        count: None,
        tokens: system,
    }];
    all.extend(parts(view));
    let sum: Tokens = all.iter().map(|row| row.tokens).sum();
    all.iter()
        .filter(|row| row.tokens > Tokens::ZERO)
        .map(|row| line(row, sum))
        .collect()
}

fn parts(view: &Contents) -> Vec<Row> {
    let row = |name: &str, share: Share| Row {
        name: name.to_owned(),
        count: Some(share.messages),
        tokens: share.tokens,
    };
    let mut rows = vec![
        row("pins", view.pins),
        row("task", view.task),
        row("summaries", view.summaries),
        row("messages of yours", view.messages),
        row("notices of the run", view.notices),
        row("system messages", view.system),
        row("answers and tool calls", view.answers),
    ];
    let mut tools: Vec<(&String, &Share)> = view.results.iter().collect();
    tools.sort_by_key(|(name, share)| (std::cmp::Reverse(share.tokens), *name));
    let (heavy, light) = tools.split_at(tools.len().min(TOOL_ROWS));
    for (name, share) in heavy {
        let name = crate::terminal::text::clean(name);
        rows.push(row(&format!("results of {name}"), **share));
    }
    let mut rest = Share::default();
    for (_, share) in light {
        rest.messages += share.messages;
        rest.tokens += share.tokens;
    }
    rows.push(row("results of other tools", rest));
    rows
}

///   results of read                12 messages      9120    57 %
fn line(row: &Row, all: Tokens) -> String {
    let count = row
        .count
        .map_or_else(String::new, |count| count.to_string());
    let percent = row.tokens.0.saturating_mul(1_000) / all.0.max(1);
    format!(
        "  {:<28} {count:>6} {:>10} {:>4}.{} %",
        row.name,
        row.tokens.to_string(),
        percent / 10,
        percent % 10
    )
}

/// Full up to what is used, with a mark where a plan is due.
fn bar(of: &WindowUse, all: Tokens) -> String {
    let cell = |tokens: Tokens| tokens.0.saturating_mul(BAR) / all.0.max(1);
    let full = cell(of.used);
    let mark = of.trigger.map(cell);
    let limit = of.limit.map_or(BAR, cell);
    let cells: String = (0..BAR)
        .map(|at| match at {
            _ if at < full => '█',
            _ if mark == Some(at) => '┊',
            _ if at < limit => '░',
            _ => '·',
        })
        .collect();
    format!("  {cells}")
}

fn marks(of: &WindowUse) -> String {
    let mut parts = vec![format!("{} used", of.used)];
    if let Some(trigger) = of.trigger {
        parts.push(format!("a plan is due at {trigger}"));
    }
    if let Some(target) = of.target {
        parts.push(format!("ends at {target}"));
    }
    match (of.window, of.window_counted) {
        (Some(window), Some(counted)) if counted != window => {
            parts.push(format!(
                "window {counted} as we count, {window} as the provider does"
            ));
        }
        (Some(window), _) => parts.push(format!("window {window}")),
        (None, _) => {}
    }
    format!("  {}", parts.join(", "))
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

    #[test]
    fn every_part_has_a_row_and_the_bar_shows_where_a_plan_is_due() {
        let mut view = Contents {
            task: share(1, 10),
            answers: share(20, 300),
            ..Contents::default()
        };
        for n in 0..20_u64 {
            view.results.insert(format!("tool{n:02}"), share(1, 10 + n));
        }
        let of = WindowUse {
            system: Tokens(40),
            tools: Tokens(60),
            tool_count: 4,
            dynamic_context: Tokens::ZERO,
            used: Tokens(410 + view.all_results().tokens.0),
            view,
            reserve: Some(Tokens(250)),
            window: Some(Tokens(2_000)),
            window_counted: Some(Tokens(2_000)),
            limit: Some(Tokens(1_750)),
            trigger: Some(Tokens(1_400)),
            target: Some(Tokens(900)),
        };
        let lines = table(&of);
        let text = lines.join("\n");
        for part in [
            "system prompt                               40    2.0 %",
            "tools                             4         60    3.0 %",
            "results of tool19                 1         29    1.4 %",
            "results of other tools            8        108    5.4 %",
            "in all                                     800   40.0 %",
            "free                                       950   47.5 %",
            "kept for the answer                        250   12.5 %",
            "a plan is due at 1400, ends at 900, window 2000",
        ] {
            assert!(text.contains(part), "no {part}:\n{text}");
        }
        assert!(
            !text.contains("pins") && !text.contains("dynamic"),
            "{text}"
        );
        assert!(
            !text.contains("tool07 "),
            "the lightest share a row\n{text}"
        );
        let bar = format!(
            "  {}{}┊{}{}",
            "█".repeat(20),
            "░".repeat(15),
            "░".repeat(7),
            "·".repeat(7)
        );
        assert!(lines.contains(&bar), "{text}");
    }

    #[test]
    fn an_unknown_window_is_said_to_be_unknown() {
        let of = WindowUse {
            system: Tokens(40),
            tools: Tokens::ZERO,
            tool_count: 0,
            dynamic_context: Tokens::ZERO,
            view: Contents::default(),
            used: Tokens(40),
            reserve: None,
            window: None,
            window_counted: None,
            limit: None,
            trigger: None,
            target: None,
        };
        let lines = table(&of);
        assert!(lines.last().is_some_and(|line| line.contains("not known")));
    }
}
