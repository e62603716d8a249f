//! [`Ask`]: the gate at a terminal. Where there is nobody to ask, silence denies.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use plimsoll::{AllowAll, Answer, DenyAll, Gate, Question};

use crate::screen::Screen;

/// Asks the person at the terminal.
struct Ask {
    screen: Option<Arc<Screen>>,
    always: AtomicBool,
}

/// Everything with `--yes`, a question at a terminal, no otherwise.
pub(crate) fn gate(yes: Consent, screen: Option<Arc<Screen>>) -> Arc<dyn Gate> {
    match yes {
        Consent::Given => Arc::new(AllowAll),
        Consent::Asked if io::stdin().is_terminal() && io::stderr().is_terminal() => {
            Arc::new(Ask {
                screen,
                always: AtomicBool::new(false),
            })
        }
        Consent::Asked => Arc::new(DenyAll),
    }
}

/// Whether tool calls that ask were allowed beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// With `--yes`.
    Given,
    /// One by one.
    Asked,
}

/// What `--yes` says.
pub(crate) fn consent(yes: bool) -> Consent {
    match yes {
        true => Consent::Given,
        false => Consent::Asked,
    }
}

#[async_trait]
impl Gate for Ask {
    async fn decide(&self, question: &Question) -> Answer {
        if self.always.load(Ordering::Relaxed) {
            return Answer::Allow;
        }
        let text = format!("{} {}", question.call.name, question.call.arguments);
        let screen = self.screen.clone();
        // Reading a line blocks, so it is done off the async threads.
        let said = tokio::task::spawn_blocking(move || match screen {
            Some(screen) => screen.aside(|| prompt(&text)),
            None => prompt(&text),
        });
        match said
            .await
            .unwrap_or_default()
            .trim()
            .to_lowercase()
            .as_str()
        {
            "y" | "yes" => Answer::Allow,
            "a" | "always" => {
                self.always.store(true, Ordering::Relaxed);
                Answer::Allow
            }
            _ => Answer::Deny {
                why: "the user did not allow this call; ask, or go on without it".to_owned(),
            },
        }
    }
}

fn prompt(text: &str) -> String {
    eprint!("{text}\nAllow? [y]es, [a]lways, [N]o: ");
    let _ = io::stderr().flush();
    let mut line = String::new();
    // An end of input is a no.
    let _ = io::stdin().read_line(&mut line);
    line
}
