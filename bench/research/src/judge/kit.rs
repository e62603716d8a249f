//! Short chats with unique statements: rules, goals, preferences and facts between
//! acknowledgements, repetitions and small talk, and facts that are updated later.
//!
//! A seed decides the wordings, so another seed gives chats that nobody has seen. The chats go
//! through `plimsoll compact`, like those of users.

mod wordings;

use std::collections::HashSet;
use std::path::Path;

use plimsoll_context::Message;

use super::measure::{Share, normal};
use super::through;
use crate::error::Error;

use wordings::{LANGUAGES, Language};

/// Number of chats in each language.
const CHATS: usize = 12;
/// Budgets, in percent of a chat.
pub(super) const PERCENT: [u64; 3] = [10, 20, 30];
/// Minimum number of questions with answers in a chat, and the maximum number of additional ones.
const TURNS: (usize, usize) = (40, 40);
/// Number of unique statements of each of the four kinds.
const ONCE: usize = 2;
/// Number of facts that are updated later.
const UPDATED: usize = 3;

/// The kinds of statements.
pub(super) const KINDS: [&str; 5] = ["rules", "goals", "preferences", "facts", "updated facts"];

/// A generated chat.
struct Chat {
    messages: Vec<Message>,
    /// Unique statements: the kind, and the values that must all survive.
    once: Vec<(&'static str, Vec<String>)>,
    updated: Vec<UpdatedFact>,
}

/// A fact that was updated.
struct UpdatedFact {
    sentence: String,
    new: String,
    old: String,
}

/// The surviving statements in one language at one budget.
#[derive(Debug, Clone)]
pub(super) struct Survival {
    pub(super) language: &'static str,
    pub(super) percent: u64,
    /// By kind, as in [`KINDS`].
    pub(super) kinds: [Share; 5],
    /// Updated facts whose old value is still present.
    pub(super) stale: Share,
    /// Chats that use at least 95 % of the budget.
    pub(super) used: Share,
    /// The number of chats that could not be compacted to their budget.
    pub(super) refused: usize,
    /// Lost statements, and old values that are still present.
    pub(super) faults: Vec<String>,
}

impl Survival {
    /// Returns the share of all statements.
    pub(super) fn all(&self) -> Share {
        let mut all = Share::default();
        self.kinds.iter().for_each(|share| all.add(*share));
        all
    }
}

/// A generator of pseudorandom numbers (SplitMix64). The same seed gives the same numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        usize::try_from(z % end.max(1) as u64).unwrap_or_default()
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.get(self.below(all.len())).copied()
    }
}

/// Compacts the chats of `seed` and counts the surviving statements.
pub(super) fn survivals(root: &Path, seed: u64) -> Result<Vec<Survival>, Error> {
    let mut random = Random(seed);
    let mut chats = Vec::new();
    for language in LANGUAGES {
        for _ in 0..CHATS {
            chats.push((language.name, chat(language, &mut random)));
        }
    }
    let cases: Vec<(&'static str, u64, u64, &Chat)> = chats
        .iter()
        .flat_map(|(language, chat)| {
            let tokens = through::tokens(&chat.messages);
            PERCENT.map(|percent| (*language, percent, tokens * percent / 100, chat))
        })
        .collect();
    let inputs = cases
        .iter()
        .map(|(_, _, budget, chat)| (chat.messages.as_slice(), *budget));
    let outputs = through::compact(root, inputs)?;
    let mut survivals: Vec<Survival> = Vec::new();
    for ((language, percent, budget, chat), compacted) in cases.into_iter().zip(outputs) {
        let at = survivals
            .iter()
            .position(|one| one.language == language && one.percent == percent);
        let at = at.unwrap_or_else(|| {
            survivals.push(Survival {
                language,
                percent,
                kinds: [Share::default(); 5],
                stale: Share::default(),
                used: Share::default(),
                refused: 0,
                faults: Vec::new(),
            });
            survivals.len() - 1
        });
        if let Some(survival) = survivals.get_mut(at) {
            survival.count(chat, budget, compacted.as_deref());
        }
    }
    Ok(survivals)
}

impl Survival {
    fn count(&mut self, chat: &Chat, budget: u64, compacted: Option<&[Message]>) {
        self.refused += usize::from(compacted.is_none());
        let messages = compacted.unwrap_or_default();
        self.used
            .count(through::tokens(messages) * 100 >= budget * 95);
        let texts: Vec<String> = messages.iter().map(Message::text).collect();
        let text = normal(&texts.join("\n"));
        for (kind, values) in &chat.once {
            let survives = values.iter().all(|value| stands(&text, value));
            self.kind(kind).count(survives);
            if !survives {
                self.faults
                    .push(format!("{kind} lost: {}", values.join(", ")));
            }
        }
        for updated in &chat.updated {
            self.kind("updated facts")
                .count(stands(&text, &updated.new));
            let rest = text.replace(&normal(&updated.sentence), "");
            let returns = stands(&rest, &updated.old);
            self.stale.count(returns);
            if returns {
                let UpdatedFact { sentence, old, .. } = updated;
                self.faults
                    .push(format!("{old} returns beside: {sentence}\n{text}"));
            }
        }
    }

    fn kind(&mut self, name: &str) -> &mut Share {
        let at = KINDS.iter().position(|kind| *kind == name);
        let [rules, goals, preferences, facts, updated] = &mut self.kinds;
        match at {
            Some(0) => rules,
            Some(1) => goals,
            Some(2) => preferences,
            Some(3) => facts,
            _ => updated,
        }
    }
}

/// Checks whether a text contains a value, and not only as a part of a longer number or word.
fn stands(text: &str, value: &str) -> bool {
    let value = normal(value);
    let is_part = |c: char| c.is_ascii_alphanumeric();
    text.match_indices(&value).any(|(at, found)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + found.len()..);
        let after = after.and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Creates a chat in a language.
fn chat(language: &'static Language, random: &mut Random) -> Chat {
    let mut values = Values {
        language,
        taken: HashSet::new(),
    };
    let turns = TURNS.0 + random.below(TURNS.1 + 1);
    let mut said: Vec<(usize, String)> = Vec::new();
    let mut once = Vec::new();
    let kinds = [
        (KINDS[0], language.rules),
        (KINDS[1], language.goals),
        (KINDS[2], language.preferences),
        (KINDS[3], language.facts),
    ];
    for (kind, templates) in kinds {
        let mut left: Vec<&str> = templates.to_vec();
        for _ in 0..ONCE.min(left.len()) {
            let template = left.swap_remove(random.below(left.len()));
            let (sentence, filled) = values.fill(template, None, random);
            said.push((1 + random.below(turns * 9 / 10), sentence));
            once.push((kind, filled));
        }
    }
    let mut updated = Vec::new();
    let mut left = language.updates.to_vec();
    for _ in 0..UPDATED.min(left.len()) {
        let (stated, updates) = left.swap_remove(random.below(left.len()));
        // The subject of the fact stays the same.
        let about = stated
            .contains("{thing}")
            .then(|| values.value("{thing}", random));
        let about = about.as_deref();
        let (stated, old) = values.fill(&with(stated, about), None, random);
        let Some(old) = old.last().cloned() else {
            continue;
        };
        let update = random.pick(updates).unwrap_or_default();
        let (sentence, new) = values.fill(&with(update, about), Some(&old), random);
        let Some(new) = new.last().cloned() else {
            continue;
        };
        let first = 1 + random.below(turns / 2);
        said.push((first, stated));
        said.push((first + turns / 4, sentence.clone()));
        updated.push(UpdatedFact { sentence, new, old });
    }
    let mut messages = Vec::new();
    for turn in 0..turns {
        let mut sentences: Vec<&str> = Vec::new();
        let here: Vec<&str> = said
            .iter()
            .filter(|(at, _)| *at == turn)
            .map(|(_, sentence)| sentence.as_str())
            .collect();
        if turn == 0 {
            sentences.extend(random.pick(language.openings));
        } else if here.is_empty() || random.below(2) == 0 {
            let talk = match random.below(3) {
                0 => language.small_talk,
                _ => language.acknowledgements,
            };
            sentences.extend(random.pick(talk));
        }
        sentences.extend(here);
        messages.push(Message::user(sentences.join(" ")));
        let answer = random.pick(language.answers).unwrap_or_default();
        messages.push(Message::assistant(answer));
    }
    Chat {
        messages,
        once,
        updated,
    }
}

fn with(template: &str, thing: Option<&str>) -> String {
    match thing {
        Some(thing) => template.replace("{thing}", thing),
        None => template.to_owned(),
    }
}

/// The values that a chat has used. Each is used once.
struct Values {
    language: &'static Language,
    taken: HashSet<String>,
}

impl Values {
    /// Fills a template. Returns the sentence and its values in order.
    fn fill(
        &mut self,
        template: &str,
        old: Option<&str>,
        random: &mut Random,
    ) -> (String, Vec<String>) {
        let mut sentence = template.replace("{old}", old.unwrap_or_default());
        let mut filled = Vec::new();
        while let Some(at) = sentence.find('{') {
            let Some(end) = sentence.get(at..).and_then(|rest| rest.find('}')) else {
                break;
            };
            let slot = sentence.get(at..=at + end).unwrap_or_default().to_owned();
            let value = self.value(&slot, random);
            sentence = sentence.replacen(&slot, &value, 1);
            filled.push(value);
        }
        // A sentence begins with a capital letter.
        let mut chars = sentence.chars();
        let is_rule_of_thumb = template.starts_with('{');
        let sentence = match chars.next() {
            Some(first) if is_rule_of_thumb => first.to_uppercase().to_string() + chars.as_str(),
            _ => sentence,
        };
        (sentence, filled)
    }

    /// Returns a value for a slot that this chat has not used yet, if there is one.
    fn value(&mut self, slot: &str, random: &mut Random) -> String {
        let language = self.language;
        let all = match slot {
            "{name}" => language.names,
            "{day}" => language.days,
            "{city}" => language.cities,
            "{thing}" => language.things,
            "{file}" => language.files,
            _ => &[],
        };
        let free: Vec<&str> = all
            .iter()
            .copied()
            .filter(|value| !self.taken.contains(*value))
            .collect();
        let value = match random.pick(if free.is_empty() { all } else { &free }) {
            Some(value) => value.to_owned(),
            None => loop {
                let number = (120 + random.below(8_800)).to_string();
                if !self.taken.contains(&number) {
                    break number;
                }
            },
        };
        self.taken.insert(value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_says_everything_and_a_seed_decides_it() {
        for language in LANGUAGES {
            let made = |seed| chat(language, &mut Random(seed));
            let one = made(1);
            let texts: Vec<String> = one.messages.iter().map(Message::text).collect();
            let text = normal(&texts.join("\n"));
            assert!((80..=160).contains(&one.messages.len()));
            assert_eq!(one.once.len(), 4 * ONCE);
            for (kind, values) in &one.once {
                assert!(
                    values.iter().all(|value| stands(&text, value)),
                    "{kind} {values:?}"
                );
            }
            for updated in &one.updated {
                assert!(stands(&text, &updated.new), "{}", updated.sentence);
                assert!(stands(&text, &updated.old), "{}", updated.old);
                assert_ne!(updated.new, updated.old);
            }
            assert_eq!(made(1).messages, one.messages);
            assert_ne!(made(2).messages, one.messages);
        }
    }

    #[test]
    fn a_value_is_not_found_inside_a_longer_one() {
        assert!(stands("port 412.", "412"));
        assert!(!stands("port 4120", "412"));
        assert!(stands("端口改成 412 了", "412"));
    }
}
