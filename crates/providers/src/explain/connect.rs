//! What a server says of a model when it is asked: whether it is there, its window, and what an
//! example weighs. Nothing is generated, and no tokens are spent.

use plimsoll_context::Tokens;
use plimsoll_core::Provider;
use serde::Serialize;

use super::sample;
use crate::builder::ModelClientBuilder;
use crate::connection::Connection;
use crate::discovery::{self, Loading, Report};
use crate::error::ProviderError;
use crate::key::Variables;
use crate::vendor::Tells;

/// What a server says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Connected {
    /// Whether it answers at all, be it a refusal; `None` where it was not asked, because nothing
    /// there tells without generating.
    pub answers: Option<bool>,
    /// The status with which it does not list its models.
    pub status: Option<u16>,
    /// The models that it lists; `None` where it does not.
    pub models: Option<usize>,
    /// Whether this one is among them.
    pub has_model: Option<bool>,
    /// The window that it tells.
    pub window: Option<Tokens>,
    /// What the example weighs.
    pub counted: Counted,
}

/// What a server says that a request weighs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// So many tokens.
    Tokens(Tokens),
    /// It does not say.
    Unsaid,
    /// It refuses, in these words.
    Refused(String),
}

impl ModelClientBuilder {
    /// Asks the server of the model, with the variables given.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub async fn connect(self, variables: Variables<'_>) -> Result<Connected, ProviderError> {
        let client = self.build_with(variables)?;
        Ok(ask(&client, &client.connection).await)
    }
}

async fn ask(provider: &dyn Provider, connection: &Connection) -> Connected {
    if connection.tells == Tells::Silent {
        return Connected {
            answers: None,
            status: None,
            models: None,
            has_model: None,
            window: None,
            counted: Counted::Unsaid,
        };
    }
    let name = connection.model.name();
    let models = discovery::models(&connection.http, connection.tells).await;
    let has = |name: &str| {
        let mut models = models.iter().flatten();
        models.any(|model| model.name == name || model.name.strip_suffix(":latest") == Some(name))
    };
    // A server that holds one model is asked by no name.
    let named = connection.model.vendor().only_model.is_none();
    let has_model = models.as_ref().filter(|_| named).map(|_| has(name));
    let status = match models {
        Some(_) => None,
        None => discovery::status(&connection.http).await,
    };
    let report =
        discovery::window(&connection.http, connection.tells, name, Loading::Forbidden).await;
    let counted = counted(provider).await;
    let answered = !matches!(report, Report::NoAnswer | Report::Unsaid);
    Connected {
        answers: Some(
            models.is_some() || status.is_some() || answered || counted != Counted::Unsaid,
        ),
        status: status.filter(|status| !(200..300).contains(status)),
        models: models.as_ref().map(Vec::len),
        has_model,
        window: report.said(),
        counted,
    }
}

async fn counted(provider: &dyn Provider) -> Counted {
    match provider.count(&sample::question(None)).await {
        Ok(Some(tokens)) => Counted::Tokens(tokens),
        Ok(None) => Counted::Unsaid,
        Err(failure) => Counted::Refused(failure.to_string()),
    }
}
