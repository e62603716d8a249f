//! [`LlmJudge`] and [`Elaborate`]: an agent reads the answers and picks one, or writes one from all.
//!
//! It makes one call, within the rest of the shared limits. If it fails, the answer with the fewest
//! tokens is taken.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{AtLimit, ExecutionLimits, escape_tags};
use plimsoll_context::{Fingerprint, Message, TokenCounter, Tokens};
use regex::Regex;

use super::outcome::ParallelLoopResult;
use super::strategy::{Choice, Evaluation, EvaluationStrategy};
use crate::agent::Agent;
use crate::error::Error;
use crate::memory_store::MemoryStore;
use crate::store::new_session_id;
use crate::sub_agent::bounded;

/// Maximum input of a judge: task and answers together.
pub const MAX_JUDGED: Tokens = Tokens(24_000);
/// Maximum output of a judge: three sentences and a letter, with room for thinking.
pub const JUDGEMENT: Tokens = Tokens(2_048);
/// Maximum output of [`Elaborate`].
pub const MAX_ELABORATED: Tokens = Tokens(8_192);
/// Maximum duration of the call, including its retries, if the agent sets none.
pub const JUDGE_TIMEOUT: Duration = Duration::from_secs(120);
/// The tags around the task and the answers.
const FRAMES: [&str; 2] = ["answer", "task"];
/// A judge reads at most 1/`WINDOW_PART` of its model's window.
const WINDOW_PART: u64 = 2;

/// An agent picks the best answer. The order of the answers depends on their texts only, so that no
/// branch benefits from its position.
#[derive(Clone)]
pub struct LlmJudge(Agent);

/// An agent writes one answer from all.
#[derive(Clone)]
pub struct Elaborate(Agent);

impl LlmJudge {
    /// The system prompt of an agent without one. The answer must end in the format that it asks for.
    pub const PROMPT: &'static str = include_str!("../../prompts/judge.md");

    /// Creates the strategy with the model, the prices and the limits of this agent. Its tools are not
    /// used.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        Self(prepared(agent, Self::PROMPT, JUDGEMENT))
    }
}

impl Elaborate {
    /// The system prompt of an agent without one.
    pub const PROMPT: &'static str = include_str!("../../prompts/elaborate.md");

    /// Creates the strategy with the model, the prices and the limits of this agent. Its tools are not
    /// used.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        Self(prepared(agent, Self::PROMPT, MAX_ELABORATED))
    }
}

/// Returns an agent that answers once, without tools, and keeps no session.
fn prepared(mut agent: Agent, prompt: &str, max_output: Tokens) -> Agent {
    let setup = &mut agent.setup;
    if setup.system.is_empty() {
        setup.system = prompt.into();
    }
    setup.tools.clear();
    setup.hosted_tools = Arc::default();
    let own_output = setup.max_output.unwrap_or(max_output);
    setup.max_output = Some(own_output.min(max_output));
    setup.line.max_output = setup.max_output;
    let one_call = ExecutionLimits {
        at_limit: Some(AtLimit::Stop),
        max_duration: Some(setup.limits.max_duration.unwrap_or(JUDGE_TIMEOUT)),
        ..ExecutionLimits::turns(1)
    };
    setup.limits = Arc::new(one_call.within(&setup.limits));
    agent.settings.recall = false;
    Arc::make_mut(&mut agent.parts).store = Arc::new(MemoryStore::default());
    agent
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
        let choice = ask(&self.0, evaluation, |answers, text| {
            let chosen = winner(&text).and_then(|index| answers.get(index));
            let chosen = chosen.ok_or("it named none of the answers")?;
            Ok(Choice::Branch(chosen.branch))
        });
        let failed = |why| evaluation.fall_back(&format!("the judge did not judge: {why}"));
        choice.await.unwrap_or_else(failed)
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
        let model = self.0.setup.model.clone();
        let choice = ask(&self.0, evaluation, |_, text| {
            Ok(Choice::Merged { text, model })
        });
        let failed = |why| evaluation.fall_back(&format!("there is no answer made of all: {why}"));
        choice.await.unwrap_or_else(failed)
    }
}

/// Lets an agent read the answers within the rest of the shared limits, if there are several, and
/// chooses by its whole answer.
///
/// # Errors
/// The reason why there is no choice.
async fn ask(
    agent: &Agent,
    evaluation: &Evaluation<'_>,
    choose: impl FnOnce(&[&ParallelLoopResult], String) -> Result<Choice, String>,
) -> Result<Choice, String> {
    let answers = shuffled(evaluation);
    if let [only] = answers.as_slice() {
        return Ok(Choice::Branch(only.branch));
    }
    let part = agent.reserve(evaluation.reservation, None, 1)?;
    let agent = agent.within(&part, None);
    let session = agent.session(new_session_id()).await;
    let mut session = session.map_err(|error| error.to_string())?;
    session.below(&part);
    let window = session.run.line().window.unwrap_or(Tokens::MAX);
    let most = MAX_JUDGED.min(Tokens(window.0 / WINDOW_PART));
    let text = material(evaluation.prompt, &answers, most, &*agent.setup.counter);
    let output = session.run(&text).await.or_else(Error::into_output);
    let output = output.map_err(|error| error.to_string())?;
    if !output.reason.is_answer() {
        return Err(output.outcome.text);
    }
    // A text that breaks off is followed by a note in the output.
    let written = session.view().transcript().items().last();
    let written = written.map(|item| item.message.text()).unwrap_or_default();
    match written.trim() {
        "" => Err("it was empty".to_owned()),
        text if text == output.text => choose(&answers, text.to_owned()),
        _ => Err("it was cut off".to_owned()),
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
fn material(
    task: &str,
    answers: &[&ParallelLoopResult],
    most: Tokens,
    counter: &dyn TokenCounter,
) -> String {
    let part = Tokens(most.0 / (answers.len() as u64 + 1));
    let short = |text: &str| bounded(escape_tags(text, &FRAMES), part, counter);
    let mut material = format!("<task>\n{}\n</task>\n", short(task));
    for (letter, result) in letters().zip(answers) {
        let text = short(&result.text);
        material.push_str(&format!(
            "\n<answer letter=\"{letter}\">\n{text}\n</answer>\n"
        ));
    }
    material
}

fn letters() -> impl Iterator<Item = char> {
    'A'..='Z'
}

/// Returns the index of the answer that a judge has named: in its last line with `WINNER`, or as a
/// single letter.
fn winner(text: &str) -> Option<usize> {
    let pattern = Regex::new(r"(?im)winner\W+([a-z])\W*$|\A\W*([a-z])\W*\z").ok()?;
    let named = pattern.captures_iter(text).last()?;
    let letter = named.iter().skip(1).flatten().next()?;
    let letter = letter.as_str().to_ascii_uppercase();
    letters().position(|of| letter.starts_with(of))
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
