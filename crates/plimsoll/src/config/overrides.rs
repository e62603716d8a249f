//! [`Overrides`]: the settings of the command line and the environment, which override those of a
//! file. Parsing a command line is left to the program.

use super::document::{Located, parse_value};
use super::fault::{Faults, Origin};
use super::key::{self, PREFIX, SettingKey, keys};
use super::layer::Layer;

/// Settings that override a file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub(crate) flags: Layer,
    pub(crate) variables: Layer,
    pub(crate) faults: Faults,
}

impl Overrides {
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
    pub fn flag(mut self, flag: impl Into<String>, path: &str, text: &str) -> Self {
        let value = key::key(path).map_or_else(|| parse_value(text), |key| key.parse(text));
        let given = Located::new(value, &Origin::Flag(flag.into()));
        // A table of a list, such as `[[mcp]]`, is not set by flags.
        let path = path.trim_matches(['[', ']']);
        let (table, name) = path.rsplit_once('.').unwrap_or(("", path));
        self.flags.read(table, name, &given, &mut self.faults);
        self
    }

    /// Adds the environment, which has a variable for each key, such as `PLIMSOLL_MAX_TURNS`.
    ///
    /// ```
    /// use plimsoll::config::Overrides;
    /// let over = Overrides::default().environment(&|name| std::env::var(name).ok());
    /// ```
    #[must_use]
    pub fn environment(mut self, variables: &dyn Fn(&str) -> Option<String>) -> Self {
        for key in keys() {
            let name = key.variable();
            // An empty variable counts as unset.
            if let Some(text) = variables(&name).filter(|text| !text.trim().is_empty()) {
                let given = Located::new(key.parse(&text), &Origin::Variable(name));
                self.variables.put(key, &given, &mut self.faults);
            }
        }
        self
    }

    /// Returns warnings for unknown variables with the prefix of settings. `others` are known
    /// variables that are not settings.
    #[must_use]
    pub fn strange<'n>(names: impl Iterator<Item = &'n str>, others: &[&str]) -> Vec<String> {
        let ours: Vec<String> = keys().map(SettingKey::variable).collect();
        let is_known = |name: &str| ours.iter().any(|our| our == name) || others.contains(&name);
        let strange = names.filter(|name| name.starts_with(PREFIX) && !is_known(name));
        strange
            .map(|name| format!("there is no setting {name}"))
            .collect()
    }
}
