//! [`FileTool`]: a tool with blocking work, such as reading and searching files, which runs outside the
//! async threads.
//!
//! The work itself is in the file named after the tool.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use plimsoll_agent::CallTarget;
use plimsoll_context::ToolSpec;
use plimsoll_core::{Tool, ToolContext, ToolError, ToolOutput, parse_arguments};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::change::PlannedChange;
use crate::input;
use crate::scope::{Access, Scope, Workspace};

/// Maximum duration of a search. It then returns the results so far.
pub const WALK_TIME: Duration = Duration::from_secs(30);

/// Signals long work to stop.
#[derive(Debug)]
pub(crate) struct Stop {
    cancel: CancellationToken,
    deadline: Option<Instant>,
}

/// The work of a file tool.
pub(crate) enum Work<I> {
    /// Changes nothing, and returns the tool result.
    Read(fn(&Scope, I, &Stop) -> Result<ToolOutput, ToolError>),
    /// Changes one file. Its old content is stored first.
    Change(fn(&Scope, &I) -> Result<PlannedChange, ToolError>),
}

impl<I> Clone for Work<I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I> Copy for Work<I> {}

/// The result of the work.
enum WorkResult {
    Told(ToolOutput),
    Planned(PlannedChange),
}

/// A tool that works on files.
struct FileTool<I> {
    spec: ToolSpec,
    access: Access,
    workspace: Arc<Workspace>,
    work: Work<I>,
}

/// Returns the tool that does this work.
pub(crate) fn file_tool<I>(
    workspace: &Arc<Workspace>,
    access: Access,
    work: Work<I>,
) -> Arc<dyn Tool>
where
    I: JsonSchema + DeserializeOwned + Send + 'static,
{
    let spec = ToolSpec {
        name: access.tool.to_owned(),
        description: access.description.to_owned(),
        schema: input::schema::<I>(),
    };
    Arc::new(FileTool {
        spec,
        access,
        workspace: Arc::clone(workspace),
        work,
    })
}

impl<I> FileTool<I> {
    /// Runs the work on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) => Err(ToolError(format!("`{}` failed: {error}", self.spec.name))),
        }
    }
}

impl Stop {
    /// Creates a signal for cancellation or after [`WALK_TIME`].
    fn new(cancel: CancellationToken) -> Self {
        Self {
            cancel,
            deadline: Instant::now().checked_add(WALK_TIME),
        }
    }

    /// Returns `true` if the work should stop.
    pub(crate) fn now(&self) -> bool {
        let late = self.deadline.is_some_and(|end| Instant::now() >= end);
        late || self.cancel.is_cancelled()
    }
}

#[async_trait]
impl<I: DeserializeOwned + Send + 'static> Tool for FileTool<I> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn idempotent(&self) -> bool {
        self.access.is_idempotent
    }

    fn edits_files(&self) -> bool {
        self.access.writes
    }

    fn target(&self, arguments: &Value) -> CallTarget {
        self.access.target(&self.workspace, arguments)
    }

    async fn call(&self, arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let input: I = parse_arguments(&self.spec, arguments)?;
        let scope = Scope {
            workspace: Arc::clone(&self.workspace),
            access: self.access,
            permissions: Arc::clone(&cx.permissions),
            shows_images: cx.shows_images,
        };
        let work = self.work;
        let root = scope.root().path().to_owned();
        let cancel = cx.cancel.child_token();
        let stop = Stop::new(cancel.clone());
        // The work also stops soon if this future is dropped.
        let _guard = cancel.drop_guard();
        let done = self.blocking(move || match work {
            Work::Read(work) => work(&scope, input, &stop).map(WorkResult::Told),
            Work::Change(plan) => plan(&scope, &input).map(WorkResult::Planned),
        });
        let planned = match done.await? {
            WorkResult::Told(output) => return Ok(output),
            WorkResult::Planned(planned) => planned,
        };
        if let Some(edit) = planned.edit(cx.call.clone(), &root) {
            cx.keep_file(edit).await?;
        }
        self.blocking(move || planned.make(&root).map(Into::into))
            .await
    }
}
