//! What the user says more than once.

use std::collections::HashSet;

use crate::sentences::{normal, sentences};

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
