//! Keys of an agent: its name, prompt and tools.

use plimsoll_agent::PermissionMode;
use plimsoll_tools::SandboxMode;

use super::super::kind::SettingKind::{
    Choice, Days, Filled, Flag, Hooks, HostedTools, Names, Path, Paths, Rules, Text, Texts, Whole,
};

fields! {
    /// The settings of an agent: its name, prompt and tools.
    "Agent and tools", "" {
        /// The agent's name, for `--agent` and for agents that call it. Default: required in
        /// [[agents]].
        name: Filled => name, is_of_one_agent = true;
        /// A description of the agent, shown to agents that may call it. Default: none.
        description: Text => description, is_of_one_agent = true;
        /// The system prompt. Default: the built-in prompt.
        system: Text => system;
        /// File with the system prompt. Replaces `system`. Default: none.
        system_file: Path => system_file, flag = Some("system");
        /// Text sent after the history in every request. It is not stored in the history.
        /// Default: none.
        dynamic_context: Text => builder.dynamic_context;
        /// Rules that are never evicted or shortened. Default: `[]`.
        pins: Texts => builder.pins, flag = Some("pin");
        /// Tools the agent may use: all, none, or names such as read,grep,bash. Default:
        /// `["all"]`.
        tools: Names => tools, flag = Some("tools");
        /// Directory that file tools cannot leave. Default: `"."`.
        root: Path => root, flag = Some("root");
        /// Agents in the same file that this agent may call. Each becomes a tool. Default: `[]`.
        sub_agents: Names => sub_agents, is_of_one_agent = true;
        /// Folders of skills (a folder each with a SKILL.md). The agent gets a tool that loads
        /// one, unless it has no tools. [] for none. Default: the usual folders at the command
        /// line, none in a library.
        skills: Paths => skills;
        /// Names of the [[mcp]] servers whose tools the agent gets. Default: all of [[mcp]].
        mcp: Names => mcp, is_of_one_agent = true;
        /// Also offers `recall` under the name `get_tool_response(execution_id)`. Default:
        /// `false`.
        get_tool_response: Flag => builder.get_tool_response;
        /// Tools that the provider runs itself, in the provider's format. They run without
        /// asking; rules that deny them apply. Default: `[]`.
        hosted_tools: HostedTools => builder.hosted_tools;
        /// Rules that allow, deny or ask before tool calls. The first matching rule decides;
        /// without one, `permission_mode` does. Default: none.
        permissions: Rules => permissions;
        /// What happens to tool calls without a matching rule: ask before file changes and
        /// commands, auto-edit (ask only before commands), yes (never ask) or read-only. Default:
        /// ask at the command line, auto-edit in a library.
        permission_mode: Choice(&PermissionMode::NAMES) => permission_mode, flag = Some("permission-mode"), alias = Some("mode");
        /// What commands of `bash` may write to and reach, enforced by the kernel: off (no
        /// limit), workspace-write (write below the root and in the temporary directory, no
        /// network) or read-only (write nothing, no network). Needs Landlock in Linux 6.2 or
        /// newer, or macOS. Default: `"off"`.
        sandbox: Choice(&SandboxMode::NAMES) => sandbox, flag = Some("sandbox");
        /// Variables of the environment that commands, hooks and MCP servers get although they
        /// look like keys. Default: `[]`.
        pass_env: Names => builder.pass_env;
        /// Commands that run at certain events of a run. They read JSON from standard input and
        /// may answer on standard output. Default: none.
        hooks: Hooks => hooks;
        /// Name of this configuration in run ids, which have the form {session}.{config}.{N}.
        /// Default: the agent's name.
        config_id: Text => builder.config_id;
        /// The cause of a run's first turn in events. Default: `"user"`.
        first_turn_trigger: Choice(&["user", "sub_agent", "continue"]) => builder.first_turn_trigger;
    }

    /// How long sessions are kept.
    "Sessions", "sessions" {
        /// Delete sessions that were last written more than so many days ago. Default: no limit.
        keep_days: Days => retention.max_age;
        /// Delete the oldest sessions until the logs of all have at most so many bytes. Default: no
        /// limit.
        keep_bytes: Whole(1) => retention.max_bytes;
    }
}
