//! Gemini's `generateContent`, at Google's own host and at Vertex AI.

use plimsoll_agent::Request;
use plimsoll_context::Message;
use plimsoll_wire::gemini::{GeminiProfile, GeminiStreamState, Thinking};
use plimsoll_wire::{EncodedRequest, RenderInput, StreamDecoder};
use reqwest::Url;

use super::{MAX_TOOLS, Protocol, common_input, effort, rendered, segment};
use crate::client::Connection;
use crate::thinking::ThinkingOff;

/// The bits of a seed that the API accepts.
const MAX_SEED: u64 = i32::MAX as u64;

/// `generateContent` as a model accepts it.
#[derive(Debug)]
pub(crate) struct GeminiProtocol {
    pub(crate) profile: GeminiProfile,
    /// Whether the server is Vertex AI.
    pub(crate) at_vertex: bool,
}

impl Protocol for GeminiProtocol {
    fn profile_name(&self) -> &str {
        &self.profile.name
    }

    fn url(&self, connection: &Connection) -> Url {
        let base = &connection.http.base;
        let call = format!(
            "models/{}:streamGenerateContent",
            segment(connection.model.name())
        );
        let mut url = match (self.at_vertex, base.has_version()) {
            (true, _) => base.endpoint(&format!("publishers/google/{call}")),
            // A base URL without a path was given the usual `/v1`, which has fewer features.
            (false, true) => base.at_root(&format!("v1beta/{call}")),
            (false, false) => base.endpoint(&call),
        };
        url.query_pairs_mut().append_pair("alt", "sse");
        url
    }

    fn render(&self, connection: &Connection, request: &Request) -> EncodedRequest {
        let input = RenderInput {
            seed: request.sampling.seed.map(|seed| (seed & MAX_SEED) as i64),
            effort: effort(connection, request),
            ..common_input(connection, request)
        };
        rendered(&input, request, &self.profile)
    }

    fn decoder(&self, request: &Request) -> Box<dyn StreamDecoder> {
        let messages = request.messages.iter();
        let calls = messages
            .map(|message| Message::calls(message).count())
            .sum();
        Box::new(GeminiStreamState::new(calls))
    }

    fn thinking_off(&self) -> ThinkingOff {
        match self.profile.thinking {
            Thinking::None | Thinking::Budget { can_stop: true } => ThinkingOff::NotThinking,
            Thinking::Budget { can_stop: false } | Thinking::Levels(_) => ThinkingOff::Never,
        }
    }

    fn max_tools(&self) -> Option<usize> {
        Some(MAX_TOOLS)
    }

    fn sends_thinking_levels(&self) -> bool {
        self.profile.thinking != Thinking::None
    }
}
