//! Which sentences a later one has updated: a value that was stated for the same thing, or one that
//! a later sentence names as gone ("instead of", "no longer"). Not understanding: where it is not
//! clear that two sentences speak of one thing, both stay, in the order in which they were said.

use std::collections::HashMap;

use super::cues;

/// A longer sentence states no value.
const SENTENCE_MAX: usize = 240;
/// With a colon in it, a sentence of more words is a title.
const TITLE: usize = 6;
/// A thing is named by at most so many words.
const FRAME_MAX: usize = 6;

/// Where the stale sentences are: message and sentence. `messages` are sentences in order.
pub(super) fn stale(messages: &[Vec<&str>]) -> Vec<(usize, usize)> {
    let mut stale = Vec::new();
    // What was last said of a thing, and where else values were stated, oldest first.
    let mut live: HashMap<Vec<String>, Statement> = HashMap::new();
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
            if let Some(frame) = updated(&live, &statement) {
                stale.extend(live.remove(&frame).map(|old| old.at));
            }
            live.insert(statement.frame.clone(), statement);
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

/// The thing in `live` of which `new` states another value.
fn updated(live: &HashMap<Vec<String>, Statement>, new: &Statement) -> Option<Vec<String>> {
    // A list of things under one name ("file: a", "file: b") is said in one breath; what replaces
    // an earlier value is said later.
    // "The port is optional" is no other port.
    let differs = |old: &Statement| {
        old.at.0 != new.at.0 && old.value != new.value && (new.is_exact || !old.is_exact)
    };
    if let Some(old) = live.get(&new.frame) {
        let clear = new.is_update || (old.form == Form::Assigned && new.form == Form::Assigned);
        return (clear && differs(old)).then(|| new.frame.clone());
    }
    if !new.is_update || new.form == Form::Named {
        return None;
    }
    // "The port is now …" after "the staging port is …": only where it can mean one thing alone.
    let within = |a: &[String], b: &[String]| a.iter().all(|word| b.contains(word));
    let mut alike = live.iter().filter(|(frame, old)| {
        let meant = within(frame, &new.frame) || within(&new.frame, frame);
        meant && old.form == Form::Assigned && differs(old)
    });
    let (frame, _) = alike.next()?;
    alike.next().is_none().then(|| frame.clone())
}

/// That something has a value.
#[derive(Debug)]
struct Statement {
    at: (usize, usize),
    /// The words that name it, sorted.
    frame: Vec<String>,
    value: String,
    /// The value and what it is called by together ("postgres 14").
    values: Vec<String>,
    form: Form,
    /// Whether the value is a number, a name, a path: not any word.
    is_exact: bool,
    /// Whether it says of itself that it changes something.
    is_update: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// "X is V", "X = V", "set X to V".
    Assigned,
    /// "… the X V …".
    Named,
}

impl Statement {
    fn of(words: &[Word], at: (usize, usize)) -> Option<Self> {
        if words
            .iter()
            .any(|word| FORBIDS.contains(&word.low.as_str()))
        {
            return None;
        }
        let is_update = words
            .iter()
            .any(|word| UPDATES.contains(&word.low.as_str()))
            || words
                .iter()
                .any(|word| CJK_UPDATES.iter().any(|cue| word.low.contains(cue)));
        let copula = words
            .iter()
            .rposition(|word| COPULAS.contains(&word.low.as_str()));
        // "Step 5: build the API" is a title, no value.
        let is_title = words.iter().any(|word| word.low == ":") && words.len() > TITLE;
        let copula = copula.filter(|_| !is_title);
        let assigns = copula.is_some()
            || words.iter().any(|word| SETS.contains(&word.low.as_str()))
            || words
                .iter()
                .any(|word| CJK_COPULAS.iter().any(|cue| word.low.contains(cue)));
        let at_value = value_at(words, copula)?;
        let value = words.get(at_value)?;
        // "Postgres 14", "Python 3.7": the name right before a number belongs to the value too.
        let named = at_value
            .checked_sub(1)
            .and_then(|before| words.get(before))
            .filter(|before| !is_filler(&before.low));
        let mut values = vec![value.low.clone()];
        values.extend(named.map(|named| format!("{} {}", named.low, value.low)));
        if value.low.bytes().all(|b| b.is_ascii_digit()) && value.low.len() < 3 {
            // "14" alone may be anything.
            values.remove(0);
        }
        let mut frame: Vec<String> = words
            .iter()
            .enumerate()
            .filter(|(n, _)| *n != at_value)
            .map(|(_, word)| bare(&word.low))
            .filter(|word| !is_filler(word))
            .collect();
        frame.sort_unstable();
        frame.dedup();
        if frame.is_empty() || frame.len() > FRAME_MAX {
            return None;
        }
        Some(Self {
            at,
            frame,
            is_exact: value.looks_like_value(),
            value: value.low.clone(),
            values,
            form: if assigns { Form::Assigned } else { Form::Named },
            is_update,
        })
    }
}

/// Which word is the value: behind a copula the first that is no filler, else the last word that
/// has the look of one.
fn value_at(words: &[Word], copula: Option<usize>) -> Option<usize> {
    let plain = |n: usize| words.get(n).is_some_and(|word| !is_filler(&word.low));
    let looks = words.iter().rposition(Word::looks_like_value);
    let Some(copula) = copula else {
        return looks;
    };
    let behind = |n: &usize| *n > copula;
    if let Some(found) = looks.filter(behind) {
        return Some(found);
    }
    // "the owner is Dana": one or two words behind the copula, and nothing that looks like more.
    let rest: Vec<usize> = (copula + 1..words.len()).filter(|n| plain(*n)).collect();
    match rest.as_slice() {
        [one] | [one, _] if copula > 0 => Some(*one),
        _ => None,
    }
}

/// The values that a sentence says are gone.
fn gone(words: &[Word]) -> Vec<String> {
    let mut gone = Vec::new();
    for (n, word) in words.iter().enumerate() {
        let next = |by: usize| words.get(n + by).map(|word| word.low.as_str());
        let start = match (word.low.as_str(), next(1)) {
            ("instead", Some("of")) | ("rather", Some("than")) | ("no", Some("longer")) => n + 2,
            ("from", Some(_)) if words.iter().any(|word| word.low == "to") => n + 1,
            ("not" | "replace" | "replaces" | "forget", Some(_)) => n + 1,
            _ => continue,
        };
        let rest = words.get(start..).unwrap_or_default();
        let mut plain = rest
            .iter()
            .filter(|word| !ARTICLES.contains(&word.low.as_str()));
        let (first, second) = (plain.next(), plain.next());
        if let Some(first) = first {
            if first.looks_like_value() {
                gone.push(first.low.clone());
            } else if let Some(second) = second.filter(|second| second.has_digit()) {
                gone.push(format!("{} {}", first.low, second.low));
                if second.low.len() >= 3 {
                    gone.push(second.low.clone());
                }
            }
        }
    }
    gone
}

struct Word {
    low: String,
    /// Whether it is written in capitals, or with capitals inside.
    has_capitals: bool,
}

impl Word {
    fn has_digit(&self) -> bool {
        self.low.contains(|c: char| c.is_ascii_digit())
    }

    fn looks_like_value(&self) -> bool {
        let low = &self.low;
        low.contains(|c: char| c.is_ascii_digit())
            || (self.has_capitals && low.len() > 2)
            || (low.is_ascii()
                && low.contains(['/', '.', '-', ':', '@', '_'])
                && low.contains(|c: char| c.is_ascii_alphabetic()))
    }
}

/// The words of a sentence without the signs around them; CJK runs are parted from the rest.
fn words(sentence: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for run in sentence.split_whitespace() {
        let mut start = 0;
        let mut last: Option<bool> = None;
        let mut cuts = Vec::new();
        for (at, c) in run.char_indices() {
            let wide = !c.is_ascii();
            if last.is_some_and(|last| last != wide) {
                cuts.push(at);
            }
            last = Some(wide);
        }
        // Words with letters like é in them are not parted.
        if !run.chars().any(is_cjk) {
            cuts.clear();
        }
        cuts.push(run.len());
        for cut in cuts {
            let part = run.get(start..cut).unwrap_or_default();
            start = cut;
            let colon = part.len() > 1 && part.ends_with(':');
            let bare = part.trim_matches(|c: char| {
                matches!(
                    c,
                    ',' | '.'
                        | ';'
                        | ':'
                        | '!'
                        | '?'
                        | '"'
                        | '\''
                        | '('
                        | ')'
                        | '['
                        | ']'
                        | '`'
                        | '*'
                        | '“'
                        | '”'
                        | '。'
                        | '，'
                        | '、'
                        | '：'
                        | '；'
                        | '！'
                        | '？'
                )
            });
            if !bare.is_empty() {
                let inner = bare.chars().skip(1).any(char::is_uppercase);
                words.push(Word {
                    low: bare.to_lowercase(),
                    has_capitals: inner,
                });
            }
            if colon {
                words.push(Word {
                    low: ":".to_owned(),
                    has_capitals: false,
                });
            }
        }
    }
    words
}

/// A word without what only says that it has a value, in scripts without blanks.
fn bare(word: &str) -> String {
    let mut bare = word.to_owned();
    if word.chars().any(is_cjk) {
        for part in CJK_FILLERS {
            bare = bare.replace(part, "");
        }
    }
    bare
}

fn is_filler(word: &str) -> bool {
    word.is_empty()
        || ARTICLES.contains(&word)
        || FILLERS.contains(&word)
        || COPULAS.contains(&word)
        || SETS.contains(&word)
        || UPDATES.contains(&word)
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

const ARTICLES: &[&str] = &[
    "the", "a", "an", "our", "my", "your", "this", "that", "its", "their",
];
/// Words that neither name a thing nor are its value.
const FILLERS: &[&str] = &[
    "we",
    "i",
    "you",
    "it",
    "they",
    "to",
    "of",
    "at",
    "on",
    "in",
    "as",
    "for",
    "with",
    "by",
    "so",
    "ok",
    "okay",
    "no",
    "yes",
    "and",
    "but",
    "please",
    "note",
    "remember",
    "hey",
    "well",
    "oh",
    "let's",
    "lets",
    "just",
    "will",
    "would",
    "should",
    "must",
    "has",
    "have",
    "had",
    "needs",
    "need",
    "shall",
    "can",
    "also",
    "that's",
    "it's",
    "be",
    "been",
    "called",
    "named",
    "same",
    "then",
    "here",
    "there",
    "only",
    "always",
    "btw",
    "fyi",
    "value",
    "everywhere",
    "again",
    "please,",
    "going",
    "forward",
    "->",
    "want",
    "wants",
    "i'd",
    "we'll",
    "i'll",
    "one",
    "do",
];
const COPULAS: &[&str] = &[
    "is", "was", "=", ":=", ":", "equals", "becomes", "be", "ist", "est", "es", "called", "named",
];
const SETS: &[&str] = &[
    "set", "make", "use", "change", "switch", "update", "bump", "move", "put", "raise", "lower",
    "increase", "decrease", "rename", "renamed", "reduce", "changed", "moved", "switched",
    "updated", "using",
];
const UPDATES: &[&str] = &[
    "now",
    "actually",
    "instead",
    "change",
    "changed",
    "switch",
    "switched",
    "update",
    "updated",
    "scratch",
    "correction",
    "sorry",
    "rather",
    "longer",
    "moved",
    "renamed",
    "rename",
    "bump",
    "anymore",
    "new",
    "meant",
    "wait",
    "forget",
    "replace",
    "replaced",
    "raise",
    "lower",
    "increase",
    "decrease",
    "reduce",
    "today",
    "nope",
];
/// A sentence with one of these states no value that another could replace.
const FORBIDS: &[&str] = &[
    "never", "don't", "dont", "don’t", "avoid", "mustn't", "cannot", "can't", "won't", "isn't",
];
const CJK_COPULAS: &[&str] = &["是", "为", "改成", "は", "です", "는", "은", "입니다"];
const CJK_UPDATES: &[&str] = &["现在", "改", "換", "换", "变", "今", "変更", "이제", "변경"];
const CJK_FILLERS: &[&str] = &[
    "现在",
    "改为",
    "改成",
    "换成",
    "变成",
    "变更为",
    "变为",
    "的",
    "是",
    "为",
    "了",
    "把",
    "将",
    "请",
    "用",
    "変更",
    "今は",
    "です",
    "ます",
    "は",
    "を",
    "に",
    "が",
    "の",
    "이제",
    "입니다",
    "으로",
    "로",
    "는",
    "은",
    "이",
    "가",
    "변경",
];

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
