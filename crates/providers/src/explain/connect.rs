//! Asks a server about a model: whether it is available, its window, and the token count of an
//! example. Generates nothing and uses no tokens.

use plimsoll_context::Tokens;
use plimsoll_core::Provider;
use serde::Serialize;

use super::sample;
use crate::api_key::Variables;
use crate::builder::ModelClientBuilder;
use crate::client::Connection;
use crate::discovery::{self, ModelLoading};
use crate::error::ProviderError;
use crate::vendor::WindowReport;

/// The answers of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionReport {
    /// Whether the server answers at all, even with an error. `None` if it was not asked because
    /// every request would generate something.
    pub answers: Option<bool>,
    /// The HTTP status, if the server refuses to list its models.
    pub status: Option<u16>,
    /// The number of listed models. `None` if it lists none.
    pub models: Option<usize>,
    /// Whether this model is in the list.
    pub has_model: Option<bool>,
    /// The reported window.
    pub window: Option<Tokens>,
    /// The token count of the example, if the server counts.
    pub counted: Option<Tokens>,
    /// The message with which the server refused to count.
    pub refusal: Option<String>,
}

impl ModelClientBuilder {
    /// Asks the server of the model, with these variables as the environment.
    ///
    /// # Errors
    /// A [`ProviderError`] if a setting is missing or wrong.
    pub async fn connect(
        self,
        variables: Variables<'_>,
    ) -> Result<ConnectionReport, ProviderError> {
        let client = self.build_with(variables)?;
        Ok(ask(&client, &client.connection).await)
    }
}

async fn ask(provider: &dyn Provider, connection: &Connection) -> ConnectionReport {
    if connection.tells == WindowReport::Silent {
        return ConnectionReport::default();
    }
    let (http, name) = (&connection.http, connection.model.name());
    let (status, models) = discovery::models(http).await.unzip();
    let models = models.flatten();
    let mut listed = models.iter().flatten();
    let has = listed.any(|listed| discovery::same(listed, name));
    // The name does not matter at a server with one model.
    let named = connection.model.vendor().only_model.is_none();
    let has_model = models.as_ref().filter(|_| named).map(|_| has);
    let window = discovery::window(http, connection.tells, name, ModelLoading::Forbidden).await;
    let window = window.unwrap_or_default();
    let (counted, refusal) = match provider.count(&sample::question(None)).await {
        Ok(counted) => (counted, None),
        Err(failure) => (None, Some(failure.to_string())),
    };
    let answers = status.is_some() || window.is_some();
    ConnectionReport {
        answers: Some(answers || counted.is_some() || refusal.is_some()),
        status: status.filter(|status| !(200..300).contains(status)),
        models: models.as_ref().map(Vec::len),
        has_model,
        window,
        counted,
        refusal,
    }
}
