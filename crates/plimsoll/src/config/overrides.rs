//! [`Overrides`]: the settings of the command line and the environment, which override those of a
//! file. Parsing a command line is left to the program.

use super::fault::Faults;
use super::layer::Layer;

/// Looks up an environment variable.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Settings that override a file.
#[derive(Default)]
pub struct Overrides<'a> {
    flags: Vec<(String, String, String)>,
    variables: Option<Lookup<'a>>,
}

impl<'a> Overrides<'a> {
    /// Adds a flag: as written (`--max-turns`), the key's full name (`max_turns`) and the text. If
    /// a key is given more than once, the last value applies; texts form a list.
    ///
    /// ```
    /// use plimsoll::config::{Config, Overrides};
    /// let over = Overrides::default().flag("--max-turns", "max_turns", "20");
    /// let agent = Config::parse("")?.resolve(None, &over)?;
    /// assert_eq!(agent.settings().builder.limits.max_turns, Some(20));
    /// # Ok::<(), plimsoll::config::ConfigError>(())
    /// ```
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

    /// Adds `KEY=VALUE`, the argument of `--set`.
    ///
    /// # Errors
    /// If there is no `=`.
    pub fn set(self, text: &str) -> Result<Self, String> {
        let Some((path, value)) = text.split_once('=') else {
            return Err(format!(
                "`{text}` is not a setting; write KEY=VALUE, as in max_turns=20"
            ));
        };
        let path = path.trim();
        Ok(self.flag(format!("--set {path}"), path, value.trim()))
    }

    /// Adds the environment, which has a variable for each key, such as `PLIMSOLL_MAX_TURNS`.
    ///
    /// ```
    /// use plimsoll::config::Overrides;
    /// let over = Overrides::default().environment(&|name| std::env::var(name).ok());
    /// ```
    #[must_use]
    pub fn environment(mut self, variables: &'a dyn Fn(&str) -> Option<String>) -> Self {
        self.variables = Some(variables);
        self
    }

    /// Returns warnings for unknown variables with the prefix of settings. `others` are known
    /// variables that are not settings.
    #[must_use]
    pub fn strange<'n>(names: impl Iterator<Item = &'n str>, others: &[&str]) -> Vec<String> {
        super::layer::unknown_variables(names, others)
    }

    pub(crate) fn layers(&self, faults: &mut Faults) -> [Layer; 2] {
        let flags = Layer::of_flags(&self.flags, faults);
        let variables = self.variables;
        let variables = variables.map(|variables| Layer::of_variables(variables, faults));
        [flags, variables.unwrap_or_default()]
    }
}
