//! [`Diagnosis`]: the size and the faults of a session. Prints and writes nothing.

use std::collections::BTreeMap;

use plimsoll::Tokens;
use plimsoll::foreign::{Chat, Reasoning, Repair, Target, repair};
use plimsoll::logs::{Agent, ReportedSize, SessionLog};
use plimsoll::providers::{ModelBook, ModelRef};
use plimsoll::tokens::Bytes;
use plimsoll::wire::overflow::{Overflow, Verdict, classify};

use crate::input::target_of;

/// The share of the window, in percent, above which a session is too long. The next answer, and the
/// agent's own additions to the request, need the rest.
const TOO_LONG: u64 = 80;
/// The window that Claude Code uses for every model by default.
const CLAUDE_CODE: u64 = 200_000;

/// A session that was examined.
pub(super) struct Diagnosis {
    /// The session, without its messages.
    pub(super) log: SessionLog,
    pub(super) target: Target,
    pub(super) repairs: Vec<Repair>,
    /// Tokens of the next request, as its provider would count them. `None` if the log has no count.
    pub(super) used: Option<u64>,
    pub(super) window: Option<u64>,
    /// Whether the provider refused the session because of its length.
    is_refused: bool,
}

impl Diagnosis {
    /// Examines a session. Returns its messages, repaired: without their thinking, if the provider refused it.
    pub(super) fn of(mut log: SessionLog, mut reasoning: Reasoning) -> (Self, Chat<'static>) {
        if log.last_error.as_deref().is_some_and(refuses_thinking) {
            reasoning = Reasoning::Drop;
        }
        if reasoning == Reasoning::Drop {
            log = log.before_encrypted();
        }
        let verdict = log.last_error.as_deref().map(|error| classify(None, error));
        let mut is_refused = matches!(
            verdict,
            Some(Verdict::Overflow(_) | Verdict::SoftWindow { .. } | Verdict::BodyTooLarge)
        );
        // The numbers in the provider's error override the estimates.
        let (used, window) = match verdict {
            Some(Verdict::Overflow(Overflow { used, window, .. })) => (used, window),
            _ => (None, None),
        };
        let window = match window {
            Some(window) => Some(window.0),
            None => known_window(&log),
        };
        let units = log.units.len();
        let refused = used.map(|Tokens(tokens)| ReportedSize { tokens, units });
        log.reported = refused.or(log.reported);
        let used = log.used_tokens();
        // Without what was lost, it may fit.
        let lost = log.lost_tokens(units);
        is_refused &= !used.zip(window).is_some_and(|(used, window)| {
            let most = window / 100 * TOO_LONG;
            used <= most && used.saturating_add(lost) > most
        });
        let target = target_of(&log);
        let mut chat = log.take_chat();
        let mut repairs = std::mem::take(&mut log.repairs);
        repairs.extend(repair(&mut chat, &target, reasoning));
        let diagnosis = Self {
            log,
            target,
            repairs,
            used,
            window,
            is_refused,
        };
        (diagnosis, chat)
    }

    pub(super) fn is_too_long(&self) -> bool {
        let is_over = |window: u64| self.used.is_some_and(|used| used > window / 100 * TOO_LONG);
        self.is_refused || self.window.is_some_and(is_over)
    }

    /// Describes the faults for the user, one on a line.
    pub(super) fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        match (self.is_too_long(), self.log.last_error.as_deref()) {
            (true, Some(error)) if self.is_refused => {
                let error = first_line(error);
                wrong.push(format!("too long: the provider said \"{error}\""));
            }
            (true, _) => wrong.push(format!(
                "too long: more than {TOO_LONG} % of the window is full, and the next answer needs room"
            )),
            (false, Some(error)) => {
                wrong.push(format!("its last request failed: {}", first_line(error)));
            }
            (false, None) => {}
        }
        let mut faults = BTreeMap::new();
        for repair in &self.repairs {
            *faults.entry(fault(repair.fix)).or_insert(0) += 1;
        }
        wrong.extend(
            faults
                .iter()
                .map(|(fault, count)| format!("{fault}: {count}")),
        );
        if self.log.damaged > 0 {
            wrong.push(format!("damaged lines: {}", self.log.damaged));
        }
        wrong
    }
}

/// Returns the fault that a fix-up repairs.
fn fault(fix: &str) -> &'static str {
    match fix {
        "unanswered" => "tool calls without a result",
        "orphans" => "results without a tool call",
        "order" => "results that are not behind their calls",
        "ids" => "tool calls without a valid id",
        "thinking" => "thinking blocks that cannot be sent",
        "empty" => "empty messages",
        "lines" => "entries that the agent does not read, or sends twice",
        "images" => "messages with too many bytes of images",
        _ => "messages that would be refused",
    }
}

/// Returns the beginning of the first line of a text.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let start = plimsoll::context::clip(line, Bytes(160));
    let more = if start.len() < line.len() { "…" } else { "" };
    format!("{start}{more}")
}

/// Checks whether an error is about thinking that was signed or encrypted: for another account or model, or it was
/// changed since.
fn refuses_thinking(error: &str) -> bool {
    let error = error.to_lowercase();
    let is_changed = error.contains("signature") || error.contains("cannot be modified");
    error.contains("encrypted content") || error.contains("thinking") && is_changed
}

/// Returns the window of the model: that of the log, otherwise the known one. It is at least as
/// large as the largest answered request.
fn known_window(log: &SessionLog) -> Option<u64> {
    if log.window.is_some() {
        return log.window;
    }
    let answered = log.reported.map_or(0, |reported| reported.tokens);
    if log.agent == Agent::ClaudeCode && answered <= CLAUDE_CODE {
        return Some(CLAUDE_CODE);
    }
    let model = log.model.as_deref()?;
    let vendor = match model {
        name if name.starts_with("claude") => "anthropic",
        name if name.starts_with("gemini") => "gemini",
        _ => "openai",
    };
    let model = ModelRef::parse(&format!("{vendor}/{model}")).ok()?;
    let facts = ModelBook::built_in().facts(&model);
    facts.window.map(|fact| fact.value.0.max(answered))
}
