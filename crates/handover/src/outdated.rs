//! Finds sentences that a later one has updated: a stated value of the same thing has changed, or a
//! later sentence says that it is gone ("instead of", "no longer").
//!
//! If it is not clear that two sentences concern the same thing, both stay, in their original
//! order.

use foldhash::HashMap;

mod mention;
mod statement;

use mention::Mention;
use statement::{Look, Statement, StatementForm, is_update, withdrawn_values, words};

/// The maximum length of a sentence that states a value.
const SENTENCE_MAX: usize = 240;

/// The maximum number of things with a common word that are checked for an update, newest first.
/// Keeps the time proportional to the text.
const NAMED_MAX: usize = 24;

/// The statements about values in a sentence.
pub(crate) struct ValueStatements {
    statement: Option<Statement>,
    /// The statement of the last clause alone, if the sentence announces a change: "sorry, my
    /// fault: the port is …". Without an announcement, the rest of the sentence says which port is
    /// meant.
    clause: Option<Statement>,
    withdrawn: Vec<String>,
    mention: Mention,
}

impl ValueStatements {
    /// Reads a sentence of a message. Returns `None` if it contains no statement about values.
    pub(crate) fn of(sentence: &str, is_brief: bool) -> Option<Self> {
        if sentence.len() > SENTENCE_MAX || sentence.starts_with('#') {
            return None;
        }
        let words = words(sentence);
        let statement = Statement::of(&words);
        let mut clause = None;
        if is_update(&words)
            && let Some((_, last)) = sentence
                .trim_end()
                .rsplit_once([',', ';', ':', '，', '；', '：'])
            && last.starts_with(' ')
        {
            clause = Statement::of(&self::words(last)).map(|mut clause| {
                clause.is_update = true;
                clause
            });
        }
        let statements = Self {
            statement,
            clause,
            withdrawn: withdrawn_values(&words),
            mention: if is_brief {
                Mention::of(sentence, &words)
            } else {
                Mention::default()
            },
        };
        let is_some = statements.statement.is_some() || statements.clause.is_some();
        (is_some || !statements.withdrawn.is_empty() || !statements.mention.is_empty())
            .then_some(statements)
    }

    /// Returns `true` if the sentence announces a change.
    pub(crate) fn is_change(&self) -> bool {
        self.mention.is_change()
    }

    /// Returns `true` if the sentence states a value that a later one could update.
    pub(crate) fn is_stated(&self) -> bool {
        let statement = self.statement.as_ref();
        statement.is_some_and(|one| one.form == StatementForm::Assigned || one.is_update)
    }
}

/// Returns the outdated sentences, each as the indices of its message and of its sentence there, in
/// order.
pub(crate) fn stale(sentences: Vec<((usize, usize), ValueStatements)>) -> Vec<(usize, usize)> {
    let mut stale = Vec::new();
    let mut live = Live::default();
    // The sentences that state each value, oldest first.
    let mut values: HashMap<String, Vec<(usize, usize)>> = HashMap::default();
    stale.extend(mention::outdated(
        sentences
            .iter()
            .map(|(at, statements)| (*at, &statements.mention)),
    ));
    for (at, statements) in sentences {
        let is_stated = statements.is_stated();
        for value in statements.withdrawn {
            // Sentences of the same message are excluded: nobody corrects a value within one
            // message.
            let (old, here): (Vec<_>, Vec<_>) = values
                .remove(&value)
                .unwrap_or_default()
                .into_iter()
                .partition(|old: &(usize, usize)| old.0 != at.0);
            stale.extend(old);
            if !here.is_empty() {
                values.insert(value, here);
            }
        }
        if let Some(clause) = statements.clause
            && let Some(frame) = live.updated(at, &clause)
        {
            stale.extend(live.by_frame.remove(&frame).map(|(old, _)| old));
            live.insert(at, clause);
        }
        let Some(statement) = statements.statement else {
            continue;
        };
        if is_stated {
            for value in &statement.values {
                values.entry(value.clone()).or_default().push(at);
            }
        }
        if let Some(frame) = live.updated(at, &statement) {
            stale.extend(live.by_frame.remove(&frame).map(|(old, _)| old));
        }
        live.insert(at, statement);
    }
    stale.sort_unstable();
    stale.dedup();
    stale
}

/// The last statement about each thing.
#[derive(Default)]
struct Live {
    by_frame: HashMap<Vec<String>, ((usize, usize), Statement)>,
    /// The things whose names contain a word, oldest first.
    named: HashMap<String, Vec<Vec<String>>>,
}

impl Live {
    fn insert(&mut self, at: (usize, usize), statement: Statement) {
        if statement.form == StatementForm::Assigned {
            for word in &statement.frame {
                let named = self.named.entry(word.clone()).or_default();
                named.push(statement.frame.clone());
            }
        }
        self.by_frame
            .insert(statement.frame.clone(), (at, statement));
    }

    /// Returns the thing for which `new` states another value.
    fn updated(&self, at: (usize, usize), new: &Statement) -> Option<Vec<String>> {
        // A list of things with one name ("file: a", "file: b") is within one message; an updated
        // value comes in a later one. "The port is optional" does not replace a port.
        let differs = |(place, old): &((usize, usize), Statement)| {
            let is_like = new.look != Look::Plain || old.look == Look::Plain;
            place.0 != at.0 && old.value != new.value && is_like
        };
        if let Some(found) = self.by_frame.get(&new.frame) {
            let (_, old) = found;
            // Plain words do not look like values, and a thing can have several of them at once.
            let assigned = old.form == StatementForm::Assigned
                && new.form == StatementForm::Assigned
                && new.look != Look::Plain;
            return ((new.is_update || assigned) && differs(found)).then(|| new.frame.clone());
        }
        if !new.is_update || new.form == StatementForm::Named {
            return None;
        }
        // "The port is now …" after "the staging port is …": accepted only if there is one
        // candidate.
        let named = new.frame.iter().filter_map(|word| self.named.get(word));
        let mut alike: Vec<&Vec<String>> = named
            .flat_map(|frames| frames.iter().rev().take(NAMED_MAX))
            .filter(|frame| is_one_thing(frame, &new.frame))
            .filter(|frame| {
                self.by_frame.get(*frame).is_some_and(|found| {
                    let (_, old) = found;
                    old.form == StatementForm::Assigned && old.look == new.look && differs(found)
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

/// Returns `true` if one name contains the other, or both have most words in common.
fn is_one_thing(a: &[String], b: &[String]) -> bool {
    let both = a.iter().filter(|word| b.contains(word)).count();
    let all = a.len() + b.len() - both;
    both == a.len().min(b.len()) || 5 * both >= 3 * all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_updated(sentences: &[&str]) -> Vec<usize> {
        let sentences = sentences.iter().enumerate();
        let statements =
            sentences.filter_map(|(m, one)| Some(((m, 0), ValueStatements::of(one, true)?)));
        stale(statements.collect())
            .into_iter()
            .map(|(m, _)| m)
            .collect()
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
                "Send the draft to Ada.",
                "Grace took over, so the draft goes there.",
            ],
            ["会议在大连开。", "计划有变，我们在厦门见面。"],
            [
                "会議は敦賀で行います。",
                "予定が変わって、函館で会うことになりました。",
            ],
            [
                "The launch is on March 3.",
                "The launch got postponed to March 9.",
            ],
            ["发布时间是周二。", "发布时间推迟到周五。"],
            ["密码是 4471。", "密码重置为 9920 了。"],
            ["会場は神戸です。", "会場を京都に移しました。"],
            ["담당자는 민수예요.", "담당자가 지영으로 교체됐어요."],
            ["가격은 5000원이에요.", "가격이 7000원으로 올랐어요."],
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
            &["in the api, the port is 80", "in the db, the port is 5432"],
            &[
                "the file a/b.bin must not change",
                "a change of the file a/c.bin",
            ],
            &["the api is slow", "the api is the reason"],
            &["the tests are in a/b", "the docs are in c/d"],
            &["create a new file a.rs", "create a new file b.rs"],
            &[
                "潮見表の変更を承認できるのは藤原さんだけです。",
                "Quay.rs は絶対に変更しないでください。",
            ],
            &["the port is now 9177", "Port is optional."],
            &[
                "always run a/b.sh before you commit",
                "commit and update c.md",
            ],
        ] {
            assert_eq!(is_updated(sentences), [0usize; 0], "{sentences:?}");
        }
    }

    #[test]
    fn of_several_things_the_one_that_is_meant_is_updated() {
        for (sentences, meant) in [
            (
                [
                    "会议在大连开。",
                    "我们在温州的联系人叫林晓月。",
                    "计划有变，我们在厦门见面。",
                ],
                0,
            ),
            (
                [
                    "顺便说一下，门禁密码是 4579。",
                    "预算是 1202 元。",
                    "更正一下，预算是 1631 元。",
                ],
                1,
            ),
            (
                [
                    "下書きは中野さんに送ってください。",
                    "下書きで長崎に触れるのは禁止です。",
                    "下書きはやはり三浦さんに送ってください。",
                ],
                0,
            ),
            (
                [
                    "You are not allowed to mention Cork in any draft.",
                    "Send the draft to Ines.",
                    "Tomasz took over, so the draft goes there.",
                ],
                1,
            ),
        ] {
            assert_eq!(is_updated(&sentences), [meant], "{sentences:?}");
        }
    }
}
