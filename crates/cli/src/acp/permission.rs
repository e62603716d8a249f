//! Asks the user at the client about tool calls.

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    ToolCallStatus, ToolCallUpdate,
};
use async_trait::async_trait;
use plimsoll::model::CallId;
use plimsoll::permissions::Question;

use super::calls;
use super::updates::Updates;
use crate::approvals::Approval;
use crate::ask::{PROTECTED, Person, Reply};
use crate::tool_line;

#[async_trait]
impl Person for Updates {
    async fn ask(&self, question: &Question, offers: &[Approval]) -> Reply {
        let (call, outbox) = (&question.call, &self.outbox);
        // The client does not know the calls of a sub-agent, so such a question is a call of its own.
        let is_below = *question.key.session != *outbox.session.0;
        let id = match is_below {
            true => CallId(question.key.to_string()),
            false => call.id.clone(),
        };
        let of = self.describe(&call.name, &call.arguments);
        self.show(&id, of.clone(), ToolCallStatus::Pending);
        // The call with everything that the user needs to decide.
        let mut shown = ToolCallUpdate::new(self.open(&id), of.status(ToolCallStatus::Pending));
        let content = shown.fields.content.get_or_insert_default();
        if content.is_empty() {
            let all = tool_line::in_full("", &call.arguments);
            content.push(calls::output(all.trim_start()));
        }
        if question.is_protected {
            content.push(calls::words(PROTECTED));
        }
        let request = RequestPermissionRequest::new(outbox.session.clone(), shown, options(offers));
        let response = outbox.client.send_request(request).block_task().await;
        let reply = match response.map(|response| response.outcome) {
            Ok(RequestPermissionOutcome::Selected(selected)) => {
                Reply::of(&selected.option_id.0, offers).unwrap_or(Reply::No(None))
            }
            Ok(_) => Reply::Nobody,
            Err(error) => {
                say!("the client could not ask about `{}`: {error}", call.name);
                Reply::Nobody
            }
        };
        if is_below {
            self.close(&id, !matches!(reply, Reply::Yes(_)), "");
        }
        reply
    }
}

/// Returns the options. Their ids are the answers at a terminal.
fn options(offers: &[Approval]) -> Vec<PermissionOption> {
    let allow = PermissionOption::new("yes", "Allow", PermissionOptionKind::AllowOnce);
    let always = offers.iter().map(|offer| {
        let name = format!("Always allow {}", offer.label());
        PermissionOption::new(offer.word(), name, PermissionOptionKind::AllowAlways)
    });
    let reject = PermissionOption::new("no", "Reject", PermissionOptionKind::RejectOnce);
    [allow].into_iter().chain(always).chain([reject]).collect()
}
