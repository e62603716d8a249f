//! [`OpenAiChat`]: the provider for OpenAI Chat Completions and everything compatible with it.
//! One call, one request, always streamed. What goes over the wire is `wire`'s business; how a
//! provider is put together is in `builder.rs`.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request, Sampling, ThinkingLevel};
use plimsoll_context::{CacheRetention, Delta, Reply, Tokens};
use plimsoll_core::telemetry::ServerAddress;
use plimsoll_core::{Provider, Secret};
use plimsoll_wire::openai_chat::{
    AnswerStream, CacheMarks, Dialect, Reach, StreamState, ToolStyle, read_turn, render,
};
use plimsoll_wire::openai_responses::Profile;
use plimsoll_wire::{Delivery, Effort, LeftOut, Note, RenderInput, Rendered};
use serde_json::{Map, Value};

use crate::efforts;
use crate::line::{Line, tool_choice, unrendered};
use crate::model_ref::ModelRef;
use crate::models::ModelFacts;
use crate::refusal::Asked;
use crate::responses::effort_of;
use crate::retention::{Asks, keeps, kept};
use crate::thinking_off::{self, ThinkingOff};

/// The bits of a seed that are sent: the wire has signed numbers.
const MAX_SEED: u64 = i64::MAX as u64;
/// What is asked, below the address of the API.
const PATH: &str = "chat/completions";

/// A model behind OpenAI's Chat Completions API.
#[derive(Debug)]
pub struct OpenAiChat {
    pub(crate) line: Line,
    pub(crate) dialect: Dialect,
}

impl OpenAiChat {
    /// What its server wants of a request.
    #[must_use]
    pub fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// Where its server is.
    #[must_use]
    pub fn base_url(&self) -> &crate::BaseUrl {
        &self.line.http.base
    }
}

#[async_trait]
impl Provider for OpenAiChat {
    fn model(&self) -> &str {
        &self.line.full_name
    }

    fn endpoint(&self) -> String {
        self.line.endpoint()
    }

    fn server(&self) -> Option<ServerAddress> {
        self.line.http.base.server()
    }

    fn secrets(&self) -> Vec<Secret> {
        self.line.keys.clone()
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let body = self.body(request)?;
        let limit = request.max_output;
        let asked = Asked::of(request, limit);
        // Under a schema of its own the answer is the object itself.
        let turns = self.dialect.tools == ToolStyle::JsonSchema && request.format.is_none();
        let reply = if turns {
            let sink = read_along(deltas);
            let turn = self
                .line
                .call::<StreamState>(PATH, body, asked, &sink)
                .await?;
            read_turn(turn, request.messages.len())
        } else {
            self.line
                .call::<StreamState>(PATH, body, asked, deltas)
                .await?
        };
        let mut reply = self.line.heard(reply, limit)?;
        // The gateway says what was written, and not for how long: for as long as it was asked.
        let long = request.cache.retention == CacheRetention::Long;
        if let Some(usage) = reply
            .usage
            .as_mut()
            .filter(|_| long && self.asks() == Asks::ByMark)
        {
            usage.cache_write_longer = usage.cache_write;
        }
        Ok(reply)
    }

    fn keeps(&self, retention: CacheRetention) -> bool {
        keeps(&self.line, retention, self.asks())
    }

    fn sampling_notes(&self, sampling: &Sampling) -> Vec<String> {
        self.thinking_off().notes(sampling, &self.line.full_name)
    }

    fn known_window(&self) -> Option<Tokens> {
        self.line.known_window()
    }

    async fn window(&self) -> Option<Tokens> {
        self.line.window().await
    }
}

/// A sink that is shown the answer in a turn that is one JSON object, and none of the JSON.
fn read_along<'a>(deltas: &'a (dyn Fn(Delta) + Send + Sync)) -> impl Fn(Delta) + Send + Sync + 'a {
    let stream = Mutex::new(AnswerStream::default());
    move |delta| match delta {
        Delta::Text { text } => {
            let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
            let text = stream.push(&text);
            if !text.is_empty() {
                deltas(Delta::Text { text });
            }
        }
        other => deltas(other),
    }
}

impl OpenAiChat {
    /// How its server is asked to keep its cache longer.
    fn asks(&self) -> Asks {
        match self.dialect.cache {
            CacheMarks::Parts => Asks::ByMark,
            CacheMarks::Key => Asks::ByKey,
            CacheMarks::Unasked => Asks::Nothing,
        }
    }

    fn thinking_off(&self) -> ThinkingOff {
        thinking_off::on_chat(&self.line.model, &self.line.facts, &self.dialect)
    }

    fn body(&self, request: &Request) -> Result<Vec<u8>, Failure> {
        Ok(self.rendered(request)?.body)
    }

    pub(crate) fn rendered(&self, request: &Request) -> Result<Rendered, Failure> {
        let (extra, left_out) = self.extra(request);
        let input = RenderInput {
            model: self.line.model.name(),
            system: Some(&*request.system).filter(|system| !system.is_empty()),
            tools: &request.tools,
            tool_choice: tool_choice(request),
            max_output: self.line.most(request).map(|tokens| tokens.0),
            temperature: request.sampling.temperature,
            // Servers take 63 bits at most.
            seed: request.sampling.seed.map(|seed| (seed & MAX_SEED) as i64),
            delivery: Delivery::Stream,
            context: request.dynamic_context.as_deref(),
            cache: Some(&request.cache),
            format: request.format.as_deref(),
            extra: Some(&extra),
            ..RenderInput::default()
        };
        let messages = request.messages.iter().map(AsRef::as_ref);
        let rendered = render(&input, messages, &self.dialect);
        let mut rendered = rendered.map_err(|error| unrendered(&error))?;
        rendered.notes.extend(left_out);
        Ok(rendered)
    }

    /// The keys that a request has besides, and what it does not say of the effort; what the host says
    /// of that goes before ours.
    fn extra(&self, request: &Request) -> (Cow<'_, Map<String, Value>>, Option<Note>) {
        let mut extra = kept(&self.line, request, self.asks());
        if extra.contains_key(EFFORT) {
            return (extra, None);
        }
        if request.sampling.thinking == Some(ThinkingLevel::Off)
            && let ThinkingOff::Keys(keys) = self.thinking_off()
        {
            for (key, value) in keys {
                let extra = extra.to_mut();
                extra.entry(key.as_str()).or_insert_with(|| value.clone());
            }
            return (extra, None);
        }
        let (effort, left_out) = effort(request, &self.line.model, &self.line.facts, &self.dialect);
        let Some(effort) = effort else {
            return (extra, left_out);
        };
        let mut extra = extra.into_owned();
        extra.insert(EFFORT.to_owned(), effort.name().into());
        (Cow::Owned(extra), left_out)
    }
}

/// The key of how hard a model is to think.
const EFFORT: &str = "reasoning_effort";

/// How a server is told how hard the model is to think: with the nearest value that the model is known
/// to take. Nothing is said where it takes none or nothing is asked for, unless it wants to be told not
/// to think beside tools.
fn effort(
    request: &Request,
    model: &ModelRef,
    facts: &ModelFacts,
    dialect: &Dialect,
) -> (Option<Effort>, Option<Note>) {
    let known = Profile {
        efforts: efforts::on_chat(model, facts, dialect),
        ..Profile::openai()
    };
    let asked = match request.sampling.thinking {
        None => None,
        Some(ThinkingLevel::Off) => match thinking_off::on_chat(model, facts, dialect) {
            ThinkingOff::Effort(effort) => Some(effort),
            _ => None,
        },
        Some(level) => effort_of(level).and_then(|asked| known.effort(asked)),
    };
    let tools = dialect.tools == ToolStyle::Native && !request.tools.is_empty();
    let said = match efforts::goes(model) {
        Reach::ToolsAtNone if tools => Some(Effort::None),
        Reach::ToolsUnasked | Reach::NoTools if tools => None,
        _ => return (asked, None),
    };
    let left_out = asked
        .filter(|asked| *asked != Effort::None)
        .map(|_| Note::setting(LeftOut::Effort));
    (said, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(model: &str, dialect: &str, request: &Request) -> (Option<&'static str>, bool) {
        let dialect = Dialect::named(dialect).unwrap();
        let model = ModelRef::parse(model).unwrap();
        let (effort, left_out) = effort(request, &model, &ModelFacts::default(), &dialect);
        (effort.map(Effort::name), left_out.is_some())
    }

    #[test]
    fn a_level_becomes_what_the_model_knows() {
        use ThinkingLevel::{High, Low, Medium, Minimal, Off};
        for (dialect, model, level, said) in [
            ("openai", "openai/gpt-5-mini", Off, Some("minimal")),
            ("openai", "openai/gpt-5-mini", Minimal, Some("minimal")),
            ("openai", "openai/o3", Minimal, Some("low")),
            ("openai", "openai/o3", Low, Some("low")),
            ("openai", "openai/gpt-5.2", High, Some("high")),
            (
                "compatible",
                "openai-compatible/openai/gpt-5",
                Minimal,
                Some("minimal"),
            ),
            ("openai", "openai/gpt-4o", High, None),
            ("xai", "xai/grok-4", Medium, None),
            ("xai", "xai/grok-3-mini", Medium, Some("low")),
            ("compatible", "openai-compatible/m", High, None),
            ("mistral", "mistral/mistral-large", High, None),
            ("llama.cpp", "llama.cpp/qwen", High, None),
        ] {
            let request = crate::explain::question_at(level);
            assert_eq!(
                sent(model, dialect, &request),
                (said, false),
                "{model} {level:?}"
            );
        }
    }

    #[test]
    fn where_tools_and_thinking_do_not_go_together_tools_go_first() {
        use ThinkingLevel::{High, Off};
        for (model, level, tools, without) in [
            ("openai/gpt-5.4", Off, (None, false), (Some("none"), false)),
            ("openai/gpt-5.4", High, (None, true), (Some("high"), false)),
            (
                "openai/gpt-5.5",
                Off,
                (Some("none"), false),
                (Some("none"), false),
            ),
            (
                "openai/gpt-5.6-terra",
                High,
                (Some("none"), true),
                (Some("high"), false),
            ),
            (
                "openai-compatible/gpt-5.6",
                Off,
                (Some("none"), false),
                (Some("none"), false),
            ),
            (
                "openai/gpt-6-astra",
                High,
                (None, true),
                (Some("high"), false),
            ),
            // It asks OpenAI in its own way.
            (
                "openrouter/openai/gpt-5.6",
                High,
                (Some("high"), false),
                (Some("high"), false),
            ),
        ] {
            let mut request = crate::explain::question_at(level);
            assert_eq!(sent(model, "openai", &request), tools, "{model}");
            request.tools = std::sync::Arc::default();
            assert_eq!(sent(model, "openai", &request), without, "{model}");
        }
    }
}
