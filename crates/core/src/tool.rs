//! [`Tool`]: the extension trait for a model's actions, and [`tool`], which creates a tool from an
//! async function. The built-in tools are in `tools`.

use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{CallKey, CallTarget, Permissions};
use plimsoll_context::{Bytes, CallId, Part, ToolSpec, head_tail};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::process::InheritedVariables;
use crate::reservation::Reservation;
use crate::store::FileEdit;

/// Maximum size of a stored tool result, independent of any budget.
pub const MAX_TOOL_OUTPUT: Bytes = Bytes(16 * 1024 * 1024);
/// Default timeout of a tool call.
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(600);
/// Upper bound for the configured number of retries.
pub const MAX_TOOL_RETRIES: u32 = 10;
/// Capacity of the queue of progress updates, shared by all running tools.
///
/// Updates are dropped when the queue is full, so a slow observer never blocks a tool.
pub const TOOL_UPDATES: usize = 64;
/// Maximum length of one update. Longer ones are shortened.
pub const MAX_TOOL_UPDATE: Bytes = Bytes(4 * 1024);

/// An action that a model can take.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns the name, description and input schema that are sent to the model.
    fn spec(&self) -> &ToolSpec;

    /// Returns `true` if running the tool twice has the same effect as running it once.
    ///
    /// Only idempotent tools are run again after a crash or a timeout.
    fn idempotent(&self) -> bool {
        false
    }

    /// Returns `true` if each call needs approval from the gate.
    fn asks(&self) -> bool {
        false
    }

    /// Returns `true` if calls change files of the workspace. The [permission
    /// mode](plimsoll_agent::PermissionMode) decides whether they need approval.
    fn edits_files(&self) -> bool {
        false
    }

    /// Returns the timeout of one call. Default [`TOOL_TIMEOUT`].
    fn timeout(&self) -> Duration {
        TOOL_TIMEOUT
    }

    /// Returns the target of a call, for permission rules. By default, rules are compared with the
    /// texts of the arguments.
    ///
    /// The result must depend only on the arguments. The method must not block: it is called on an
    /// async thread, and again after a crash.
    fn target(&self, _arguments: &Value) -> CallTarget {
        CallTarget::Arguments
    }

    /// Executes one call. `arguments` is always an object. A panic becomes an error result.
    ///
    /// # Errors
    /// A text for the model that explains how to proceed.
    async fn call(&self, arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError>;
}

/// The context of a tool call.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// Id of the call.
    pub call: CallId,
    /// Cancelled when the run no longer needs the result.
    pub cancel: CancellationToken,
    /// Receives progress updates of the tool with this name.
    pub(crate) updates: Option<(mpsc::Sender<Update>, String)>,
    /// What the call may use of the limits of its run. A tool that calls a model adds the usage
    /// ([`Reservation::spend`]), which counts even if the call fails; a tool that starts agents
    /// reserves their parts.
    pub reservation: Reservation,
    /// The permission rules of the run, for tools that learn their target only during execution.
    pub permissions: Arc<Permissions>,
    /// The environment variables of this process that started commands inherit.
    pub variables: InheritedVariables,
    /// Whether the model is [known](crate::Provider::takes_images) to accept images, so that a tool
    /// may return one.
    pub shows_images: bool,
    pub(crate) caller: Option<Arc<Caller>>,
}

impl ToolContext {
    /// Creates a context that ignores spending and progress.
    #[must_use]
    pub fn new(call: CallId, cancel: CancellationToken) -> Self {
        Self {
            call,
            cancel,
            updates: None,
            reservation: Reservation::unlimited(),
            permissions: Arc::default(),
            variables: InheritedVariables::default(),
            shows_images: false,
            caller: None,
        }
    }

    /// Returns the unique key of this call among all calls of all sessions.
    ///
    /// It stays the same if the call is repeated after a timeout or a crash, in this process or
    /// another. As text, it can be used as an idempotency key for an external service. `None` if no
    /// run has made the call.
    #[must_use]
    pub fn key(&self) -> Option<&CallKey> {
        self.caller.as_ref().map(|caller| &caller.key)
    }

    /// Sends a progress update. It is published live and is not part of the result. Updates beyond
    /// [`TOOL_UPDATES`] in the queue are dropped.
    pub fn update(&self, text: impl Into<String>) {
        let Some((to, name)) = &self.updates else {
            return;
        };
        let text = text.into();
        // Updates beyond the capacity are dropped.
        let _ = to.try_send(Update {
            call: self.call.clone(),
            name: name.clone(),
            text: head_tail(&text, MAX_TOOL_UPDATE).unwrap_or(text),
        });
    }

    /// Stores the contents of a file in the session's store, so that a user can undo the change.
    /// Files changed by a sub-agent belong to the session of its caller.
    ///
    /// Call this before the change, and do not make the change if it fails. If no run has made the
    /// call, nothing is stored.
    ///
    /// # Errors
    /// If the store cannot keep the file. The error is a text for the model.
    pub async fn keep_file(&self, edit: FileEdit) -> Result<(), ToolError> {
        let Some(caller) = &self.caller else {
            return Ok(());
        };
        let path = edit.path.display().to_string();
        let kept = caller.parts.store.keep_file(&caller.files_of, edit).await;
        kept.map_err(|error| ToolError(format!("`{path}` was not changed: {error}")))
    }
}

/// A progress update of a tool.
#[derive(Debug)]
pub(crate) struct Update {
    pub(crate) call: CallId,
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Text, images or files returned by a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// The parts of the result.
    pub parts: Vec<Part>,
}

/// The error of a tool, as a text for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(
    /// The text.
    pub String,
);

impl ToolError {
    /// Creates an error from any displayable value.
    pub fn new(error: impl Display) -> Self {
        Self(error.to_string())
    }
}

impl<T: Into<String>> From<T> for ToolOutput {
    fn from(text: T) -> Self {
        Self {
            parts: vec![Part::text(text)],
        }
    }
}

/// Creates a tool from an async function whose input is a struct.
///
/// The model gets the struct's schema with the doc comments of its fields. The tool's description
/// replaces the doc comment of the struct, which is for programmers.
///
/// ```
/// use plimsoll_core::{tool, Tool, ToolError};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     /// The first number.
///     a: i64,
///     /// The second number.
///     b: i64,
/// }
///
/// let add = tool("add", "Adds two numbers.", |input: Add| async move {
///     Ok::<_, ToolError>((input.a + input.b).to_string())
/// })
/// .idempotent();
/// assert_eq!(add.spec().name, "add");
/// ```
pub fn tool<I, F, Fut, O, E>(
    name: impl Into<String>,
    description: impl Into<String>,
    function: F,
) -> FnTool<I, F>
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, E>> + Send + 'static,
    O: Into<ToolOutput>,
    E: Display,
{
    let spec = ToolSpec {
        name: name.into(),
        description: description.into(),
        schema: schema_of::<I>(),
    };
    FnTool::new(spec, function)
}

/// A tool created by [`tool`].
pub struct FnTool<I, F> {
    spec: ToolSpec,
    idempotent: bool,
    asks: bool,
    timeout: Duration,
    function: Arc<F>,
    input: PhantomData<fn(I)>,
}

impl<I, F> FnTool<I, F> {
    pub(crate) fn new(spec: ToolSpec, function: F) -> Self {
        Self {
            spec,
            idempotent: false,
            asks: false,
            timeout: TOOL_TIMEOUT,
            function: Arc::new(function),
            input: PhantomData,
        }
    }

    /// Marks the tool as idempotent.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Requires approval by the gate before each call.
    #[must_use]
    pub fn asks(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Sets the timeout of one call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

#[async_trait]
impl<I, F, Fut, O, E> Tool for FnTool<I, F>
where
    I: DeserializeOwned + Send + 'static,
    F: Fn(I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, E>> + Send + 'static,
    O: Into<ToolOutput>,
    E: Display,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn idempotent(&self) -> bool {
        self.idempotent
    }

    fn asks(&self) -> bool {
        self.asks
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    async fn call(&self, arguments: Value, _cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let input = parse_arguments(&self.spec, arguments)?;
        (self.function)(input)
            .await
            .map(Into::into)
            .map_err(ToolError::new)
    }
}

/// Returns the JSON Schema of a tool's input, inlined, without title and without the doc comment of
/// the type.
#[must_use]
pub fn schema_of<I: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<I>()
        .to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        object.remove("description");
        object.entry("type").or_insert_with(|| "object".into());
        object.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// Deserializes the arguments of a tool call.
///
/// # Errors
/// A text for the model with the cause and the schema.
pub fn parse_arguments<I: DeserializeOwned>(
    spec: &ToolSpec,
    arguments: Value,
) -> Result<I, ToolError> {
    serde_json::from_value(arguments).map_err(|error| {
        let whole = |text: String, name| {
            text.replace(
                &format!("expected {name}"),
                "expected a whole number of 0 or more",
            )
        };
        let why = ["usize", "u64", "u32"]
            .into_iter()
            .fold(error.to_string(), whole);
        ToolError(format!(
            "the arguments of `{}` do not fit: {why}; its input schema is {}",
            spec.name, spec.schema
        ))
    })
}
