//! [`Parts`]: what the driver acts through, and its settings.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::OptionFuture;
use plimsoll_agent::{Answer, Event, Permissions, Question, Setup};
use plimsoll_context::{Bytes, Part};

use crate::agent::SUMMARY_TIMEOUT;
use crate::contained::{Breakdowns, said_by};
use crate::gate::{DenyAll, Gate};
use crate::hooks::Hooks;
use crate::memory_store::MemoryStore;
use crate::observer::Observers;
use crate::process::InheritedVariables;
use crate::provider::Provider;
use crate::retry::RetryConfig;
use crate::secret::Secrets;
use crate::steps::MAX_STEP_RESULT;
use crate::store::{SessionId, SessionStore};
use crate::telemetry::{TelemetryOptions, captures_contents};
use crate::tool::{TOOL_RETRIES, Tool};

/// How many characters of a late message a warning quotes. The output contains all of it.
const TOLD_OF_LATE: usize = 80;

/// Everything that the driver acts through.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) provider: Arc<dyn Provider>,
    /// The model that writes summaries.
    pub(crate) summarizer: Arc<dyn Provider>,
    /// Whether the summarizer is another model than the run's own, with its own window.
    pub(crate) asks_summarizer: bool,
    pub(crate) summary_timeout: Duration,
    pub(crate) hooks: Hooks,
    pub(crate) tools: HashMap<String, Arc<dyn Tool>>,
    pub(crate) permissions: Arc<Permissions>,
    /// The environment variables that commands get.
    pub(crate) variables: InheritedVariables,
    /// Secrets that are removed from tool results.
    pub(crate) secrets: Secrets,
    pub(crate) store: Arc<dyn SessionStore>,
    /// The session that changed files are kept for, if it is not the run's own.
    pub(crate) files_of: Option<SessionId>,
    /// Approves tool calls. Without a gate, calls that need approval are denied.
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) observers: Observers,
    pub(crate) retry: RetryConfig,
    /// Maximum size in bytes of a tool result in the steps for the host.
    pub(crate) max_step_result: Bytes,
    /// How often a call of an idempotent tool is retried after a timeout.
    pub(crate) tool_retries: u32,
    /// How long to wait for the gate.
    pub(crate) gate_timeout: Option<Duration>,
    /// How spans are recorded.
    pub(crate) telemetry: TelemetryOptions,
    /// Memory held by the current runs of all sessions, in bytes.
    pub(crate) held: Arc<AtomicUsize>,
    /// Failures of the host's parts.
    pub(crate) breakdowns: Arc<Breakdowns>,
}

impl Parts {
    /// Creates the parts of an agent with this provider. Every setting has its default.
    pub(crate) fn new(provider: Arc<dyn Provider>) -> Self {
        Self {
            summarizer: Arc::clone(&provider),
            provider,
            asks_summarizer: false,
            summary_timeout: SUMMARY_TIMEOUT,
            hooks: Hooks::default(),
            tools: HashMap::new(),
            permissions: Arc::default(),
            variables: InheritedVariables::default(),
            secrets: Secrets::default(),
            store: Arc::new(MemoryStore::default()),
            files_of: None,
            gate: None,
            observers: Observers::default(),
            retry: RetryConfig::default(),
            max_step_result: MAX_STEP_RESULT,
            tool_retries: TOOL_RETRIES,
            gate_timeout: None,
            telemetry: TelemetryOptions {
                contents: captures_contents(),
                called: None,
            },
            held: Arc::default(),
            breakdowns: Arc::default(),
        }
    }

    /// Reports an event to the observers.
    pub(crate) fn tell(&self, event: Event) {
        self.observers.tell(event);
    }

    /// Reports an accepted message that no run will read. It has no number, because it is not in
    /// the log.
    pub(crate) fn too_late(&self, message: &[Part]) {
        let texts = message.iter().filter_map(Part::as_text);
        let text = texts.collect::<Vec<_>>().join(" ");
        let text = match text.trim() {
            "" => "a message without text".to_owned(),
            text => text.chars().take(TOLD_OF_LATE).collect(),
        };
        self.tell(Event::Warning {
            text: format!("not delivered, the run had ended: {text}"),
        });
    }

    /// Returns the model that writes summaries if it is not the run's own and its prices are
    /// unknown.
    pub(crate) fn unpriced_summarizer<'a>(&self, setup: &'a Setup) -> Option<&'a str> {
        let model = setup.summary_model.as_ref()?;
        let unknown = self.asks_summarizer && model.sheet.is_none();
        unknown.then_some(&*model.model)
    }

    /// Asks the gate. A timeout or a panic denies the call.
    pub(super) async fn ask_gate(&self, question: &Question) -> Answer {
        let name = &question.call.name;
        let gate = self.gate.as_deref().unwrap_or(&DenyAll);
        let decision = std::panic::AssertUnwindSafe(async { gate.decide(question).await });
        let silence: OptionFuture<_> = self.gate_timeout.map(tokio::time::sleep).into();
        let why = tokio::select! {
            biased;
            answer = decision.catch_unwind() => match answer {
                Ok(answer) => return answer,
                Err(panic) => format!(
                    "`{name}` was not allowed: the gate that should decide failed: {}",
                    said_by(&*panic)
                ),
            },
            Some(()) = silence => format!("`{name}` was not allowed: there was no answer in time"),
        };
        Answer::Deny { why }
    }
}
