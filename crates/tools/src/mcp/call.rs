//! A tool call over a [`Connection`]: sending it, waiting for it, and cancelling it. If the server
//! requires a task for the tool, the call is made as one, see `task`.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::ToolContext;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, JsonObject,
    PingRequest, ProgressToken, RequestId,
};
use rmcp::{Peer, RoleClient};
use serde_json::Value;

use super::cancellations::PendingCancellations;
use super::connection::{Connection, Failure};
use super::error::short;
use super::task;
use super::transport_tap::{Listener, ServerActivity, Wait};

/// The reason in the notification about a cancelled call.
const UNWANTED: &str = "the result is no longer wanted";

/// A call in progress. If it is dropped before its answer, the server is notified.
struct Pending {
    peer: Peer<RoleClient>,
    activity: Arc<ServerActivity>,
    cancellations: Arc<PendingCancellations>,
    wait: Wait,
    /// `None` once the call is answered.
    id: Option<RequestId>,
    token: ProgressToken,
}

impl Connection {
    /// Calls a tool, as a task if its server requires one. If the call is cancelled or the future is
    /// dropped, the server is notified.
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
            // The server meant something else, or does not support tasks.
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
            activity: Arc::clone(&self.activity),
            cancellations: Arc::clone(&self.cancellations),
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

    /// Starts to wait for an answer. If the server did not answer the last time, a ping is sent, so
    /// that a slow but live server is not given up.
    pub(super) fn waits(&self, limit: Duration) -> Wait {
        let wait = self.activity.waits(limit);
        if wait.is_doubtful() {
            self.knock();
        }
        wait
    }

    /// Sends a ping. Any message of the server counts as a sign of life.
    fn knock(&self) {
        let peer = self.service.peer().clone();
        self.cancellations.send(async move {
            let request = ClientRequest::PingRequest(PingRequest::default());
            let _ = peer.send_request(request).await;
        });
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.activity.forget(&self.token);
        let Some(id) = self.id.take() else { return };
        self.activity.gives_up(&id);
        self.activity.was_in_vain(&self.wait);
        let farewell = unwanted(self.peer.clone(), id);
        self.cancellations.send(farewell);
    }
}

/// Notifies a server that a request is cancelled.
pub(super) async fn unwanted(peer: Peer<RoleClient>, id: RequestId) {
    let param = CancelledNotificationParam::new(Some(id), Some(UNWANTED.to_owned()));
    let _ = peer.notify_cancelled(param).await;
}
