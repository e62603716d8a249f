//! [`Client`]: asks the user at the client about tool calls.

use std::iter;
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    ToolCallStatus, ToolCallUpdate,
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
pub(super) struct Client(pub(super) Arc<Calls>);

#[async_trait]
impl Person for Client {
    async fn ask(&self, question: &Question, offer: &Offer) -> Reply {
        let Self(calls) = self;
        let (call, outbox) = (&question.call, &calls.outbox);
        // The client does not know the calls of a sub-agent, so such a question is a call of its own.
        let is_below = *question.key.session != *outbox.session.0;
        let id = match is_below {
            true => CallId(question.key.to_string()),
            false => call.id.clone(),
        };
        let of = calls.describe(&call.name, &call.arguments);
        calls.show(&id, of.clone(), ToolCallStatus::Pending);
        // The call with everything that the user needs to decide.
        let mut shown = ToolCallUpdate::new(calls.open(&id), of.status(ToolCallStatus::Pending));
        let content = shown.fields.content.get_or_insert_default();
        if content.is_empty() {
            let all = tool_line::in_full("", &call.arguments);
            content.push(calls::output(all.trim_start()));
        }
        if question.is_protected {
            content.push(calls::words(PROTECTED));
        }
        let request = RequestPermissionRequest::new(outbox.session.clone(), shown, options(offer));
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
        if is_below {
            let is_error = !matches!(reply, Reply::Yes | Reply::Always | Reply::Pattern);
            calls.close(&id, is_error, "");
        }
        reply
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
