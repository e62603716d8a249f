//! Bedrock's Converse.

use plimsoll_agent::Request;
use plimsoll_wire::anthropic::ThinkingStyle;
use plimsoll_wire::bedrock::{ConverseProfile, ConverseStreamState, Maker};
use plimsoll_wire::{EncodedRequest, RenderInput, StreamDecoder};
use reqwest::Url;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};

use super::{Protocol, common_input, effort, rendered, segment};
use crate::client::Connection;
use crate::event_stream::EventStreamReader;
use crate::receive::EventReader;
use crate::thinking::ThinkingOff;

/// The media type of a streamed reply.
const STREAM: HeaderValue = HeaderValue::from_static("application/vnd.amazon.eventstream");

/// Converse as a model accepts it.
#[derive(Debug)]
pub(crate) struct ConverseProtocol {
    pub(crate) profile: ConverseProfile,
    /// The id of the model, to which its reasoning is bound.
    pub(crate) model: String,
}

impl Protocol for ConverseProtocol {
    fn profile_name(&self) -> &str {
        &self.profile.name
    }

    fn url(&self, connection: &Connection) -> Url {
        let model = segment(connection.model.name());
        let base = &connection.http.base;
        base.at_root(&format!("model/{model}/converse-stream"))
    }

    fn render(&self, connection: &Connection, request: &Request) -> EncodedRequest {
        let input = RenderInput {
            effort: effort(connection, request),
            ..common_input(connection, request)
        };
        rendered(&input, request, &self.profile)
    }

    fn headers(&self) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, STREAM)])
    }

    fn events(&self) -> EventReader {
        EventReader::EventStream(EventStreamReader::default())
    }

    fn decoder(&self, _: &Request) -> Box<dyn StreamDecoder> {
        Box::new(ConverseStreamState::new(&self.model, &self.profile.maker))
    }

    fn thinking_off(&self) -> ThinkingOff {
        match &self.profile.maker {
            // The newest models think unless a request disables it, and Converse requests do not send
            // that setting.
            Maker::Anthropic(claude) if claude.thinking == ThinkingStyle::Adaptive => {
                ThinkingOff::Unknown
            }
            Maker::Anthropic(_) | Maker::Amazon => ThinkingOff::NotThinking,
            Maker::OpenAi => ThinkingOff::Never,
            Maker::Other => ThinkingOff::Unknown,
        }
    }

    fn sends_thinking_levels(&self) -> bool {
        self.profile.takes_effort(&self.model)
    }
}
