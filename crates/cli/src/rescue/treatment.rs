//! [`Treatment`]: diagnoses and repairs a session. Prints and writes nothing.

use std::sync::Arc;

use plimsoll::context::CannotFit;
use plimsoll::foreign::{Body, Chat, CutError, Reasoning, Repair, Target, repair};
use plimsoll::logs::{Agent, SessionLog};
use plimsoll::providers::{ModelBook, ModelRef};
use plimsoll::tokens::{Bytes, TokenCounter};
use plimsoll::wire::overflow::{Overflow, Verdict, classify};
use plimsoll::{ContextStrategy, Tokens};
use serde_json::{Value, json};

use crate::chat_file::unread;
use crate::compact::filter;
use crate::error::CliError;
use crate::input::target_of;
use crate::model_facts;
use crate::terminal::text::counted;

/// The share of the window, in percent, above which a session is too long. The next answer, and the
/// agent's own additions to the request, need the rest.
const TOO_LONG: u64 = 80;
/// The share of the window, in percent, to which a session is compacted.
const COMPACTED: u64 = 50;
/// The window that Claude Code uses for every model by default.
const CLAUDE_CODE: u64 = 200_000;
/// Minimum number of tokens from which the ratio of reported to counted tokens is meaningful.
const MIN_SAMPLE: u64 = 1_000;
/// Maximum number of described entries of one kind.
const DESCRIBED: usize = 5;
/// The faults that the fix-ups repair, one of them and several.
const FAULTS: [(&str, &str, &str); 8] = [
    (
        "unanswered",
        "tool call has no result",
        "tool calls have no result",
    ),
    (
        "orphans",
        "result answers no tool call",
        "results answer no tool call",
    ),
    (
        "order",
        "result is not behind its call",
        "results are not behind their calls",
    ),
    (
        "ids",
        "tool call has no valid id",
        "tool calls have no valid id",
    ),
    (
        "thinking",
        "thinking block cannot be sent",
        "thinking blocks cannot be sent",
    ),
    ("empty", "message is empty", "messages are empty"),
    (
        "images",
        "message has too many bytes of images",
        "messages have too many bytes of images",
    ),
    ("", "message would be refused", "messages would be refused"),
];

/// The size of a session, and the provider's verdict on it.
#[derive(Debug)]
pub(super) struct Size {
    /// Tokens of the next request, as its provider would count them. `None` if the log has no count.
    pub(super) used: Option<u64>,
    pub(super) window: Option<u64>,
    is_refused: bool,
    /// Whether the provider's error contains the size.
    is_told: bool,
}

impl Size {
    /// Returns the size as the log reports it.
    pub(super) fn of(log: &SessionLog) -> Result<Self, CliError> {
        let verdict = log.last_error.as_deref().map(|error| classify(None, error));
        let is_refused = matches!(
            verdict,
            Some(Verdict::Overflow(_) | Verdict::SoftWindow { .. } | Verdict::BodyTooLarge)
        );
        // The numbers in the provider's error override the estimates.
        let (used, window) = match verdict {
            Some(Verdict::Overflow(Overflow { used, window, .. })) => (used, window),
            _ => (None, None),
        };
        Ok(Self {
            used: used.map(|used| used.0).or(log.used_tokens()),
            window: match window {
                Some(window) => Some(window.0),
                None => known_window(log)?,
            },
            is_refused,
            is_told: used.is_some(),
        })
    }

    pub(super) fn is_too_long(&self) -> bool {
        let is_over = |window: u64| self.used.is_some_and(|used| used > window / 100 * TOO_LONG);
        self.is_refused || self.window.is_some_and(is_over)
    }
}

/// A session that is examined and repaired.
pub(super) struct Treatment {
    log: SessionLog,
    chat: Chat<'static>,
    target: Target,
    size: Size,
    messages: usize,
    repairs: Vec<Repair>,
    /// Tokens of the messages, counted locally.
    counted: u64,
    /// Tokens of the next request, as its provider would count them.
    used: u64,
    /// A budget for which nothing was removed, in tokens as the provider counts them.
    uncut: Option<u64>,
    cut: Option<CutReport>,
}

struct CutReport {
    tokens: u64,
    left: usize,
    stages: String,
    /// The repairs that the compaction required.
    repairs: Vec<Repair>,
}

impl Treatment {
    /// Repairs the messages of a log and measures them.
    pub(super) fn begin(
        mut log: SessionLog,
        counter: &Arc<dyn TokenCounter>,
        drop_thinking: bool,
    ) -> Result<Self, CliError> {
        let target = target_of(&log);
        let size = Size::of(&log)?;
        let mut chat = log.take_chat();
        let reasoning = if drop_thinking {
            Reasoning::Drop
        } else {
            Reasoning::Keep
        };
        let mut repairs = std::mem::take(&mut log.repairs);
        repairs.extend(repair(&mut chat, &target, reasoning));
        let body = Body::of(chat, &target).map_err(unread)?;
        let view = body.transcript(counter);
        let counted = (body.overhead(counter.as_ref()) + view.tokens()).0;
        let used = size.used.unwrap_or(counted);
        Ok(Self {
            used: match counted {
                _ if size.is_told => used,
                0..MIN_SAMPLE => counted.max(used),
                _ => used.clamp(counted / 2, counted.saturating_mul(4)),
            },
            log,
            messages: body.messages.len(),
            chat: body.chat,
            target,
            size,
            repairs,
            counted,
            uncut: None,
            cut: None,
        })
    }

    /// Returns the log of the session, without its messages.
    pub(super) fn log(&self) -> &SessionLog {
        &self.log
    }

    /// Returns the current messages.
    pub(super) fn chat(&self) -> &Chat<'static> {
        &self.chat
    }

    fn is_too_long(&self) -> bool {
        let window = self.size.window;
        self.size.is_refused || window.is_some_and(|window| self.used > window / 100 * TOO_LONG)
    }

    /// Returns `true` if there is no reason to write a copy.
    pub(super) fn is_well(&self) -> bool {
        self.repairs.is_empty()
            && self.log.damaged == 0
            && self.cut.is_none()
            && !self.is_too_long()
    }

    /// Returns the size to compact to, in tokens as the provider counts them, like `asked`. Returns
    /// `None` if the session is not to be compacted.
    pub(super) fn budget(&self, asked: Option<u64>) -> Option<u64> {
        if asked.is_some() || !self.is_too_long() {
            return asked;
        }
        let wanted = self.size.window.unwrap_or(self.used) / 100 * COMPACTED;
        // The provider has refused this size, even if it is within the known window.
        Some(wanted.min(self.used / 2).max(1))
    }

    /// Compacts the messages to a number of tokens, as the provider counts them.
    pub(super) fn compact(
        &mut self,
        strategy: ContextStrategy,
        budget: u64,
        counter: &Arc<dyn TokenCounter>,
    ) -> Result<(), CliError> {
        let local = Tokens(scaled(budget, self.counted, self.used));
        let Some((policy, line)) = filter::within(strategy, local) else {
            self.uncut = Some(budget);
            return Ok(());
        };
        let body = Body::of(self.chat.clone(), &self.target).map_err(unread)?;
        let view = body.transcript(counter);
        let cut = body.cut(&view, &policy, &line);
        let cut = cut.map_err(|error| match error {
            CutError::CannotFit(error) => CliError::cannot_fit(CannotFit {
                minimum: self.providers(error.minimum),
                overhead: self.providers(error.overhead),
                limit: Tokens(budget),
            }),
            error => CliError::failed(error),
        })?;
        let Some(cut) = cut else {
            return Ok(());
        };
        self.chat = cut.chat;
        let stages = cut.plan.as_ref().map(|plan| plan.stages.join(", "));
        self.cut = Some(CutReport {
            tokens: (body.overhead(counter.as_ref()) + cut.tokens).0,
            left: cut.left,
            stages: stages.unwrap_or_default(),
            repairs: cut.repairs,
        });
        Ok(())
    }

    /// Returns local tokens as the provider counts them, rounded up: as a budget, they suffice.
    fn providers(&self, local: Tokens) -> Tokens {
        let (used, counted) = (u128::from(self.used), u128::from(self.counted.max(1)));
        let tokens = (u128::from(local.0) * used).div_ceil(counted);
        Tokens(u64::try_from(tokens).unwrap_or(u64::MAX))
    }

    /// Describes the excess over a budget for which nothing was removed.
    pub(super) fn excess(&self) -> Option<String> {
        let budget = self.uncut.filter(|budget| self.used > *budget)?;
        Some(format!(
            "About {} exceed the budget of {budget}, because `unlimited` removes nothing",
            counted(self.used, "token")
        ))
    }

    /// Returns the size of the new request as its provider will count it, if it became smaller.
    pub(super) fn new_tokens(&self) -> Option<u64> {
        let cut = self.cut.as_ref()?;
        Some(scaled(cut.tokens, self.used, self.counted))
    }

    /// Describes the session and its faults for the user.
    pub(super) fn describe(&self) -> Vec<String> {
        let log = &self.log;
        let mut lines = vec![
            format!("{} session {}", log.agent.title(), log.id)
                .trim_end()
                .to_owned(),
            format!("  {}", log.path.display()),
        ];
        let model = log.model.as_deref().unwrap_or("model unknown");
        let window = self
            .size
            .window
            .map(|window| format!(" of a window of {window}"));
        lines.push(format!(
            "  {}, about {}{} ({model})",
            counted(self.messages, "message"),
            counted(self.used, "token"),
            window.unwrap_or_default(),
        ));
        let wrong = self.wrong();
        if !wrong.is_empty() {
            lines.extend([String::new(), "Wrong with it:".to_owned()]);
            lines.extend(wrong.into_iter().map(|line| format!("  {line}")));
        }
        lines
    }

    fn wrong(&self) -> Vec<String> {
        let log = &self.log;
        let mut wrong = Vec::new();
        let error = log.last_error.as_deref().map(first_line);
        match (self.is_too_long(), error) {
            (true, Some(error)) if self.size.is_refused => {
                wrong.push(format!("too long: the provider said \"{error}\""));
            }
            (true, _) => wrong.push(format!(
                "too long: more than {TOO_LONG} % of the window is full, and the next answer needs room"
            )),
            (false, Some(error)) => wrong.push(format!("its last request failed: {error}")),
            (false, None) => {}
        }
        wrong.extend(faults(&self.repairs));
        if log.damaged > 0 {
            wrong.push(format!("{} skipped:", counted(log.damaged, "damaged line")));
            let shown = log.damage.iter().take(DESCRIBED);
            wrong.extend(shown.map(|damage| format!("  line {}: {}", damage.line, damage.what)));
            if log.damaged > DESCRIBED {
                wrong.push(format!("  and {} more", log.damaged - DESCRIBED));
            }
        }
        wrong
    }

    /// Describes the repairs for the user.
    pub(super) fn done(&self) -> Vec<String> {
        let mut done = Vec::new();
        let shown = self.repairs.iter().take(DESCRIBED);
        done.extend(shown.map(|repair| format!("  repaired {}: {}", repair.place, repair.done)));
        if self.repairs.len() > DESCRIBED {
            let more = self.repairs.len() - DESCRIBED;
            done.push(format!("  and {}", counted(more, "more repair")));
        }
        if let Some(cut) = &self.cut {
            done.push(format!(
                "  compacted {} to {} ({}); {} of {} left",
                counted(self.used, "token"),
                self.new_tokens().unwrap_or(cut.tokens),
                cut.stages,
                cut.left,
                counted(self.messages, "message"),
            ));
        }
        done.extend(self.excess().map(|excess| format!("  {excess}")));
        let repairs = self.cut.iter().flat_map(|cut| &cut.repairs);
        done.extend(repairs.take(DESCRIBED).map(|repair| {
            let Repair { place, done, .. } = repair;
            format!("  repaired after the compaction {place}: {done}")
        }));
        if !done.is_empty() {
            done.splice(0..0, [String::new(), "Done:".to_owned()]);
        }
        done
    }

    /// Returns the report for programs.
    pub(super) fn as_json(&self, copy: Option<Value>) -> Value {
        let log = &self.log;
        let cut = self.cut.as_ref();
        let cut = cut.map(|cut| {
            json!({
                "tokens": self.new_tokens(), "counted_tokens": cut.tokens, "messages": cut.left,
                "stages": cut.stages, "repairs": cut.repairs,
            })
        });
        json!({
            "agent": log.agent.name(),
            "session": log.id,
            "title": log.title,
            "path": log.path,
            "model": log.model,
            "messages": self.messages,
            "tokens": self.used,
            "counted_tokens": self.counted,
            "window": self.size.window,
            "too_long": self.is_too_long(),
            "last_error": log.last_error,
            "repairs": self.repairs,
            "damaged_lines": log.damaged,
            "damage": log.damage,
            "compacted": cut,
            "copy": copy,
        })
    }
}

/// Describes the faults that were repaired, for the user.
pub(super) fn faults(repairs: &[Repair]) -> Vec<String> {
    let mut faults = Vec::new();
    for (fix, one, many) in FAULTS {
        let is_it = |repair: &&Repair| match fix {
            "" => FAULTS.iter().all(|(other, ..)| *other != repair.fix),
            fix => repair.fix == fix,
        };
        match repairs.iter().filter(is_it).count() {
            0 => {}
            1 => faults.push(format!("1 {one}")),
            count => faults.push(format!("{count} {many}")),
        }
    }
    faults
}

/// Returns `value * by / of`.
fn scaled(value: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(value)
}

/// Returns the beginning of the first line of a text.
pub(super) fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    plimsoll::context::clip(line, Bytes(160))
}

/// Returns the window of the model: that of the log, otherwise the known one. It is at least as
/// large as the largest answered request.
fn known_window(log: &SessionLog) -> Result<Option<u64>, CliError> {
    if log.window.is_some() {
        return Ok(log.window);
    }
    let answered = log.reported.map_or(0, |reported| reported.tokens);
    if log.agent == Agent::ClaudeCode && answered <= CLAUDE_CODE {
        return Ok(Some(CLAUDE_CODE));
    }
    let Some(model) = &log.model else {
        return Ok(None);
    };
    let vendor = match model.as_str() {
        name if name.starts_with("claude") => "anthropic",
        name if name.starts_with("gemini") => "gemini",
        _ => "openai",
    };
    let Ok(model) = ModelRef::parse(&format!("{vendor}/{model}")) else {
        return Ok(None);
    };
    let facts = model_facts::facts(&model, &ModelBook::default())?;
    Ok(facts.window.map(|fact| fact.value.0.max(answered)))
}
