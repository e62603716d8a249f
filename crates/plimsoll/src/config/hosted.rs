//! Checks `hosted_tools`: tools that run at the provider, in the provider's own format. The
//! provider checks the rest.

use plimsoll_context::HostedTool;

/// Keys of such tools that hold secrets, which must not be in a file, a process list or a report.
const SECRETS: [&str; 2] = ["authorization", "headers"];

/// Returns the fault of a configured tool, if any.
pub(crate) fn fault(tool: &HostedTool) -> Option<String> {
    let secret = SECRETS.iter().find(|key| tool.0.get(**key).is_some())?;
    let name = tool.name();
    Some(format!(
        "`{secret}` of `{name}` in hosted_tools is a secret, which a configuration would show; give the \
         tool in a program, with `hosted_tool`"
    ))
}
