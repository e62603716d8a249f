//! Keys of the model that an agent runs on and how it is called.

use plimsoll_agent::{Sampling, ThinkingLevel};
use plimsoll_context::{CacheRetention, CacheStrategy};
use plimsoll_wire::openai_chat::ToolStyle;

use super::super::key::{Preset, SettingKey, key};
use super::super::kind::SettingKind;
use super::super::settings::WindowSetting;
use super::AGENT;

const CACHE: &str = "cache";
const MANUAL: &str = "cache.strategy.manual";
const RETRY: &str = "retry";

pub(super) const ROWS: &[SettingKey] = &[
    key(
        AGENT,
        "model",
        SettingKind::Text(|s, text| s.model = Some(text)),
        Preset::Words("a server on this machine, else `local`"),
        "The model, as PROVIDER/NAME, or `local`.",
    )
    .trusted()
    .flag("model")
    .method("builder"),
    key(
        AGENT,
        "base_url",
        SettingKind::Text(|s, text| s.base_url = Some(text)),
        Preset::Words("the provider's"),
        "Address of the API. Default for any OpenAI-compatible server.",
    )
    .flag("base-url")
    .trusted()
    .method("builder"),
    key(
        AGENT,
        "window",
        SettingKind::Window(|s, tokens| {
            s.window = tokens.map_or(WindowSetting::Unknown, WindowSetting::Tokens);
        }),
        Preset::Words("reported by the server"),
        "Context window in tokens, or \"unknown\" to learn it from the provider's errors.",
    )
    .flag("max-context")
    .method("window"),
    key(
        AGENT,
        "tool_style",
        SettingKind::Choice(&["native", "json"], |s, name| {
            s.tool_style = Some(match name {
                "json" => ToolStyle::JsonSchema,
                _ => ToolStyle::Native,
            });
        }),
        Preset::Words("native; json for our local models"),
        "How tools are called: with the API's own tool calls, or as one JSON object per turn, for \
         small models.",
    )
    .flag("tool-style")
    .method("builder"),
    key(
        AGENT,
        "max_tokens",
        SettingKind::Tokens(1, |s, tokens| s.max_tokens = Some(tokens)),
        Preset::Words("the provider's"),
        "Maximum number of tokens in one response.",
    )
    .flag("max-tokens")
    .method("max_tokens"),
    key(
        AGENT,
        "temperature",
        SettingKind::Number(Sampling::MAX_TEMPERATURE, |s, number| {
            s.temperature = Some(number);
        }),
        Preset::Words("the provider's"),
        "Sampling temperature.",
    )
    .flag("temperature")
    .method("temperature"),
    key(
        AGENT,
        "seed",
        SettingKind::Whole(0, |s, seed| s.seed = Some(seed)),
        Preset::Words("none"),
        "Sampling seed, for providers that support one.",
    )
    .flag("seed")
    .method("seed"),
    key(
        AGENT,
        "thinking_level",
        SettingKind::Choice(&["off", "minimal", "low", "medium", "high"], |s, name| {
            s.thinking = Some(match name {
                "minimal" => ThinkingLevel::Minimal,
                "low" => ThinkingLevel::Low,
                "medium" => ThinkingLevel::Medium,
                "high" => ThinkingLevel::High,
                _ => ThinkingLevel::Off,
            });
        }),
        Preset::Words("the provider's"),
        "How much the model reasons before it answers. \"off\" disables reasoning if the model allows that.",
    )
    .flag("thinking-level")
    .method("thinking_level"),
    key(
        AGENT,
        "connect_timeout",
        SettingKind::Time(|s, time| s.connect_timeout = Some(time)),
        Preset::Value("15"),
        "Time limit for opening a connection, in seconds.",
    )
    .flag("connect-timeout")
    .method("builder"),
    key(
        AGENT,
        "idle_timeout",
        SettingKind::Time(|s, time| s.idle_timeout = Some(time)),
        Preset::Value("300"),
        "Time without a received byte after which a call is abandoned, in seconds.",
    )
    .flag("idle-timeout")
    .method("builder"),
    key(
        RETRY,
        "max_attempts",
        SettingKind::Whole(1, |s, tries| {
            s.retry.max_attempts = u32::try_from(tries).unwrap_or(u32::MAX);
        }),
        Preset::Value("3"),
        "Maximum number of attempts per model call, including the first.",
    )
    .method("retry_config"),
    key(
        RETRY,
        "initial",
        SettingKind::Time(|s, time| s.retry.initial = time),
        Preset::Value("1"),
        "Wait before the first retry, in seconds.",
    )
    .method("retry_config"),
    key(
        RETRY,
        "factor",
        SettingKind::Whole(1, |s, factor| {
            s.retry.factor = u32::try_from(factor).unwrap_or(u32::MAX);
        }),
        Preset::Value("2"),
        "Factor by which each wait is longer than the one before.",
    )
    .method("retry_config"),
    key(
        RETRY,
        "cap",
        SettingKind::Time(|s, time| s.retry.cap = time),
        Preset::Value("30"),
        "Longest wait between retries, in seconds.",
    )
    .method("retry_config"),
    key(
        RETRY,
        "retry_after_cap",
        SettingKind::Time(|s, time| s.retry.retry_after_cap = time),
        Preset::Value("120"),
        "Longest wait that a provider may ask for, in seconds. If it asks for more, the call fails.",
    )
    .method("retry_config"),
    key(
        CACHE,
        "enabled",
        SettingKind::Flag(|s, on| s.cache.enabled = on),
        Preset::Value("true"),
        "Use the provider's prompt cache.",
    )
    .method("cache_config"),
    key(
        CACHE,
        "strategy",
        SettingKind::Choice(&["auto", "disabled"], |s, name| {
            s.cache.strategy = match name {
                "disabled" => CacheStrategy::Disabled,
                _ => CacheStrategy::Auto,
            };
        }),
        Preset::Value("\"auto\""),
        "Where cache breakpoints are placed: automatically or nowhere. `manual` sets single places.",
    )
    .method("cache_config"),
    key(
        CACHE,
        "retention",
        SettingKind::Choice(&CacheRetention::NAMES, |s, name| {
            s.retention = CacheRetention::named(name).unwrap_or_default();
        }),
        Preset::Value("\"usual\""),
        "How long the provider keeps the prompt cache: the usual time, longer for tools and system \
         prompt (head), or longer for everything (long). Writing a longer cache may cost more.",
    )
    .flag("cache-retention")
    .method("cache_retention"),
    key(
        MANUAL,
        "cache_system",
        SettingKind::Flag(|s, on| s.manual(|system, _, _| *system = on)),
        Preset::Words("decided by `strategy`"),
        "Place a breakpoint after the system prompt.",
    )
    .method("cache_config"),
    key(
        MANUAL,
        "cache_tools",
        SettingKind::Flag(|s, on| s.manual(|_, tools, _| *tools = on)),
        Preset::Words("decided by `strategy`"),
        "Place a breakpoint after the tools.",
    )
    .method("cache_config"),
    key(
        MANUAL,
        "cache_messages",
        SettingKind::Flag(|s, on| s.manual(|_, _, messages| *messages = on)),
        Preset::Words("decided by `strategy`"),
        "Place breakpoints in the history and at its end.",
    )
    .method("cache_config"),
];
