//! Keys of the model that an agent runs on and how it is called.

use plimsoll_context::CacheRetention;

use super::super::kind::SettingKind::{
    Choice, Flag, Temperature, Text, Time, Tokens, Whole, Window, Written,
};

/// The forms of the places of cache breakpoints.
const BREAKPOINTS: &str = "\"auto\", \"disabled\" or `{ manual = { cache_system = true } }` with any of \
                           `cache_system`, `cache_tools` and `cache_messages`";

fields! {
    /// The model that an agent runs on.
    "Model", "" {
        /// The model, as PROVIDER/NAME, or `local`. Default: a server on this machine, else
        /// `local`.
        model: Text => model, flag = Some("model");
        /// Address of the API. Default for any OpenAI-compatible server. Default: the provider's.
        base_url: Text => base_url, flag = Some("base-url");
        /// Context window in tokens, or "unknown" to learn it from the provider's errors.
        /// Default: reported by the server.
        window: Window => builder.window, flag = Some("max-context");
        /// How tools are called: with the API's own tool calls, or as one JSON object per turn,
        /// for small models. Default: native; json for our local models.
        tool_style: Choice(&["native", "json"]) => tool_style, flag = Some("tool-style");
        /// Maximum number of tokens in one response. Default: the provider's.
        max_tokens: Tokens(1) => builder.max_tokens, flag = Some("max-tokens");
        /// Sampling temperature. Default: the provider's.
        temperature: Temperature => builder.sampling.temperature, flag = Some("temperature");
        /// Sampling seed, for providers that support one. Default: none.
        seed: Whole(0) => builder.sampling.seed, flag = Some("seed");
        /// How much the model reasons before it answers. "off" disables reasoning if the model
        /// allows that. Default: the provider's.
        thinking_level: Choice(&["off", "minimal", "low", "medium", "high"]) => builder.sampling.thinking, flag = Some("thinking-level");
        /// Time limit for opening a connection, in seconds. Default: `15`.
        connect_timeout: Time => timeouts.connect, flag = Some("connect-timeout");
        /// Time without a received byte after which a call is abandoned, in seconds. Default:
        /// `300`.
        idle_timeout: Time => timeouts.idle, flag = Some("idle-timeout");
    }

    /// When failed calls of the model are retried.
    "Model", "retry" {
        /// Maximum number of attempts per model call, including the first; at most 3 if the
        /// server cannot be reached or its response is cut or malformed. Default: `10`.
        max_attempts: Whole(1) => builder.driver.retry.max_attempts;
        /// Wait before the first retry, in seconds. Default: `1`.
        initial: Time => builder.driver.retry.initial;
        /// Factor by which each wait is longer than the one before. Default: `2`.
        factor: Whole(1) => builder.driver.retry.factor;
        /// Longest wait between retries, in seconds. Default: `30`.
        cap: Time => builder.driver.retry.cap;
        /// Longest wait that a provider may ask for, in seconds. If it asks for more, the call
        /// fails. Default: `120`.
        retry_after_cap: Time => builder.driver.retry.retry_after_cap;
    }

    /// How the provider's prompt cache is used.
    "Model", "cache" {
        /// Use the provider's prompt cache. Default: `true`.
        enabled: Flag => builder.cache.enabled;
        /// Where cache breakpoints are placed: automatically, not at all, or manually: after the
        /// system prompt, after the tools, in the history and at its end. Default: `"auto"`.
        strategy: Written(BREAKPOINTS) => builder.cache.strategy;
        /// How long the provider keeps the prompt cache: the usual time, longer for tools and
        /// system prompt (head), or longer for everything (long). Writing a longer cache may cost
        /// more. Default: `"usual"`.
        retention: Choice(&CacheRetention::NAMES) => builder.retention, flag = Some("cache-retention");
    }
}
