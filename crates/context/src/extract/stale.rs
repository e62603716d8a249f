//! Which sentences a later one has updated: a value that was stated for the same thing, or one that
//! a later sentence names as gone ("instead of", "no longer"). Not understanding: where it is not
//! clear that two sentences speak of one thing, both stay, in the order in which they were said.

use std::collections::HashMap;

use super::cues;

mod statement;

use statement::{Form, Look, Statement, gone, words};

/// A longer sentence states no value.
const SENTENCE_MAX: usize = 240;

/// So many things that one word names are looked at for an update, the newest: time stays in
/// proportion to the text.
const NAMED_MAX: usize = 64;

/// Where the stale sentences are: message and sentence. `messages` are sentences in order.
pub(super) fn stale(messages: &[Vec<&str>]) -> Vec<(usize, usize)> {
    let mut stale = Vec::new();
    // What was last said of a thing, and where else values were stated, oldest first.
    let mut live = Live::default();
    let mut values: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
    for (m, sentences) in messages.iter().enumerate() {
        for (s, sentence) in sentences.iter().enumerate() {
            let at = (m, s);
            let is_heading = sentence.starts_with('#');
            if sentence.len() > SENTENCE_MAX || is_heading || cues::is_machine(sentence) {
                continue;
            }
            let words = words(sentence);
            let statement = Statement::of(&words, at);
            for gone in gone(&words) {
                // Not what the same message said: nobody corrects himself in one breath.
                let (old, here): (Vec<_>, Vec<_>) = values
                    .remove(&gone)
                    .unwrap_or_default()
                    .into_iter()
                    .partition(|old: &(usize, usize)| old.0 != m);
                stale.extend(old);
                if !here.is_empty() {
                    values.insert(gone, here);
                }
            }
            let Some(statement) = statement else {
                continue;
            };
            if statement.form == Form::Assigned || statement.is_update {
                for value in &statement.values {
                    values.entry(value.clone()).or_default().push(at);
                }
            }
            if let Some(frame) = live.updated(&statement) {
                stale.extend(live.of.remove(&frame).map(|old| old.at));
            }
            live.insert(statement);
        }
    }
    stale.sort_unstable();
    stale.dedup();
    stale
}

/// Whether a sentence states a value, so that a later one could update it.
pub(super) fn states(sentence: &str) -> bool {
    if sentence.len() > SENTENCE_MAX || sentence.starts_with('#') || cues::is_machine(sentence) {
        return false;
    }
    let statement = Statement::of(&words(sentence), (0, 0));
    statement.is_some_and(|statement| statement.form == Form::Assigned || statement.is_update)
}

/// What was last said of each thing.
#[derive(Default)]
struct Live {
    of: HashMap<Vec<String>, Statement>,
    /// The things that a word names, oldest first.
    named: HashMap<String, Vec<Vec<String>>>,
}

impl Live {
    fn insert(&mut self, statement: Statement) {
        if statement.form == Form::Assigned {
            for word in &statement.frame {
                let named = self.named.entry(word.clone()).or_default();
                named.push(statement.frame.clone());
            }
        }
        self.of.insert(statement.frame.clone(), statement);
    }

    /// The thing of which `new` states another value.
    fn updated(&self, new: &Statement) -> Option<Vec<String>> {
        // A list of things under one name ("file: a", "file: b") is said in one breath; what
        // replaces an earlier value is said later. "The port is optional" is no other port.
        let differs = |old: &Statement| {
            let is_like = new.look != Look::Plain || old.look == Look::Plain;
            old.at.0 != new.at.0 && old.value != new.value && is_like
        };
        if let Some(old) = self.of.get(&new.frame) {
            // Of words that are no value by their look, much can be said at once.
            let assigned =
                old.form == Form::Assigned && new.form == Form::Assigned && new.look != Look::Plain;
            return ((new.is_update || assigned) && differs(old)).then(|| new.frame.clone());
        }
        if !new.is_update || new.form == Form::Named {
            return None;
        }
        // "The port is now …" after "the staging port is …": only where it can mean one thing.
        let named = new.frame.iter().filter_map(|word| self.named.get(word));
        let mut alike: Vec<&Vec<String>> = named
            .flat_map(|frames| frames.iter().rev().take(NAMED_MAX))
            .filter(|frame| {
                self.of.get(*frame).is_some_and(|old| {
                    let is_one = is_one_thing(frame, &new.frame);
                    is_one && old.form == Form::Assigned && old.look == new.look && differs(old)
                })
            })
            .collect();
        alike.sort_unstable();
        alike.dedup();
        match alike.as_slice() {
            [one] => Some((*one).clone()),
            _ => None,
        }
    }
}

/// Whether one names no more than the other, or both name mostly the same.
fn is_one_thing(a: &[String], b: &[String]) -> bool {
    let both = a.iter().filter(|word| b.contains(word)).count();
    let all = a.len() + b.len() - both;
    both == a.len().min(b.len()) || 5 * both >= 3 * all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_updated(sentences: &[&str]) -> Vec<usize> {
        let messages: Vec<Vec<&str>> = sentences.iter().map(|one| vec![*one]).collect();
        stale(&messages).into_iter().map(|(m, _)| m).collect()
    }

    #[test]
    fn a_later_value_makes_the_earlier_stale() {
        for pair in [
            ["the port is 8431", "the port is now 9100"],
            ["the port is 8431", "The port is 9100."],
            ["port: 8431", "port: 9100"],
            [
                "our API host is a.internal",
                "Actually our API host is b.internal.",
            ],
            ["use port 8431", "use port 9100 instead"],
            ["use port 8431", "use port 9100 instead of 8431"],
            [
                "We use Postgres 14 for the queue.",
                "use Postgres 16 rather than Postgres 14",
            ],
            ["set max_retries to 5", "set max_retries to 7"],
            ["the staging port is 8431", "the port is now 9100"],
            ["The lead is Ada", "the lead is Grace now"],
            ["端口是 8431", "端口改为 9100"],
            ["ポートは 8431 です", "ポートは 9100 に変更"],
            [
                "the branch is called wip/one",
                "we renamed the branch, it is called wip/two",
            ],
        ] {
            assert_eq!(is_updated(&pair), [0], "{pair:?}");
        }
    }

    #[test]
    fn what_speaks_of_something_else_stays() {
        for sentences in [
            &["never touch src/a.rs", "never touch src/b.rs"][..],
            &["the api port is 8431", "the db port is 9100"],
            &[
                "the port of staging is 1",
                "the port of live is 2",
                "the port is now 3",
            ],
            &["read the file src/a.rs", "read the file src/b.rs"],
            &["never touch src/a.rs", "edit src/b.rs instead of src/a.rs"],
            &["the port is 8431", "the port is 8431"],
            &["it is 5", "it is 6"],
            &["run test 1", "run test 2"],
            &["run test 1", "now run test 2"],
            &["the api is slow", "the api is the reason"],
            &["the tests are in a/b", "the docs are in c/d"],
            &["create a new file a.rs", "create a new file b.rs"],
            &["the port is now 9177", "Port is optional."],
            &[
                "always run a/b.sh before you commit",
                "commit and update c.md",
            ],
        ] {
            assert_eq!(is_updated(sentences), [0usize; 0], "{sentences:?}");
        }
    }
}
