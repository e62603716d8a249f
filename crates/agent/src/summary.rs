//! Summaries by a model, before a plan that needs one.
//!
//! A failed summary never ends a run: the policy makes another plan without it, and the rest of the run
//! asks no model for a summary.

use std::sync::Arc;

use plimsoll_context::{Message, Reply, SummaryRange, Usage};

use crate::entry::Entry;
use crate::event::Event;
use crate::failure::Failure;
use crate::phase::{Phase, PlanFor};
use crate::run::Run;
use crate::setup::SummaryModel;
use crate::step::Step;
use crate::summary_writer::SummaryWriter;

impl Run {
    /// Returns whether the policy can get a summary from a model.
    pub(crate) fn can_summarize(&self) -> bool {
        self.setup.summary_model.is_some() && !self.current.skips_summaries
    }

    /// Starts a summary that the policy asks for, and waits for it. Returns `false` if no model can write
    /// it.
    pub(crate) fn start_summary(&mut self, span: SummaryRange, what: PlanFor) -> bool {
        let Some(model) = self.setup.summary_model.clone() else {
            return false;
        };
        let model = SummaryModel {
            window: model.window.or(self.line().window),
            prompt: match &what {
                PlanFor::Compaction(Some(focus)) => format!(
                    "{}\n\nThe user has asked for this summary and wants it to keep above all: {focus}",
                    model.prompt.trim_end()
                )
                .into(),
                _ => model.prompt,
            },
            ..model
        };
        let items = span
            .seqs
            .iter()
            .filter_map(|seq| self.state.transcript.get(*seq));
        let messages: Vec<Arc<Message>> = items.map(|item| Arc::clone(&item.message)).collect();
        let started = Event::SummaryStarted {
            model: model.model.clone(),
            messages: messages.len(),
            tokens: span.tokens,
        };
        let counter = Arc::clone(&self.setup.counter);
        let all = self.state.transcript.items().iter();
        let task = all
            .map(|item| item.message.as_ref())
            .find(|message| message.is_user());
        let sampling = self.setup.sampling;
        let digest = SummaryWriter::new(span, messages, task, model, counter, sampling);
        let Some(digest) = digest else {
            self.current.skips_summaries = true;
            self.warn(
                "the summariser's window is unknown or too small for a summary; extract writes it instead".to_owned(),
            );
            return false;
        };
        let request = digest.request();
        let exceeded = self.exceeded_by_summary(&request, Usage::default());
        if exceeded.is_some() {
            return false;
        }
        self.current.summary = None;
        self.phase = Phase::Summarizing(Box::new(digest), what);
        self.notify(started);
        self.queue.push_back(Step::Summarize(Box::new(request)));
        true
    }

    /// Handles the end of a model call for a summary.
    pub(crate) fn summarized(&mut self, reply: Result<Reply, Failure>) {
        self.book_partial_answers(false);
        let (mut digest, what) = match std::mem::replace(&mut self.phase, Phase::PREPARING) {
            Phase::Summarizing(digest, what) => (digest, what),
            other => {
                self.phase = other;
                return;
            }
        };
        digest.calls += 1;
        let reply = reply.map_err(|failure| failure.to_string());
        let failure = match reply.and_then(|reply| digest.take(&reply)) {
            Ok(None) => {
                let request = digest.request();
                if self.exceeded_by_summary(&request, digest.usage).is_none() {
                    self.phase = Phase::Summarizing(digest, what);
                    return self.queue.push_back(Step::Summarize(Box::new(request)));
                }
                Some("the limits of the run do not allow the rest of it".to_owned())
            }
            Ok(Some(ready)) => {
                self.current.summary = Some(ready);
                None
            }
            Err(why) => Some(why),
        };
        self.end_digest(&digest, failure);
        if let PlanFor::Compaction(focus) = what {
            self.phase = Phase::Compacting { focus };
        }
    }

    /// Ends a summary in progress at the end of the run. Its usage so far is recorded.
    pub(crate) fn drop_digest(&mut self) {
        self.book_partial_answers(false);
        match std::mem::replace(&mut self.phase, Phase::PREPARING) {
            Phase::Summarizing(mut digest, _) => {
                digest.calls += 1;
                let why = "the run ended before it was written";
                self.end_digest(&digest, Some(why.to_owned()));
            }
            other => self.phase = other,
        }
    }

    fn end_digest(&mut self, digest: &SummaryWriter, failure: Option<String>) {
        let model = self.setup.summary_model.as_ref();
        let sheet = model.and_then(|model| model.sheet);
        self.record(Entry::Summarized {
            cost: self.setup.cost(digest.usage, sheet),
            of: digest.span().fingerprint,
            calls: digest.calls,
            usage: digest.usage,
            failure: failure.clone(),
        });
        self.current.skips_summaries |= failure.is_some();
        self.notify(Event::SummaryEnded {
            calls: digest.calls,
            usage: digest.usage,
            failure,
        });
    }
}
