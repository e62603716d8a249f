//! [`Tool`]: the door to what a model may do, and [`tool`], which makes one from an async
//! function. Not the tools themselves; those that act on files are in `tools`.

use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{CallKey, CallTarget, Permissions};
use plimsoll_context::{Bytes, CallId, Part, ToolSpec, head_tail};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::allowance::{Allowance, Meter};
use crate::file_edit::FileEdit;
use crate::process::InheritedVariables;
use crate::sub_agent::Origin;

/// One result is never kept beyond this, whatever the budget: a bound for the process.
pub const MAX_TOOL_OUTPUT: Bytes = Bytes(16 * 1024 * 1024);
/// A tool that sets no timeout is stopped after this.
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(600);
/// How often a call of an idempotent tool is made again after a timeout, where nothing is said.
pub const TOOL_RETRIES: u32 = 3;
/// And at most, whatever is said: what hangs ten times will hang again.
pub const MAX_TOOL_RETRIES: u32 = 10;
/// Updates that wait to be told, at most, of all tools that run: further ones are lost, since a tool
/// that talks must not wait for who listens.
pub const TOOL_UPDATES: usize = 64;
/// Updates of one call, at most: nobody reads more, and a flood must not hold up what else happens.
pub const TOOL_UPDATES_A_CALL: usize = 1_000;
/// One update is shortened to this.
pub const MAX_TOOL_UPDATE: Bytes = Bytes(4 * 1024);

/// Something a model may do.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model is told.
    fn spec(&self) -> &ToolSpec;

    /// Whether running it twice does no harm. Only then is it run again after a crash or a timeout.
    fn idempotent(&self) -> bool {
        false
    }

    /// Whether the gate is asked before each call.
    fn asks(&self) -> bool {
        false
    }

    /// Returns `true` if its calls change files of the workspace. The
    /// [permission mode](plimsoll_agent::PermissionMode) decides whether the gate is asked before.
    fn edits_files(&self) -> bool {
        false
    }

    /// How long one call may take. Default [`TOOL_TIMEOUT`].
    fn timeout(&self) -> Duration {
        TOOL_TIMEOUT
    }

    /// Returns what a call acts on, for permission rules. By default rules compare the texts of the
    /// arguments.
    ///
    /// The answer must depend on the arguments alone and must not block: it is given on an async thread,
    /// and again after a crash.
    fn target(&self, _arguments: &Value) -> CallTarget {
        CallTarget::Arguments
    }

    /// Returns the beginning of the names of the tools that this one calls, such as `files_`. Permission
    /// rules for such tools are taken for valid although the tools are not offered.
    fn calls(&self) -> Option<String> {
        None
    }

    /// Runs one call. `arguments` is always an object. A panic is contained and becomes an error
    /// result.
    ///
    /// # Errors
    /// A text for the model, which says what to do instead.
    async fn call(&self, arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError>;
}

/// What a tool is told besides its arguments.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The call's id.
    pub call: CallId,
    /// Cancelled when the run no longer wants the result.
    pub cancel: CancellationToken,
    /// Where a tool puts what is to be pinned once it has returned.
    pub pins: Pins,
    /// Where a tool that calls models itself, as a sub-agent does, says what they used: it counts
    /// towards the limits of the run, whatever becomes of the call.
    pub spent: Meter,
    /// Where a tool says how far it is.
    pub updates: Updates,
    /// What the call may use: a tool that starts agents reserves from it what they may use.
    pub allowance: Allowance,
    /// The permission rules of the run, for tools that find out what they act on only as they run.
    pub permissions: Arc<Permissions>,
    /// The variables of this process that a command gets which a tool starts.
    pub variables: InheritedVariables,
    /// The model is [known](crate::Provider::takes_images) to take images, so that a tool may return one.
    pub shows_images: bool,
    pub(crate) origin: Origin,
}

impl ToolContext {
    /// For a call whose pins, spending and progress nobody is interested in.
    #[must_use]
    pub fn new(call: CallId, cancel: CancellationToken) -> Self {
        let allowance = Allowance::unlimited();
        Self {
            call,
            cancel,
            pins: Pins::default(),
            spent: allowance.meter().clone(),
            updates: Updates::default(),
            allowance,
            permissions: Arc::default(),
            variables: InheritedVariables::default(),
            shows_images: false,
            origin: Origin::default(),
        }
    }

    /// Returns what names this call among all calls of all sessions: the same again if the call is made
    /// again, after a timeout or a crash, in this process or another. As text it is an idempotency key for
    /// a service that the tool calls. `None` if no run has made the call.
    #[must_use]
    pub fn key(&self) -> Option<&CallKey> {
        self.origin.of.as_ref().map(|caller| &caller.key)
    }

    /// Says how far the call is: told live, and no part of its result. Beyond [`TOOL_UPDATES`] that
    /// wait and [`TOOL_UPDATES_A_CALL`] in all it is not told.
    pub fn update(&self, text: impl Into<String>) {
        self.updates.say(text.into());
    }

    /// Keeps what a file contains before the call changes it. The session's store has it from then on,
    /// so that a person can restore the file. What a sub-agent changes belongs to the session that
    /// called it.
    ///
    /// Call it before the change, and do not make the change if it fails. If no run has made the call,
    /// nothing is kept.
    ///
    /// # Errors
    /// If the store cannot keep it, with a text for the model.
    pub async fn keep_file(&self, edit: FileEdit) -> Result<(), ToolError> {
        let Some(caller) = &self.origin.of else {
            return Ok(());
        };
        let path = edit.path.display().to_string();
        let session = caller.parts.files_of.as_ref();
        let session = session.unwrap_or(&caller.session);
        let kept = caller.parts.store.keep_file(session, edit).await;
        kept.map_err(|error| ToolError(format!("`{path}` was not changed: {error}")))
    }
}

/// Where a tool says how far it is.
#[derive(Debug, Clone, Default)]
pub struct Updates(Option<Arc<Telling>>);

/// What a tool says of its progress.
#[derive(Debug)]
pub(crate) struct Update {
    pub(crate) call: CallId,
    pub(crate) name: String,
    pub(crate) text: String,
}

#[derive(Debug)]
struct Telling {
    to: mpsc::Sender<Update>,
    call: CallId,
    name: String,
    /// How many may still be told.
    left: AtomicUsize,
}

impl Updates {
    pub(crate) fn new(to: mpsc::Sender<Update>, call: CallId, name: String) -> Self {
        let left = AtomicUsize::new(TOOL_UPDATES_A_CALL);
        Self(Some(Arc::new(Telling {
            to,
            call,
            name,
            left,
        })))
    }

    fn say(&self, text: String) {
        let Some(telling) = &self.0 else { return };
        let less = |left: usize| left.checked_sub(1);
        if telling
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_err()
        {
            return;
        }
        // Where nobody has taken the last ones yet, this one is not told.
        let _ = telling.to.try_send(Update {
            call: telling.call.clone(),
            name: telling.name.clone(),
            text: head_tail(&text, MAX_TOOL_UPDATE).unwrap_or(text),
        });
    }
}

/// What a tool wants pinned. Only a tool's own code can put something here: nothing in what it
/// returns can.
#[derive(Debug, Clone, Default)]
pub struct Pins(Arc<Mutex<Vec<String>>>);

impl Pins {
    /// One more text that must stay in the view.
    pub fn push(&self, text: impl Into<String>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(text.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The arguments of [`pin_tool`].
#[derive(Deserialize, JsonSchema)]
struct PinInput {
    /// The rule or fact to keep, in full
    text: String,
}

struct PinTool(ToolSpec);

/// A tool by which the model itself pins a rule or a fact, so that no plan takes it out of the
/// view. How much may be pinned is bounded: see `plimsoll_agent::MAX_PINS`.
#[must_use]
pub fn pin_tool() -> Arc<dyn Tool> {
    Arc::new(PinTool(ToolSpec {
        name: "pin".to_owned(),
        description: "Keeps a rule or fact in view for the whole session. Use it for what must not be forgotten, such as a constraint of the user or a value found once.".to_owned(),
        schema: schema_of::<PinInput>(),
    }))
}

#[async_trait]
impl Tool for PinTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn idempotent(&self) -> bool {
        true
    }

    async fn call(&self, arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let input: PinInput = parse_arguments(&self.0, arguments)?;
        if input.text.trim().is_empty() {
            return Err(ToolError(
                "there is nothing to pin; give the text".to_owned(),
            ));
        }
        cx.pins.push(input.text);
        Ok("It is kept in view from now on, unless a note says why not.".into())
    }
}

/// What a tool returns: text, images or files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// The parts.
    pub parts: Vec<Part>,
}

/// Why a tool failed, as a text for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(
    /// The text.
    pub String,
);

impl ToolError {
    /// From anything that can be printed.
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

/// Makes a tool from an async function whose input is a struct. The model is sent the struct's schema
/// with the doc comments of its fields; the tool's own description replaces the doc comment of the
/// struct, which is for programmers.
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
    FnTool {
        spec,
        idempotent: false,
        asks: false,
        timeout: TOOL_TIMEOUT,
        function: Arc::new(function),
        input: PhantomData,
    }
}

/// A tool made by [`tool`].
pub struct FnTool<I, F> {
    spec: ToolSpec,
    idempotent: bool,
    asks: bool,
    timeout: Duration,
    function: Arc<F>,
    input: PhantomData<fn(I)>,
}

impl<I, F> FnTool<I, F> {
    /// Running it twice does no harm.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// The gate is asked before each call.
    #[must_use]
    pub fn asks(mut self) -> Self {
        self.asks = true;
        self
    }

    /// How long one call may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

#[async_trait]
impl<I, F, Fut, O, E> Tool for FnTool<I, F>
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
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

/// The JSON Schema of a tool's input, inlined and without what models do not need: no title, and not
/// the doc comment of the type itself.
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
        object
            .entry("properties")
            .or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    schema
}

/// Reads a tool's arguments into its input type.
///
/// # Errors
/// A text for the model that names the field and shows the schema.
pub fn parse_arguments<I: DeserializeOwned>(
    spec: &ToolSpec,
    arguments: Value,
) -> Result<I, ToolError> {
    serde_json::from_value(arguments).map_err(|error| {
        ToolError(format!(
            "the arguments of `{}` do not fit: {error}; its input schema is {}",
            spec.name, spec.schema
        ))
    })
}
