//! [`Screen`]: what a person sees of a run: text as it streams, tools and plans as lines, a status
//! line at the bottom of a terminal. Colours respect `NO_COLOR` and pipes.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll::{Delta, Edit, Event, Money, Observer, Plan, Tokens, ToolPhase, Usage};

use crate::chat::paper::clean;
use crate::outcome::{about, used};

/// A tool's arguments or result on one line, at most.
const LINE: usize = 100;
/// Cells of the context gauge.
const GAUGE: u64 = 16;

/// What a person sees.
pub(crate) struct Screen {
    bar: ProgressBar,
    /// Whether stdout is a terminal, so that text streams there.
    streams: bool,
    colour: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    turn: u64,
    tokens: Tokens,
    trigger: Option<Tokens>,
    window: Option<Tokens>,
    usage: Usage,
    /// What calls took besides whose provider did not say it.
    estimated: Usage,
    /// What all of it cost, where that is known.
    cost: Option<Money>,
    last_plan: Option<String>,
    doing: String,
    /// Whether streamed text stands on the current line.
    mid_line: bool,
    streamed: bool,
}

impl Screen {
    /// A screen on this terminal, or plain lines where there is none.
    pub(crate) fn new() -> Self {
        let bar = if io::stderr().is_terminal() {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        } else {
            ProgressBar::hidden()
        };
        Self {
            bar,
            streams: io::stdout().is_terminal(),
            colour: io::stderr().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
            state: Mutex::new(State::default()),
        }
    }

    /// Says something above the status line.
    pub(crate) fn say(&self, text: &str) {
        let text = self.dim(text);
        self.line(&mut self.lock(), &text);
    }

    /// Whether the answer's text has been shown as it streamed.
    pub(crate) fn has_streamed(&self) -> bool {
        self.lock().streamed
    }

    /// Takes the status line away for good.
    pub(crate) fn close(&self) {
        self.end_line(&mut self.lock());
        self.bar.finish_and_clear();
    }

    /// Runs something that needs the terminal for itself, a question for example. The status line
    /// is put away, not held: an interrupt must get through while somebody thinks.
    pub(crate) fn aside<T>(&self, action: impl FnOnce() -> T) -> T {
        self.end_line(&mut self.lock());
        let shown = !self.bar.is_hidden();
        if shown {
            self.bar.set_draw_target(ProgressDrawTarget::hidden());
            eprint!("\r\u{1b}[2K");
        }
        let done = action();
        if shown {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        done
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, state: &mut State, text: &str) {
        self.end_line(state);
        self.bar.suspend(|| eprintln!("{text}"));
    }

    fn end_line(&self, state: &mut State) {
        if std::mem::take(&mut state.mid_line) {
            self.write("\n");
        }
    }

    /// A piece of the answer; only where a terminal shows it.
    fn stream(&self, state: &mut State, text: &str) {
        let text = clean(text);
        self.write(&text);
        state.mid_line = !text.ends_with('\n');
        state.streamed = true;
    }

    /// Writes to standard output beside the status line. A reader that has gone away is noticed
    /// when the answer is printed.
    fn write(&self, text: &str) {
        self.bar.suspend(|| {
            let mut out = io::stdout().lock();
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        });
    }

    fn dim(&self, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[2m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    fn bold(&self, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[1m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    fn refresh(&self, state: &State) {
        self.bar.set_message(clean(&status(state)));
    }
}

impl Observer for Screen {
    fn see(&self, event: &Event) {
        let mut guard = self.lock();
        let state = &mut *guard;
        match event {
            Event::AgentStart { model, .. } => {
                state.doing = format!("asking {model}");
            }
            Event::TurnStart {
                turn,
                tokens,
                trigger,
                window,
                ..
            } => {
                state.turn = *turn;
                state.tokens = *tokens;
                state.trigger = *trigger;
                state.window = *window;
                state.doing = "the model reads".to_owned();
                state.streamed = false;
            }
            Event::Delta(Delta::Text { text }) => {
                state.doing = "the model writes".to_owned();
                if self.streams {
                    self.stream(state, text);
                }
            }
            Event::Delta(Delta::Thinking { .. }) => state.doing = "the model thinks".to_owned(),
            Event::Delta(Delta::HostedCall { name, text, .. }) => {
                let head = self.bold(&format!("[{}] {}", state.turn, clean(name)));
                let text = one_line(&clean(text));
                let line = format!("{head} {text} {}", self.dim("(at the provider)"));
                self.line(state, &line);
            }
            Event::Delta(Delta::HostedResult { text, is_error, .. }) => {
                // What was found somewhere in the world may hold anything.
                let text = one_line(&clean(text));
                let line = match is_error {
                    true => format!("    {} {text}", self.bold("error:")),
                    false => self.dim(&format!("    {text}")),
                };
                self.line(state, &line);
            }
            Event::Delta(_) => state.doing = "the model calls a tool".to_owned(),
            Event::Retrying {
                attempt,
                wait_ms,
                why,
            } => {
                state.streamed = false;
                let text = format!(
                    "try {attempt} in {:.1} s: {}",
                    *wait_ms as f64 / 1000.0,
                    one_line(why)
                );
                self.line(state, &self.dim(&text));
            }
            Event::TurnEnd {
                total,
                estimated,
                cost,
                ..
            } => {
                state.usage = *total;
                state.estimated = *estimated;
                state.cost = *cost;
                self.end_line(state);
            }
            Event::ToolCall {
                phase, name, text, ..
            } => {
                let (name, text) = (clean(name), one_line(text));
                let line = match phase {
                    ToolPhase::Start => {
                        state.doing = format!("{name} runs");
                        format!(
                            "{} {}",
                            self.bold(&format!("[{}] {name}", state.turn)),
                            text
                        )
                    }
                    ToolPhase::Success => self.dim(&format!("    {text}")),
                    ToolPhase::Error => format!("    {} {text}", self.bold("error:")),
                    ToolPhase::Skipped => format!("    {} {text}", self.bold("skipped:")),
                };
                self.line(state, &line);
            }
            Event::CompactionEnded {
                plan,
                messages_before,
                messages_after,
                tokens_before,
                tokens_after,
            } => {
                let gone = messages_before.saturating_sub(*messages_after);
                let text = plan_line(plan, gone, *tokens_before, *tokens_after);
                state.tokens = *tokens_after;
                self.line(state, &self.bold(&text));
                state.last_plan = Some(format!("−{}", plan.frees));
            }
            Event::SummaryStarted {
                model,
                messages,
                tokens,
            } => {
                let text = format!("{model} sums up {messages} messages, {tokens} tokens");
                let text = clean(&text);
                self.line(state, &self.dim(&text));
            }
            Event::SummaryEnded {
                failure: Some(why), ..
            } => {
                let text = clean(&format!(
                    "no summary: {why}; what was said stands word for word"
                ));
                self.line(state, &format!("{} {text}", self.bold("note:")));
            }
            // What a plan breaks, its own line has told.
            Event::CacheMissed(miss) if !miss.is_planned() => {
                let text = self.dim(&miss.to_string());
                self.line(state, &text);
            }
            Event::Overflow {
                window, message, ..
            } => {
                let known =
                    window.map_or_else(String::new, |window| format!(" (window: {window})"));
                let text = format!("too long{known}; making it smaller: {}", one_line(message));
                self.line(state, &text);
            }
            Event::LimitNear { notice } => self.line(state, &self.dim(&clean(notice))),
            Event::LimitReached { notice } => self.line(state, &self.bold(&clean(notice))),
            Event::Warning { text } => {
                let text = format!("{} {}", self.bold("note:"), clean(text));
                self.line(state, &text);
            }
            Event::AgentEnd { .. } => self.end_line(state),
            Event::SubAgent { name, event, .. } => {
                if let Some(text) = below(name, event) {
                    self.line(state, &self.dim(&clean(&text)));
                }
                state.doing = format!("{name} works");
            }
            _ => {}
        }
        self.refresh(state);
    }
}

/// What is shown of an agent that a tool call has started: its calls, and how it ended.
fn below(name: &str, event: &Event) -> Option<String> {
    match event {
        Event::ToolCall {
            phase: ToolPhase::Start,
            name: tool,
            text,
            ..
        } => Some(format!("    {name} › {tool} {}", one_line(text))),
        Event::AgentEnd { outcome, .. } => Some(format!(
            "    {name} › {}, {} turns, {} tokens",
            outcome.reason.word(),
            outcome.turns,
            outcome.usage.total_tokens(),
        )),
        Event::SubAgent {
            name: inner, event, ..
        } => below(&format!("{name} › {inner}"), event),
        _ => None,
    }
}

/// What a plan did, in one line; `gone` messages are no longer in the view.
pub(crate) fn plan_line(plan: &Plan, gone: usize, before: Tokens, after: Tokens) -> String {
    let count = |is: fn(&&Edit) -> bool| plan.edits.iter().filter(is).count();
    let shrunk = count(|edit| matches!(edit, Edit::Shrink { .. }));
    let summaries = count(|edit| matches!(edit, Edit::Summarize { .. }));
    let mut what = Vec::new();
    if shrunk > 0 {
        what.push(format!("{shrunk} shortened"));
    }
    match (gone, summaries) {
        (0, _) => {}
        (_, 0) => what.push(format!("{gone} left the view")),
        _ => what.push(format!("{} became one summary", gone + summaries)),
    }
    let price = plan.price.map(|price| format!("; {price}"));
    format!(
        "plan ({}): {before} → {after} tokens, {}{}",
        plan.stages.join(", "),
        what.join(", "),
        price.unwrap_or_default(),
    )
}

/// turn 4 │ ████████░░░░┊░░░ 1812/2240 of 3000 │ read 5012 (71 % cached), wrote 220 │ $0.0000 │ last plan −900
fn status(state: &State) -> String {
    let mut parts = vec![format!("turn {}", state.turn.max(1))];
    let mut context = String::new();
    if let Some(window) = state.window {
        context.push_str(&gauge(state.tokens, state.trigger, window));
        context.push(' ');
    }
    context.push_str(&state.tokens.to_string());
    if let Some(trigger) = state.trigger {
        context.push_str(&format!("/{trigger}"));
    }
    if let Some(window) = state.window {
        context.push_str(&format!(" of {window}"));
    }
    parts.push(context);
    if state.usage.combine(state.estimated).total_tokens() > Tokens::ZERO {
        parts.push(used(state.usage, state.estimated));
        parts.push(match state.cost {
            Some(cost) => format!("{}{cost}", about(state.estimated)),
            None => "price unknown".to_owned(),
        });
    }
    if let Some(plan) = &state.last_plan {
        parts.push(format!("last plan {plan}"));
    }
    parts.push(state.doing.clone());
    parts.join(" │ ")
}

/// Filled up to what is sent, with a mark where a plan is due.
fn gauge(tokens: Tokens, trigger: Option<Tokens>, window: Tokens) -> String {
    let cell = |tokens: Tokens| tokens.0.saturating_mul(GAUGE) / window.0.max(1);
    let filled = cell(tokens);
    let mark = trigger.map(cell);
    (0..GAUGE)
        .map(|at| match at {
            _ if at < filled => '█',
            _ if mark == Some(at) => '┊',
            _ => '░',
        })
        .collect()
}

/// The first words on one line, without what a terminal would obey.
pub(crate) fn one_line(text: &str) -> String {
    let text = clean(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_below_are_told_by_their_way_down() {
        let call = Event::ToolCall {
            phase: ToolPhase::Start,
            call: plimsoll::CallId("c".to_owned()),
            name: "read".to_owned(),
            text: "{\"path\": \"log\"}".to_owned(),
            size: plimsoll::Bytes(15),
        };
        let inner = Event::SubAgent {
            call: plimsoll::CallId("c".to_owned()),
            name: "mate".to_owned(),
            session: "s.scout.1-0.mate.1-0".to_owned(),
            event: Box::new(call),
        };
        assert_eq!(
            below("scout", &inner).as_deref(),
            Some("    scout › mate › read {\"path\": \"log\"}")
        );
        let warning = Event::Warning {
            text: "x".to_owned(),
        };
        assert_eq!(below("scout", &warning), None);
    }

    #[test]
    fn the_gauge_shows_fill_and_trigger() {
        assert_eq!(
            gauge(Tokens(800), Some(Tokens(1_200)), Tokens(1_600)),
            "████████░░░░┊░░░"
        );
        assert_eq!(gauge(Tokens(9_999), None, Tokens(1_600)), "█".repeat(16));
    }

    #[test]
    fn long_text_is_one_short_line() {
        assert_eq!(one_line("a\n b\t c"), "a b c");
        assert_eq!(one_line("a\u{1b}[2Jb\r\n c"), "a\u{fffd}[2Jb c");
        assert_eq!(one_line(&"x".repeat(200)).chars().count(), LINE + 1);
    }
}
