//! Keys of what an agent is: its name, prompt and tools.

use plimsoll_agent::{PermissionMode, QueueMode, TurnTrigger};

use super::super::key::{Key, Preset, key};
use super::super::kind::Kind;
use super::AGENT;

const NAMES_OF_TOOLS: &str = "Tools: all, none, or names such as read,grep,bash.";

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
    .trusted()
    .of_one_agent(),
    key(
        AGENT,
        "system",
        Kind::Text(|s, text| s.system = Some(text)),
        Preset::Words("the built-in prompt"),
        "The system prompt.",
    )
    .trusted()
    .old(&["system_prompt"])
    .method("system"),
    key(
        AGENT,
        "system_file",
        Kind::Path(|s, path| s.system_file = Some(path)),
        Preset::Words("none"),
        "A file with the system prompt, in place of `system`.",
    )
    .trusted()
    .flag("system")
    .method("system"),
    key(
        AGENT,
        "dynamic_context",
        Kind::Text(|s, text| s.dynamic_context = Some(text)),
        Preset::Words("none"),
        "What is sent after the history of each request and is not part of it.",
    )
    .trusted()
    .method("dynamic_context"),
    key(
        AGENT,
        "pins",
        Kind::Texts(|s, pins| s.pins = pins),
        Preset::Value("[]"),
        "Rules that stay in view, whole, in every session.",
    )
    .trusted()
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
        "sub_agents",
        Kind::Names(|s, names| s.sub_agents = names),
        Preset::Value("[]"),
        "Agents of the same file that it may call, as tools of their names.",
    )
    .also(&["agents"])
    .of_one_agent()
    .method("tool"),
    key(
        AGENT,
        "mcp",
        Kind::Names(|s, names| s.mcp = Some(names)),
        Preset::Words("all of [[mcp]]"),
        "Servers of [[mcp]] whose tools it has.",
    )
    .of_one_agent()
    .method("tools"),
    key(
        AGENT,
        "get_tool_response",
        Kind::Flag(|s, on| s.get_tool_response = on),
        Preset::Value("false"),
        "Offers `recall` under the name `get_tool_response(execution_id)` too.",
    )
    .method("get_tool_response"),
    key(
        AGENT,
        "hosted_tools",
        Kind::Hosted(|s, tools| s.hosted_tools = tools),
        Preset::Value("[]"),
        "Tools of the provider's own, in its words: they run there, and nobody is asked. Rules that \
         deny them hold.",
    )
    .trusted()
    .method("hosted_tools"),
    key(
        AGENT,
        "permissions",
        Kind::Rules(|s, rules| s.permissions = rules),
        Preset::Words("none"),
        "Rules for what may run, of which the first that matches decides; else `permission_mode` does.",
    )
    .adds()
    .method("permissions"),
    key(
        AGENT,
        "permission_mode",
        Kind::Choice(&PermissionMode::NAMES, |s, name| {
            s.permission_mode = name.parse().ok();
        }),
        Preset::Words("ask at the command line, auto-edit in a library"),
        "What happens to calls that no rule decides about: ask before files are changed and commands \
         run, auto-edit files, yes to all, or read-only.",
    )
    .flag("permission-mode")
    .trusted()
    .method("permissions"),
    key(
        AGENT,
        "hooks",
        Kind::Hooks(|s, hooks| s.hooks = hooks),
        Preset::Words("none"),
        "Commands that are asked or told at moments of a run: JSON on standard input, a verdict on \
         standard output.",
    )
    .adds()
    .trusted()
    .method("command_hook"),
    key(
        AGENT,
        "steering_mode",
        Kind::Choice(&MODES, |s, name| s.steering = mode(name)),
        Preset::Value("\"all\""),
        "Whether steers that wait are delivered all together or one at a time.",
    )
    .method("steering_mode"),
    key(
        AGENT,
        "follow_up_mode",
        Kind::Choice(&MODES, |s, name| s.follow_ups = mode(name)),
        Preset::Value("\"all\""),
        "The same of follow-ups.",
    )
    .method("follow_up_mode"),
    key(
        AGENT,
        "config_id",
        Kind::Text(|s, text| s.config_id = Some(text)),
        Preset::Words("the agent's name"),
        "What this configuration is called in loop ids, {session}.{config}.{N}.",
    )
    .method("config_id"),
    key(
        AGENT,
        "first_turn_trigger",
        Kind::Choice(&["user", "sub_agent", "continue"], |s, name| {
            s.first_turn_trigger = match name {
                "sub_agent" => TurnTrigger::SubAgent,
                "continue" => TurnTrigger::Continue,
                _ => TurnTrigger::User,
            };
        }),
        Preset::Value("\"user\""),
        "What the first turn of a run is said to answer, in events.",
    )
    .method("first_turn_trigger"),
];

const MODES: [&str; 2] = ["all", "one_at_a_time"];

fn mode(name: &str) -> QueueMode {
    match name {
        "one_at_a_time" => QueueMode::OneAtATime,
        _ => QueueMode::All,
    }
}
