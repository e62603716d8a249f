//! [`SettingFault`]: the reason why settings are refused, with their names.

use std::fmt;

/// The reason why settings are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingFault {
    /// The settings by their names in a configuration, such as `compaction.trigger`. Empty if the
    /// fault belongs to none.
    pub settings: &'static [&'static str],
    /// The item at fault, from 0, if the setting is a list.
    pub item: Option<usize>,
    /// The fault and its cure, as a sentence for a person.
    pub text: String,
}

impl SettingFault {
    /// Creates the fault of these settings.
    pub fn new(settings: &'static [&'static str], text: impl Into<String>) -> Self {
        let (item, text) = (None, text.into());
        Self {
            settings,
            item,
            text,
        }
    }

    /// Returns the faults of settings that are 0. Each row is a setting, and whether it is 0.
    pub fn zeros<const ROWS: usize>(
        rows: [(&'static [&'static str; 1], bool); ROWS],
    ) -> impl Iterator<Item = Self> {
        let zeros = rows.into_iter().filter(|(_, is_zero)| *is_zero);
        zeros.map(|(setting, _)| {
            let text = format!("{} is 0; choose more, or leave it out", setting.concat());
            Self::new(setting, text)
        })
    }

    /// Sets the item of the list that is at fault.
    #[must_use]
    pub fn item(self, item: usize) -> Self {
        Self {
            item: Some(item),
            ..self
        }
    }
}

impl fmt::Display for SettingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.item {
            Some(item) => write!(f, " (number {} of {})", item + 1, self.settings.concat()),
            None => Ok(()),
        }
    }
}
