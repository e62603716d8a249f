//! Keys of the model that an agent runs on and how it is called.

use plimsoll_agent::{Sampling, ThinkingLevel};
use plimsoll_context::{CacheRetention, CacheStrategy};
use plimsoll_wire::openai_chat::ToolStyle;

use super::super::key::{Key, Preset, key};
use super::super::kind::Kind;
use super::super::settings::WindowSetting;
use super::AGENT;

const CACHE: &[&str] = &["cache", "cache_config"];
const MANUAL: &[&str] = &["cache.strategy.manual", "cache_config.strategy.manual"];
const RETRY: &[&str] = &["retry", "retry_config"];

pub(super) const ROWS: &[Key] = &[
    key(
        AGENT,
        "model",
        Kind::Text(|s, text| s.model = Some(text)),
        Preset::Words("a server on this machine, else `local`"),
        "The model, as PROVIDER/NAME, or `local`.",
    )
    .trusted()
    .also(&["model_config.id"])
    .flag("model")
    .method("builder"),
    key(
        AGENT,
        "base_url",
        Kind::Text(|s, text| s.base_url = Some(text)),
        Preset::Words("the provider's"),
        "Address of an OpenAI-compatible server.",
    )
    .also(&["model_config.base_url"])
    .flag("base-url")
    .trusted()
    .method("builder"),
    key(
        AGENT,
        "window",
        Kind::Window(|s, tokens| {
            s.window = tokens.map_or(WindowSetting::Unknown, WindowSetting::Tokens);
        }),
        Preset::Words("the server is asked"),
        "The model's window in tokens, or \"unknown\" to learn it from refusals.",
    )
    .old(&["context_size", "context_window", "max_context"])
    .flag("max-context")
    .method("window"),
    key(
        AGENT,
        "tool_style",
        Kind::Choice(&["native", "json"], |s, name| {
            s.tool_style = Some(match name {
                "json" => ToolStyle::JsonSchema,
                _ => ToolStyle::Native,
            });
        }),
        Preset::Words("native; json for our local models"),
        "How the model calls tools: natively, or each turn held to one JSON object, which small \
         models need.",
    )
    .flag("tool-style")
    .method("builder"),
    key(
        AGENT,
        "max_tokens",
        Kind::Tokens(1, |s, tokens| s.max_tokens = Some(tokens)),
        Preset::Words("the provider's"),
        "Tokens of one answer, at most.",
    )
    .flag("max-tokens")
    .method("max_tokens"),
    key(
        AGENT,
        "temperature",
        Kind::Number(Sampling::MAX_TEMPERATURE, |s, number| {
            s.temperature = Some(number);
        }),
        Preset::Words("the provider's"),
        "Temperature.",
    )
    .flag("temperature")
    .method("temperature"),
    key(
        AGENT,
        "seed",
        Kind::Whole(0, |s, seed| s.seed = Some(seed)),
        Preset::Words("none"),
        "Seed, for providers that take one.",
    )
    .flag("seed")
    .method("seed"),
    key(
        AGENT,
        "thinking_level",
        Kind::Choice(&["off", "minimal", "low", "medium", "high"], |s, name| {
            s.thinking = Some(match name {
                "minimal" => ThinkingLevel::Minimal,
                "low" => ThinkingLevel::Low,
                "medium" => ThinkingLevel::Medium,
                "high" => ThinkingLevel::High,
                _ => ThinkingLevel::Off,
            });
        }),
        Preset::Words("the provider's"),
        "How hard the model thinks before it answers; \"off\" turns thinking off, if the model has a switch for that.",
    )
    .flag("thinking-level")
    .method("thinking_level"),
    key(
        AGENT,
        "connect_timeout",
        Kind::Time(|s, time| s.connect_timeout = Some(time)),
        Preset::Value("15"),
        "How long a connection is waited for.",
    )
    .flag("connect-timeout")
    .method("builder"),
    key(
        AGENT,
        "idle_timeout",
        Kind::Time(|s, time| s.idle_timeout = Some(time)),
        Preset::Value("300"),
        "How long a call may go without a byte before it is given up.",
    )
    .flag("idle-timeout")
    .method("builder"),
    key(
        RETRY,
        "max_attempts",
        Kind::Whole(1, |s, tries| {
            s.retry.max_attempts = u32::try_from(tries).unwrap_or(u32::MAX);
        }),
        Preset::Value("3"),
        "Calls in all, the first one included.",
    )
    .method("retry_config"),
    key(
        RETRY,
        "initial",
        Kind::Time(|s, time| s.retry.initial = time),
        Preset::Value("1"),
        "The first wait.",
    )
    .method("retry_config"),
    key(
        RETRY,
        "factor",
        Kind::Whole(1, |s, factor| {
            s.retry.factor = u32::try_from(factor).unwrap_or(u32::MAX);
        }),
        Preset::Value("2"),
        "Each wait is this many times the one before.",
    )
    .method("retry_config"),
    key(
        RETRY,
        "cap",
        Kind::Time(|s, time| s.retry.cap = time),
        Preset::Value("30"),
        "No wait of our own is longer.",
    )
    .method("retry_config"),
    key(
        RETRY,
        "retry_after_cap",
        Kind::Time(|s, time| s.retry.retry_after_cap = time),
        Preset::Value("120"),
        "A provider that asks to wait longer is not waited for.",
    )
    .method("retry_config"),
    key(
        CACHE,
        "enabled",
        Kind::Flag(|s, on| s.cache.enabled = on),
        Preset::Value("true"),
        "Whether the provider's prompt cache is asked for.",
    )
    .method("cache_config"),
    key(
        CACHE,
        "strategy",
        Kind::Choice(&["auto", "disabled"], |s, name| {
            s.cache.strategy = match name {
                "disabled" => CacheStrategy::Disabled,
                _ => CacheStrategy::Auto,
            };
        }),
        Preset::Value("\"auto\""),
        "How breakpoints are placed: wherever they help, or nowhere; or as `manual` says.",
    )
    .method("cache_config"),
    key(
        CACHE,
        "retention",
        Kind::Choice(&CacheRetention::NAMES, |s, name| {
            s.retention = CacheRetention::named(name).unwrap_or_default();
        }),
        Preset::Value("\"usual\""),
        "How long the prompt cache is to be kept: as usual, the head (tools and system prompt) \
         longer, or all of it long, where the provider has that; writing it may cost more.",
    )
    .flag("cache-retention")
    .method("cache_retention"),
    key(
        MANUAL,
        "cache_system",
        Kind::Flag(|s, on| s.manual(|system, _, _| *system = on)),
        Preset::Words("as `strategy` says"),
        "A breakpoint after the system prompt, and elsewhere only where the others say so.",
    )
    .method("cache_config"),
    key(
        MANUAL,
        "cache_tools",
        Kind::Flag(|s, on| s.manual(|_, tools, _| *tools = on)),
        Preset::Words("as `strategy` says"),
        "The same after the tools.",
    )
    .method("cache_config"),
    key(
        MANUAL,
        "cache_messages",
        Kind::Flag(|s, on| s.manual(|_, _, messages| *messages = on)),
        Preset::Words("as `strategy` says"),
        "The same in the history and at its end.",
    )
    .method("cache_config"),
];
