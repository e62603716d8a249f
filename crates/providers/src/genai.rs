//! [`Genai`]: the provider for APIs that the house has no wire of its own for: Gemini and Vertex,
//! Bedrock's Converse, Ollama's own. The genai library writes their requests and frames their
//! streams; what stands in a frame is read here, because its events lose what belongs together.
//! One call, one request, always streamed and never repeated. The key is not shown to the library:
//! it stands in the client, as with every other provider.

mod api;
mod asking;
mod converse;
mod failure;
mod frames;
mod gemini;
mod hearing;
mod media;
mod names;
mod ollama;
mod reasoning;
mod settings;
mod shape;
mod signed;

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request, Sampling};
use plimsoll_context::{Delta, Message, Reply, Tokens};
use plimsoll_core::telemetry::ServerAddress;
use plimsoll_core::{Provider, Secret};

pub(crate) use api::Api;

use crate::connection::Connection;
use crate::refusal::Asked;
use frames::Frames;

/// A model behind an API that the genai library speaks.
#[derive(Debug)]
pub struct Genai {
    line: Connection,
    api: Api,
    client: genai::Client,
}

impl Genai {
    pub(crate) fn new(line: Connection, api: Api) -> Result<Self, crate::ProviderError> {
        let client = genai::Client::builder().with_reqwest(line.http.client());
        let client = client
            .build()
            .map_err(|error| crate::ProviderError::Client {
                reason: error.to_string(),
            })?;
        let api = api.with(&line.facts);
        Ok(Self { line, api, client })
    }

    /// What it speaks over.
    pub(crate) fn connection(&self) -> &Connection {
        &self.line
    }

    async fn hear(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let call = self.line.call_of(Asked::of(request, request.max_output));
        let idle = self.line.http.timeouts.idle;
        let frames = Arc::new(Frames::default());
        let asked = shape::chat(request, &self.api);
        let options = settings::options(request, &self.api, &self.line.extra, &asked)
            .with_stream_header_timeout(idle)
            .with_stream_read_timeout(idle)
            .with_raw_frame_sink_arc(frames.clone());
        let target = asking::target(&self.line, &self.api);
        let stream = self
            .client
            .exec_chat_stream(target, asked.request, Some(&options));
        // Nothing is sent yet: what fails here cannot be said in this API.
        let stream = frames::unlogged(stream).await;
        let stream = stream
            .map_err(|error| failure::unsaid(&call, &error))?
            .stream;
        let answer = hearing::Answer::new(&self.api, &self.line, calls(request));
        let heard = hearing::hear(stream, &frames, answer, idle, deltas).await;
        heard.map_err(|broken| failure::of(&call, broken, idle, deltas))
    }
}

#[async_trait]
impl Provider for Genai {
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
        let limit = self.line.most(request);
        let mut request = self.line.facts.enforced(request, self.api.words());
        if limit != request.max_output {
            request.to_mut().max_output = limit;
        }
        let reply = self.hear(&request, deltas).await?;
        self.line.checked(reply, limit)
    }

    fn sampling_notes(&self, sampling: &Sampling) -> Vec<String> {
        settings::thinking_off(&self.api).notes(sampling, &self.line.full_name)
    }

    fn known_window(&self) -> Option<Tokens> {
        self.line.known_window()
    }

    async fn window(&self) -> Option<Tokens> {
        self.line.window().await
    }
}

/// How many tools were called before: the calls of a reply without ids are counted from here.
fn calls(request: &Request) -> usize {
    let messages = request.messages.iter();
    messages
        .map(|message| Message::calls(message).count())
        .sum()
}
