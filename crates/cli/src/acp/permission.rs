//! [`Client`]: asks the user at the client about tool calls.

use std::iter;
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use async_trait::async_trait;
use plimsoll::model::CallId;
use plimsoll::permissions::Question;

use super::calls::{self, Calls};
use crate::approvals::Offer;
use crate::ask::{PROTECTED, Person, Reply};
use crate::tool_line;

const ALLOW: &str = "allow";
const ALWAYS: &str = "always";
const PATTERN: &str = "pattern";
const REJECT: &str = "reject";

/// The user at the client.
pub(super) struct Client {
    pub(super) calls: Arc<Calls>,
    /// Whether the calls are those of a sub-agent, which the client does not know.
    pub(super) is_below: bool,
}

#[async_trait]
impl Person for Client {
    async fn ask(&self, question: &Question, offer: &Offer) -> Reply {
        let call = &question.call;
        let id = if self.is_below {
            self.calls.below_id(&call.id)
        } else {
            call.id.clone()
        };
        let of = self.calls.describe(&call.name, &call.arguments);
        self.calls.show(&id, of.clone(), ToolCallStatus::Pending);
        let outbox = &self.calls.outbox;
        let request = RequestPermissionRequest::new(
            outbox.session.clone(),
            self.shown(question, of, &id),
            options(offer),
        );
        let response = outbox.client.send_request(request).block_task().await;
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
            let is_error = !matches!(reply, Reply::Yes | Reply::Always | Reply::Pattern);
            self.calls.close(&id, is_error, "");
        }
        reply
    }
}

impl Client {
    /// Returns the call with everything that the user needs to decide.
    fn shown(&self, question: &Question, of: ToolCallUpdateFields, id: &CallId) -> ToolCallUpdate {
        let of = of.status(ToolCallStatus::Pending);
        let mut update = ToolCallUpdate::new(self.calls.open(id), of);
        let content = update.fields.content.get_or_insert_default();
        if content.is_empty() {
            let all = tool_line::in_full("", &question.call.arguments);
            content.push(calls::output(all.trim_start()));
        }
        if question.is_protected {
            content.push(calls::words(PROTECTED));
        }
        update
    }
}

fn options(offer: &Offer) -> Vec<PermissionOption> {
    let always = [(ALWAYS, &offer.always), (PATTERN, &offer.pattern)];
    let always = always.into_iter().filter_map(|(id, always)| {
        let name = format!("Always allow {}", always.as_ref()?.label());
        let kind = PermissionOptionKind::AllowAlways;
        Some(PermissionOption::new(id, name, kind))
    });
    let allow = PermissionOption::new(ALLOW, "Allow", PermissionOptionKind::AllowOnce);
    let reject = PermissionOption::new(REJECT, "Reject", PermissionOptionKind::RejectOnce);
    iter::once(allow).chain(always).chain([reject]).collect()
}
