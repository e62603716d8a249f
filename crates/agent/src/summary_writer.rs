//! [`SummaryWriter`]: a summary in progress, written by a model.
//!
//! It takes as many calls as the model's window requires, up to [`MAX_SUMMARY_CALLS`]. A digest creates
//! requests and reads replies, but makes no calls itself.

mod check;
mod material;

pub use material::escape_tags;

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_context::{
    Gap, MESSAGE_OVERHEAD, Message, Ppm, ReadySummary, Reply, SUMMARY_FRAME, StopReason,
    SummaryRange, TokenCounter, Tokens, Usage, extract, split_model_text, with_model_text,
    without_frames,
};

use crate::request::{Request, Sampling, ToolChoice};
use crate::setup::{REQUEST_OVERHEAD, SummaryModel};
use crate::step::PartialAnswer;

/// Maximum number of model calls for one summary. If that is not enough, the messages are shortened
/// until they fit.
pub const MAX_SUMMARY_CALLS: usize = 8;
/// The share of a summary that the model writes. The rest is quoted word for word.
const MODEL_SHARE: Ppm = Ppm(600_000);
/// The answer may be this many times longer than the part that is kept. A longer text is shortened, not
/// rejected.
const OVERSHOOT: u64 = 2;
/// The smallest limit for an answer. Answers that are cut off by their length are rejected.
const LEAST_OUTPUT: Tokens = Tokens(256);
/// The share of the summary model's window that a request may use. The rest absorbs errors of our
/// counter.
const WINDOW_SHARE: Ppm = Ppm(850_000);
/// The divisor of the window for the length of the written summary. A former summary may be twice as
/// long. A small model therefore writes a short summary, and most of its window remains for reading.
const WINDOW_PART: u64 = 8;
/// Tokens for the headings of the two parts of a summary.
const HEADINGS: Tokens = Tokens(16);

/// A summary in progress.
#[derive(Debug)]
pub(crate) struct SummaryWriter {
    span: SummaryRange,
    messages: Vec<Arc<Message>>,
    /// The messages that have not been read yet, in pieces that fit.
    pieces: VecDeque<String>,
    so_far: Option<String>,
    /// The user's first message, if it is not among the messages.
    task: Option<String>,
    model: SummaryModel,
    counter: Arc<dyn TokenCounter>,
    sampling: Sampling,
    pub(crate) calls: u64,
    pub(crate) usage: Usage,
}

impl SummaryWriter {
    /// Creates a digest. Returns `None` if the model's window is too small.
    pub(crate) fn new(
        span: SummaryRange,
        messages: Vec<Arc<Message>>,
        task: Option<&Message>,
        model: SummaryModel,
        counter: Arc<dyn TokenCounter>,
        sampling: Sampling,
    ) -> Option<Self> {
        let mut digest = Self {
            span,
            messages,
            pieces: VecDeque::new(),
            so_far: None,
            task: task.map(|task| material::task(task, counter.as_ref())),
            model,
            counter,
            sampling,
            calls: 0,
            usage: Usage::default(),
        };
        digest.so_far = digest.former();
        let room = digest.room()?;
        digest.pieces = material::pieces(&digest.messages, room, digest.counter.as_ref());
        (!digest.pieces.is_empty()).then_some(digest)
    }

    /// Returns the next request.
    pub(crate) fn request(&self) -> Request {
        let piece = self.pieces.front().map_or("", String::as_str);
        let text = material::framed(self.task.as_deref(), self.so_far.as_deref(), piece);
        let system = Arc::clone(&self.model.prompt);
        let counted = REQUEST_OVERHEAD
            + MESSAGE_OVERHEAD.times(2)
            + self.counter.text(&system)
            + self.counter.text(&text);
        Request {
            system,
            messages: Arc::new(vec![Arc::new(Message::user(text))]),
            tool_choice: ToolChoice::None,
            max_output: Some(self.max_output()),
            sampling: self.sampling,
            counted,
            ..Request::default()
        }
    }

    /// Adds the usage of an attempt of the last request without a reply.
    pub(crate) fn lost(&mut self, answer: &PartialAnswer) {
        let counted = self.request().counted;
        let (usage, estimated) = answer.usage(counted, self.counter.as_ref());
        self.usage = self.usage.combine(usage).combine(estimated);
    }

    /// Reads the answer to the last request. Returns the summary if no further call is needed.
    ///
    /// # Errors
    /// The reason why there is no summary.
    pub(crate) fn take(&mut self, reply: &Reply) -> Result<Option<ReadySummary>, String> {
        let used = reply.usage.unwrap_or_else(|| Usage {
            input: self.request().counted,
            output: reply.parts.iter().map(|part| self.counter.part(part)).sum(),
            ..Usage::default()
        });
        self.usage = self.usage.combine(used);
        match reply.stop {
            StopReason::Length => return Err("it was cut off by its length".to_owned()),
            StopReason::ContentFilter => {
                return Err("a part of it was withheld by the provider".to_owned());
            }
            _ => {}
        }
        let text = check::summary(&reply.parts, &self.model.prompt)?;
        let most = self.model_part();
        let text = material::cut(&text, most, self.counter.as_ref());
        if self.counter.text(&text) > most {
            return Err(format!("it cannot be cut to {most} tokens"));
        }
        self.so_far = Some(text);
        self.pieces.pop_front();
        Ok(self.pieces.is_empty().then(|| self.ready()))
    }

    /// Returns the range of the summary.
    pub(crate) fn span(&self) -> &SummaryRange {
        &self.span
    }

    /// Returns the finished summary: quotes of the user's messages and what was done, as far as they
    /// fit, and below them the model's text. The quotes survive even if the model omits or invents
    /// something.
    fn ready(&self) -> ReadySummary {
        let model = self.so_far.clone().unwrap_or_default();
        let model = check::marked(&model, &self.known());
        let room = self
            .words()
            .minus(self.counter.text(&model))
            .minus(HEADINGS);
        let stripped: Vec<Message> = self.messages.iter().map(|message| kept(message)).collect();
        let stripped: Vec<&Message> = stripped.iter().collect();
        let text = match extract(&stripped, room, self.counter.as_ref()) {
            Some(words) => with_model_text(&words, &model),
            None => without_frames(&model).into_owned(),
        };
        ReadySummary {
            seqs: self.span.seqs.clone(),
            fingerprint: self.span.fingerprint,
            text: text.into(),
        }
    }

    /// Returns everything that the model was shown, or could have been shown.
    fn known(&self) -> String {
        let mut known = self.task.clone().unwrap_or_default();
        for message in &self.messages {
            known.push_str(&message.text());
            for call in message.calls() {
                known.push_str(&call.name);
                known.push_str(&call.arguments);
            }
        }
        known
    }

    /// Returns the former summary, in full if it fits. The model may use its quotes.
    fn former(&self) -> Option<String> {
        let mut newest = self.messages.iter().rev();
        let former = newest.find_map(|message| match message.as_ref() {
            Message::Summary { text } => Some(text.as_str()),
            _ => None,
        })?;
        let most = self.part_of_window().times(2);
        Some(material::cut(former, most, self.counter.as_ref()))
    }

    /// Returns the maximum size of a summary's text.
    fn words(&self) -> Tokens {
        self.span.max.minus(MESSAGE_OVERHEAD + SUMMARY_FRAME)
    }

    fn model_part(&self) -> Tokens {
        self.words().share(MODEL_SHARE).min(self.part_of_window())
    }

    fn part_of_window(&self) -> Tokens {
        let part = |window: Tokens| Tokens(window.0 / WINDOW_PART);
        self.model.window.map_or(Tokens::MAX, part)
    }

    fn max_output(&self) -> Tokens {
        self.model_part().times(OVERSHOOT).max(LEAST_OUTPUT)
    }

    /// Returns the maximum size of a piece. No piece is in the request yet.
    fn room(&self) -> Option<Tokens> {
        let window = self.model.window?.share(WINDOW_SHARE);
        let former = self.so_far.as_deref().unwrap_or_default();
        // The text so far may grow up to its maximum size.
        let grows = self.model_part().minus(self.counter.text(former));
        let fixed = self.request().counted + self.max_output() + grows;
        Some(window.minus(fixed)).filter(|room| *room >= material::LEAST_PIECE)
    }
}

/// Returns a message for quoting. A former summary is reduced to its quotes, since the model has just
/// rewritten the rest.
fn kept(message: &Message) -> Message {
    let Message::Summary { text } = message else {
        return message.clone();
    };
    let text = Gap::split_summary(text).1;
    Message::Summary {
        text: split_model_text(text)
            .map_or(text, |(words, _)| words)
            .to_owned(),
    }
}
