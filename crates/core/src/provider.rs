//! [`Provider`]: the door to a model. One call, one reply; it never retries, since the driver does.

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request, Sampling};
use plimsoll_context::{CacheRetention, Delta, HostedTool, Reply, Tokens};

use crate::secret::Secret;
use crate::telemetry::ServerAddress;

/// A model behind an API.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The model, as `provider/name`.
    fn model(&self) -> &str;

    /// Where the model answers and its name, never a key: what it teaches of its window is remembered
    /// under this.
    fn endpoint(&self) -> String {
        self.model().to_owned()
    }

    /// The host and port that answer, for spans and metrics; `None` where nothing is called.
    fn server(&self) -> Option<ServerAddress> {
        None
    }

    /// Makes one call. Each piece of the reply goes to `deltas` as it arrives; the whole reply is
    /// returned. Dropping the future cancels the call. What it has used so far goes there too, as
    /// [`Delta::Used`], so that it counts where no reply follows.
    ///
    /// # Errors
    /// A [`Failure`] with the provider's own text in it.
    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure>;

    /// What the provider says that a request weighs, without making the call: tokens of input.
    /// `None` where it has no way to say so. It is asked at most once for a model, before the first
    /// plan that rests on our own count; a failure is told, and costs nothing else.
    ///
    /// # Errors
    /// A [`Failure`] with the provider's own text in it.
    async fn count(&self, request: &Request) -> Result<Option<Tokens>, Failure> {
        let _ = request;
        Ok(None)
    }

    /// Whether its prompt cache can be asked to keep entries so long. Where it cannot, requests do not
    /// ask for it, and that is told.
    fn keeps(&self, retention: CacheRetention) -> bool {
        retention == CacheRetention::Usual
    }

    /// Returns whether the model takes images, or `None`, the default, if that is not known. If it takes none,
    /// requests have a note in the place of each.
    fn takes_images(&self) -> Option<bool> {
        None
    }

    /// Why it cannot be asked for these tools of its own, a sentence each; none where it takes them. An
    /// agent with such faults is not built.
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

    /// Returns what a person should know of settings that the model cannot follow, a sentence each.
    fn sampling_notes(&self, sampling: &Sampling) -> Vec<String> {
        let _ = sampling;
        Vec::new()
    }

    /// The keys that it sends, so that they can be struck out of what tools return.
    fn secrets(&self) -> Vec<Secret> {
        Vec::new()
    }

    /// The model's window as far as it is known without asking; it stands where the server does not
    /// say.
    fn known_window(&self) -> Option<Tokens> {
        None
    }

    /// The model's window as the server reports it; `None` where it does not.
    async fn window(&self) -> Option<Tokens> {
        None
    }
}
