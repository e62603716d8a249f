//! Keys of the model that an agent runs on and how it is called.

use plimsoll_agent::Sampling;
use plimsoll_context::CacheRetention;
use plimsoll_wire::openai_chat::ToolStyle;

use super::super::key::{
    Preset::{Value, Words},
    SettingKey, SettingTable, key,
};
use super::super::kind::SettingKind::*;
use super::choose;
use plimsoll_core::Window as ModelWindow;

const CACHE: SettingTable = SettingTable("cache", "cache_config");
const MANUAL: SettingTable = SettingTable("cache.strategy.manual", "cache_config");
const RETRY: SettingTable = SettingTable("retry", "retry_config");

pub(super) const ROWS: &[SettingKey] = &[
    key(
        "model",
        Text(|s, text| s.model = Some(text)),
        Words("a server on this machine, else `local`"),
        "The model, as PROVIDER/NAME, or `local`.",
    )
    .not_portable()
    .flag("model")
    .method("builder"),
    key(
        "base_url",
        Text(|s, text| s.base_url = Some(text)),
        Words("the provider's"),
        "Address of the API. Default for any OpenAI-compatible server.",
    )
    .flag("base-url")
    .not_portable()
    .method("builder"),
    key(
        "window",
        Window(|s, tokens| {
            s.builder.window = tokens.map_or(ModelWindow::Unknown, ModelWindow::Known);
        }),
        Words("reported by the server"),
        "Context window in tokens, or \"unknown\" to learn it from the provider's errors.",
    )
    .flag("max-context"),
    key(
        "tool_style",
        Choice(&["native", "json"], |s, name| {
            s.tool_style = Some(match name {
                "json" => ToolStyle::JsonSchema,
                _ => ToolStyle::Native,
            });
        }),
        Words("native; json for our local models"),
        "How tools are called: with the API's own tool calls, or as one JSON object per turn, for \
         small models.",
    )
    .flag("tool-style")
    .method("builder"),
    key(
        "max_tokens",
        Tokens(1, |s, tokens| s.builder.max_tokens = Some(tokens)),
        Words("the provider's"),
        "Maximum number of tokens in one response.",
    )
    .flag("max-tokens"),
    key(
        "temperature",
        Number(Sampling::MAX_TEMPERATURE, |s, number| {
            s.builder.sampling.temperature = Some(number);
        }),
        Words("the provider's"),
        "Sampling temperature.",
    )
    .flag("temperature"),
    key(
        "seed",
        Whole(0, |s, seed| s.builder.sampling.seed = Some(seed)),
        Words("none"),
        "Sampling seed, for providers that support one.",
    )
    .flag("seed"),
    key(
        "thinking_level",
        Choice(&["off", "minimal", "low", "medium", "high"], |s, name| {
            choose(&mut s.builder.sampling.thinking, name);
        }),
        Words("the provider's"),
        "How much the model reasons before it answers. \"off\" disables reasoning if the model allows that.",
    )
    .flag("thinking-level"),
    key(
        "connect_timeout",
        Time(|s, time| s.connect_timeout = Some(time)),
        Value("15"),
        "Time limit for opening a connection, in seconds.",
    )
    .flag("connect-timeout")
    .method("builder"),
    key(
        "idle_timeout",
        Time(|s, time| s.idle_timeout = Some(time)),
        Value("300"),
        "Time without a received byte after which a call is abandoned, in seconds.",
    )
    .flag("idle-timeout")
    .method("builder"),
    key(
        "max_attempts",
        Whole(1, |s, tries| {
            s.builder.driver.retry.max_attempts = u32::try_from(tries).unwrap_or(u32::MAX);
        }),
        Value("10"),
        "Maximum number of attempts per model call, including the first; at most 3 if the server cannot be reached or its response is cut or malformed.",
    )
    .of(RETRY),
    key(
        "initial",
        Time(|s, time| s.builder.driver.retry.initial = time),
        Value("1"),
        "Wait before the first retry, in seconds.",
    )
    .of(RETRY),
    key(
        "factor",
        Whole(1, |s, factor| {
            s.builder.driver.retry.factor = u32::try_from(factor).unwrap_or(u32::MAX);
        }),
        Value("2"),
        "Factor by which each wait is longer than the one before.",
    )
    .of(RETRY),
    key(
        "cap",
        Time(|s, time| s.builder.driver.retry.cap = time),
        Value("30"),
        "Longest wait between retries, in seconds.",
    )
    .of(RETRY),
    key(
        "retry_after_cap",
        Time(|s, time| s.builder.driver.retry.retry_after_cap = time),
        Value("120"),
        "Longest wait that a provider may ask for, in seconds. If it asks for more, the call fails.",
    )
    .of(RETRY),
    key(
        "enabled",
        Flag(|s, on| s.builder.cache.enabled = on),
        Value("true"),
        "Use the provider's prompt cache.",
    )
    .of(CACHE),
    key(
        "strategy",
        Choice(&["auto", "disabled"], |s, name| {
            choose(&mut s.builder.cache.strategy, name);
        }),
        Value("\"auto\""),
        "Where cache breakpoints are placed: automatically or not at all. `manual` sets \
         individual places.",
    )
    .of(CACHE),
    key(
        "retention",
        Choice(&CacheRetention::NAMES, |s, name| {
            s.builder.retention = CacheRetention::named(name).unwrap_or_default();
        }),
        Value("\"usual\""),
        "How long the provider keeps the prompt cache: the usual time, longer for tools and system \
         prompt (head), or longer for everything (long). Writing a longer cache may cost more.",
    )
    .of(CACHE)
    .flag("cache-retention")
    .method("cache_retention"),
    key(
        "cache_system",
        Flag(|s, on| s.manual(|system, _, _| *system = on)),
        Words("decided by `strategy`"),
        "Place a breakpoint after the system prompt.",
    )
    .of(MANUAL),
    key(
        "cache_tools",
        Flag(|s, on| s.manual(|_, tools, _| *tools = on)),
        Words("decided by `strategy`"),
        "Place a breakpoint after the tools.",
    )
    .of(MANUAL),
    key(
        "cache_messages",
        Flag(|s, on| s.manual(|_, _, messages| *messages = on)),
        Words("decided by `strategy`"),
        "Place breakpoints in the history and at its end.",
    )
    .of(MANUAL),
];
