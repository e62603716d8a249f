//! What a server says of a model when it is asked: whether it is there, its window, and what an
//! example weighs. Nothing is generated, and no tokens are spent.

use plimsoll_context::Tokens;
use plimsoll_core::Provider;
use serde::Serialize;

use super::sample;
use crate::builder::OpenAiChatBuilder;
use crate::discovery::{self, Loading, Report};
use crate::error::ProviderError;
use crate::key::Variables;
use crate::line::Line;
use crate::vendor::Wire;

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

impl OpenAiChatBuilder {
    /// Asks the server of the model, with the variables given.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub async fn connect(self, variables: Variables<'_>) -> Result<Connected, ProviderError> {
        match self.wire(variables) {
            Wire::Chat => {
                let provider = self.build_with(variables)?;
                Ok(ask(&provider, &provider.line).await)
            }
            Wire::Responses => {
                let provider = self.responses_with(variables)?;
                Ok(ask(&provider, &provider.line).await)
            }
            Wire::Messages => {
                let provider = self.messages_with(variables)?;
                Ok(ask(&provider, &provider.line).await)
            }
            Wire::Gemini | Wire::Vertex | Wire::Converse | Wire::Ollama => {
                self.connect_other(variables).await
            }
        }
    }

    #[cfg(feature = "genai")]
    async fn connect_other(self, variables: Variables<'_>) -> Result<Connected, ProviderError> {
        let tells = !matches!(self.vendor().wire, Wire::Vertex | Wire::Converse);
        let provider = self.genai_with(variables)?;
        match tells {
            true => Ok(ask(&provider, provider.line()).await),
            false => Ok(Connected {
                answers: None,
                status: None,
                models: None,
                has_model: None,
                window: None,
                counted: Counted::Unsaid,
            }),
        }
    }

    #[cfg(not(feature = "genai"))]
    async fn connect_other(self, _: Variables<'_>) -> Result<Connected, ProviderError> {
        Err(ProviderError::NotBuiltIn {
            provider: self.vendor().name,
        })
    }
}

async fn ask(provider: &dyn Provider, line: &Line) -> Connected {
    let name = line.model.name();
    let models = discovery::models(&line.http, line.tells).await;
    let has = |name: &str| {
        let mut models = models.iter().flatten();
        models.any(|model| model.name == name || model.name.strip_suffix(":latest") == Some(name))
    };
    // A server that holds one model is asked by no name.
    let named = line.model.vendor().only_model.is_none();
    let has_model = models.as_ref().filter(|_| named).map(|_| has(name));
    let status = match models {
        Some(_) => None,
        None => discovery::status(&line.http).await,
    };
    let report = discovery::window(&line.http, line.tells, name, Loading::Forbidden).await;
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
