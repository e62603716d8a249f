//! Keys of what an agent is: its name, prompt and tools.

use super::super::key::{Key, Preset, key};
use super::super::kind::Kind;
use super::AGENT;

const NAMES_OF_TOOLS: &str = "Tools: \"all\", \"none\", or names such as [\"read\", \"grep\"].";

pub(super) const ROWS: &[Key] = &[
    key(
        AGENT,
        "name",
        Kind::Text(|s, text| s.name = Some(text)),
        Preset::Words("required in [[agents]]"),
        "The agent's name, as `--agent` and other agents call it.",
    )
    .of_one_agent(),
    key(
        AGENT,
        "description",
        Kind::Text(|s, text| s.description = Some(text)),
        Preset::Words("none"),
        "What the agent is for; another agent that may call it reads this.",
    )
    .of_one_agent(),
    key(
        AGENT,
        "system",
        Kind::Text(|s, text| s.system = Some(text)),
        Preset::Words("the built-in prompt"),
        "The system prompt.",
    )
    .old(&["system_prompt"])
    .method("system"),
    key(
        AGENT,
        "system_file",
        Kind::Path(|s, path| s.system_file = Some(path)),
        Preset::Words("none"),
        "A file with the system prompt, in place of `system`.",
    )
    .flag("system")
    .method("system"),
    key(
        AGENT,
        "dynamic_context",
        Kind::Text(|s, text| s.dynamic_context = Some(text)),
        Preset::Words("none"),
        "What is sent after the history of each request and is not part of it.",
    )
    .method("dynamic_context"),
    key(
        AGENT,
        "pins",
        Kind::Texts(|s, pins| s.pins = pins),
        Preset::Value("[]"),
        "Rules that stay in view, whole, in every session.",
    )
    .flag("pin")
    .adds()
    .method("pin"),
    key(
        AGENT,
        "tools",
        Kind::Names(|s, names| s.tools = names),
        Preset::Value("[\"all\"]"),
        NAMES_OF_TOOLS,
    )
    .flag("tools")
    .method("tools"),
    key(
        AGENT,
        "root",
        Kind::Path(|s, path| s.root = path),
        Preset::Value("\".\""),
        "The directory that file tools may not leave.",
    )
    .flag("root")
    .method("tools"),
    key(
        AGENT,
        "get_tool_response",
        Kind::Flag(|s, on| s.get_tool_response = on),
        Preset::Value("false"),
        "Offers `recall` under the name `get_tool_response(execution_id)` too.",
    )
    .method("get_tool_response"),
];
