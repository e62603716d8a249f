//! [`OpenAiChat`]: the provider for OpenAI Chat Completions and everything compatible with it.
//! One call, one request, always streamed. What goes over the wire is `wire`'s business; how a
//! provider is put together is in `builder.rs`.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request};
use plimsoll_context::{Delta, Reply, Tokens};
use plimsoll_core::Provider;
use plimsoll_wire::openai_chat::{
    AnswerStream, Delivery, Dialect, RenderInput, StreamState, ToolChoice, ToolStyle, read_turn,
    render,
};

use crate::line::Line;

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

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let body = self.body(request)?;
        let limit = request.max_output;
        // Under a schema of its own the answer is the object itself.
        let turns = self.dialect.tools == ToolStyle::JsonSchema && request.format.is_none();
        let reply = if turns {
            let sink = read_along(deltas);
            let turn = self
                .line
                .call::<StreamState>(PATH, body, limit, &sink)
                .await?;
            read_turn(turn, request.messages.len())
        } else {
            self.line
                .call::<StreamState>(PATH, body, limit, deltas)
                .await?
        };
        self.line.heard(reply, limit)
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
    fn body(&self, request: &Request) -> Result<Vec<u8>, Failure> {
        let input = RenderInput {
            model: self.line.model.name(),
            system: Some(&*request.system).filter(|system| !system.is_empty()),
            tools: &request.tools,
            tool_choice: match request.tool_choice {
                plimsoll_agent::ToolChoice::Auto => ToolChoice::Auto,
                plimsoll_agent::ToolChoice::None => ToolChoice::None,
            },
            max_output: request.max_output.map(|tokens| tokens.0),
            temperature: request.sampling.temperature,
            // Servers take 63 bits at most.
            seed: request.sampling.seed.map(|seed| (seed & MAX_SEED) as i64),
            delivery: Delivery::Stream,
            context: request.dynamic_context.as_deref(),
            cache: Some(&request.cache),
            format: request.format.as_deref(),
            extra: Some(&self.line.extra),
            ..RenderInput::default()
        };
        let messages = request.messages.iter().map(AsRef::as_ref);
        let rendered = render(&input, messages, &self.dialect);
        let rendered = rendered.map_err(|error| Failure::Refused {
            status: None,
            message: error.to_string(),
        })?;
        Ok(rendered.body)
    }
}
