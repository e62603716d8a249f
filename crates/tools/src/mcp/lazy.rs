//! [`LazyTool`]: three tools that represent a server with many tools.
//!
//! One lists and searches the server's tools, one describes a tool, and one calls it. Only these three
//! are sent with every request. Their results always reflect the server's current tools.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{CallTarget, ToolTarget};
use plimsoll_context::{Bytes, ToolSpec, clip, nearest};
use plimsoll_core::{Tool, ToolContext, ToolError, ToolOutput, parse_arguments, schema_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::catalog::{Catalog, Remote};
use super::names;
use super::reconnecting::ReconnectingClient;

/// Maximum number of tools in one listing; others are found with a search.
pub const MCP_LISTED: usize = 200;
/// Maximum size of a tool's line in a listing.
const LINE: Bytes = Bytes(120);
/// Maximum size of the server's instructions in every request.
const ABOUT: Bytes = Bytes(300);

#[derive(Deserialize, JsonSchema)]
struct Listing {
    /// Words to look for in names and descriptions; none lists all
    #[serde(default)]
    search: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Naming {
    /// The tool, as listed
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct CallInput {
    /// The tool, as listed
    name: String,
    /// Its arguments, by its own schema
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// The kind of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LazyAction {
    List,
    Describe,
    Call,
}

/// One of the three tools.
pub(super) struct LazyTool {
    spec: ToolSpec,
    does: LazyAction,
    client: Arc<ReconnectingClient>,
    /// `true` if no tool of the server needs approval.
    is_harmless: bool,
    is_idempotent: bool,
    /// The name of the tool that lists.
    list: String,
}

/// Returns the three tools of a server. `name` converts `tools`, `describe` and `call` to their full
/// names.
pub(super) fn tools(
    client: &Arc<ReconnectingClient>,
    mut name: impl FnMut(&str) -> String,
) -> Vec<LazyTool> {
    let catalog = client.catalog();
    let (list, describe, call) = (name("tools"), name("describe"), name("call"));
    let server = &client.server.name;
    let about = catalog.about.as_deref().unwrap_or("").replace('\n', " ");
    let about = match clip(about.trim(), ABOUT) {
        "" => String::new(),
        about => format!(" About it: {about}"),
    };
    let all = |is: fn(&Remote) -> bool| !catalog.tools.is_empty() && catalog.tools.iter().all(is);
    let make = |does, own: &str, description: String, schema| LazyTool {
        spec: ToolSpec {
            name: own.to_owned(),
            description,
            schema,
        },
        does,
        client: Arc::clone(client),
        is_harmless: all(|tool| !tool.asks),
        is_idempotent: all(|tool| tool.idempotent),
        list: list.clone(),
    };
    vec![
        make(
            LazyAction::Call,
            &call,
            format!(
                "Calls a tool of `{server}`. `{list}` lists them, `{describe}` gives a tool's schema."
            ),
            schema_of::<CallInput>(),
        ),
        make(
            LazyAction::Describe,
            &describe,
            format!(
                "Describes a tool of `{server}`: what it does, and the schema of its arguments."
            ),
            schema_of::<Naming>(),
        ),
        make(
            LazyAction::List,
            &list,
            format!("Lists the tools of `{server}`, one a line.{about}"),
            schema_of::<Listing>(),
        ),
    ]
}

impl LazyTool {
    fn find<'a>(&self, catalog: &'a Catalog, name: &str) -> Result<&'a Remote, ToolError> {
        catalog.find(name).ok_or_else(|| {
            let near = nearest(name, catalog.names());
            let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            ToolError(format!(
                "`{}` has no tool `{name}`; {near}`{}` lists them",
                self.client.server.name, self.list
            ))
        })
    }

    async fn run(
        &self,
        catalog: &Catalog,
        input: CallInput,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let tool = self.find(catalog, &input.name)?;
        if let Some(missing) = missing(&tool.schema, &input.arguments) {
            let text = format!("`{}` needs `{missing}` in its arguments", tool.name);
            return Err(with_schema(&text, tool));
        }
        let answer = self.client.call(tool, &input.arguments, cx).await;
        answer.map_err(|error| {
            if cx.cancel.is_cancelled() {
                error
            } else {
                with_schema(&error.0, tool)
            }
        })
    }
}

#[async_trait]
impl Tool for LazyTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn idempotent(&self) -> bool {
        self.does != LazyAction::Call || self.is_idempotent
    }

    fn asks(&self) -> bool {
        self.does == LazyAction::Call && !self.is_harmless
    }

    fn timeout(&self) -> Duration {
        self.client.server.timeout
    }

    fn target(&self, arguments: &Value) -> CallTarget {
        let name = arguments.get("name").and_then(Value::as_str);
        let Some(name) = name.filter(|_| self.does == LazyAction::Call) else {
            return CallTarget::Arguments;
        };
        let server = &self.client.server.name;
        CallTarget::Tool(ToolTarget {
            names: vec![
                format!("{server}_{name}"),
                names::name(server, name, &mut HashSet::new()),
            ],
            arguments: arguments.get("arguments").cloned().unwrap_or_default(),
        })
    }

    fn calls(&self) -> Option<String> {
        let server = &self.client.server.name;
        (self.does == LazyAction::Call).then(|| names::name(server, "", &mut HashSet::new()))
    }

    async fn call(&self, arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let catalog = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::new("cancelled")),
            catalog = self.client.read() => catalog.map_err(ToolError::new)?,
        };
        match self.does {
            LazyAction::List => {
                let input: Listing = parse_arguments(&self.spec, arguments)?;
                Ok(listing(&catalog, input.search.as_deref().unwrap_or("")).into())
            }
            LazyAction::Describe => {
                let input: Naming = parse_arguments(&self.spec, arguments)?;
                let tool = self.find(&catalog, &input.name)?;
                let about = json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema });
                Ok(about.to_string().into())
            }
            LazyAction::Call => {
                let input = parse_arguments(&self.spec, arguments)?;
                self.run(&catalog, input, &cx).await
            }
        }
    }
}

/// Returns one line `name: first line` for each tool.
fn listing(catalog: &Catalog, search: &str) -> String {
    let words: Vec<String> = search.split_whitespace().map(str::to_lowercase).collect();
    let matches = |tool: &&Remote| {
        let text = format!("{} {}", tool.name, tool.description).to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    };
    let found: Vec<&Remote> = catalog.tools.iter().filter(matches).collect();
    if found.is_empty() {
        let all = catalog.tools.len();
        return format!("no tool matches; there are {all} without `search`");
    }
    let mut text = String::new();
    for tool in found.iter().take(MCP_LISTED) {
        let first = tool.description.lines().next().unwrap_or("");
        let first = clip(first, LINE);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}: {first}", tool.name);
    }
    if let Some(more @ 1..) = found.len().checked_sub(MCP_LISTED) {
        let _ = writeln!(text, "[{more} more; `search` for words]");
    }
    text
}

/// Returns a required argument that is missing.
fn missing<'a>(schema: &'a Value, arguments: &Map<String, Value>) -> Option<&'a str> {
    let required = schema.get("required")?.as_array()?;
    let names = required.iter().filter_map(Value::as_str);
    names
        .into_iter()
        .find(|name| !arguments.contains_key(*name))
}

fn with_schema(text: &str, tool: &Remote) -> ToolError {
    ToolError(format!(
        "{text}\nThe input schema of `{}`: {}",
        tool.name, tool.schema
    ))
}
