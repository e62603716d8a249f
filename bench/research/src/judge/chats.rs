//! Short chats with unique statements: rules, goals, preferences and facts between
//! acknowledgements, repetitions and small talk, and facts that are updated later.
//!
//! A seed decides the wordings, so another seed gives chats that nobody has seen. The chats go
//! through `plimsoll compact`, like those of users.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use plimsoll_context::Message;

use super::measure::{Share, normal};
use super::{percent, through};
use crate::error::Error;

/// Number of chats in each language.
const CHATS: usize = 12;
/// Budgets, in percent of a chat.
const PERCENT: [u64; 3] = [10, 20, 30];
/// Minimum number of questions with answers in a chat, and the maximum number of additional ones.
const TURNS: (usize, usize) = (40, 40);
/// Number of unique statements of each of the four kinds.
const ONCE: usize = 2;
/// Number of facts that are updated later.
const UPDATED: usize = 3;
/// The kinds of unique statements.
const KINDS: [&str; 4] = ["rules", "goals", "preferences", "facts"];
/// The sentences and values, which the head of the file explains.
const SENTENCES: &str = include_str!("chats.txt");

/// The sentences and values of one language, by list.
struct Language {
    name: &'static str,
    lists: HashMap<&'static str, Vec<&'static str>>,
    /// A fact, and its later updates.
    updates: Vec<Vec<&'static str>>,
}

/// A generated chat.
struct Chat {
    language: &'static str,
    messages: Vec<Message>,
    /// Statements: the values that must all survive.
    statements: Vec<Vec<String>>,
}

/// The surviving statements in one language at one budget.
#[derive(Default)]
struct Survival {
    statements: Share,
    /// The number of chats that could not be compacted to their budget.
    refused: usize,
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

/// Compacts the chats of `seed` and prints the shares of surviving statements.
pub(super) fn print(root: &Path, seed: u64) -> Result<(), Error> {
    let mut random = Random(seed);
    let mut chats = Vec::new();
    for language in languages() {
        chats.extend((0..CHATS).map(|_| chat(&language, &mut random)));
    }
    let cases: Vec<(&Chat, u64, u64)> = chats
        .iter()
        .flat_map(|chat| {
            let tokens = through::tokens(&chat.messages);
            PERCENT.map(|percent| (chat, percent, tokens * percent / 100))
        })
        .collect();
    let inputs = cases
        .iter()
        .map(|(chat, _, budget)| (chat.messages.as_slice(), *budget));
    let outputs = through::compact(root, inputs)?;
    let mut survivals: BTreeMap<(&str, u64), Survival> = BTreeMap::new();
    for ((chat, percent, _), compacted) in cases.into_iter().zip(outputs) {
        for language in [chat.language, "all"] {
            let survival = survivals.entry((language, percent)).or_default();
            survival.count(chat, compacted.as_deref());
        }
    }
    println!("\n### Short chats, compacted: what was said once, or last\n");
    println!("| language | budget | survive | of | refused |\n|---|--:|--:|--:|--:|");
    for ((language, budget), survival) in survivals {
        let Survival {
            statements,
            refused,
        } = survival;
        let share = percent(statements.part());
        println!(
            "| {language} | {budget} % | {share} | {} | {refused} |",
            statements.of
        );
    }
    Ok(())
}

impl Survival {
    fn count(&mut self, chat: &Chat, compacted: Option<&[Message]>) {
        self.refused += usize::from(compacted.is_none());
        let texts = compacted.unwrap_or_default().iter().map(Message::text);
        let text = normal(&texts.collect::<Vec<_>>().join("\n"));
        for values in &chat.statements {
            let survives = values.iter().all(|value| stands(&text, value));
            self.statements.count(survives);
        }
    }
}

/// Reads the languages.
fn languages() -> Vec<Language> {
    let mut languages: Vec<Language> = Vec::new();
    let mut list = "";
    for line in SENTENCES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
    {
        if let Some(name) = line.strip_prefix("= ") {
            languages.push(Language {
                name,
                lists: HashMap::new(),
                updates: Vec::new(),
            });
        } else if let Some(name) = line.strip_prefix('[') {
            list = name.trim_end_matches(']');
        } else if let Some(language) = languages.last_mut() {
            let entries = line.split('|');
            if list == "updates" {
                language.updates.push(entries.collect());
            } else {
                language.lists.entry(list).or_default().extend(entries);
            }
        }
    }
    languages
}

impl Language {
    fn list(&self, name: &str) -> &[&'static str] {
        self.lists.get(name).map_or(&[], Vec::as_slice)
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
fn chat(language: &Language, random: &mut Random) -> Chat {
    let mut values = Values {
        language,
        taken: HashSet::new(),
    };
    let turns = TURNS.0 + random.below(TURNS.1 + 1);
    let mut said: Vec<(usize, String)> = Vec::new();
    let mut statements = Vec::new();
    for kind in KINDS {
        let mut left = language.list(kind).to_vec();
        for _ in 0..ONCE.min(left.len()) {
            let template = left.swap_remove(random.below(left.len()));
            let (sentence, filled) = values.fill(template, None, random);
            said.push((1 + random.below(turns * 9 / 10), sentence));
            statements.push(filled);
        }
    }
    let mut left: Vec<&Vec<&str>> = language.updates.iter().collect();
    for _ in 0..UPDATED.min(left.len()) {
        let update = left.swap_remove(random.below(left.len()));
        let Some((stated, updates)) = update.split_first() else {
            continue;
        };
        // The subject of the fact stays the same.
        let about = stated
            .contains("{thing}")
            .then(|| values.value("{thing}", random));
        let with = |template: &str| match &about {
            Some(thing) => template.replace("{thing}", thing),
            None => template.to_owned(),
        };
        let (stated, old) = values.fill(&with(stated), None, random);
        let update = random.pick(updates).unwrap_or_default();
        let old = old.last().map(String::as_str);
        let (sentence, new) = values.fill(&with(update), old, random);
        let first = 1 + random.below(turns / 2);
        said.push((first, stated));
        said.push((first + turns / 4, sentence));
        statements.push(new.last().cloned().into_iter().collect());
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
            sentences.extend(random.pick(language.list("openings")));
        } else if here.is_empty() || random.below(2) == 0 {
            let talk = match random.below(3) {
                0 => "small_talk",
                _ => "acknowledgements",
            };
            sentences.extend(random.pick(language.list(talk)));
        }
        sentences.extend(here);
        messages.push(Message::user(sentences.join(" ")));
        let answer = random.pick(language.list("answers")).unwrap_or_default();
        messages.push(Message::assistant(answer));
    }
    Chat {
        language: language.name,
        messages,
        statements,
    }
}

/// The values that a chat has used. Each is used once.
struct Values<'l> {
    language: &'l Language,
    taken: HashSet<String>,
}

impl Values<'_> {
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
        let sentence = match chars.next() {
            Some(first) if template.starts_with('{') => {
                first.to_uppercase().to_string() + chars.as_str()
            }
            _ => sentence,
        };
        (sentence, filled)
    }

    /// Returns a value for a slot that this chat has not used yet, if there is one.
    fn value(&mut self, slot: &str, random: &mut Random) -> String {
        let list = match slot {
            "{city}" => "cities".to_owned(),
            slot => slot.trim_matches(['{', '}']).to_owned() + "s",
        };
        let all = self.language.list(&list);
        let free = all
            .iter()
            .copied()
            .filter(|value| !self.taken.contains(*value));
        let free: Vec<&str> = free.collect();
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
        let languages = languages();
        assert_eq!(languages.len(), 4);
        for language in &languages {
            let made = |seed| chat(language, &mut Random(seed));
            let one = made(1);
            let texts: Vec<String> = one.messages.iter().map(Message::text).collect();
            let text = normal(&texts.join("\n"));
            assert!((80..=160).contains(&one.messages.len()));
            assert_eq!(one.statements.len(), KINDS.len() * ONCE + UPDATED);
            for values in &one.statements {
                assert!(!values.is_empty());
                assert!(
                    values.iter().all(|value| stands(&text, value)),
                    "{values:?}"
                );
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
