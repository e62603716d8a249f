//! [`ExaminedSession`]: diagnoses and repairs a session. Prints and writes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll::foreign::{Body, CutError, Reasoning, Repair, Slot, Target, repair_request};
use plimsoll::logs::{Agent, SessionLog};
use plimsoll::model::{Image, Source};
use plimsoll::providers::{ModelBook, ModelRef};
use plimsoll::tokens::{Bytes, TokenCounter};
use plimsoll::wire::overflow::{Verdict, classify};
use plimsoll::{ContextStrategy, Message, Part, Tokens};
use serde_json::{Value, json};

use crate::chat_file::unread;
use crate::compact::filter;
use crate::error::CliError;
use crate::model_facts;
use crate::terminal::text::counted;

/// Maximum size of all images of a session, in bytes of base64. Providers refuse requests with more
/// than 20 MB or 32 MB, and text needs its share.
const MAX_IMAGES: usize = 20_000_000;
/// Maximum size of one image that Anthropic accepts, in bytes of base64.
const MAX_IMAGE: usize = 5 * 1024 * 1024;
/// Replaces a removed image.
const NO_IMAGE: &str =
    "[An image stood here. It was removed because the session had too many bytes of images.]";
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

/// A session that is examined and repaired.
pub(super) struct ExaminedSession {
    target: Target,
    history: String,
    messages: usize,
    repairs: Vec<Repair>,
    images_removed: usize,
    /// Tokens of the history, counted locally.
    counted: u64,
    /// Tokens of its request, as its provider would count them.
    used: u64,
    window: Option<u64>,
    is_refused_as_too_long: bool,
    last_error: Option<String>,
    damaged: usize,
    cut: Option<CutReport>,
}

struct CutReport {
    tokens: u64,
    left: usize,
    stages: String,
}

impl ExaminedSession {
    /// Repairs the history of a log and measures it.
    pub(super) fn examine(
        log: &SessionLog,
        counter: &Arc<dyn TokenCounter>,
        drop_thinking: bool,
    ) -> Result<Self, CliError> {
        let target = log.target();
        let request = log.request();
        let reasoning = if drop_thinking {
            Reasoning::Drop
        } else {
            Reasoning::Keep
        };
        let repaired = repair_request(&request, &target, reasoning).map_err(unread)?;
        drop(request);
        let repairs = repaired.repairs;
        let mut images_removed = 0;
        let without = {
            let body = Body::read(&repaired.request, &target).map_err(unread)?;
            without_images(&body, &mut images_removed)?
        };
        let history = without.unwrap_or(repaired.request);
        let mut body = Body::read(&history, &target).map_err(unread)?;
        let messages = body.messages.len();
        let view = body.transcript(counter);
        let counted = (body.overhead(counter.as_ref()) + view.tokens()).0;
        drop((view, body));
        let used = used(log, counted);
        let verdict = log.last_error.as_deref().map(|error| classify(None, error));
        let overflow = match verdict {
            Some(Verdict::Overflow(overflow)) => Some(overflow),
            _ => None,
        };
        // The numbers in the provider's error override the estimates.
        let used = overflow
            .and_then(|one| one.used)
            .map_or(used, |used| used.0);
        let told = overflow.and_then(|one| one.window).map(|window| window.0);
        let window = match told {
            Some(window) => Some(window),
            None => window(log)?,
        };
        Ok(Self {
            is_refused_as_too_long: matches!(
                verdict,
                Some(Verdict::Overflow(_) | Verdict::SoftWindow { .. } | Verdict::BodyTooLarge)
            ),
            target,
            history,
            messages,
            repairs,
            images_removed,
            counted,
            used,
            window,
            last_error: log.last_error.clone(),
            damaged: log.damaged,
            cut: None,
        })
    }

    fn is_too_long(&self) -> bool {
        let is_over = |window: u64| self.used > window / 100 * TOO_LONG;
        self.is_refused_as_too_long || self.window.is_some_and(is_over)
    }

    /// Returns `true` if there is no reason to write a copy.
    pub(super) fn is_well(&self) -> bool {
        self.repairs.is_empty()
            && self.damaged == 0
            && self.images_removed == 0
            && self.cut.is_none()
            && !self.is_too_long()
    }

    /// Returns the size to compact to, in locally counted tokens. Returns `None` if the session is
    /// not to be compacted. `asked` is in tokens as the provider counts them, because the user
    /// reads those.
    pub(super) fn budget(&self, asked: Option<u64>) -> Option<Tokens> {
        let wanted = match asked {
            Some(asked) => asked,
            None if !self.is_too_long() => return None,
            None => {
                let wanted = self.window.unwrap_or(self.used) / 100 * COMPACTED;
                // The provider has refused this size, even if it is within the known window.
                wanted.min(self.used / 2).max(1)
            }
        };
        let scaled = u128::from(wanted) * u128::from(self.counted) / u128::from(self.used.max(1));
        Some(Tokens(u64::try_from(scaled).unwrap_or(wanted)))
    }

    /// Compacts the history.
    pub(super) fn cut(
        &mut self,
        strategy: ContextStrategy,
        budget: Tokens,
        counter: &Arc<dyn TokenCounter>,
    ) -> Result<(), CutError> {
        let mut body = Body::read(&self.history, &self.target)?;
        let view = body.transcript(counter);
        let Some((policy, line)) = filter::within(strategy, budget) else {
            return Ok(());
        };
        let Some(cut) = body.cut(&view, &policy, &line)? else {
            return Ok(());
        };
        let overhead = body.overhead(counter.as_ref());
        let stages = cut.plan.as_ref().map(|plan| plan.stages.join(", "));
        self.cut = Some(CutReport {
            tokens: (overhead + cut.tokens).0,
            left: cut.left,
            stages: stages.unwrap_or_default(),
        });
        self.history = cut.text;
        Ok(())
    }

    /// Returns the current history.
    pub(super) fn history(&self) -> &str {
        &self.history
    }

    /// Returns the size of the new request as its provider will count it, if it became smaller.
    pub(super) fn new_tokens(&self) -> Option<u64> {
        let cut = self.cut.as_ref()?;
        let scaled =
            u128::from(cut.tokens) * u128::from(self.used) / u128::from(self.counted.max(1));
        u64::try_from(scaled).ok()
    }

    /// Describes the session and its faults for the user.
    pub(super) fn describe(&self, log: &SessionLog) -> Vec<String> {
        let mut lines = vec![
            if log.id.is_empty() {
                format!("{} session", log.agent.title())
            } else {
                format!("{} session {}", log.agent.title(), log.id)
            },
            format!("  {}", log.path.display()),
        ];
        let model = log.model.as_deref().unwrap_or("model unknown");
        let window = self
            .window
            .map(|window| format!(" of a window of {window}"));
        lines.push(format!(
            "  {}, about {}{} ({model})",
            counted(self.messages, "message"),
            counted(self.used, "token"),
            window.unwrap_or_default(),
        ));
        let wrong = self.wrong(log);
        if !wrong.is_empty() {
            lines.push(String::new());
            lines.push("Wrong with it:".to_owned());
            lines.extend(wrong.into_iter().map(|line| format!("  {line}")));
        }
        lines
    }

    fn wrong(&self, log: &SessionLog) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.is_too_long() {
            wrong.push(match (self.is_refused_as_too_long, &self.last_error) {
                (true, Some(error)) => {
                    format!("too long: the provider said \"{}\"", first_line(error))
                }
                _ => format!(
                    "too long: more than {TOO_LONG} % of the window is full, and the next answer \
                     needs room"
                ),
            });
        } else if let Some(error) = &self.last_error {
            wrong.push(format!("its last request failed: {}", first_line(error)));
        }
        if self.images_removed > 0 {
            let images = counted(self.images_removed, "image");
            wrong.push(format!("too many bytes of images: {images} must go"));
        }
        for (kind, count) in self.kinds() {
            wrong.push(match count {
                1 => kind.one.to_owned(),
                count => format!("{count} {}", kind.many),
            });
        }
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

    /// Counts the repairs by kind of fault.
    fn kinds(&self) -> BTreeMap<FaultWords, usize> {
        let mut kinds = BTreeMap::new();
        for repair in &self.repairs {
            *kinds.entry(FaultWords::of(repair)).or_default() += 1;
        }
        kinds
    }

    /// Describes the repairs for the user.
    pub(super) fn done(&self) -> Vec<String> {
        let mut done = Vec::new();
        let count = self.repairs.len();
        for repair in self.repairs.iter().take(DESCRIBED) {
            done.push(format!("  repaired {repair}"));
        }
        if count > DESCRIBED {
            let more = count - DESCRIBED;
            done.push(format!("  and {}", counted(more, "more repair")));
        }
        if self.images_removed > 0 {
            let images = counted(self.images_removed, "image");
            done.push(format!(
                "  removed {images}; a note stands in the place of each"
            ));
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
        if !done.is_empty() {
            done.insert(0, "Done:".to_owned());
            done.insert(0, String::new());
        }
        done
    }

    /// Returns the report for programs.
    pub(super) fn as_json(&self, log: &SessionLog, copy: Option<Value>) -> Value {
        let cut = self
            .cut
            .as_ref()
            .map(|cut| json!({ "tokens": cut.tokens, "messages": cut.left, "stages": cut.stages }));
        json!({
            "agent": log.agent.name(),
            "session": log.id,
            "path": log.path,
            "model": log.model,
            "messages": self.messages,
            "tokens": self.used,
            "counted_tokens": self.counted,
            "window": self.window,
            "too_long": self.is_too_long(),
            "last_error": self.last_error,
            "images_removed": self.images_removed,
            "repairs": self.repairs,
            "damaged_lines": log.damaged,
            "damage": log.damage,
            "compacted": cut,
            "copy": copy,
        })
    }
}

/// A kind of fault of a message, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FaultWords {
    one: &'static str,
    many: &'static str,
}

impl FaultWords {
    fn of(repair: &Repair) -> Self {
        let (one, many) = match repair.fix {
            "unanswered" => ("1 tool call has no result", "tool calls have no result"),
            "orphans" => (
                "1 result answers no tool call",
                "results answer no tool call",
            ),
            "thinking" => (
                "1 thinking block would be refused",
                "thinking blocks would be refused",
            ),
            "empty" => ("1 message is empty", "messages are empty"),
            _ => (
                "1 message has a form that the API refuses",
                "messages have a form that the API refuses",
            ),
        };
        Self { one, many }
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    plimsoll::context::clip(line, Bytes(160)).to_owned()
}

/// Returns the size of the request as its provider counts it: the last reported size, extrapolated
/// to the whole history.
fn used(log: &SessionLog, counted: u64) -> u64 {
    let Some(reported) = log.reported.filter(|reported| reported.covered > 0) else {
        return counted;
    };
    let whole =
        u128::from(reported.tokens) * u128::from(reported.all) / u128::from(reported.covered);
    let whole = u64::try_from(whole).unwrap_or(reported.tokens);
    if counted < MIN_SAMPLE {
        counted.max(reported.tokens)
    } else {
        whole.clamp(counted / 2, counted.saturating_mul(4))
    }
}

/// Returns the window of the model: that of the log, otherwise the known one. It is at least as
/// large as the largest answered request.
fn window(log: &SessionLog) -> Result<Option<u64>, CliError> {
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

/// Returns the history without the oldest images, if there are too many bytes of them, and without
/// images that are too large.
fn without_images(body: &Body<'_>, removed: &mut usize) -> Result<Option<String>, CliError> {
    let mut left = MAX_IMAGES;
    let mut edited: Vec<(usize, Message)> = Vec::new();
    for (at, message) in body.messages.iter().enumerate().rev() {
        let mut parts = message.parts().to_vec();
        let mut is_edited = false;
        for part in parts.iter_mut().rev() {
            let Some(bytes) = image_bytes(part) else {
                continue;
            };
            if bytes <= MAX_IMAGE && bytes <= left {
                left -= bytes;
                continue;
            }
            *part = Part::text(NO_IMAGE);
            *removed += 1;
            is_edited = true;
        }
        if is_edited {
            edited.push((at, with_parts(message, parts)));
        }
    }
    if edited.is_empty() {
        return Ok(None);
    }
    let slots =
        (0..body.messages.len()).map(|at| match edited.iter().find(|(index, _)| *index == at) {
            Some((_, message)) => Slot::Edited(at, message),
            None => Slot::Original(at),
        });
    Ok(Some(body.write(slots).map_err(unread)?.text))
}

fn image_bytes(part: &Part) -> Option<usize> {
    match part {
        Part::Image(Image {
            source: Source::Data { base64, .. },
            ..
        }) => Some(base64.len()),
        _ => None,
    }
}

fn with_parts(message: &Message, parts: Vec<Part>) -> Message {
    match message {
        Message::System { .. } => Message::System { parts },
        Message::Assistant { .. } => Message::Assistant { parts },
        Message::ToolResult(result) => {
            let mut result = result.clone();
            result.parts = parts;
            Message::ToolResult(result)
        }
        _ => Message::User { parts },
    }
}
