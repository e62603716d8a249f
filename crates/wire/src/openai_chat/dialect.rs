//! [`Dialect`]: the requirements of one server, or one family of servers, for a Chat Completions
//! request. `render.rs` and the crate `mock` follow it. Model names, windows and prices are configured
//! elsewhere.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call_ids::CallIdForm;

/// The prefix of rows that are not dialects.
const TEMPLATE: &str = "template-";

/// The requirements of a server. The default is `compatible`. A configuration may start from a named
/// dialect and change single fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// The name of the dialect.
    pub name: String,
    /// Whether the output limit is sent as `max_completion_tokens`, and not as `max_tokens`.
    pub completion_tokens_key: bool,
    /// Whether the seed is sent as `random_seed`, and not as `seed`.
    pub random_seed_key: bool,
    /// The content of an assistant message with tool calls and no text.
    pub no_content: NoContent,
    /// Whether several texts in one message are sent as one string, joined by line feeds: many servers
    /// accept lists of parts only in user messages.
    pub joins_texts: bool,
    /// Whether two messages of one role in a row become one, and the user speaks first, for templates
    /// that require alternation (T1).
    pub merges_roles: bool,
    /// Whether a user message may directly follow a tool result. If not, a short assistant message goes
    /// between them (T2, OC7).
    pub user_after_tool: bool,
    /// The accepted ids of tool calls. Others are mapped to this form, equal ones to the same id.
    pub call_ids: CallIdForm,
    /// Whether the arguments of earlier tool calls must be JSON objects, because a template parses them
    /// (OC4). Other texts are wrapped into one.
    pub object_arguments: bool,
    /// The messages in which reasoning is sent back.
    pub echo_reasoning: EchoReasoning,
    /// The value that is sent if reasoning is required but missing.
    pub empty_reasoning: EmptyReasoning,
    /// Whether only one system message is accepted, at the beginning (T3).
    ///
    /// Several at the beginning become one. A later one is sent in the user's role at its place,
    /// because moving it would change earlier parts of the request.
    pub system_first: bool,
    /// Whether the role of a system message is `developer`, and not `system`.
    pub developer_role: bool,
    /// Whether a user message is required (T4). If so, the first message is the user's.
    pub needs_user: bool,
    /// Whether one assistant message may call several tools. If not, a batch is sent as one message for
    /// each call (T5).
    pub parallel_calls: bool,
    /// Whether usage is requested with `stream_options.include_usage`. Some servers report it anyway, and
    /// some reject the key.
    pub asks_for_usage: bool,
    /// Whether images and files are read. If not, a note replaces them.
    pub images: bool,
    /// Whether the last message may be the assistant's. If not, a short user message follows (OC8).
    pub prefill: bool,
    /// How tools are sent and called.
    pub tools: ToolStyle,
    /// How requests use a prompt cache.
    pub cache: CacheMarks,
    /// The server whose error texts are imitated.
    pub voice: ErrorStyle,
}

/// The content of an assistant message with tool calls and no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoContent {
    /// `"content": null`.
    Null,
    /// `"content": ""`.
    Empty,
    /// No `content` key.
    Omit,
}

/// The messages in which reasoning is sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EchoReasoning {
    /// None.
    Never,
    /// Assistant messages with tool calls.
    ToolTurns,
    /// All assistant messages. The server requires reasoning in each of those between two user messages
    /// if one of them calls a tool, and ignores it in others.
    ToolExchanges,
    /// All assistant messages.
    Always,
}

/// The value that is sent if reasoning is required but missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyReasoning {
    /// No value.
    Omit,
    /// An empty text.
    Empty,
    /// One space, for servers that treat an empty text as missing.
    Space,
}

/// How tools are sent and called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStyle {
    /// With the protocol's own `tools` and `tool_calls`.
    Native,
    /// Each turn is one JSON object that follows a schema: a tool call or an answer. For small local
    /// models; see `json_turns.rs`.
    #[serde(rename = "json")]
    JsonSchema,
}

/// How requests use a prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMarks {
    /// Without any key: the cache works automatically, or there is none.
    Unasked,
    /// The cache works automatically; `prompt_cache_key` marks the requests that belong together (OC9).
    Key,
    /// With `cache_control` on tools and on parts of messages, for models behind a gateway that need
    /// breakpoints (AM11). Never on a message itself, because a gateway hangs if a tool message has it.
    Parts,
}

/// The server whose error texts are imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorStyle {
    /// OpenAI and compatible servers.
    OpenAi,
    /// Mistral's own API.
    Mistral,
    /// DeepSeek's own API.
    DeepSeek,
    /// Moonshot's own API.
    Kimi,
    /// A local server that runs a chat template.
    Template,
}

/// A family of chat templates with its own requirements, regardless of the server. `data/dialects.txt`
/// has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Template {
    /// Gemma.
    Gemma,
    /// Mistral and Devstral.
    Mistral,
    /// Qwen 3.
    Qwen,
    /// Llama 3.1.
    Llama31,
}

/// The names and the keys in `data/dialects.txt`.
static ROWS: LazyLock<Vec<(&str, Map<String, Value>)>> = LazyLock::new(|| {
    let lines = include_str!("../../data/dialects.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    let rows = lines.map(str::split_whitespace).filter_map(|mut words| {
        let name = words.next()?;
        let keys = words.map(
            |word| match (word.strip_prefix('!'), word.split_once('=')) {
                (Some(key), _) => (key.to_owned(), false.into()),
                (None, Some((key, value))) => (key.to_owned(), value.into()),
                (None, None) => (word.to_owned(), true.into()),
            },
        );
        Some((name, keys.collect()))
    });
    rows.collect()
});

impl Dialect {
    /// Returns the names that [`Dialect::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let names = ROWS.iter().map(|(name, _)| *name);
        names.filter(|name| !name.starts_with(TEMPLATE))
    }

    /// Returns the dialect of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let dialect = Self {
            name: name.to_owned(),
            ..Self::compatible()
        };
        Self::names()
            .any(|known| known == name)
            .then(|| dialect.with(name))
    }

    /// Returns the dialect with the keys of a row. A test reads all of them.
    fn with(self, row: &str) -> Self {
        let keys = ROWS.iter().find(|(name, _)| *name == row);
        let changed = keys.and_then(|(_, keys)| {
            let mut dialect = serde_json::to_value(&self).ok()?;
            dialect.as_object_mut()?.extend(keys.clone());
            serde_json::from_value(dialect).ok()
        });
        changed.unwrap_or(self)
    }

    /// Returns the dialect of OpenAI itself, with the most features.
    #[must_use]
    pub fn openai() -> Self {
        Self::named("openai").unwrap_or_default()
    }

    /// Returns the dialect of a compatible server: the features that OpenAI and nearly all others
    /// accept.
    #[must_use]
    pub fn compatible() -> Self {
        Self {
            name: "compatible".into(),
            completion_tokens_key: false,
            random_seed_key: false,
            no_content: NoContent::Null,
            joins_texts: true,
            merges_roles: false,
            user_after_tool: true,
            call_ids: CallIdForm::Visible,
            object_arguments: true,
            echo_reasoning: EchoReasoning::Never,
            empty_reasoning: EmptyReasoning::Omit,
            system_first: false,
            developer_role: false,
            needs_user: false,
            parallel_calls: true,
            asks_for_usage: true,
            images: true,
            prefill: false,
            tools: ToolStyle::Native,
            cache: CacheMarks::Unasked,
            voice: ErrorStyle::OpenAi,
        }
    }

    /// Returns the dialect for a model whose chat template has its own requirements.
    #[must_use]
    pub fn with_template(self, template: Template) -> Self {
        self.with(match template {
            Template::Gemma => "template-gemma",
            Template::Mistral => "template-mistral",
            Template::Qwen => "template-qwen",
            Template::Llama31 => "template-llama31",
        })
    }

    /// Returns the dialect with the requirements of most chat templates (T1, T3, T4). Other servers
    /// accept such requests, too, so it is for all servers that may run a template.
    #[must_use]
    pub fn for_templates(self) -> Self {
        self.with("template-any")
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self::compatible()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_dialect() {
        let compatible = serde_json::to_value(Dialect::compatible()).unwrap();
        for (name, keys) in ROWS.iter() {
            let dialect = serde_json::to_value(Dialect::compatible().with(name)).unwrap();
            for (key, value) in keys {
                assert_eq!(dialect[key], *value, "{name}");
                assert_ne!(compatible[key], *value, "{name} {key}");
            }
        }
        for name in Dialect::names() {
            assert_eq!(Dialect::named(name).map(|d| d.name), Some(name.to_owned()));
        }
        assert_eq!(Dialect::named("gopher"), None);
    }

    #[test]
    fn a_configuration_changes_single_fields() {
        let dialect: Dialect =
            serde_json::from_str(r#"{"name":"mine","echo_reasoning":"always"}"#).unwrap();
        assert_eq!(
            dialect,
            Dialect {
                name: "mine".into(),
                echo_reasoning: EchoReasoning::Always,
                ..Dialect::compatible()
            }
        );
        assert!(serde_json::from_str::<Dialect>(r#"{"echo":"always"}"#).is_err());
    }
}
