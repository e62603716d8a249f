//! [`Provider`]: the extension trait for models. One call returns one reply; the driver retries.

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request, Sampling};
use plimsoll_context::{CacheRetention, Delta, HostedTool, Reply, Tokens};

use crate::secret::Secret;
use crate::telemetry::ServerAddress;

/// A model behind an API.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns the model, as `provider/name`.
    fn model(&self) -> &str;

    /// Returns the address and name of the model, without any key. If it changes between two runs of
    /// a session, nothing is known of the prompt cache.
    fn endpoint(&self) -> String {
        self.model().to_owned()
    }

    /// Returns the host and port of the server, for spans and metrics. `None` if there is no
    /// server.
    fn server(&self) -> Option<ServerAddress> {
        None
    }

    /// Makes one call and returns the complete reply.
    ///
    /// Each piece of the reply also goes to `deltas` as it arrives. The usage so far goes there as
    /// [`Delta::Used`], so that it counts even if no reply follows. Dropping the future cancels the
    /// call.
    ///
    /// # Errors
    /// A [`Failure`] that contains the provider's own error text.
    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure>;

    /// Returns `true` if the prompt cache supports this lifetime. If not, requests do not ask for
    /// it, and there is a warning.
    fn keeps(&self, retention: CacheRetention) -> bool {
        retention == CacheRetention::Usual
    }

    /// Returns whether the model accepts images, or `None`, the default, if that is unknown. If it
    /// does not, requests contain a note instead of each image.
    fn takes_images(&self) -> Option<bool> {
        None
    }

    /// Returns one sentence for each of these provider tools that cannot be used. An agent with
    /// such faults is not built.
    fn hosted_tool_faults(&self, tools: &[HostedTool]) -> Vec<String> {
        let faults = tools.iter().map(|tool| {
            let (model, name) = (self.model(), tool.name());
            format!(
                "`{name}` is asked for as a tool of the provider's own, and {model} has none here; leave \
                 it out of hosted_tools"
            )
        });
        faults.collect()
    }

    /// Returns the maximum number of tools in a request, if there is one. The last tools of an agent
    /// beyond it are left out, with a warning.
    fn max_tools(&self) -> Option<usize> {
        None
    }

    /// Returns a sentence for each setting that the model does not support, for the user.
    fn sampling_notes(&self, sampling: &Sampling) -> Vec<String> {
        let _ = sampling;
        Vec::new()
    }

    /// Returns the keys that the provider sends, so that they can be removed from tool results.
    fn secrets(&self) -> Vec<Secret> {
        Vec::new()
    }

    /// Returns the model's window as known without asking. Used if the server does not report one.
    fn known_window(&self) -> Option<Tokens> {
        None
    }

    /// Returns the model's window as reported by the server, if it reports one.
    async fn window(&self) -> Option<Tokens> {
        None
    }
}
