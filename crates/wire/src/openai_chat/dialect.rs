//! [`Dialect`]: what one server, or one family of servers, wants of a Chat Completions request.
//! Data only: `render.rs` writes by it, `validate.rs` judges by it. No model names, windows or
//! prices; those are configuration.

use serde::{Deserialize, Serialize};

use crate::call_ids::CallIdForm;

/// What a server wants. The default is `compatible`; a configuration may start from a named
/// dialect and change single fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// Its name.
    pub name: String,
    /// The key of the output limit.
    pub output_key: OutputKey,
    /// The key of the sampler's seed.
    pub seed_key: SeedKey,
    /// How an assistant message with tool calls and no text says so.
    pub no_content: NoContent,
    /// How several texts in one message are sent.
    pub texts: Texts,
    /// What happens to two messages of one role in a row.
    pub same_role: SameRole,
    /// Whether a user message may directly follow a tool result.
    pub user_after_tool: UserAfterTool,
    /// Which ids of tool calls are accepted.
    pub call_ids: CallIds,
    /// Which names of tools are accepted in earlier tool calls.
    pub call_names: CallNames,
    /// Which texts are accepted as arguments of earlier tool calls.
    pub arguments: Arguments,
    /// In which messages reasoning is given back.
    pub echo_reasoning: EchoReasoning,
    /// What stands for reasoning that has to be given back and is not there.
    pub empty_reasoning: EmptyReasoning,
    /// Where system messages may stand.
    pub system: SystemPlace,
    /// The role of a system message.
    pub system_role: SystemRole,
    /// Whether a user message must be there.
    pub user: UserMessage,
    /// Whether one assistant message may call several tools.
    pub parallel_calls: ParallelCalls,
    /// Whether the usage of a stream has to be asked for.
    pub stream_usage: StreamUsage,
    /// Whether images and files are read.
    pub images: Images,
    /// Whether the assistant may have the last word.
    pub prefill: Prefill,
    /// How tools are offered and called.
    pub tools: ToolStyle,
    /// How a prompt cache is asked for.
    pub cache: CacheMarks,
    /// Whose words a refusal is in.
    pub voice: Voice,
}

/// The key of the output limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKey {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// The key of the sampler's seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedKey {
    /// `seed`.
    Seed,
    /// `random_seed`.
    RandomSeed,
}

/// How an assistant message with tool calls and no text says so.
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

/// How several texts in one message are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Texts {
    /// As a list of parts.
    Parts,
    /// As one string, joined by line feeds: many servers know no lists outside user messages.
    Joined,
}

/// What happens to two messages of one role in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SameRole {
    /// They stay two.
    Keep,
    /// They become one, and the user speaks first: templates that insist on alternation (T1).
    Merge,
}

/// Whether a user message may directly follow a tool result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserAfterTool {
    /// It may.
    Allowed,
    /// A short assistant message goes between them (T2, OC7).
    Bridge,
}

/// Which ids of tool calls are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallIds {
    /// All.
    Any,
    /// Of at most 40 characters; longer ones are mapped, always to the same.
    UpTo40,
    /// Nine letters or digits (OC7); others are mapped to such, always to the same.
    NineAlphanumeric,
}

impl CallIds {
    pub(super) fn form(self) -> CallIdForm {
        match self {
            Self::Any => CallIdForm::Any,
            Self::UpTo40 => CallIdForm::UpTo40,
            Self::NineAlphanumeric => CallIdForm::NineAlphanumeric,
        }
    }
}

/// Which names of tools are accepted in earlier tool calls: a model makes up what it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallNames {
    /// All.
    Any,
    /// Of at most 64 letters, digits, `_` and `-`; `_` stands for anything else.
    Plain,
}

/// Which texts are accepted as arguments of earlier tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// All: what a model wrote is sent back as it wrote it.
    AnyText,
    /// Only JSON objects, because a template parses them (OC4); anything else is wrapped into one.
    JsonObject,
}

/// In which messages reasoning is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EchoReasoning {
    /// In none.
    Never,
    /// In assistant messages that call tools.
    ToolTurns,
    /// In all assistant messages. The server asks for it in every one between two user messages where
    /// a tool is called between them, and ignores it elsewhere.
    ToolExchanges,
    /// In all assistant messages.
    Always,
}

/// What stands for reasoning that has to be given back and is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyReasoning {
    /// Nothing.
    Omit,
    /// An empty text.
    Empty,
    /// One space, where an empty text counts as missing.
    Space,
}

/// Where system messages may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemPlace {
    /// Anywhere.
    Anywhere,
    /// One, at the beginning (T3). Several at the beginning become one; a later one is sent in
    /// the user's role where it stands, because moving it up would change what was sent before.
    First,
}

/// The role of a system message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemRole {
    /// `system`.
    System,
    /// `developer`.
    Developer,
}

/// Whether a user message must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserMessage {
    /// It need not.
    Optional,
    /// It must (T4), and the user speaks first.
    Required,
}

/// Whether one assistant message may call several tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParallelCalls {
    /// It may.
    Supported,
    /// One call a message (T5): a batch is sent as one message for each call.
    OneAtATime,
}

/// Whether the usage of a stream has to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamUsage {
    /// With `stream_options.include_usage`.
    Ask,
    /// It comes by itself, or the key is refused.
    Unasked,
}

/// Whether images and files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Images {
    /// They are.
    Supported,
    /// A note stands in their place.
    Unsupported,
}

/// Whether the assistant may have the last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prefill {
    /// It may.
    Allowed,
    /// A short user message follows (OC8).
    Refused,
}

/// How tools are offered and called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStyle {
    /// With the wire's own `tools` and `tool_calls`.
    Native,
    /// Each turn is one JSON object under a schema, a tool call or an answer: for small local
    /// models; see `json_turns.rs`.
    JsonSchema,
}

/// How a prompt cache is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMarks {
    /// Not at all: it works by itself, or there is none.
    Unasked,
    /// It works by itself; `prompt_cache_key` says which requests belong together (OC9).
    Key,
    /// `cache_control` on tools and on parts of messages, for models behind a gateway that want
    /// breakpoints (AM11). Never on a message itself: a gateway hangs on that in a tool's message.
    Parts,
}

/// Whose words a refusal is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Voice {
    /// OpenAI and those who copy it.
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

/// A family of chat templates with demands of its own, whatever server runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Template {
    /// Gemma: strict alternation (T1), one system message (T3). Some of its templates leave out tool
    /// calls and results when they look at who speaks, so that a user message may not follow a result
    /// (T2); where a server makes a user message of each result, a batch goes call by call.
    Gemma,
    /// Mistral and Devstral: strict alternation (T1), one system message (T3), no user message after
    /// a tool result (T2), and their ids of tool calls (OC7).
    Mistral,
    /// Qwen 3: a user message must be there (T4).
    Qwen,
    /// Llama 3.1: one tool call a message (T5).
    Llama31,
}

impl Dialect {
    /// The names that [`Dialect::named`] knows.
    pub const NAMES: [&'static str; 14] = [
        "compatible",
        "openai",
        "llama.cpp",
        "ollama",
        "lmstudio",
        "vllm",
        "mistral",
        "deepseek",
        "kimi",
        "groq",
        "openrouter",
        "xai",
        "together",
        "cohere",
    ];

    /// The dialect of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let dialect = match name {
            "compatible" => Self::compatible(),
            "openai" => Self::openai(),
            "vllm" | "ollama" => Self::local(name),
            // Answers 500 to an image unless it was started with a projector for them.
            "llama.cpp" => Self {
                images: Images::Unsupported,
                ..Self::local(name)
            },
            // Refused a null content for long.
            "lmstudio" => Self {
                no_content: NoContent::Empty,
                ..Self::local(name)
            },
            "mistral" => Self::mistral(),
            "deepseek" => Self {
                echo_reasoning: EchoReasoning::ToolExchanges,
                empty_reasoning: EmptyReasoning::Empty,
                images: Images::Unsupported,
                voice: Voice::DeepSeek,
                ..Self::hosted(name)
            },
            "kimi" => Self {
                echo_reasoning: EchoReasoning::ToolTurns,
                empty_reasoning: EmptyReasoning::Space,
                voice: Voice::Kimi,
                ..Self::hosted(name)
            },
            // It passes requests on to OpenAI, among others.
            "openrouter" => Self {
                call_ids: CallIds::UpTo40,
                call_names: CallNames::Plain,
                ..Self::hosted(name)
            },
            "groq" | "xai" | "together" => Self::hosted(name),
            // Its compatibility API refuses the key that asks for usage.
            "cohere" => Self {
                stream_usage: StreamUsage::Unasked,
                ..Self::hosted(name)
            },
            _ => return None,
        };
        Some(dialect)
    }

    /// OpenAI itself: the widest form.
    #[must_use]
    pub fn openai() -> Self {
        Self {
            name: "openai".into(),
            output_key: OutputKey::MaxCompletionTokens,
            texts: Texts::Parts,
            call_ids: CallIds::UpTo40,
            call_names: CallNames::Plain,
            arguments: Arguments::AnyText,
            prefill: Prefill::Allowed,
            cache: CacheMarks::Key,
            ..Self::compatible()
        }
    }

    /// Any server that speaks this wire: what OpenAI and nearly all others accept.
    #[must_use]
    pub fn compatible() -> Self {
        Self {
            name: "compatible".into(),
            output_key: OutputKey::MaxTokens,
            seed_key: SeedKey::Seed,
            no_content: NoContent::Null,
            texts: Texts::Joined,
            same_role: SameRole::Keep,
            user_after_tool: UserAfterTool::Allowed,
            call_ids: CallIds::Any,
            call_names: CallNames::Any,
            arguments: Arguments::JsonObject,
            echo_reasoning: EchoReasoning::Never,
            empty_reasoning: EmptyReasoning::Omit,
            system: SystemPlace::Anywhere,
            system_role: SystemRole::System,
            user: UserMessage::Optional,
            parallel_calls: ParallelCalls::Supported,
            stream_usage: StreamUsage::Ask,
            images: Images::Supported,
            prefill: Prefill::Refused,
            tools: ToolStyle::Native,
            cache: CacheMarks::Unasked,
            voice: Voice::OpenAi,
        }
    }

    /// Mistral's own API.
    #[must_use]
    pub fn mistral() -> Self {
        Self {
            seed_key: SeedKey::RandomSeed,
            no_content: NoContent::Empty,
            // No system message after a tool or the assistant, and no two of the assistant's.
            system: SystemPlace::First,
            same_role: SameRole::Merge,
            user_after_tool: UserAfterTool::Bridge,
            call_ids: CallIds::NineAlphanumeric,
            // The usage is in the last chunk anyway, and the key is not part of that API.
            stream_usage: StreamUsage::Unasked,
            voice: Voice::Mistral,
            ..Self::hosted("mistral")
        }
    }

    /// This dialect for a model whose chat template has demands of its own.
    #[must_use]
    pub fn with_template(self, template: Template) -> Self {
        match template {
            Template::Gemma => Self {
                same_role: SameRole::Merge,
                system: SystemPlace::First,
                user_after_tool: UserAfterTool::Bridge,
                parallel_calls: ParallelCalls::OneAtATime,
                ..self
            },
            Template::Mistral => Self {
                same_role: SameRole::Merge,
                system: SystemPlace::First,
                user_after_tool: UserAfterTool::Bridge,
                call_ids: CallIds::NineAlphanumeric,
                ..self
            },
            Template::Qwen => Self {
                user: UserMessage::Required,
                ..self
            },
            Template::Llama31 => Self {
                parallel_calls: ParallelCalls::OneAtATime,
                ..self
            },
        }
    }

    /// Returns the dialect with what most chat templates require (T1, T3, T4). Other servers accept
    /// that too, so it is for servers that may run a template.
    #[must_use]
    pub fn for_templates(self) -> Self {
        Self {
            same_role: SameRole::Merge,
            system: SystemPlace::First,
            user: UserMessage::Required,
            ..self
        }
    }

    /// A server that runs the model's own chat template.
    fn local(name: &str) -> Self {
        Self {
            name: name.into(),
            voice: Voice::Template,
            ..Self::compatible().for_templates()
        }
    }

    fn hosted(name: &str) -> Self {
        Self {
            name: name.into(),
            ..Self::compatible()
        }
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
        for name in Dialect::NAMES {
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
