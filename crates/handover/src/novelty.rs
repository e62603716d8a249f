//! How much of a message the user says nowhere else.

use std::collections::{HashMap, HashSet};

use crate::sentences::{normal, sentences};

/// So many words of a message are looked at.
const TERMS_MAX: usize = 200;

/// Returns the sentences that stand in more than one of the texts, normalised.
pub(crate) fn repeated<'t>(texts: impl Iterator<Item = &'t str>) -> HashSet<String> {
    let mut seen = HashSet::new();
    let mut repeated = HashSet::new();
    for text in texts {
        let here: HashSet<String> = sentences(text)
            .into_iter()
            .filter_map(|at| text.get(at).map(normal))
            .collect();
        for sentence in here {
            if seen.contains(&sentence) {
                repeated.insert(sentence);
            } else {
                seen.insert(sentence);
            }
        }
    }
    repeated
}

/// In how many of the user's messages each word stands.
pub(crate) struct Novelty {
    of: HashMap<String, u32>,
    messages: f64,
}

impl Novelty {
    pub(crate) fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut of: HashMap<String, u32> = HashMap::new();
        let mut messages = 0_u32;
        for text in texts {
            messages += 1;
            let mut seen = HashSet::new();
            terms(text, &mut |term| {
                seen.insert(term.to_owned());
            });
            for term in seen {
                *of.entry(term).or_default() += 1;
            }
        }
        Self {
            of,
            messages: f64::from(messages.max(2)),
        }
    }

    /// Returns 1 and, for each word of `text`, up to a half: the rarer it is, the more.
    pub(crate) fn news(&self, text: &str) -> f64 {
        let mut seen = HashSet::new();
        let mut news = 1.0;
        terms(text, &mut |term| {
            if seen.insert(term.to_owned()) {
                let times = self.of.get(term).copied().unwrap_or(1);
                news += 0.5 * (self.messages / f64::from(times.max(1))).ln() / self.messages.ln();
            }
        });
        news
    }
}

/// Calls `tell` with the words of `text`, in lower case; in scripts without blanks, with each two
/// characters.
fn terms(text: &str, tell: &mut dyn FnMut(&str)) {
    let low = text.to_lowercase();
    let words = low.split(|c: char| !c.is_alphanumeric());
    for word in words.filter(|word| !word.is_empty()).take(TERMS_MAX) {
        if word.is_ascii() || !word.chars().any(|c| c as u32 >= 0x2e80) {
            if word.len() > 1 {
                tell(word);
            }
            continue;
        }
        let ends: Vec<usize> = word
            .char_indices()
            .map(|(at, _)| at)
            .chain([word.len()])
            .collect();
        for place in ends.windows(3).take(TERMS_MAX) {
            if let [start, _, end] = place {
                tell(word.get(*start..*end).unwrap_or_default());
            }
        }
    }
}
