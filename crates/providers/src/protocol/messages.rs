//! Anthropic Messages, and compatible servers.

use plimsoll_agent::Request;
use plimsoll_context::Tokens;
use plimsoll_wire::anthropic::{
    EffortSupport, MessagesProfile, MessagesStreamState, NoThinking, ORIGIN, ThinkingStyle,
    hosted_kinds, not_hosted,
};
use plimsoll_wire::{EncodedRequest, RenderInput, StreamDecoder};
use reqwest::Url;

use super::{HostedTools, Protocol, common_input, effort, hosted, rendered};
use crate::base_url::BaseUrl;
use crate::cache_lifetime::CacheLifetime;
use crate::client::Connection;
use crate::rejected_reasoning::RejectionTexts;
use crate::thinking::ThinkingOff;

/// The endpoint below the base URL.
const PATH: &str = "messages";
/// The texts with which servers reject thinking, in lower case.
pub(crate) const REJECTIONS: RejectionTexts = RejectionTexts {
    origin: ORIGIN,
    texts: &[
        "invalid `signature` in `thinking` block",
        "invalid signature in thinking block",
        "invalid `data` in `redacted_thinking` block",
        "bound to a different conversation",
        "blocks in the latest assistant message cannot be modified",
    ],
};

/// Messages as a model accepts it.
#[derive(Debug)]
pub(crate) struct MessagesProtocol {
    pub(crate) profile: MessagesProfile,
}

impl Protocol for MessagesProtocol {
    fn profile_name(&self) -> &str {
        &self.profile.name
    }

    fn url(&self, connection: &Connection) -> Url {
        url(&connection.http.base, PATH)
    }

    fn render(&self, connection: &Connection, request: &Request) -> EncodedRequest {
        let expected = request.expects.room;
        // A limit that only states the remaining budget is not a wish for an answer of that length.
        let limit = request
            .max_output
            .filter(|tokens| expected != Some(*tokens));
        let input = RenderInput {
            hosted_tools: &hosted(&request.hosted_tools, ORIGIN),
            max_output: limit.map(|tokens| tokens.0),
            room: expected.map(|room| room.0),
            effort: effort(connection, request),
            ..common_input(connection, request)
        };
        rendered(&input, request, &self.profile)
    }

    fn decoder(&self, _: &Request) -> Box<dyn StreamDecoder> {
        Box::new(MessagesStreamState::new())
    }

    fn output_limit(&self, _: &Connection, request: &Request) -> Option<Tokens> {
        request.max_output
    }

    fn cache_lifetime(&self) -> CacheLifetime {
        CacheLifetime::ByEachMark
    }

    fn thinking_off(&self) -> ThinkingOff {
        let thinks = self.profile.thinking != ThinkingStyle::None;
        match self.profile.no_thinking {
            NoThinking::Refused if thinks => ThinkingOff::Never,
            NoThinking::Unknown if thinks => ThinkingOff::Unknown,
            _ => ThinkingOff::NotThinking,
        }
    }

    fn sends_thinking_levels(&self) -> bool {
        self.profile.thinking != ThinkingStyle::None
            || self.profile.effort == EffortSupport::Supported
    }

    fn hosted_tools(&self) -> Option<HostedTools> {
        Some(HostedTools {
            kinds: hosted_kinds(),
            fault: not_hosted,
        })
    }

    fn rejection_texts(&self) -> Option<RejectionTexts> {
        Some(REJECTIONS)
    }
}

/// Returns the address of an endpoint. Users of this API leave the version out of the base URL, as
/// Anthropic's own clients do.
pub(crate) fn url(base: &BaseUrl, path: &str) -> Url {
    if base.has_version() {
        base.endpoint(path)
    } else {
        base.endpoint(&format!("v1/{path}"))
    }
}
