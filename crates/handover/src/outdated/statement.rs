//! Extracts the thing and the value from one sentence, word by word. A sentence that cannot be
//! analysed is no statement and updates nothing.

use std::sync::LazyLock;

use foldhash::HashMap;

/// The maximum number of words in a sentence with a colon that is no title.
const TITLE: usize = 5;
/// The maximum number of words in the name of a definite thing that is given a value.
const DEFINITE: usize = 3;
/// The maximum number of words in the name of a thing.
const FRAME_MAX: usize = 6;

/// A statement that a thing has a value.
#[derive(Debug)]
pub(crate) struct Statement {
    /// The words that name the thing, sorted.
    pub(crate) frame: Vec<String>,
    pub(crate) value: String,
    /// The value, and the value with its name ("postgres 14").
    pub(crate) values: Vec<String>,
    pub(crate) form: StatementForm,
    pub(crate) look: Look,
    /// Whether the sentence says that it changes something.
    pub(crate) is_update: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementForm {
    /// "X is V", "X = V", "set X to V".
    Assigned,
    /// "… the X V …".
    Named,
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// A word with a digit.
    Number,
    /// A path, an address, an identifier, a word in capitals.
    Name,
    /// Any word.
    Plain,
}

/// A word of a sentence.
pub(crate) struct SentenceWord {
    low: String,
    /// The word's classes in the tables below, as bits.
    class: u16,
    look: Look,
    /// Whether the sentence says that this is no longer true.
    is_withdrawn: bool,
}

impl Statement {
    pub(crate) fn of(words: &[SentenceWord]) -> Option<Self> {
        // A forbidden thing is no value that another could replace.
        let forbids = words.windows(2).any(|pair| match pair {
            [a, b] => b.low == "not" && MODALS.split('|').any(|modal| modal == a.low),
            _ => false,
        });
        if forbids || words.iter().any(|word| word.is(FORBIDS)) {
            return None;
        }
        let count = words.iter().filter(|word| !word.is_filler()).count();
        let is_title = words.iter().any(|word| word.low == ":") && count > TITLE;
        let copula = words.iter().rposition(|word| word.is(COPULA));
        let copula = copula.filter(|_| !is_title);
        let assigns = copula.is_some() || words.iter().any(|word| word.is(SETS));
        let is_update = is_update(words);
        // "The container listens on 6431" is about a definite thing.
        let is_definite = words.first().is_some_and(|word| word.is(ARTICLE));
        let at_value = value_at(words, copula)?;
        let value = words.get(at_value)?;
        // "Postgres 14", "Python 3.7": the name directly before a number also belongs to the value.
        let named = at_value.checked_sub(1).and_then(|before| words.get(before));
        let named = named.filter(|named| !named.is_filler());
        let mut values = Vec::new();
        // "14" alone is ambiguous.
        if value.low.len() > 2 {
            values.push(value.low.clone());
        }
        values.extend(named.map(|named| format!("{} {}", named.low, value.low)));
        let mut frame: Vec<String> = words
            .iter()
            .enumerate()
            .filter(|(n, word)| *n != at_value && !word.is_filler() && !word.is_withdrawn)
            .map(|(_, word)| stem(&bare(&word.low)))
            .filter(|word| !word.is_empty())
            .collect();
        frame.sort_unstable();
        frame.dedup();
        (!frame.is_empty() && frame.len() <= FRAME_MAX).then(|| Self {
            value: value.low.clone(),
            values,
            form: if assigns || (is_definite && frame.len() <= DEFINITE) {
                StatementForm::Assigned
            } else {
                StatementForm::Named
            },
            look: value.look,
            is_update,
            frame,
        })
    }
}

/// Returns `true` if a sentence says that it changes something.
pub(crate) fn is_update(words: &[SentenceWord]) -> bool {
    // "Now run test 2" is the next action and does not replace test 1.
    let says = |(n, word): (usize, &SentenceWord)| word.is(UPDATES) && (n > 0 || word.low != "now");
    words.iter().enumerate().any(says)
}

/// Returns the index of the value. After a copula it is the last word that looks like a value, or
/// the only word; without a copula it is the last word that looks like a value.
fn value_at(words: &[SentenceWord], copula: Option<usize>) -> Option<usize> {
    let looks = words
        .iter()
        .rposition(|word| word.look != Look::Plain && !word.is_withdrawn);
    let Some(copula) = copula else {
        return looks;
    };
    // "Noah is the reviewer now": the value comes first.
    let content_words_in = |range: std::ops::Range<usize>| -> Vec<usize> {
        let is_content = |n: &usize| {
            let word = words.get(*n);
            word.is_some_and(|word| !word.is_filler() && !word.is_withdrawn)
        };
        range.filter(is_content).collect()
    };
    let behind = words.get(copula + 1);
    let is_turned = behind.is_some_and(|word| word.is(ARTICLE));
    let is_bare = words.first().is_some_and(|word| !word.is(ARTICLE));
    if is_turned
        && is_bare
        && let [one] = content_words_in(0..copula).as_slice()
    {
        return Some(*one);
    }
    if let Some(found) = looks.filter(|found| *found > copula) {
        return Some(found);
    }
    // "The owner is Dana": one or two words after the copula, none of which looks like a value.
    match content_words_in(copula + 1..words.len()).as_slice() {
        [one] | [one, _] if copula > 0 => Some(*one),
        [] if copula > 0 => {
            let toggle = |word: &SentenceWord| TOGGLES.split('|').any(|toggle| toggle == word.low);
            let found = words.iter().skip(copula + 1).position(toggle);
            found.map(|found| found + copula + 1)
        }
        _ => None,
    }
}

/// Returns the values that a sentence withdraws ("instead of V", "no longer V").
pub(crate) fn withdrawn_values(words: &[SentenceWord]) -> Vec<String> {
    let mut withdrawn = Vec::new();
    let mut before: Option<&SentenceWord> = None;
    for word in words.iter().filter(|word| word.is_withdrawn) {
        if word.look != Look::Plain && word.low.len() > 2 {
            withdrawn.push(word.low.clone());
        }
        if word.look == Look::Number {
            withdrawn.extend(before.map(|before| format!("{} {}", before.low, word.low)));
        }
        before = Some(word);
    }
    withdrawn
}

/// Splits a sentence into words without the signs around them. CJK runs are separated from other
/// characters, and `A=1` is three words.
pub(crate) fn words(sentence: &str) -> Vec<SentenceWord> {
    let mut words = Vec::new();
    for run in sentence.split_whitespace() {
        let mut rest = run;
        let is_mixed = !run.is_ascii() && run.chars().any(is_cjk);
        while !rest.is_empty() {
            let end = if is_mixed { part_end(rest) } else { rest.len() };
            let (part, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
            rest = behind;
            let is_key = |key: &str| {
                key.starts_with(|c: char| c.is_alphabetic())
                    && !key.contains(['=', '/', '<', '>', '!', '('])
            };
            match part.split_once('=') {
                Some((key, value)) if is_key(key) && !value.is_empty() => {
                    push(&mut words, key);
                    push(&mut words, "=");
                    push(&mut words, value);
                }
                _ => push(&mut words, part),
            }
        }
    }
    mark_withdrawn(&mut words);
    words
}

/// Returns the end of a run of one script.
fn part_end(run: &str) -> usize {
    let is_wide = run.chars().next().is_some_and(|c| !c.is_ascii());
    let other = run.char_indices().find(|(_, c)| c.is_ascii() == is_wide);
    other.map_or(run.len(), |(at, _)| at)
}

fn push(words: &mut Vec<SentenceWord>, part: &str) {
    let inside = part.trim_matches(|c: char| {
        (c.is_ascii_punctuation() && !matches!(c, '/' | '$' | '=' | '_' | '-' | '~' | '%'))
            || matches!(
                c,
                '“' | '”' | '«' | '»' | '。' | '，' | '、' | '：' | '；' | '！' | '？'
            )
    });
    if !inside.is_empty() {
        let low = inside.to_lowercase();
        let class = CLASSES.get(low.as_str()).copied().unwrap_or_default() | cjk_class(&low);
        let has_capitals = inside.chars().skip(1).any(char::is_uppercase);
        let is_name = (has_capitals && low.len() > 2)
            || (part.starts_with('@') && part.len() > 2)
            || (low.is_ascii()
                && low.contains(['/', '.', '-', ':', '@', '_'])
                && low.contains(|c: char| c.is_ascii_alphabetic()));
        let look = if low.contains(|c: char| c.is_ascii_digit()) {
            Look::Number
        } else if is_name && class == 0 {
            Look::Name
        } else {
            Look::Plain
        };
        words.push(SentenceWord {
            low,
            class,
            look,
            is_withdrawn: false,
        });
    }
    if part.len() > 1 && part.ends_with([':', '：']) {
        words.push(SentenceWord {
            low: ":".to_owned(),
            class: COPULA,
            look: Look::Plain,
            is_withdrawn: false,
        });
    }
}

/// Marks the words after "instead of", "no longer" and similar phrases: one value, or a name and
/// the number after it.
fn mark_withdrawn(words: &mut [SentenceWord]) {
    let lows: Vec<&str> = words.iter().map(|word| word.low.as_str()).collect();
    let has_to = lows.contains(&"to");
    let mut withdrawn = Vec::new();
    for n in 0..lows.len() {
        let start = match lows.get(n..).unwrap_or_default() {
            ["instead", "of", ..] | ["rather", "than", ..] | ["no", "longer", ..] => n + 2,
            ["not" | "replace" | "replaces" | "forget", _, ..] => n + 1,
            ["from", _, ..] if has_to => n + 1,
            _ => continue,
        };
        let plain = (start..words.len())
            .filter(|n| words.get(*n).is_some_and(|word| !word.is(ARTICLE)))
            .take(2);
        for (nth, n) in plain.enumerate() {
            let Some(word) = words.get(n) else {
                break;
            };
            if nth == 0 && word.look != Look::Plain {
                withdrawn.push(n);
                break;
            }
            if nth == 0 || word.look == Look::Number {
                withdrawn.push(n);
            }
        }
    }
    for n in withdrawn {
        if let Some(word) = words.get_mut(n) {
            word.is_withdrawn = true;
        }
    }
}

impl SentenceWord {
    /// Returns `true` if the word forbids something.
    pub(crate) fn forbids(&self) -> bool {
        self.is(FORBIDS)
    }

    fn is(&self, class: u16) -> bool {
        self.class & class != 0
    }

    /// Returns `true` if the word is neither part of a thing's name nor its value.
    fn is_filler(&self) -> bool {
        if !self.low.is_ascii() && self.low.chars().any(is_cjk) {
            bare(&self.low).is_empty()
        } else {
            self.class != 0
        }
    }
}

/// Removes copulas and particles from a word, in scripts without blanks.
fn bare(word: &str) -> String {
    if word.is_ascii() || !word.chars().any(is_cjk) {
        return word.to_owned();
    }
    let fillers = CJK_FILLERS.split('|');
    fillers.fold(word.to_owned(), |word, filler| word.replace(filler, ""))
}

/// Removes the ending of a plural or a verb: `defaults` becomes `default`.
fn stem(word: &str) -> String {
    let stem = word
        .strip_suffix('s')
        .filter(|stem| stem.len() > 3 && !stem.ends_with('s'));
    stem.unwrap_or(word).to_owned()
}

/// Returns the classes of a word in a script without blanks, which includes its particles.
fn cjk_class(word: &str) -> u16 {
    if word.is_ascii() || !word.chars().any(is_cjk) {
        return 0;
    }
    let has = |cues: &str| cues.split('|').any(|cue| word.contains(cue));
    let sets = if has(CJK_SETS) { SETS } else { 0 };
    let updates = if has(CJK_UPDATES) { UPDATES } else { 0 };
    sets | updates
}

pub(crate) fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

const FILLER: u16 = 1;
const ARTICLE: u16 = 2;
const COPULA: u16 = 4;
const SETS: u16 = 8;
const UPDATES: u16 = 16;
const FORBIDS: u16 = 32;

/// The classes of each word, from the tables below.
static CLASSES: LazyLock<HashMap<&str, u16>> = LazyLock::new(|| {
    let mut classes = HashMap::default();
    for (table, class) in [
        (ARTICLES, ARTICLE),
        (FILLERS, FILLER),
        (UNITS, FILLER),
        (COPULAS, COPULA),
        (SETTERS, SETS),
        (UPDATERS, UPDATES),
        (FORBIDDERS, FORBIDS),
    ] {
        for word in table.split('|') {
            *classes.entry(word).or_default() |= class;
        }
    }
    classes
});

const ARTICLES: &str = "the|a|an|our|my|your|this|that|its|their|der|die|das|den|dem|ein|eine|unser|\
    unsere|le|la|les|un|une|notre|el|los|las|una|nuestro|nuestra|il|lo|gli|o|os|as|наш|наша|это";
/// Words that are neither part of a thing's name nor its value.
const FILLERS: &str = "we|i|you|it|they|to|of|at|on|in|as|for|with|by|so|ok|okay|no|yes|and|but|or|\
    please|note|remember|hey|well|oh|let's|lets|just|will|would|should|must|has|have|had|needs|\
    need|shall|can|also|that's|it's|been|same|then|here|there|only|always|btw|fyi|value|\
    everywhere|again|going|forward|want|wants|i'd|we'll|i'll|one|do|from|than|up|down|back|over|\
    into|out|new|current|currently|not|don't|really|still|was|were|went|of|per|about|around|\
    bitte|wir|auf|zu|für|im|am|nous|pour|sur|de|du|en|para|por|di|per|da|мы|на|в|для|se|y|et|und";
const UNITS: &str = "ms|s|sec|secs|second|seconds|min|mins|minute|minutes|h|hour|hours|day|days|week|\
    weeks|kb|mb|gb|kib|mib|gib|byte|bytes|token|tokens|px|percent|usd|eur|dollar|dollars|euro|\
    euros|times|x|sekunden|minuten|stunden|secondes|segundos";
const COPULAS: &str =
    "is|was|=|:=|:|equals|becomes|be|called|named|ist|sei|est|es|é|è|são|это|будет";
const SETTERS: &str = "set|make|use|change|switch|update|bump|move|put|raise|lower|increase|decrease|\
    rename|renamed|reduce|changed|moved|switched|updated|using|cut|went|goes|grew|fell|rose|\
    raised|lowered|defaults|default|listens|points|lives|stays|costs|extend|extended|shorten|shortened|upgrade|upgraded|downgrade|downgraded|\
    revert|reverted|keep|postponed|setze|nimm|mets|utilise|usa|usar|поставь|используй";
const UPDATERS: &str = "now|actually|instead|changed|switched|updated|scratch|correction|sorry|rather|\
    longer|moved|renamed|anymore|meant|wait|forget|replace|replaced|went|goes|grew|fell|rose|\
    raised|lowered|cut|back|bumped|increased|decreased|reduced|extended|shortened|upgraded|\
    downgraded|reverted|postponed|oops|nope|mistake|slipped|shifted|jumped|dropped|doubled|halved|today|change|bump|raise|lower|increase|decrease|\
    reduce|swapped|migrated|onwards|jetzt|nun|stattdessen|sofort|maintenant|désormais|plutôt|\
    ahora|agora|adesso|теперь|вместо";
/// Words that forbid something if "not" follows.
const MODALS: &str = "must|may|should|do|does|shall|can|will|to|would";
/// Values that are recognised without any other word.
const TOGGLES: &str = "on|off|up|down|in|out|no|yes";
/// A sentence with one of these words states no value that another could replace.
const FORBIDDERS: &str = "never|nobody|nothing|don't|dont|don’t|avoid|mustn't|cannot|can't|won't|isn't|nie|niemals|\
    nicht|jamais|nunca|никогда";
const CJK_SETS: &str = "是|为|改成|は|です|는|은|입니다|変更|변경|设|設|使用|用";
const CJK_UPDATES: &str = "现在|改|換|换|变|今|変更|이제|변경|不再";
const CJK_FILLERS: &str = "してください|してくれ|해주세요|하세요|现在|改为|改成|换成|变成|变更为|变为|设置为|设为|設定|变更|変更|今は|です|ます|이제|입니다|\
    으로|변경|使用|的|是|为|了|把|将|请|用|は|を|に|が|の|로|는|은|이|가";
