//! Keys of an agent: its name, prompt and tools.

use plimsoll_agent::PermissionMode;
use plimsoll_tools::SandboxMode;

use super::super::key::{
    Preset::{Value, Words},
    SettingKey, key,
};
use super::super::kind::SettingKind::*;
use super::choose;

const NAMES_OF_TOOLS: &str = "Tools the agent may use: all, none, or names such as read,grep,bash.";

pub(super) const ROWS: &[SettingKey] = &[
    key(
        "name",
        Text(|s, text| s.name = Some(text)),
        Words("required in [[agents]]"),
        "The agent's name, for `--agent` and for agents that call it.",
    )
    .of_one_agent()
    .method(""),
    key(
        "description",
        Text(|s, text| s.description = Some(text)),
        Words("none"),
        "A description of the agent, shown to agents that may call it.",
    )
    .not_portable()
    .of_one_agent()
    .method(""),
    key(
        "system",
        Text(|s, text| s.system = Some(text)),
        Words("the built-in prompt"),
        "The system prompt.",
    )
    .not_portable(),
    key(
        "system_file",
        Path(|s, path| s.system_file = Some(path)),
        Words("none"),
        "File with the system prompt. Replaces `system`.",
    )
    .not_portable()
    .flag("system")
    .method("system"),
    key(
        "dynamic_context",
        Text(|s, text| s.builder.dynamic_context = Some(text)),
        Words("none"),
        "Text sent after the history in every request. It is not stored in the history.",
    )
    .not_portable(),
    key(
        "pins",
        Texts(|s, pins| s.builder.pins = pins),
        Value("[]"),
        "Rules that are never evicted or shortened.",
    )
    .not_portable()
    .flag("pin")
    .adds()
    .method("pin"),
    key(
        "tools",
        Names(|s, names| s.tools = names),
        Value("[\"all\"]"),
        NAMES_OF_TOOLS,
    )
    .flag("tools"),
    key(
        "root",
        Path(|s, path| s.root = path),
        Value("\".\""),
        "Directory that file tools cannot leave.",
    )
    .flag("root")
    .method("tools"),
    key(
        "sub_agents",
        Names(|s, names| s.sub_agents = names),
        Value("[]"),
        "Agents in the same file that this agent may call. Each becomes a tool.",
    )
    .of_one_agent()
    .method("tool"),
    key(
        "skills",
        Paths(|s, folders| s.skills = Some(folders)),
        Words("the usual folders at the command line, none in a library"),
        "Folders of skills (a folder each with a SKILL.md). The agent gets a tool that \
         loads one, unless it has no tools. [] for none.",
    )
    .not_portable()
    .method("tools"),
    key(
        "mcp",
        Names(|s, names| s.mcp = Some(names)),
        Words("all of [[mcp]]"),
        "Names of the [[mcp]] servers whose tools the agent gets.",
    )
    .of_one_agent()
    .method("tools"),
    key(
        "get_tool_response",
        Flag(|s, on| s.builder.get_tool_response = on),
        Value("false"),
        "Also offers `recall` under the name `get_tool_response(execution_id)`.",
    ),
    key(
        "hosted_tools",
        Hosted(|s, tools| s.builder.hosted_tools = tools),
        Value("[]"),
        "Tools that the provider runs itself, in the provider's format. They run without asking; \
         rules that deny them apply.",
    )
    .not_portable(),
    key(
        "permissions",
        Rules(|s, rules| s.permissions = rules),
        Words("none"),
        "Rules that allow, deny or ask before tool calls. The first matching rule decides; without \
         one, `permission_mode` does.",
    )
    .adds(),
    key(
        "permission_mode",
        Choice(&PermissionMode::NAMES, |s, name| {
            s.permission_mode = name.parse().ok();
        }),
        Words("ask at the command line, auto-edit in a library"),
        "What happens to tool calls without a matching rule: ask before file changes and commands, \
         auto-edit (ask only before commands), yes (never ask) or read-only.",
    )
    .flag("permission-mode")
    .not_portable()
    .method("permissions"),
    key(
        "sandbox",
        Choice(&SandboxMode::NAMES, |s, name| {
            s.sandbox = name.parse().unwrap_or_default();
        }),
        Value("\"off\""),
        "What commands of `bash` may write to and reach, enforced by the kernel: off (no limit), \
         workspace-write (write below the root and in the temporary directory, no network) or \
         read-only (write nothing, no network). Needs Landlock in Linux 6.2 or newer, or macOS.",
    )
    .flag("sandbox")
    .not_portable()
    .method("tools"),
    key(
        "pass_env",
        Names(|s, names| s.builder.pass_env = names),
        Value("[]"),
        "Variables of the environment that commands, hooks and MCP servers get although they look \
         like keys.",
    )
    .not_portable(),
    key(
        "hooks",
        Hooks(|s, hooks| s.hooks = hooks),
        Words("none"),
        "Commands that run at certain events of a run. They read JSON from standard input and may \
         answer on standard output.",
    )
    .adds()
    .not_portable()
    .method("command_hook"),
    key(
        "steering_mode",
        Choice(&MODES, |s, name| choose(&mut s.builder.steering, name)),
        Value("\"all\""),
        "Deliver waiting steering messages all at once or one per turn.",
    ),
    key(
        "follow_up_mode",
        Choice(&MODES, |s, name| choose(&mut s.builder.follow_ups, name)),
        Value("\"all\""),
        "Deliver waiting follow-ups all at once or one per run.",
    ),
    key(
        "config_id",
        Text(|s, text| s.builder.config_id = Some(text)),
        Words("the agent's name"),
        "Name of this configuration in run ids, which have the form {session}.{config}.{N}.",
    ),
    key(
        "first_turn_trigger",
        Choice(&["user", "sub_agent", "continue"], |s, name| {
            choose(&mut s.builder.first_turn_trigger, name);
        }),
        Value("\"user\""),
        "The cause of a run's first turn in events.",
    ),
];

const MODES: [&str; 2] = ["all", "one_at_a_time"];
