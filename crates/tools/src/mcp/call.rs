//! A call of a tool over a [`Connection`]: sent, waited for, given up. Where a server demands a task
//! for it, it is called as one; see `task`.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::ToolContext;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, JsonObject,
    PingRequest, ProgressToken, RequestId,
};
use rmcp::{Peer, RoleClient};
use serde_json::Value;

use super::connection::{Connection, Failure};
use super::ear::{Heard, Listener, Wait};
use super::error::short;
use super::farewell::Farewells;
use super::task;

/// What a server is told of a call that nobody waits for.
const UNWANTED: &str = "the result is no longer wanted";

/// A call that is waited for. Where it is dropped before it is answered, the server is told.
struct Pending {
    peer: Peer<RoleClient>,
    heard: Arc<Heard>,
    farewells: Arc<Farewells>,
    wait: Wait,
    /// Taken away once it is answered.
    id: Option<RequestId>,
    token: ProgressToken,
}

impl Connection {
    /// Calls a tool, as a task where its server demands one. Where nobody wants the answer any
    /// more, or the future is dropped, the server is told.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        limit: Duration,
        cx: &ToolContext,
    ) -> Result<Value, Failure> {
        let wait = self.waits(limit);
        if self.wants_task(tool) {
            return self.call_as_task(tool, arguments, wait, cx).await;
        }
        let answer = self.call_plainly(tool, arguments.clone(), wait, cx).await;
        let Some(demand) = task::demanded(&answer) else {
            return answer;
        };
        match self.call_as_task(tool, arguments, wait, cx).await {
            // It was no task that it wanted, or it does not keep any.
            Err(Failure::NoMethod(text)) => Err(Failure::Refused(short(format!(
                "{demand} (called as a task, it answers: {text})"
            )))),
            answer => answer,
        }
    }

    async fn call_plainly(
        &self,
        tool: &str,
        arguments: JsonObject,
        wait: Wait,
        cx: &ToolContext,
    ) -> Result<Value, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(Listener(cx.clone()));
        let request = ClientRequest::CallToolRequest(request);
        let handle = self.send(request).await?;
        let mut pending = Pending {
            peer: self.service.peer().clone(),
            heard: Arc::clone(&self.heard),
            farewells: Arc::clone(&self.farewells),
            wait,
            id: Some(handle.id.clone()),
            token: handle.progress_token.clone(),
        };
        let answer = tokio::select! {
            biased;
            answer = handle.await_response() => answer,
            () = cx.cancel.cancelled() => return Err(Failure::Cancelled),
        };
        pending.id = None;
        match answer {
            Ok(result) => serde_json::to_value(result).map_err(|error| Failure::Odd(short(error))),
            Err(error) => Err(self.failure(error).await),
        }
    }

    /// Begins to wait for an answer. A server that was silent the last time is asked for a sign of
    /// life, so that it is not given up unasked.
    pub(super) fn waits(&self, limit: Duration) -> Wait {
        let wait = self.heard.waits(limit);
        if wait.is_doubtful() {
            self.knock();
        }
        wait
    }

    /// Asks for a sign of life; whatever is heard is one.
    fn knock(&self) {
        let peer = self.service.peer().clone();
        self.farewells.say(async move {
            let request = ClientRequest::PingRequest(PingRequest::default());
            let _ = peer.send_request(request).await;
        });
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.heard.forget(&self.token);
        let Some(id) = self.id.take() else { return };
        self.heard.gives_up(&id);
        self.heard.was_in_vain(&self.wait);
        let farewell = unwanted(self.peer.clone(), id);
        self.farewells.say(farewell);
    }
}

/// Tells a server that a request is not wanted any more.
pub(super) async fn unwanted(peer: Peer<RoleClient>, id: RequestId) {
    let param = CancelledNotificationParam::new(Some(id), Some(UNWANTED.to_owned()));
    let _ = peer.notify_cancelled(param).await;
}
