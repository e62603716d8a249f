//! OpenAI Chat Completions, and everything compatible with it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use plimsoll_agent::{Request, ThinkingLevel};
use plimsoll_context::{CacheRetention, Reply};
use plimsoll_wire::openai_chat::{
    CacheMarks, ChatStreamState, Dialect, ErrorStyle, Reach, Template, ToolStyle, TurnDecoder,
};
use plimsoll_wire::{Effort, EncodedRequest, LeftOut, Note, RenderInput, StreamDecoder};
use reqwest::Url;
use serde_json::{Map, Value};

use super::{MAX_TOOLS, Protocol, common_input, effort_of, rendered};
use crate::cache_lifetime::{CacheLifetime, extra_keys};
use crate::client::Connection;
use crate::model_ref::ModelRef;
use crate::models::ModelFacts;
use crate::thinking::{ThinkingOff, chat_efforts, chat_reach};
use crate::vendor::ServerLocation;

/// The bits of a seed that are sent: the API has signed numbers.
const MAX_SEED: u64 = i64::MAX as u64;
/// The key of the reasoning effort.
const EFFORT: &str = "reasoning_effort";
/// The endpoint below the base URL.
const PATH: &str = "chat/completions";
/// The parsed file of chat templates. Empty if it cannot be parsed, which a test excludes.
static TEMPLATES: LazyLock<BTreeMap<String, Template>> =
    LazyLock::new(|| toml::from_str(include_str!("../../data/templates.toml")).unwrap_or_default());

/// The name of a gateway, and the prefix of its models that only cache marked parts.
const GATEWAY: &str = "openrouter";
const WANTS_MARKS: &str = "anthropic/";

/// Chat Completions in a dialect.
#[derive(Debug)]
pub(crate) struct ChatProtocol {
    dialect: Dialect,
    /// The efforts that the model is known to accept.
    efforts: Vec<Effort>,
    thinking_off: ThinkingOff,
    /// How much of the model this protocol serves.
    reach: Reach,
}

impl Protocol for ChatProtocol {
    fn profile_name(&self) -> &str {
        &self.dialect.name
    }

    fn takes_images(&self) -> bool {
        self.dialect.images
    }

    fn url(&self, connection: &Connection) -> Url {
        connection.http.base.endpoint(PATH)
    }

    fn render(&self, connection: &Connection, request: &Request) -> EncodedRequest {
        let (extra, left_out) = self.extra(connection, request);
        let input = RenderInput {
            // Servers take 63 bits at most.
            seed: request.sampling.seed.map(|seed| (seed & MAX_SEED) as i64),
            extra: Some(&extra),
            ..common_input(connection, request)
        };
        let mut rendered = rendered(&input, request, &self.dialect);
        rendered.notes.extend(left_out.map(Note::setting));
        rendered
    }

    fn decoder(&self, request: &Request) -> Box<dyn StreamDecoder> {
        if self.dialect.tools == ToolStyle::JsonSchema {
            Box::new(TurnDecoder::new(request.messages.len()))
        } else {
            Box::new(ChatStreamState::new())
        }
    }

    /// Counts all written cache tokens as long-lived if the request asks for that, because the gateway
    /// does not report the lifetime.
    fn complete(&self, request: &Request, reply: &mut Reply) {
        let is_long = request.cache.retention == CacheRetention::Long;
        if is_long
            && self.cache_lifetime() == CacheLifetime::ByMark
            && let Some(usage) = &mut reply.usage
        {
            usage.cache_write_longer = usage.cache_write;
        }
    }

    fn cache_lifetime(&self) -> CacheLifetime {
        match self.dialect.cache {
            CacheMarks::Parts => CacheLifetime::ByMark,
            CacheMarks::Key => CacheLifetime::ByKey,
            CacheMarks::Unasked => CacheLifetime::Fixed,
        }
    }

    fn thinking_off(&self) -> ThinkingOff {
        self.thinking_off
    }

    fn max_tools(&self) -> Option<usize> {
        Some(MAX_TOOLS)
    }

    fn sends_thinking_levels(&self) -> bool {
        !self.efforts.is_empty()
    }
}

impl ChatProtocol {
    pub(crate) fn new(model: &ModelRef, facts: &ModelFacts, dialect: Dialect) -> Self {
        let efforts = chat_efforts(model, facts, &dialect);
        Self {
            dialect,
            thinking_off: ThinkingOff::on_chat(model, facts, &efforts),
            efforts,
            reach: chat_reach(model),
        }
    }

    /// Returns the further keys of a request, and a note if an effort is left out. A key given by the
    /// host replaces ours.
    fn extra<'a>(
        &self,
        connection: &'a Connection,
        request: &Request,
    ) -> (Cow<'a, Map<String, Value>>, Option<LeftOut>) {
        let mut extra = extra_keys(connection, request, self.cache_lifetime());
        if extra.contains_key(EFFORT) {
            return (extra, None);
        }
        if request.sampling.thinking == Some(ThinkingLevel::Off)
            && let ThinkingOff::Keys(keys) = self.thinking_off
        {
            for (key, value) in keys {
                let extra = extra.to_mut();
                extra.entry(key.as_str()).or_insert_with(|| value.clone());
            }
            return (extra, None);
        }
        let (effort, left_out) = self.effort(request);
        if let Some(effort) = effort {
            extra
                .to_mut()
                .insert(EFFORT.to_owned(), effort.name().into());
        }
        (extra, left_out)
    }

    /// Returns the effort to send: the nearest value that the model is known to accept. Returns `None` if
    /// the model accepts none, or if the request sets none.
    ///
    /// If the model cannot combine tools with an effort, the effort is left out or set to `none`, and a
    /// note reports it.
    fn effort(&self, request: &Request) -> (Option<Effort>, Option<LeftOut>) {
        let asked = match (request.sampling.thinking, self.thinking_off) {
            (Some(ThinkingLevel::Off), ThinkingOff::Effort(effort)) => Some(effort),
            (Some(ThinkingLevel::Off), _) | (None, _) => None,
            (Some(level), _) => effort_of(level).nearest(&self.efforts),
        };
        let tools = self.dialect.tools == ToolStyle::Native && !request.tools.is_empty();
        let said = match self.reach {
            Reach::ToolsAtNone if tools => Some(Effort::None),
            Reach::ToolsUnasked | Reach::NoTools if tools => None,
            _ => return (asked, None),
        };
        let left_out = asked.filter(|asked| *asked != Effort::None);
        (said, left_out.map(|_| LeftOut::Effort))
    }
}

/// Returns the dialect of the model's vendor, adapted to the model's family.
///
/// Servers that run, or may run, a chat template follow the family's rules. Mistral's models have their
/// rules behind every gateway.
pub(crate) fn dialect_of(model: &ModelRef) -> Dialect {
    let dialect = model.vendor().dialect();
    if dialect.name == GATEWAY && model.name().starts_with(WANTS_MARKS) {
        return Dialect {
            cache: CacheMarks::Parts,
            ..dialect
        };
    }
    // An unknown server may run a template.
    let is_unknown = model.vendor().place == ServerLocation::Anywhere;
    let dialect = if is_unknown {
        dialect.for_templates()
    } else {
        dialect
    };
    let runs_template = is_unknown || dialect.voice == ErrorStyle::Template;
    let name = model.name().to_ascii_lowercase();
    let family = TEMPLATES
        .iter()
        .find(|(part, _)| name.contains(part.as_str()));
    let is_wanted = |template| {
        runs_template || (template == Template::Mistral && dialect.voice == ErrorStyle::OpenAi)
    };
    match family {
        Some((_, template)) if is_wanted(*template) => dialect.with_template(*template),
        _ => dialect,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(model: &str, dialect: &str, request: &Request) -> (Option<&'static str>, bool) {
        let dialect = Dialect::named(dialect).unwrap();
        let model = ModelRef::parse(model).unwrap();
        let protocol = ChatProtocol::new(&model, &ModelFacts::default(), dialect);
        let (effort, left_out) = protocol.effort(request);
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

    #[test]
    fn a_gateway_is_told_what_to_cache_where_the_model_wants_to_be_told() {
        let cache = |model| dialect_of(&ModelRef::parse(model).unwrap()).cache;
        for (model, expected) in [
            ("openrouter/anthropic/claude-opus-4.8", CacheMarks::Parts),
            ("openrouter/openai/gpt-5", CacheMarks::Unasked),
            ("openai/gpt-5", CacheMarks::Key),
            ("groq/anthropic/claude", CacheMarks::Unasked),
        ] {
            assert_eq!(cache(model), expected, "{model}");
        }
    }

    #[test]
    fn a_family_of_templates_adds_its_demands_where_a_template_runs_and_mistrals_everywhere() {
        let after_tool = |model| dialect_of(&ModelRef::parse(model).unwrap()).user_after_tool;
        assert!(!after_tool("ollama/devstral:24b"));
        assert!(after_tool("ollama/qwen3"));
        for mistral in [
            "openrouter/mistralai/devstral",
            "together/mistralai/Mixtral-8x7B",
        ] {
            assert!(!after_tool(mistral));
        }
        let alternates = |model| dialect_of(&ModelRef::parse(model).unwrap()).merges_roles;
        assert!(!alternates("openrouter/qwen/qwen3"));
        assert!(alternates("vllm/qwen/qwen3"));
        // The server is unknown.
        assert!(alternates("compatible/qwen3"));
        assert!(!after_tool("compatible/gemma-3"));
        for name in TEMPLATES.keys() {
            assert_eq!(*name, name.to_ascii_lowercase());
        }
    }
}
