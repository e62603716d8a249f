//! [`Handler`]: receives the notifications of a server. Progress goes to the call that it belongs to,
//! and a change of the tools is noted. The SDK's defaults answer requests: no sampling, no questions to
//! the user, no roots.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::ToolContext;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{NotificationContext, RoleClient};

use crate::lock;

/// The client name that the server receives.
const CLIENT: &str = "plimsoll";

/// The receiver of a server's notifications.
#[derive(Default)]
pub(crate) struct Handler {
    has_changed: AtomicBool,
    /// The calls in progress, one entry for each.
    calls: Mutex<HashMap<ProgressToken, Call>>,
}

/// A call in progress.
struct Call {
    cx: ToolContext,
    /// The last progress, which must increase. The SDK may deliver notifications in another order.
    progress: f64,
}

impl Handler {
    /// Returns `true` if the tools are to be read: they were never read, or the server has reported a
    /// change.
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Acquire)
    }

    pub(crate) fn set_changed(&self, changed: bool) {
        self.has_changed.store(changed, Ordering::Release);
    }

    /// Reports the progress with this token to a call.
    pub(crate) fn follow(&self, token: ProgressToken, cx: ToolContext) {
        let progress = f64::NEG_INFINITY;
        lock(&self.calls).insert(token, Call { cx, progress });
    }

    /// Ends the reports to a call.
    pub(crate) fn forget(&self, token: &ProgressToken) {
        lock(&self.calls).remove(token);
    }
}

impl ClientHandler for Handler {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Some(call) = lock(&self.calls).get_mut(&progress.progress_token)
            && progress.progress > call.progress
        {
            call.progress = progress.progress;
            call.cx.update(progress_text(&progress));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.set_changed(true);
    }

    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new(CLIENT, env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }
}

/// Formats progress as `3/10: reading`; missing parts are omitted.
fn progress_text(progress: &ProgressNotificationParam) -> String {
    let number = match progress.total {
        Some(total) => format!("{}/{total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match progress.message.as_deref().filter(|text| !text.is_empty()) {
        Some(message) => format!("{number}: {message}"),
        None => number,
    }
}
