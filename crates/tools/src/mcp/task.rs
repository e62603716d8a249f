//! Tools that must run as a task (`taskSupport: required` of the protocol's revision 2025-11-25).
//!
//! A task is started with the parameter `task`, polled with `tasks/get`, fetched with `tasks/result`,
//! and cancelled with `tasks/cancel` if its result is not needed any more.
//!
//! The SDK only supports the later extension `io.modelcontextprotocol/tasks`. It has no `task` among
//! the parameters of `tools/call` and no `tasks/result`, and drops the information about tasks in a
//! server's capabilities and list of tools. Therefore these two requests are built here, and the
//! server's refusal of a plain call shows that a tool requires a task. Tools with optional task support
//! are called without one.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::ToolContext;
use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, CustomRequest, GetTaskParams,
    GetTaskRequest, JsonObject, ProgressToken, ServerResult,
};
use rmcp::service::{RequestHandle, ServiceError};
use rmcp::{Peer, RoleClient};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::call::unwanted;
use super::cancellations::{MCP_FAREWELL, PendingCancellations};
use super::connection::{Connection, Failure};
use super::error::short;
use super::transport_tap::{Listener, ServerActivity, Wait};

/// Default interval between polls of a task.
pub const MCP_TASK_POLL: Duration = Duration::from_secs(1);
/// Lower bound of the server's interval.
pub const MCP_TASK_POLL_MIN: Duration = Duration::from_millis(50);
/// Upper bound of the server's interval, so that a result is fetched soon.
pub const MCP_TASK_POLL_MAX: Duration = Duration::from_secs(5);
/// Maximum number of consecutive failed polls of a remote server. Each HTTP request is independent, so
/// the task survives them.
pub const MCP_TASK_FAILURES: usize = 3;
/// The time that a server is asked to keep a task beyond our own limit.
const SPARE: Duration = Duration::from_secs(60);
/// The texts by which SDKs report, as a tool's own error, that a tool requires a task.
const DEMANDS: [&str; 2] = ["requires task augmentation", "requires task-augmented"];

/// A task in progress, from its request to its end. If it is dropped before, the task is cancelled on
/// the server.
struct TaskHandle {
    peer: Peer<RoleClient>,
    activity: Arc<ServerActivity>,
    cancellations: Arc<PendingCancellations>,
    wait: Wait,
    token: ProgressToken,
    /// The pending request, until the server returns the task's id.
    request: Option<RequestHandle<RoleClient>>,
    /// The task's id, until the task has ended.
    id: Option<String>,
}

/// Returns the server's text if it refused a call because the tool requires a task.
pub(super) fn demanded(answer: &Result<Value, Failure>) -> Option<String> {
    let result = match answer {
        // The error that the protocol specifies. In any case the call was not executed.
        Err(Failure::NoMethod(text)) => return Some(text.clone()),
        Ok(result) => result,
        Err(_) => return None,
    };
    if result.get("isError").and_then(Value::as_bool) != Some(true) {
        return None;
    }
    let [block] = result.get("content")?.as_array()?.as_slice() else {
        return None;
    };
    let text = block.get("text")?.as_str()?;
    let demands = DEMANDS.iter().any(|demand| text.contains(demand));
    demands.then(|| short(text))
}

impl Connection {
    /// Calls a tool as a task, and waits for its result.
    pub(super) async fn call_as_task(
        &self,
        tool: &str,
        arguments: JsonObject,
        wait: Wait,
        cx: &ToolContext,
    ) -> Result<Value, Failure> {
        let ttl = wait.limit().saturating_add(SPARE).as_millis();
        let ttl = u64::try_from(ttl).unwrap_or(u64::MAX);
        let params = json!({ "name": tool, "arguments": arguments, "task": { "ttl": ttl } });
        let mut request = CustomRequest::new("tools/call", Some(params));
        request.extensions.insert(Listener(cx.clone()));
        let request = ClientRequest::CustomRequest(request);
        let handle = self.send(request).await?;
        let mut wish = TaskHandle {
            peer: self.service.peer().clone(),
            activity: Arc::clone(&self.activity),
            cancellations: Arc::clone(&self.cancellations),
            wait,
            token: handle.progress_token.clone(),
            request: Some(handle),
            id: None,
        };
        let answer = tokio::select! {
            biased;
            answer = wish.answer() => answer,
            () = cx.cancel.cancelled() => return Err(Failure::Cancelled),
        };
        let answer = self.read(answer).await?;
        let Some((id, task)) = begun(&answer) else {
            // A server without task support ignores the parameter.
            return if is_result(&answer) {
                Ok(answer)
            } else {
                Err(Failure::Odd("its task cannot be read".to_owned()))
            };
        };
        let (id, task) = (id.to_owned(), task.clone());
        self.has_task(tool);
        wish.id = Some(id.clone());
        let result = self.follow(&id, task, cx).await;
        if !matches!(
            result,
            Err(Failure::Cancelled | Failure::Broken(_) | Failure::Odd(_))
        ) {
            wish.id = None;
        }
        result
    }

    /// Waits for the end of a task, and reports its progress.
    async fn follow(&self, id: &str, task: Value, cx: &ToolContext) -> Result<Value, Failure> {
        let every = poll_interval(&task);
        let (mut task, mut told, mut failures) = (task, String::new(), 0);
        loop {
            let message = text(&task, "statusMessage");
            if !message.is_empty() && message != told {
                told = short(message);
                cx.update(told.clone());
            }
            if is_over(&task) {
                return self.result(id, &task, cx).await;
            }
            tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Err(Failure::Cancelled),
                () = sleep(every) => {}
            }
            let request = GetTaskRequest::new(GetTaskParams::new(id));
            match self
                .ask_for(ClientRequest::GetTaskRequest(request), cx)
                .await
            {
                Ok(answer) => (task, failures) = (answer, 0),
                Err(Failure::Broken(_))
                    if self.outlives_failures() && failures < MCP_TASK_FAILURES =>
                {
                    failures += 1;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Returns the result of a task that has ended or asks for input.
    async fn result(&self, id: &str, task: &Value, cx: &ToolContext) -> Result<Value, Failure> {
        // In the later extension the task contains its result.
        if let Some(result) = task.get("result").filter(|result| result.is_object()) {
            return Ok(result.clone());
        }
        if let Some(error) = task.get("error").filter(|error| error.is_object()) {
            return Err(Failure::Refused(short(text(error, "message"))));
        }
        if task.get("inputRequests").is_some() {
            let text = "its task asks for input, which is not offered";
            return Err(Failure::Odd(text.to_owned()));
        }
        // If the task asks for input, the server requests it now, and we decline.
        let request = CustomRequest::new("tasks/result", Some(json!({ "taskId": id })));
        let answer = self
            .ask_for(ClientRequest::CustomRequest(request), cx)
            .await;
        match (text(task, "status"), answer) {
            (
                how @ ("failed" | "cancelled"),
                Err(Failure::Refused(why) | Failure::NoMethod(why)),
            ) => {
                let message = text(task, "statusMessage");
                let why = [message, &why].into_iter().find(|text| !text.is_empty());
                let why = why.map_or(String::new(), |why| format!(": {why}"));
                Err(Failure::Refused(short(format!("its task is {how}{why}"))))
            }
            (_, answer) => answer,
        }
    }

    /// Sends a request, and waits for its answer unless the call is cancelled.
    async fn ask_for(&self, request: ClientRequest, cx: &ToolContext) -> Result<Value, Failure> {
        let answer = tokio::select! {
            biased;
            answer = self.ask(request) => answer?,
            () = cx.cancel.cancelled() => return Err(Failure::Cancelled),
        };
        serde_json::to_value(answer).map_err(|error| Failure::Odd(short(error)))
    }

    async fn read(&self, answer: Result<ServerResult, ServiceError>) -> Result<Value, Failure> {
        match answer {
            Ok(result) => serde_json::to_value(result).map_err(|error| Failure::Odd(short(error))),
            Err(error) => Err(self.failure(error).await),
        }
    }
}

impl TaskHandle {
    /// Waits for the server's answer to the request for a task.
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.request else {
            return Err(ServiceError::TransportClosed);
        };
        let answer = (&mut handle.rx).await;
        self.request = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        self.activity.forget(&self.token);
        let (peer, id) = (self.peer.clone(), self.id.take());
        match (id, self.request.take()) {
            (Some(id), _) => self.cancellations.send(cancelled(peer, id)),
            // The task's id is not known yet, so its answer is awaited a little longer.
            (None, Some(handle)) => {
                self.activity.gives_up(&handle.id);
                self.activity.was_in_vain(&self.wait);
                self.cancellations.send(async move {
                    let request = handle.id.clone();
                    match timeout(MCP_FAREWELL / 2, handle.await_response()).await {
                        Ok(Ok(answer)) => {
                            let answer = serde_json::to_value(answer).unwrap_or_default();
                            if let Some((id, _)) = begun(&answer) {
                                cancelled(peer, id.to_owned()).await;
                            }
                        }
                        Ok(Err(_)) => {}
                        Err(_) => unwanted(peer, request).await,
                    }
                });
            }
            (None, None) => {}
        }
    }
}

/// Cancels a task.
async fn cancelled(peer: Peer<RoleClient>, id: String) {
    let request = CancelTaskRequest::new(CancelTaskParams::new(id));
    let request = ClientRequest::CancelTaskRequest(request);
    let _ = peer.send_request(request).await;
}

/// Returns the id and the task from the answer to the request for a task.
fn begun(answer: &Value) -> Option<(&str, &Value)> {
    // In the later extension the answer itself is the task.
    let task = answer.get("task").unwrap_or(answer);
    let id = task.get("taskId")?.as_str()?;
    Some((id, task))
}

/// Checks whether an answer is a tool's result instead of a task.
fn is_result(answer: &Value) -> bool {
    let parts = ["content", "structuredContent", "isError"];
    parts.iter().any(|part| answer.get(part).is_some())
}

/// Checks whether a task has ended or asks for input. Unknown states count as running; waiting is
/// limited in time.
fn is_over(task: &Value) -> bool {
    let status = text(task, "status");
    matches!(
        status,
        "completed" | "failed" | "cancelled" | "input_required"
    )
}

/// Returns the interval between polls that the server wants, within our bounds.
fn poll_interval(task: &Value) -> Duration {
    let interval =
        ["pollInterval", "pollIntervalMs"].map(|key| task.get(key).and_then(Value::as_u64));
    let interval = interval.into_iter().flatten().next();
    let every = interval.map_or(MCP_TASK_POLL, Duration::from_millis);
    every.clamp(MCP_TASK_POLL_MIN, MCP_TASK_POLL_MAX)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_is_known_by_the_protocols_code_and_by_the_sdks_words() {
        let error =
            |said: &str| json!({ "content": [{ "type": "text", "text": said }], "isError": true });
        for (answer, is_demand) in [
            (Err(Failure::NoMethod("no".to_owned())), true),
            (
                Err(Failure::Refused("requires task augmentation".to_owned())),
                false,
            ),
            (
                Ok(error(
                    "MCP error -32601: Tool x requires task augmentation (taskSupport: 'required')",
                )),
                true,
            ),
            (
                Ok(error("This tool requires task-augmented invocation")),
                true,
            ),
            (Ok(error("this requires task 7 to be done")), false),
            (Ok(json!({ "content": [], "isError": true })), false),
            (
                Ok(
                    json!({ "content": [{ "type": "text", "text": "requires task augmentation" }] }),
                ),
                false,
            ),
        ] {
            assert_eq!(demanded(&answer).is_some(), is_demand, "{answer:?}");
        }
    }

    #[test]
    fn a_server_is_asked_neither_too_often_nor_too_seldom() {
        for (said, millis) in [
            (json!({}), 1_000),
            (json!({ "pollInterval": 200 }), 200),
            (json!({ "pollIntervalMs": 300 }), 300),
            (json!({ "pollInterval": 0 }), 50),
            (json!({ "pollInterval": 3_600_000 }), 5_000),
            (json!({ "pollInterval": "soon" }), 1_000),
        ] {
            assert_eq!(poll_interval(&said).as_millis(), millis, "{said}");
        }
    }
}
