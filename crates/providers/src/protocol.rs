//! [`Protocol`]: the differences between APIs, as [`ModelClient`](crate::ModelClient) needs them.
//!
//! One file for each protocol implements the trait: it translates a [`Request`] and the known facts
//! about a model into the input of `plimsoll-wire`, which writes the body and decodes the reply.

mod chat;
mod converse;
mod gemini;
mod messages;
mod responses;

use std::fmt::Debug;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_agent::{Request, ThinkingLevel};
use plimsoll_context::{HostedTool, Message, Opaque, Reply, Tokens};
use plimsoll_wire::{
    Effort, EncodedRequest, RenderInput, RequestRenderer, StreamDecoder, ToolChoice,
};
use reqwest::Url;
use reqwest::header::HeaderMap;

use crate::cache_lifetime::CacheLifetime;
use crate::client::Connection;
use crate::models::Fact;
use crate::receive::EventReader;
use crate::rejected_reasoning::RejectionTexts;
use crate::sse::SseReader;
use crate::thinking::ThinkingOff;

pub(crate) use chat::{ChatProtocol, dialect_of};
pub(crate) use converse::ConverseProtocol;
pub(crate) use gemini::GeminiProtocol;
#[cfg(test)]
pub(crate) use messages::REJECTIONS as MESSAGES_REJECTIONS;
pub(crate) use messages::{MessagesProtocol, url as messages_url};
#[cfg(test)]
pub(crate) use responses::REJECTIONS as RESPONSES_REJECTIONS;
pub use responses::responses_profile;
pub(crate) use responses::{ResponsesProtocol, ServerOwner, profile_of};

/// The maximum number of tools that OpenAI's protocols and Gemini accept in a request.
const MAX_TOOLS: usize = 128;

/// An API, configured for one model.
pub(crate) trait Protocol: Debug + Send + Sync {
    /// Returns the name of the dialect or profile that requests are written by.
    fn profile_name(&self) -> &str;

    /// Returns the address of a call.
    fn url(&self, connection: &Connection) -> Url;

    /// Writes a request.
    fn render(&self, connection: &Connection, request: &Request) -> EncodedRequest;

    /// Returns headers besides those of every client.
    fn headers(&self) -> HeaderMap {
        HeaderMap::new()
    }

    /// Returns a reader of the events in a reply.
    fn events(&self) -> EventReader {
        EventReader::Sse(SseReader::default())
    }

    /// Creates a decoder for the reply to a request.
    fn decoder(&self, request: &Request) -> Box<dyn StreamDecoder>;

    /// Returns the output limit that [`Protocol::render`] sends, if the request sets one.
    fn output_limit(&self, connection: &Connection, request: &Request) -> Option<Tokens> {
        connection.most(request)
    }

    /// Fills in parts of a reply that the provider does not report.
    fn complete(&self, _: &Request, _: &mut Reply) {}

    /// Returns how requests ask the prompt cache to keep entries longer than usual.
    fn cache_lifetime(&self) -> CacheLifetime {
        CacheLifetime::Fixed
    }

    /// Returns how the model's thinking is turned off.
    fn thinking_off(&self) -> ThinkingOff;

    /// Returns the maximum number of tools in a request, if the API has one.
    fn max_tools(&self) -> Option<usize> {
        None
    }

    /// Checks whether requests tell the model how much to think.
    fn sends_thinking_levels(&self) -> bool;

    /// Checks whether requests may contain images.
    fn takes_images(&self) -> bool {
        true
    }

    /// Returns the provider's own tools, if the protocol has a place for them.
    fn hosted_tools(&self) -> Option<HostedTools> {
        None
    }

    /// Returns the error messages with which servers reject reasoning of an earlier reply.
    fn rejection_texts(&self) -> Option<RejectionTexts> {
        None
    }
}

/// The provider's own tools in a protocol.
#[derive(Debug)]
pub(crate) struct HostedTools {
    /// The known types.
    pub(crate) kinds: Vec<&'static str>,
    /// Checks a tool. Returns the reason if the protocol does not have it.
    pub(crate) fault: fn(&HostedTool) -> Option<String>,
}

/// Returns a request as most protocols write it. The effort and the seed differ.
fn common_input<'a>(connection: &'a Connection, request: &'a Request) -> RenderInput<'a> {
    RenderInput {
        model: connection.model.name(),
        system: Some(&*request.system).filter(|system| !system.is_empty()),
        tools: &request.tools,
        tool_choice: match request.tool_choice {
            plimsoll_agent::ToolChoice::Auto => ToolChoice::Auto,
            plimsoll_agent::ToolChoice::None => ToolChoice::None,
        },
        temperature: request.sampling.temperature,
        context: request.dynamic_context.as_deref(),
        cache: Some(&request.cache),
        max_output: connection.most(request).map(|tokens| tokens.0),
        extra: Some(&connection.extra),
        ..RenderInput::default()
    }
}

/// Writes a request by a dialect or profile.
fn rendered(
    input: &RenderInput<'_>,
    request: &Request,
    renderer: &impl RequestRenderer,
) -> EncodedRequest {
    let messages: Vec<&Message> = request.messages.iter().map(AsRef::as_ref).collect();
    renderer.render(input, &messages)
}

/// Converts the provider's own tools to opaque blocks of a protocol.
fn hosted(tools: &[HostedTool], origin: &str) -> Vec<Opaque> {
    let tools = tools.iter().map(|tool| Opaque {
        origin: origin.to_owned(),
        data: tool.json(),
    });
    tools.collect()
}

/// Returns the effort for a thinking level.
fn effort_of(level: ThinkingLevel) -> Effort {
    match level {
        ThinkingLevel::Off => Effort::None,
        ThinkingLevel::Minimal => Effort::Minimal,
        ThinkingLevel::Low => Effort::Low,
        ThinkingLevel::Medium => Effort::Medium,
        ThinkingLevel::High => Effort::High,
    }
}

/// Returns the effort of a request, in a protocol whose profile has no list of efforts: the nearest that
/// the user states for the model. `None` if the request sets none, or if the user states that the model
/// does not think.
fn effort(connection: &Connection, request: &Request) -> Option<Effort> {
    let effort = effort_of(request.sampling.thinking?);
    let facts = &connection.facts;
    if facts.thinking.as_ref().and_then(Fact::own) == Some(false) {
        return None;
    }
    match facts.efforts.as_ref().filter(|fact| fact.is_own()) {
        Some(own) if effort != Effort::None => effort.nearest(&own.value),
        _ => Some(effort),
    }
}

/// The characters that a path segment has as they are.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Percent-encodes a name as one path segment.
fn segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

#[cfg(test)]
mod tests;
