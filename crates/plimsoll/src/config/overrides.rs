//! [`Overrides`]: what the command line and the environment say over a file. Not how a command line
//! is parsed.

use super::fault::Faults;
use super::layer::Layer;

/// Looks a variable of the environment up.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Settings over a file's.
#[derive(Default)]
pub struct Overrides<'a> {
    flags: Vec<(String, String, String)>,
    variables: Option<Lookup<'a>>,
}

impl<'a> Overrides<'a> {
    /// One more flag: as it is written (`--max-turns`), the key's full name (`max_turns`) and its
    /// text. A key that is given more than once holds as it was given last; texts are a list.
    #[must_use]
    pub fn flag(
        mut self,
        flag: impl Into<String>,
        path: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        self.flags.push((flag.into(), path.into(), text.into()));
        self
    }

    /// `KEY=VALUE`, as `--set` has it.
    ///
    /// # Errors
    /// Where there is no `=`.
    pub fn set(self, text: &str) -> Result<Self, String> {
        let Some((path, value)) = text.split_once('=') else {
            return Err(format!(
                "`{text}` sets nothing; write KEY=VALUE, as in max_turns=20"
            ));
        };
        let path = path.trim();
        Ok(self.flag(format!("--set {path}"), path, value.trim()))
    }

    /// The environment, in which each key has a variable: `PLIMSOLL_MAX_TURNS`.
    #[must_use]
    pub fn environment(mut self, variables: &'a dyn Fn(&str) -> Option<String>) -> Self {
        self.variables = Some(variables);
        self
    }

    /// What to say of variables that begin like ours and are none of ours: `others` are no settings,
    /// but known.
    #[must_use]
    pub fn strange<'n>(names: impl Iterator<Item = &'n str>, others: &[&str]) -> Vec<String> {
        super::layer::unknown_variables(names, others)
    }

    pub(crate) fn layers(&self, faults: &mut Faults) -> (Layer, Layer) {
        let flags = Layer::of_flags(&self.flags, faults);
        let variables = self
            .variables
            .map(|variables| Layer::of_variables(variables, faults));
        (flags, variables.unwrap_or_default())
    }
}
