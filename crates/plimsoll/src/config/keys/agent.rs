//! Keys of an agent: its name, prompt and tools.

use plimsoll_agent::{PermissionMode, QueueMode, TurnTrigger};

use plimsoll_tools::SandboxMode;

use super::super::key::{Preset, SettingKey, key};
use super::super::kind::SettingKind;
use super::AGENT;

const NAMES_OF_TOOLS: &str = "Tools the agent may use: all, none, or names such as read,grep,bash.";

pub(super) const ROWS: &[SettingKey] = &[
    key(
        AGENT,
        "name",
        SettingKind::Text(|s, text| s.name = Some(text)),
        Preset::Words("required in [[agents]]"),
        "The agent's name, for `--agent` and for agents that call it.",
    )
    .of_one_agent(),
    key(
        AGENT,
        "description",
        SettingKind::Text(|s, text| s.description = Some(text)),
        Preset::Words("none"),
        "A description of the agent, shown to agents that may call it.",
    )
    .trusted()
    .of_one_agent(),
    key(
        AGENT,
        "system",
        SettingKind::Text(|s, text| s.system = Some(text)),
        Preset::Words("the built-in prompt"),
        "The system prompt.",
    )
    .trusted()
    .method("system"),
    key(
        AGENT,
        "system_file",
        SettingKind::Path(|s, path| s.system_file = Some(path)),
        Preset::Words("none"),
        "File with the system prompt. Replaces `system`.",
    )
    .trusted()
    .flag("system")
    .method("system"),
    key(
        AGENT,
        "dynamic_context",
        SettingKind::Text(|s, text| s.dynamic_context = Some(text)),
        Preset::Words("none"),
        "Text sent after the history in every request. It is not stored in the history.",
    )
    .trusted()
    .method("dynamic_context"),
    key(
        AGENT,
        "pins",
        SettingKind::Texts(|s, pins| s.pins = pins),
        Preset::Value("[]"),
        "Rules that are never evicted or shortened.",
    )
    .trusted()
    .flag("pin")
    .adds()
    .method("pin"),
    key(
        AGENT,
        "tools",
        SettingKind::Names(|s, names| s.tools = names),
        Preset::Value("[\"all\"]"),
        NAMES_OF_TOOLS,
    )
    .flag("tools")
    .method("tools"),
    key(
        AGENT,
        "root",
        SettingKind::Path(|s, path| s.root = path),
        Preset::Value("\".\""),
        "Directory that file tools cannot leave.",
    )
    .flag("root")
    .method("tools"),
    key(
        AGENT,
        "sub_agents",
        SettingKind::Names(|s, names| s.sub_agents = names),
        Preset::Value("[]"),
        "Agents in the same file that this agent may call. Each becomes a tool.",
    )
    .of_one_agent()
    .method("tool"),
    key(
        AGENT,
        "skills",
        SettingKind::Paths(|s, folders| s.skills = Some(folders)),
        Preset::Words("the usual folders at the command line, none in a library"),
        "Folders of skills (a folder each with a SKILL.md). The agent gets a tool that \
         loads one, unless it has no tools. [] for none.",
    )
    .trusted()
    .method("tools"),
    key(
        AGENT,
        "mcp",
        SettingKind::Names(|s, names| s.mcp = Some(names)),
        Preset::Words("all of [[mcp]]"),
        "Names of the [[mcp]] servers whose tools the agent gets.",
    )
    .of_one_agent()
    .method("tools"),
    key(
        AGENT,
        "get_tool_response",
        SettingKind::Flag(|s, on| s.get_tool_response = on),
        Preset::Value("false"),
        "Also offers `recall` under the name `get_tool_response(execution_id)`.",
    )
    .method("get_tool_response"),
    key(
        AGENT,
        "hosted_tools",
        SettingKind::Hosted(|s, tools| s.hosted_tools = tools),
        Preset::Value("[]"),
        "Tools that the provider runs itself, in the provider's format. They run without asking; \
         rules that deny them apply.",
    )
    .trusted()
    .method("hosted_tools"),
    key(
        AGENT,
        "permissions",
        SettingKind::Rules(|s, rules| s.permissions = rules),
        Preset::Words("none"),
        "Rules that allow, deny or ask before tool calls. The first matching rule decides; without \
         one, `permission_mode` does.",
    )
    .adds()
    .method("permissions"),
    key(
        AGENT,
        "permission_mode",
        SettingKind::Choice(&PermissionMode::NAMES, |s, name| {
            s.permission_mode = name.parse().ok();
        }),
        Preset::Words("ask at the command line, auto-edit in a library"),
        "What happens to tool calls without a matching rule: ask before file changes and commands, \
         auto-edit (ask only before commands), yes (never ask) or read-only.",
    )
    .flag("permission-mode")
    .trusted()
    .method("permissions"),
    key(
        AGENT,
        "sandbox",
        SettingKind::Choice(&SandboxMode::NAMES, |s, name| {
            s.sandbox = name.parse().unwrap_or_default();
        }),
        Preset::Value("\"off\""),
        "What commands of `bash` may write to and reach, held by the kernel: off (no limit), \
         workspace-write (write below the root and in the temporary directory, no network) or \
         read-only (write nothing, no network). Needs Landlock in Linux 6.2 or newer, or macOS.",
    )
    .flag("sandbox")
    .trusted()
    .method("tools"),
    key(
        AGENT,
        "pass_env",
        SettingKind::Names(|s, names| s.pass_env = names),
        Preset::Value("[]"),
        "Variables of the environment that commands, hooks and MCP servers get although they look \
         like keys.",
    )
    .trusted()
    .method("pass_env"),
    key(
        AGENT,
        "hooks",
        SettingKind::Hooks(|s, hooks| s.hooks = hooks),
        Preset::Words("none"),
        "Commands that run at certain events of a run. They read JSON from standard input and may \
         answer on standard output.",
    )
    .adds()
    .trusted()
    .method("command_hook"),
    key(
        AGENT,
        "steering_mode",
        SettingKind::Choice(&MODES, |s, name| s.steering = mode(name)),
        Preset::Value("\"all\""),
        "Deliver waiting steering messages all at once or one per turn.",
    )
    .method("steering_mode"),
    key(
        AGENT,
        "follow_up_mode",
        SettingKind::Choice(&MODES, |s, name| s.follow_ups = mode(name)),
        Preset::Value("\"all\""),
        "Deliver waiting follow-ups all at once or one per run.",
    )
    .method("follow_up_mode"),
    key(
        AGENT,
        "config_id",
        SettingKind::Text(|s, text| s.config_id = Some(text)),
        Preset::Words("the agent's name"),
        "Name of this configuration in loop ids, which have the form {session}.{config}.{N}.",
    )
    .method("config_id"),
    key(
        AGENT,
        "first_turn_trigger",
        SettingKind::Choice(&["user", "sub_agent", "continue"], |s, name| {
            s.first_turn_trigger = match name {
                "sub_agent" => TurnTrigger::SubAgent,
                "continue" => TurnTrigger::Continue,
                _ => TurnTrigger::User,
            };
        }),
        Preset::Value("\"user\""),
        "What events report as the cause of a run's first turn.",
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
