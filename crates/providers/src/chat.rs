//! [`OpenAiChat`]: the provider for OpenAI Chat Completions and everything compatible with it.
//! One call, one request, always streamed. What goes over the wire is `wire`'s business; how a
//! provider is put together is in `builder.rs`.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request};
use plimsoll_context::{Delta, Reply, Tokens};
use plimsoll_core::Provider;
use plimsoll_wire::openai_chat::{
    AnswerStream, Delivery, Dialect, RenderInput, ToolChoice, ToolStyle, read_turn, render,
};
use plimsoll_wire::overflow::silent::{self, Known, Silent};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::discovery::{self, Loading, Report};
use crate::http::{Http, error_body, pieces};
use crate::model_ref::ModelRef;
use crate::receive::receive;
use crate::refusal::Call;
use crate::secret::Secret;
use crate::vendor::{Place, Tells};

/// The bits of a seed that are sent: the wire has signed numbers.
const MAX_SEED: u64 = i64::MAX as u64;

/// A model behind OpenAI's Chat Completions API.
#[derive(Debug)]
pub struct OpenAiChat {
    pub(crate) http: Http,
    pub(crate) model: ModelRef,
    /// `provider/name`.
    pub(crate) full_name: String,
    /// Where the key comes from, if there is one.
    pub(crate) key_from: Option<&'static str>,
    /// What no text may hold: the key and the values of headers.
    pub(crate) secrets: Vec<Secret>,
    pub(crate) dialect: Dialect,
    pub(crate) tells: Tells,
    pub(crate) extra: Map<String, Value>,
    /// What the server reported; empty until it answered.
    pub(crate) reported: OnceCell<Option<Tokens>>,
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
        &self.http.base
    }

    async fn report(&self) -> Result<Option<Tokens>, Unanswered> {
        let name = self.model.name();
        match discovery::window(&self.http, self.tells, name, Loading::Allowed).await {
            Report::Said(window) => Ok(Some(window)),
            Report::Unsaid => Ok(None),
            Report::NoAnswer => Err(Unanswered),
        }
    }

    /// A reply, unless it shows that the request did not fit and nobody said so.
    fn heard(&self, reply: Reply, max_output: Option<Tokens>) -> Result<Reply, Failure> {
        let known = Known {
            window: self.reported.get().copied().flatten(),
            max_output,
            ..Known::default()
        };
        match silent::detect(&reply, &known) {
            // The machine may not know the window that the server reports.
            Some(Silent::NoRoom(overflow)) => Err(Failure::Cut {
                used: overflow.used,
                window: overflow.window,
                usage: reply.usage,
                message: "the request fills the window and leaves no room for an answer".to_owned(),
            }),
            // Its way of saying so.
            Some(Silent::Nothing) if self.tells == Tells::LmStudio => Err(Failure::Overflow {
                used: None,
                window: None,
                message: "the server answered nothing at all, as LM Studio does when a request is \
                          too long"
                    .to_owned(),
            }),
            _ => Ok(reply),
        }
    }
}

#[async_trait]
impl Provider for OpenAiChat {
    fn model(&self) -> &str {
        &self.full_name
    }

    fn endpoint(&self) -> String {
        let vendor = self.model.vendor();
        // Our own server has another port each time.
        if vendor.place == Place::Ours {
            return self.full_name.clone();
        }
        let endpoint = format!("{} {}", self.http.base, self.model.name());
        let secrets = self.secrets.iter();
        secrets.fold(endpoint, |text, secret| secret.strike_out(text))
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let call = Call {
            model: &self.model,
            base: &self.http.base,
            key_from: self.key_from,
            secrets: &self.secrets,
            max_output: request.max_output,
        };
        let body = self.body(request)?;
        let answer = self.http.post("chat/completions", body).await;
        let answer = answer.map_err(|silence| call.silence(&silence))?;
        let idle = self.http.timeouts.idle;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            let headers = answer.headers().clone();
            let body = error_body(pieces(answer), idle).await;
            return Err(call.refused(status, &headers, &body));
        }
        let reply = match self.dialect.tools {
            // The answer is the object itself.
            ToolStyle::JsonSchema if request.format.is_some() => {
                receive(pieces(answer), idle, deltas).await
            }
            ToolStyle::Native => receive(pieces(answer), idle, deltas).await,
            ToolStyle::JsonSchema => {
                let turn = receive(pieces(answer), idle, &read_along(deltas)).await;
                turn.map(|reply| read_turn(reply, request.messages.len()))
            }
        };
        let reply = reply.map_err(|broken| call.broken(broken))?;
        self.heard(reply, request.max_output)
    }

    async fn window(&self) -> Option<Tokens> {
        let reported = self.reported.get_or_try_init(|| self.report()).await;
        reported.ok().copied().flatten()
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

/// The server did not answer: it may the next time.
struct Unanswered;

impl OpenAiChat {
    fn body(&self, request: &Request) -> Result<Vec<u8>, Failure> {
        let input = RenderInput {
            model: self.model.name(),
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
            extra: Some(&self.extra),
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
