//! [`Permission`]: the gate of a session. It asks the user at the client, unless the session's mode
//! or an earlier approval answers the question.

use std::sync::{Arc, Mutex};

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SessionId, SessionUpdate, ToolCallId, ToolCallStatus, ToolCallUpdate,
};
use async_trait::async_trait;
use plimsoll::permissions::{Answer, Question};
use plimsoll::{Gate, PermissionMode};

use super::calls::{self, CallDescription, Calls};
use super::updates::Updates;
use crate::approvals::{Approvals, Offer, is_edit};
use crate::ask::{self, PROTECTED, Reply};
use crate::lock;
use crate::tool_line;

const ALLOW: &str = "allow";
const ALWAYS: &str = "always";
const PATTERN: &str = "pattern";
const REJECT: &str = "reject";

/// The permission mode of the session, which the client can change.
pub(super) type Mode = Arc<Mutex<PermissionMode>>;

/// Returns the current mode.
pub(super) fn mode_of(mode: &Mode) -> PermissionMode {
    *lock(mode)
}

/// Asks the user at the client.
#[derive(Clone)]
pub(super) struct Permission {
    pub(super) session: SessionId,
    pub(super) client: ConnectionTo<Client>,
    pub(super) updates: Arc<Updates>,
    pub(super) calls: Arc<Calls>,
    pub(super) approvals: Arc<Approvals>,
    pub(super) mode: Mode,
    /// Whether the calls are those of a sub-agent, which the client does not know.
    pub(super) is_below: bool,
}

impl Permission {
    /// Returns the gate for sub-agents.
    pub(super) fn below(&self) -> Self {
        Self {
            is_below: true,
            ..self.clone()
        }
    }

    fn known(&self, question: &Question) -> Option<Answer> {
        match mode_of(&self.mode) {
            PermissionMode::Yes => return Some(Answer::Allow),
            PermissionMode::AutoEdit if is_edit(question) && !question.is_protected => {
                return Some(Answer::Allow);
            }
            PermissionMode::ReadOnly => {
                let why = "the user has made this session read-only; go on without it";
                return Some(Answer::Deny {
                    why: why.to_owned(),
                });
            }
            _ => {}
        }
        self.approvals.allow(question).then_some(Answer::Allow)
    }

    /// Shows the call of a question. Returns its id.
    fn show(&self, question: &Question, of: &CallDescription) -> ToolCallId {
        let call = &question.call;
        if self.is_below {
            let id = self.calls.open_other(&call.id);
            let shown = of.call(id.clone(), ToolCallStatus::Pending);
            self.updates.update(SessionUpdate::ToolCall(shown));
            return id;
        }
        let told = self.calls.update_of(&call.id, of, ToolCallStatus::Pending);
        self.updates.send_call_update(told);
        self.calls.open(&call.id).0
    }

    async fn ask(&self, question: &Question) -> Reply {
        let call = &question.call;
        let of = self.calls.describe(&call.name, &call.arguments);
        let id = self.show(question, &of);
        let offer = self.approvals.offer(question);
        let request = RequestPermissionRequest::new(
            self.session.clone(),
            self.update_for(question, &of, id.clone()),
            options(&offer),
        );
        let response = self.client.send_request(request).block_task().await;
        let reply = match response.map(|response| response.outcome) {
            Ok(RequestPermissionOutcome::Selected(selected)) => {
                match selected.option_id.0.as_ref() {
                    ALLOW => Reply::Yes,
                    ALWAYS => Reply::Always,
                    PATTERN => Reply::Pattern,
                    _ => Reply::No(None),
                }
            }
            Ok(_) => Reply::Nobody,
            Err(error) => {
                say!("the client could not ask about `{}`: {error}", call.name);
                Reply::Nobody
            }
        };
        if self.is_below {
            self.calls.close_other(&id);
            let is_error = !matches!(reply, Reply::Yes | Reply::Always | Reply::Pattern);
            let ended = calls::ended(id, is_error, None);
            self.updates.update(SessionUpdate::ToolCallUpdate(ended));
        }
        self.approvals.take(&reply, offer);
        reply
    }

    /// Returns the call with everything that the user needs to decide.
    fn update_for(
        &self,
        question: &Question,
        of: &CallDescription,
        id: ToolCallId,
    ) -> ToolCallUpdate {
        let call = &question.call;
        let mut update = of.update(id, ToolCallStatus::Pending);
        let mut content = update.fields.content.take().unwrap_or_default();
        if content.is_empty() {
            let all = tool_line::in_full("", &call.arguments);
            content.push(calls::output(all.trim_start()));
        }
        if question.is_protected {
            content.push(calls::words(PROTECTED));
        }
        update.fields.content = Some(content);
        update
    }
}

#[async_trait]
impl Gate for Permission {
    async fn decide(&self, question: &Question) -> Answer {
        match self.known(question) {
            Some(answer) => answer,
            None => ask::answer(&question.call.name, self.ask(question).await),
        }
    }
}

fn options(offer: &Offer) -> Vec<PermissionOption> {
    let option = |id: &'static str, name: String, kind| PermissionOption::new(id, name, kind);
    let once = option(ALLOW, "Allow".to_owned(), PermissionOptionKind::AllowOnce);
    let lasting = [(ALWAYS, &offer.always), (PATTERN, &offer.pattern)];
    let lasting = lasting.into_iter().filter_map(|(id, always)| {
        let name = format!("Always allow {}", always.as_ref()?.label());
        Some(option(id, name, PermissionOptionKind::AllowAlways))
    });
    let reject = option(
        REJECT,
        "Reject".to_owned(),
        PermissionOptionKind::RejectOnce,
    );
    std::iter::once(once)
        .chain(lasting)
        .chain([reject])
        .collect()
}
