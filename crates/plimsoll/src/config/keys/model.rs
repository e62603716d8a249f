//! Keys of the model that an agent runs on and how it is called.

use plimsoll_agent::ThinkingLevel;
use plimsoll_context::CacheRetention;
use plimsoll_wire::openai_chat::ToolStyle;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::form::{
    Breakpoints, Choice, ContextWindow, Flag, Seconds, Set, Temperature, Text, TokenCount, Whole,
};
use super::super::settings::AgentSettings;

settings_table! {
    /// The model that an agent runs on.
    ModelTable {
        /// The model, as PROVIDER/NAME, or `local`. Default: a server on this machine, else
        /// `local`.
        #[schemars(extend("x-flag" = "model", "x-private" = true))]
        model: Text => model;
        /// Address of the API. Default for any OpenAI-compatible server. Default: the provider's.
        #[schemars(extend("x-flag" = "base-url", "x-private" = true))]
        base_url: Text => base_url;
        /// Context window in tokens, or "unknown" to learn it from the provider's errors.
        /// Default: reported by the server.
        #[schemars(extend("x-flag" = "max-context"))]
        window: ContextWindow => builder.window;
        /// How tools are called: with the API's own tool calls, or as one JSON object per turn,
        /// for small models. Default: native; json for our local models.
        #[schemars(extend("x-flag" = "tool-style"))]
        tool_style: Choice<ToolStyle> => tool_style;
        /// Maximum number of tokens in one response. Default: the provider's.
        #[schemars(extend("x-flag" = "max-tokens"))]
        max_tokens: TokenCount<1> => builder.max_tokens;
        /// Sampling temperature. Default: the provider's.
        #[schemars(extend("x-flag" = "temperature"))]
        temperature: Temperature => builder.sampling.temperature;
        /// Sampling seed, for providers that support one. Default: none.
        #[schemars(extend("x-flag" = "seed"))]
        seed: Whole<0> => builder.sampling.seed;
        /// How much the model reasons before it answers. "off" disables reasoning if the model
        /// allows that. Default: the provider's.
        #[schemars(extend("x-flag" = "thinking-level"))]
        thinking_level: Choice<ThinkingLevel> => builder.sampling.thinking;
        /// Time limit for opening a connection, in seconds. Default: `15`.
        #[schemars(extend("x-flag" = "connect-timeout"))]
        connect_timeout: Seconds => timeouts.connect;
        /// Time without a received byte after which a call is abandoned, in seconds. Default:
        /// `300`.
        #[schemars(extend("x-flag" = "idle-timeout"))]
        idle_timeout: Seconds => timeouts.idle;
    }
}

settings_table! {
    /// When failed calls of the model are retried.
    RetryTable {
        /// Maximum number of attempts per model call, including the first; at most 3 if the
        /// server cannot be reached or its response is cut or malformed. Default: `10`.
        max_attempts: Whole<1, u32> => builder.driver.retry.max_attempts;
        /// Wait before the first retry, in seconds. Default: `1`.
        initial: Seconds => builder.driver.retry.initial;
        /// Factor by which each wait is longer than the one before. Default: `2`.
        factor: Whole<1, u32> => builder.driver.retry.factor;
        /// Longest wait between retries, in seconds. Default: `30`.
        cap: Seconds => builder.driver.retry.cap;
        /// Longest wait that a provider may ask for, in seconds. If it asks for more, the call
        /// fails. Default: `120`.
        retry_after_cap: Seconds => builder.driver.retry.retry_after_cap;
    }
}

settings_table! {
    /// How the provider's prompt cache is used.
    CacheTable {
        /// Use the provider's prompt cache. Default: `true`.
        enabled: Flag => builder.cache.enabled;
        /// Where cache breakpoints are placed: automatically, not at all, or manually: after the
        /// system prompt, after the tools, in the history and at its end. Default: `"auto"`.
        strategy: Breakpoints => builder.cache.strategy;
        /// How long the provider keeps the prompt cache: the usual time, longer for tools and
        /// system prompt (head), or longer for everything (long). Writing a longer cache may cost
        /// more. Default: `"usual"`.
        #[schemars(extend("x-flag" = "cache-retention"))]
        retention: Choice<CacheRetention> => builder.retention;
    }
}
