//! [`Parts`]: what the driver acts through, and its settings.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{Answer, Event, HookInput, InputFilter, Question, Setup};
use plimsoll_context::Part;

use crate::error::contained;
use crate::gate::{DenyAll, Gate};
use crate::hooks::{HookContext, HookOutcome, Hooks};
use crate::memory_store::MemoryStore;
use crate::observer::Observers;
use crate::process::InheritedVariables;
use crate::provider::Provider;
use crate::secret::Secrets;
use crate::settings::DriverSettings;
use crate::store::{SessionId, SessionStore};
use crate::telemetry::captures_contents;
use crate::tool::Tool;

/// How many characters of a late message a warning quotes. The output contains all of it.
const TOLD_OF_LATE: usize = 80;

/// Everything that the driver acts through.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) provider: Arc<dyn Provider>,
    /// The model that writes summaries. `None`: the run's own.
    pub(crate) summarizer: Option<Arc<dyn Provider>>,
    pub(crate) hooks: Hooks,
    pub(crate) input_filters: Vec<Arc<dyn InputFilter>>,
    pub(crate) tools: HashMap<String, Arc<dyn Tool>>,
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
    pub(crate) settings: DriverSettings,
    /// Whether spans contain messages, cut to [`MAX_CONTENT`](crate::telemetry::MAX_CONTENT). Every
    /// reader of the spans can then read them.
    pub(crate) records_contents: bool,
    /// The name that the caller uses for a sub-agent.
    pub(crate) called: Option<Arc<str>>,
    /// The limit of the policy, for a warning if a request must exceed it.
    pub(crate) max_history_messages: Option<usize>,
}

impl Parts {
    /// Creates parts with a store in memory, without tools.
    pub(crate) fn new(provider: Arc<dyn Provider>) -> Self {
        Self {
            provider,
            summarizer: None,
            hooks: Hooks::default(),
            input_filters: Vec::new(),
            tools: HashMap::new(),
            variables: InheritedVariables::default(),
            secrets: Secrets::default(),
            store: Arc::new(MemoryStore::default()),
            files_of: None,
            gate: None,
            observers: Observers::default(),
            settings: DriverSettings::default(),
            records_contents: captures_contents(),
            called: None,
            max_history_messages: None,
        }
    }

    /// Returns the model that writes summaries.
    pub(crate) fn summarizer(&self) -> &dyn Provider {
        self.summarizer.as_deref().unwrap_or(&*self.provider)
    }

    /// Reports warnings to the observers.
    pub(crate) fn warn(&self, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            self.tell(Event::Warning { text });
        }
    }

    /// Reports an event to the observers.
    pub(crate) fn tell(&self, event: Event) {
        self.observers.tell(event);
    }

    /// Reports an accepted message that no run will read. It has no number, because it is not in
    /// the log.
    pub(crate) fn too_late(&self, message: &[Part]) {
        let text = match Part::texts(message).trim() {
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
        let unknown = self.summarizer.is_some() && model.sheet.is_none();
        unknown.then_some(&*model.model)
    }

    /// Calls the hooks of a point, and reports their failures as warnings.
    pub(crate) async fn call_hooks(&self, cx: &HookContext, input: HookInput) -> HookOutcome {
        let outcome = self.hooks.call(cx, input, &self.variables).await;
        self.warn(outcome.faults.clone());
        outcome
    }

    /// Asks the gate. A timeout or a panic denies the call.
    pub(crate) async fn ask_gate(&self, question: &Question) -> Answer {
        let name = &question.call.name;
        let gate = self.gate.as_deref().unwrap_or(&DenyAll);
        let decision = contained(async { gate.decide(question).await });
        let limit = self.settings.gate_timeout.unwrap_or(Duration::MAX);
        let why = match tokio::time::timeout(limit, decision).await {
            Ok(Ok(answer)) => return answer,
            Ok(Err(panic)) => {
                format!("`{name}` was not allowed: the gate that should decide failed: {panic}")
            }
            Err(_) => format!("`{name}` was not allowed: there was no answer in time"),
        };
        Answer::Deny { why }
    }
}
