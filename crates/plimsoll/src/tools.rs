//! Tools: functions and agents as tools and, with the feature `tools`, tools that read, write and
//! edit files, search them and run commands, and those of MCP servers.
//!
//! ```
//! use plimsoll::tools::sub_agent;
//! use plimsoll::Agent;
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # let scout_model = ScriptedProvider::new([Turn::say("Three harbours have fuel.")]);
//! # let captain_model = ScriptedProvider::new([Turn::say("There are three.")]);
//!
//! let scout = Agent::builder(scout_model).system("You look things up.").build()?;
//! let scout = sub_agent("scout", "Looks something up and reports.", move || Some(scout.clone()));
//! let captain = Agent::builder(captain_model).tool(scout).build()?;
//! # Ok::<(), plimsoll::Error>(())
//! ```

pub use plimsoll_agent::ToolExecutionStrategy;
pub use plimsoll_core::{
    FileEdit, FnTool, LEAST_FOR_SUB_AGENT, MAX_DEPTH, MAX_KEPT_FILE, MAX_PARALLEL_TOOLS,
    MAX_SUB_AGENT_RESULT, MAX_TOOL_OUTPUT, MAX_TOOL_RETRIES, MAX_TOOL_UPDATE, SUB_AGENT_TIMEOUT,
    SubAgentTool, TOOL_RETRIES, TOOL_TIMEOUT, TOOL_UPDATES, parse_arguments, schema_of, sub_agent,
};
#[cfg(feature = "mcp")]
pub use plimsoll_mcp as mcp;
#[cfg(feature = "tools")]
pub use plimsoll_tools::*;
