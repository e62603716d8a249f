//! [`Farewells`]: what a server is still to be told of calls that nobody waits for any more. It is
//! said beside everything else, in bounded time, and nobody reads the answers.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a server is listened to that is told that a call is not wanted any more; it may still
/// have to say which task it has begun for it.
pub const MCP_FAREWELL: Duration = Duration::from_secs(5);

/// What is being said; one entry a call that was given up.
#[derive(Default)]
pub(super) struct Farewells(Mutex<JoinSet<()>>);

impl Farewells {
    /// Says something beside everything else.
    pub(super) fn say(&self, what: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime there is no connection any more either.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut saying = self.lock();
        while saying.try_join_next().is_some() {}
        let what = async move {
            let _ = timeout(MCP_FAREWELL, what).await;
        };
        saying.spawn_on(what, &runtime);
    }

    /// Returns once all is said.
    pub(super) async fn are_said(&self) {
        let mut saying = std::mem::take(&mut *self.lock());
        while saying.join_next().await.is_some() {}
    }

    /// Nothing that panics is done under the lock.
    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Farewells {
    fn drop(&mut self) {
        // Whoever is still listening hears it to its end.
        self.lock().detach_all();
    }
}
