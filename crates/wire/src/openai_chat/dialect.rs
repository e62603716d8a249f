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
    /// Whether the output limit is sent as `max_completion_tokens`, and not as `max_tokens`.
    pub completion_tokens_key: bool,
    /// Whether the seed is sent as `random_seed`, and not as `seed`.
    pub random_seed_key: bool,
    /// How an assistant message with tool calls and no text says so.
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
    /// Which ids of tool calls are accepted.
    pub call_ids: CallIds,
    /// Whether tools in earlier calls may only have names of at most 64 letters, digits, `_` and `-`.
    /// `_` replaces all other characters.
    pub plain_names: bool,
    /// Whether the arguments of earlier tool calls must be JSON objects, because a template parses them
    /// (OC4). Other texts are wrapped into one.
    pub object_arguments: bool,
    /// In which messages reasoning is given back.
    pub echo_reasoning: EchoReasoning,
    /// What stands for reasoning that has to be given back and is not there.
    pub empty_reasoning: EmptyReasoning,
    /// Whether only one system message is accepted, at the beginning (T3). Several at the beginning
    /// become one; a later one is sent in the user's role where it stands, because moving it up would
    /// change earlier parts of the request.
    pub system_first: bool,
    /// Whether the role of a system message is `developer`, and not `system`.
    pub developer_role: bool,
    /// Whether a user message is required (T4). The user speaks first then.
    pub needs_user: bool,
    /// Whether one assistant message may call several tools. If not, a batch is sent as one message for
    /// each call (T5).
    pub parallel_calls: bool,
    /// Whether usage is requested with `stream_options.include_usage`. Some servers report it anyway, and
    /// some reject the key.
    pub asks_for_usage: bool,
    /// Whether images and files are read. If not, a note replaces them.
    pub images: bool,
    /// Whether the assistant may have the last word. If not, a short user message follows (OC8).
    pub prefill: bool,
    /// How tools are offered and called.
    pub tools: ToolStyle,
    /// How a prompt cache is asked for.
    pub cache: CacheMarks,
    /// Whose words a refusal is in.
    pub voice: Voice,
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
                images: false,
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
                images: false,
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
                plain_names: true,
                ..Self::hosted(name)
            },
            "groq" | "xai" | "together" => Self::hosted(name),
            // Its compatibility API refuses the key that asks for usage.
            "cohere" => Self {
                asks_for_usage: false,
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
            completion_tokens_key: true,
            joins_texts: false,
            call_ids: CallIds::UpTo40,
            plain_names: true,
            object_arguments: false,
            prefill: true,
            cache: CacheMarks::Key,
            ..Self::compatible()
        }
    }

    /// Any server that speaks this wire: what OpenAI and nearly all others accept.
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
            call_ids: CallIds::Any,
            plain_names: false,
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
            voice: Voice::OpenAi,
        }
    }

    /// Mistral's own API.
    #[must_use]
    pub fn mistral() -> Self {
        Self {
            random_seed_key: true,
            no_content: NoContent::Empty,
            // No system message after a tool or the assistant, and no two of the assistant's.
            system_first: true,
            merges_roles: true,
            user_after_tool: false,
            call_ids: CallIds::NineAlphanumeric,
            // The usage is in the last chunk anyway, and the key is not part of that API.
            asks_for_usage: false,
            voice: Voice::Mistral,
            ..Self::hosted("mistral")
        }
    }

    /// This dialect for a model whose chat template has demands of its own.
    #[must_use]
    pub fn with_template(self, template: Template) -> Self {
        match template {
            Template::Gemma => Self {
                merges_roles: true,
                system_first: true,
                user_after_tool: false,
                parallel_calls: false,
                ..self
            },
            Template::Mistral => Self {
                merges_roles: true,
                system_first: true,
                user_after_tool: false,
                call_ids: CallIds::NineAlphanumeric,
                ..self
            },
            Template::Qwen => Self {
                needs_user: true,
                ..self
            },
            Template::Llama31 => Self {
                parallel_calls: false,
                ..self
            },
        }
    }

    /// Returns the dialect with what most chat templates require (T1, T3, T4). Other servers accept
    /// that too, so it is for servers that may run a template.
    #[must_use]
    pub fn for_templates(self) -> Self {
        Self {
            merges_roles: true,
            system_first: true,
            needs_user: true,
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
