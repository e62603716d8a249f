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
    /// The token count of the example.
    pub counted: CountAnswer,
}

/// The server's token count of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountAnswer {
    /// The number of tokens.
    Tokens(Tokens),
    /// The server does not count.
    #[default]
    Unsaid,
    /// The server refused, with this message.
    Refused(String),
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
    let models = discovery::models(http, connection.tells).await;
    let mut listed = models.iter().flatten();
    let has = listed.any(|model| discovery::same(&model.name, name));
    // The name does not matter at a server with one model.
    let named = connection.model.vendor().only_model.is_none();
    let has_model = models.as_ref().filter(|_| named).map(|_| has);
    let status = match models {
        Some(_) => None,
        None => discovery::status(http).await,
    };
    let window = discovery::window(http, connection.tells, name, ModelLoading::Forbidden).await;
    let window = window.unwrap_or_default();
    let counted = counted(provider).await;
    let answers = models.is_some() || status.is_some() || window.is_some();
    ConnectionReport {
        answers: Some(answers || counted != CountAnswer::Unsaid),
        status: status.filter(|status| !(200..300).contains(status)),
        models: models.as_ref().map(Vec::len),
        has_model,
        window,
        counted,
    }
}

async fn counted(provider: &dyn Provider) -> CountAnswer {
    match provider.count(&sample::question(None)).await {
        Ok(Some(tokens)) => CountAnswer::Tokens(tokens),
        Ok(None) => CountAnswer::Unsaid,
        Err(failure) => CountAnswer::Refused(failure.to_string()),
    }
}
