//! [`LlmJudge`] and [`Elaborate`]: a model reads the answers and picks one, or writes one from all.
//!
//! They make one bounded call. If it fails, the answer with the fewest tokens is taken.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{
    Cost, ExecutionLimits, Expects, Failure, Request, Sampling, Spend, ToolChoice,
};
use plimsoll_context::{
    CachePlan, Fingerprint, Message, PriceSheet, Reply, StopReason, Tokens, Usage,
};

use super::outcome::ParallelLoopResult;
use super::strategy::{Choice, Evaluation, EvaluationStrategy};
use crate::driver::{CallUsage, ask};
use crate::provider::Provider;
use crate::retry::RetryConfig;
use crate::sub_agent::bounded;
use crate::window;

/// Maximum input of a judge: task and answers together.
pub const MAX_JUDGED: Tokens = Tokens(24_000);
/// Maximum output of a judge: three sentences and a letter, with room for thinking.
pub const JUDGEMENT: Tokens = Tokens(2_048);
/// Maximum output of [`Elaborate`].
pub const MAX_ELABORATED: Tokens = Tokens(8_192);
/// Default timeout of the call, including its retries.
pub const JUDGE_TIMEOUT: Duration = Duration::from_secs(120);
/// A judge reads at most 1/`WINDOW_PART` of its model's window.
const WINDOW_PART: u64 = 2;

/// A model picks the best answer. The order of the answers depends on their texts only, so that no
/// branch benefits from its position.
#[derive(Clone)]
pub struct LlmJudge(PromptedModel);

/// A model writes one answer from all.
#[derive(Clone)]
pub struct Elaborate(PromptedModel);

/// A model with the system prompt that tells it what to do with the answers.
#[derive(Clone)]
struct PromptedModel {
    model: JudgeModel,
    prompt: Arc<str>,
}

/// A model that reads answers, with its limits.
#[derive(Clone)]
pub struct JudgeModel {
    provider: Arc<dyn Provider>,
    sheet: Option<PriceSheet>,
    max_read: Tokens,
    timeout: Duration,
    retry: RetryConfig,
}

impl JudgeModel {
    /// Creates a judge with this model.
    pub fn new(provider: impl Provider + 'static) -> Self {
        Self::shared(Arc::new(provider))
    }

    /// Like [`Self::new`], with a shared provider.
    pub fn shared(provider: Arc<dyn Provider>) -> Self {
        Self {
            provider,
            sheet: None,
            max_read: MAX_JUDGED,
            timeout: JUDGE_TIMEOUT,
            retry: RetryConfig::default(),
        }
    }

    /// Sets the prices of the model. Default: unknown.
    #[must_use]
    pub fn prices(mut self, sheet: PriceSheet) -> Self {
        self.sheet = Some(sheet);
        self
    }

    /// Sets the maximum input. Longer answers are shortened in the middle. Default [`MAX_JUDGED`].
    #[must_use]
    pub fn max_read(mut self, tokens: Tokens) -> Self {
        self.max_read = tokens;
        self
    }

    /// Sets the timeout, including retries. Default [`JUDGE_TIMEOUT`].
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets when failed calls are retried.
    #[must_use]
    pub fn retry_config(mut self, retry: RetryConfig) -> Self {
        self.retry = retry;
        self
    }
}

impl<P: Provider + 'static> From<P> for JudgeModel {
    fn from(provider: P) -> Self {
        Self::new(provider)
    }
}

impl LlmJudge {
    /// The default system prompt.
    pub const PROMPT: &'static str = include_str!("../../prompts/judge.md");

    /// Creates the strategy with this model.
    pub fn new(model: impl Into<JudgeModel>) -> Self {
        Self(PromptedModel {
            model: model.into(),
            prompt: Self::PROMPT.into(),
        })
    }

    /// Replaces [`Self::PROMPT`]. The model's answer must end in the format that it asks for.
    #[must_use]
    pub fn prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.0.prompt = prompt.into();
        self
    }
}

impl Elaborate {
    /// The default system prompt.
    pub const PROMPT: &'static str = include_str!("../../prompts/elaborate.md");

    /// Creates the strategy with this model.
    pub fn new(model: impl Into<JudgeModel>) -> Self {
        Self(PromptedModel {
            model: model.into(),
            prompt: Self::PROMPT.into(),
        })
    }

    /// Replaces [`Self::PROMPT`].
    #[must_use]
    pub fn prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.0.prompt = prompt.into();
        self
    }
}

#[async_trait]
impl EvaluationStrategy for LlmJudge {
    fn name(&self) -> &str {
        "llm_judge"
    }

    fn shares(&self) -> u64 {
        1
    }

    async fn evaluate(&self, evaluation: &Evaluation<'_>) -> Choice {
        let answers = shuffled(evaluation);
        if let [only] = answers.as_slice() {
            return Choice::Branch(only.branch);
        }
        let read = self.0.read(evaluation, &answers, JUDGEMENT);
        match read.await {
            Err(why) => evaluation.fall_back(&format!("the judge did not judge: {why}")),
            Ok(reply) => {
                let text = text_of(&reply);
                let winner = winner(&text).and_then(|index| answers.get(index));
                winner.map_or_else(
                    || evaluation.fall_back("the judge named none of the answers"),
                    |result| Choice::Branch(result.branch),
                )
            }
        }
    }
}

#[async_trait]
impl EvaluationStrategy for Elaborate {
    fn name(&self) -> &str {
        "elaborate"
    }

    fn shares(&self) -> u64 {
        1
    }

    async fn evaluate(&self, evaluation: &Evaluation<'_>) -> Choice {
        let answers = shuffled(evaluation);
        if let [only] = answers.as_slice() {
            return Choice::Branch(only.branch);
        }
        let read = self.0.read(evaluation, &answers, MAX_ELABORATED);
        let why = match read.await {
            Ok(reply) if matches!(reply.stop, StopReason::Length | StopReason::Window) => {
                "it was cut off".to_owned()
            }
            Ok(reply) if reply.stop == StopReason::ContentFilter => {
                "a part of it was withheld by the provider".to_owned()
            }
            Ok(reply) => match text_of(&reply).trim() {
                "" => "it was empty".to_owned(),
                text => {
                    return Choice::Merged {
                        text: text.to_owned(),
                        model: self.0.model.provider.model().to_owned(),
                    };
                }
            },
            Err(why) => why,
        };
        evaluation.fall_back(&format!("there is no answer made of all: {why}"))
    }
}

impl PromptedModel {
    /// Makes one call within the rest of the limits.
    async fn read(
        &self,
        evaluation: &Evaluation<'_>,
        answers: &[&ParallelLoopResult],
        max_written: Tokens,
    ) -> Result<Reply, String> {
        let Self { model, prompt } = self;
        let window = window::reported(&*model.provider, Some(model.timeout)).await;
        let most = window.map_or(model.max_read, |window| {
            model.max_read.min(Tokens(window.0 / WINDOW_PART))
        });
        let counter = &*evaluation.counter;
        let frame = |text: &str| counter.text(text) + plimsoll_context::MESSAGE_OVERHEAD;
        let message = Arc::new(Message::user(material(evaluation, answers, most)));
        let counted = frame(prompt) + counter.message(&message);
        let needs = counted + max_written;
        let part = evaluation
            .reservation
            .reserve(&ExecutionLimits {
                max_duration: Some(model.timeout),
                ..ExecutionLimits::default()
            })
            .map_err(|nothing| format!("{nothing} for it"))?;
        let left = part.limits();
        if left.max_total_tokens.is_some_and(|left| left < needs) {
            return Err(format!("it needs {needs} tokens, and fewer are left"));
        }
        if left.max_cost.is_some() {
            let usage = Usage {
                input: counted,
                output: max_written,
                ..Usage::default()
            };
            let cost = model.sheet.and_then(|sheet| sheet.cost(usage));
            match cost {
                None => return Err("the prices of its model are unknown".to_owned()),
                Some(cost) if left.max_cost.is_some_and(|left| left < cost) => {
                    return Err(format!("it may cost {cost}, and less is left"));
                }
                Some(_) => {}
            }
        }
        let request = Request {
            system: Arc::clone(prompt),
            tools: Arc::new([]),
            hosted_tools: Arc::default(),
            messages: vec![message].into(),
            dynamic_context: None,
            tool_choice: ToolChoice::None,
            format: None,
            max_output: Some(max_written),
            sampling: Sampling::default(),
            counted,
            cache: CachePlan::default(),
            expects: Expects::default(),
        };
        let timeout = part.until().map_or(model.timeout, |until| {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            left.min(model.timeout)
        });
        let call_usage = CallUsage::default();
        let asking = ask(&*model.provider, &request, &model.retry, &call_usage);
        let reply = tokio::time::timeout(timeout, asking).await;
        // Attempts without a reply are charged too.
        for attempt in call_usage.all() {
            let (usage, estimated) = attempt.usage(counted, counter);
            let usage = usage.combine(estimated);
            let cost = model.sheet.and_then(|sheet| sheet.cost(usage));
            part.spend(&Spend {
                usage,
                cost: Cost::of(cost),
                ..Spend::default()
            });
        }
        let reply = match reply {
            Ok(reply) => reply.map_err(|failure: Failure| failure.to_string())?,
            Err(_) => {
                let secs = timeout.as_secs_f32();
                return Err(format!("there was no answer within {secs} s"));
            }
        };
        let usage = reply.usage.unwrap_or_else(|| Usage {
            input: counted,
            output: reply.parts.iter().map(|part| counter.part(part)).sum(),
            ..Usage::default()
        });
        let cost = model.sheet.and_then(|sheet| sheet.cost(usage));
        part.spend(&Spend {
            usage,
            cost: Cost::of(cost),
            turns: 1,
            ..Spend::default()
        });
        Ok(reply)
    }
}

/// Returns the answers in an order that depends only on the task and the texts. It is reproducible
/// and independent of the branches.
fn shuffled<'a>(evaluation: &'a Evaluation<'_>) -> Vec<&'a ParallelLoopResult> {
    let mut answers: Vec<&ParallelLoopResult> = evaluation.answered().collect();
    let task = Message::user(evaluation.prompt);
    answers.sort_by_cached_key(|result| {
        let text = Message::user(result.text.as_str());
        let mark = Fingerprint::of([&task, &text]).to_string();
        (mark, result.branch)
    });
    answers
}

/// Returns the task and the answers as framed text. Each is cut to its share of the limit.
fn material(evaluation: &Evaluation<'_>, answers: &[&ParallelLoopResult], most: Tokens) -> String {
    let counter = &*evaluation.counter;
    let part = Tokens(most.0 / (answers.len() as u64 + 1));
    let short = |text: &str| bounded(escaped(text), part, counter);
    let mut material = format!("<task>\n{}\n</task>\n", short(evaluation.prompt));
    for (letter, result) in letters().zip(answers) {
        let text = short(&result.text);
        material.push_str(&format!(
            "\n<answer letter=\"{letter}\">\n{text}\n</answer>\n"
        ));
    }
    material
}

/// Escapes the frame tags in a text, so that it cannot end its frame or begin another.
fn escaped(text: &str) -> String {
    let mut text = text.to_owned();
    for frame in ["answer", "task"] {
        for tag in [format!("</{frame}"), format!("<{frame}")] {
            text = text.replace(&tag, &tag.replace('<', "&lt;"));
        }
    }
    text
}

fn letters() -> impl Iterator<Item = char> {
    'A'..='Z'
}

fn text_of(reply: &Reply) -> String {
    let texts = reply.parts.iter().filter_map(|part| part.as_text());
    texts.collect::<Vec<&str>>().join("\n")
}

/// Returns the index of the answer that a judge has named: in its last line with `WINNER`, or as a
/// single letter.
fn winner(text: &str) -> Option<usize> {
    let named = text.lines().rev().find_map(|line| {
        let line = line.to_ascii_uppercase();
        let (_, name) = line.split_once("WINNER")?;
        Some(name.to_owned())
    });
    let name = named.unwrap_or_else(|| text.trim().to_ascii_uppercase());
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    let mut words = words.by_ref().filter(|word| !word.is_empty());
    let (word, None) = (words.next()?, words.next()) else {
        return None;
    };
    let mut chars = word.chars();
    let (letter, None) = (chars.next()?, chars.next()) else {
        return None;
    };
    letters().position(|of| of == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_names_one_or_none() {
        for (text, named) in [
            ("WINNER: B", Some(1)),
            ("Both are right.\n\n**Winner: A**\n", Some(0)),
            ("winner - c.", Some(2)),
            ("WINNER: A\nOn reflection.\nWINNER: B", Some(1)),
            (" b ", Some(1)),
            ("WINNER: A or B", None),
            ("WINNER: none", None),
            ("WINNER:", None),
            ("I cannot say.", None),
            ("", None),
            ("A is better than B", None),
            ("WINNER: 1", None),
            ("WINNER: Ä", None),
        ] {
            assert_eq!(winner(text), named, "{text:?}");
        }
    }
}
