//! [`Treatment`]: compacts a session that was examined, and reports what was done. Prints and writes nothing.

use std::sync::Arc;

use plimsoll::context::{CannotFit, Transcript};
use plimsoll::foreign::{Body, BodyCut, Chat, CutError, Repair};
use plimsoll::tokens::{Bpe, TokenCounter};
use plimsoll::{ContextStrategy, Tokens};
use serde_json::{Value, json};

use super::diagnosis::Diagnosis;
use super::save::SavedCopy;
use crate::chat_file::unread;
use crate::compact::filter;
use crate::error::CliError;
use crate::terminal::text::counted;

/// The share of the window, in percent, to which a session is compacted.
const COMPACTED: u64 = 50;
/// Maximum number of described entries of one kind.
const DESCRIBED: usize = 5;

/// A session that is compacted.
pub(super) struct Treatment {
    pub(super) diagnosis: Diagnosis,
    body: Body<'static>,
    /// The messages with their tokens, counted locally.
    view: Transcript,
    /// Tokens of the tools, counted locally.
    tools: Tokens,
    /// Tokens of the next request, as its provider would count them.
    used: u64,
    cut: Option<BodyCut<'static>>,
}

impl Treatment {
    /// Reads and counts the messages of a session.
    pub(super) fn begin(mut diagnosis: Diagnosis, chat: Chat<'static>) -> Result<Self, CliError> {
        let counter: Arc<dyn TokenCounter> = Arc::new(Bpe::o200k());
        let body = Body::of(chat, &diagnosis.target).map_err(unread)?;
        let view = body.transcript(&counter);
        let tools = body.overhead(counter.as_ref());
        let counted = (tools + view.tokens()).0;
        Ok(Self {
            used: *diagnosis.used.get_or_insert(counted),
            diagnosis,
            body,
            view,
            tools,
            cut: None,
        })
    }

    /// Returns the tokens of the messages and the tools, counted locally.
    fn counted(&self) -> u64 {
        (self.tools + self.view.tokens()).0
    }

    /// Returns the current messages.
    pub(super) fn chat(&self) -> &Chat<'static> {
        self.cut.as_ref().map_or(&self.body.chat, |cut| &cut.chat)
    }

    /// Returns `true` if there is no reason to write a copy.
    pub(super) fn is_well(&self) -> bool {
        self.diagnosis.repairs.is_empty()
            && self.diagnosis.log.damaged == 0
            && self.cut.is_none()
            && !self.diagnosis.is_too_long()
    }

    /// Returns the size to compact to, in tokens as the provider counts them, like `asked`. Returns
    /// `None` if the session is not to be compacted.
    pub(super) fn budget(&self, asked: Option<u64>) -> Option<u64> {
        if asked.is_some() || !self.diagnosis.is_too_long() {
            return asked;
        }
        let wanted = self.diagnosis.window.unwrap_or(self.used) / 100 * COMPACTED;
        // The provider has refused this size, even if it is within the known window.
        Some(wanted.min(self.used / 2).max(1))
    }

    /// Compacts the messages to a number of tokens, as the provider counts them.
    pub(super) fn compact(
        &mut self,
        strategy: ContextStrategy,
        budget: u64,
    ) -> Result<(), CliError> {
        let own = Tokens(scaled(budget, self.counted(), self.used));
        let (policy, limits) = filter::within(strategy, own);
        let cut = self.body.cut(&self.view, &policy, &limits);
        self.cut = cut.map_err(|error| match error {
            CutError::CannotFit(error) => CliError::cannot_fit(CannotFit {
                minimum: self.providers(error.minimum),
                overhead: self.providers(error.overhead),
                limit: Tokens(budget),
            }),
            error => CliError::failed(error),
        })?;
        Ok(())
    }

    /// Returns local tokens as the provider counts them, rounded up: as a budget, they suffice. A part of the messages
    /// is that part of the whole session.
    fn providers(&self, local: Tokens) -> Tokens {
        let tokens = u128::from(local.0) * u128::from(self.used);
        let tokens = tokens.div_ceil(u128::from(self.counted().max(1)));
        Tokens(u64::try_from(tokens).unwrap_or(u64::MAX))
    }

    /// Returns the size of the new request as its provider will count it, if it became smaller.
    pub(super) fn new_tokens(&self) -> Option<u64> {
        let cut = self.cut.as_ref()?;
        Some(self.providers(self.tools + cut.tokens).0)
    }

    /// Describes the session and its faults for the user.
    pub(super) fn describe(&self) -> Vec<String> {
        let log = &self.diagnosis.log;
        let window = self.diagnosis.window;
        let window = window.map(|window| format!(" of a window of {window}"));
        let mut lines = vec![format!(
            "  {}, about {}{} ({})",
            counted(self.body.messages.len(), "message"),
            counted(self.used, "token"),
            window.unwrap_or_default(),
            log.model.as_deref().unwrap_or("model unknown"),
        )];
        let wrong = self.diagnosis.wrong();
        if !wrong.is_empty() {
            lines.extend([String::new(), "Wrong with it:".to_owned()]);
            lines.extend(wrong.into_iter().map(|line| format!("  {line}")));
        }
        let damage = log.damage.iter();
        let damage = damage.map(|damage| format!("    line {}: {}", damage.line, damage.what));
        lines.extend(shown(damage, log.damaged, "    and"));
        lines
    }

    /// Describes the repairs for the user.
    pub(super) fn done(&self) -> Vec<String> {
        let repairs = &self.diagnosis.repairs;
        let line = |when: &str, Repair { place, done, .. }: &Repair| {
            format!("  repaired{when} {place}: {done}")
        };
        let lines = repairs.iter().map(|repair| line("", repair));
        let mut done: Vec<String> = shown(lines, repairs.len(), "  and").collect();
        if let (Some(cut), Some(tokens)) = (&self.cut, self.new_tokens()) {
            done.push(format!(
                "  compacted {} to {tokens} ({}); {} of {} left",
                counted(self.used, "token"),
                cut.plan.stages.join(", "),
                cut.left,
                counted(self.body.messages.len(), "message"),
            ));
            let lines = cut.repairs.iter();
            let lines = lines.map(|repair| line(" after the compaction", repair));
            done.extend(shown(lines, cut.repairs.len(), "  and"));
        }
        if !done.is_empty() {
            done.splice(0..0, [String::new(), "Done:".to_owned()]);
        }
        done
    }

    /// Returns the report for programs.
    pub(super) fn as_json(&self, copy: Option<&SavedCopy>) -> Value {
        let log = &self.diagnosis.log;
        let cut = self.cut.as_ref().map(|cut| {
            json!({
                "tokens": self.new_tokens(), "counted_tokens": (self.tools + cut.tokens).0,
                "messages": cut.left, "stages": cut.plan.stages.join(", "), "repairs": cut.repairs,
            })
        });
        json!({
            "agent": log.agent.name(),
            "session": log.id,
            "title": log.title,
            "path": log.path,
            "model": log.model,
            "messages": self.body.messages.len(),
            "tokens": self.used,
            "counted_tokens": self.counted(),
            "window": self.diagnosis.window,
            "too_long": self.diagnosis.is_too_long(),
            "last_error": log.last_error,
            "repairs": self.diagnosis.repairs,
            "damaged_lines": log.damaged,
            "damage": log.damage,
            "compacted": cut,
            "copy": copy,
        })
    }
}

/// Returns the first of some lines, and the number of the others.
fn shown(
    lines: impl Iterator<Item = String>,
    count: usize,
    and: &str,
) -> impl Iterator<Item = String> {
    let more = count.checked_sub(DESCRIBED + 1);
    let more = more.map(|more| format!("{and} {} more", more + 1));
    lines.take(DESCRIBED).chain(more)
}

/// Returns `value * by / of`.
fn scaled(value: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(value)
}
