//! Words by which rules, decisions and errors are known, in several languages. Not a parser: a
//! sentence that is taken for a rule without being one costs room, one that is missed may be lost.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How much of a rule a sentence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// A wish.
    Weak,
    /// A value that was stated.
    Value,
    /// A thing that must or must not be.
    Strong,
}

/// What the words of one sentence are signs of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Signs(u8);

/// Single words and phrases, parted by `|`.
const STRONG: &str = "never|always|must|must not|mustn't|don't|dont|do not|cannot|can't|may not|\
    not allowed|no longer|only|under no circumstances|at all times|forbidden|prohibited|\
    required|has to|have to|needs to stay|make sure|ensure|be sure|without asking|avoid|\
    refrain|stay away|leave alone|hands off|off limits|from now on|unless|important|\
    instead of|keep in mind|no matter|at least|at most|no more than|exactly|mandatory|\
    stick to|unchanged|untouched|compatible|rather than|until|nie|niemals|immer|nicht|\
    kein|keine|muss|müssen|darf|nur|jamais|toujours|doit|doivent|uniquement|nunca|\
    siempre|debe|deben|solo|solamente|não|sempre|deve|apenas|soltanto|никогда|\
    всегда|нельзя|должен|должны|только|left alone|alone|\
    stays|keep it|stop";
const WEAK: &str = "should|shouldn't|prefer|preferably|please|want|wants|would like|need|needs|use|keep|\
    leave|let's|actually|now|instead|like|is called|set|change|switch|rename|make|shall|\
    expected|supposed|rule|limit|bitte|soll|sollte|veuillez|por favor|debería|надо|\
    пожалуйста";
const DECISION: &str = "decided|decision|root cause|problem|issue|bug|because|instead of|turns out|found|\
    confirmed|fixed|fix|completed|finished|remaining|will use|should use|so that|means|\
    therefore|approach|conclusion|verified|committed|todo|missing|blocked|fails|failing|\
    caused|since|need to|needs to|must|rather than|does not|doesn't|unused|next step";
const STEP: &str = "done|works|passes|passed|next|plan|now|created|added|removed|changed|moved|renamed|\
    implemented|summary|still|updated|i'll|let me";
const END: &str = "passed|passing|pass|ok|done|success|successful|successfully|finished|completed|\
    total|tests|built|compiled|up to date|created|updated|fail";
const ERROR: &str = "error|errors|err|failed|failure|fatal|exception|traceback|panic|panicked|denied|\
    cannot|can't|unable|undefined|not found|no such|invalid|timed out|timeout|refused|\
    unexpected|missing|abort|aborted|segfault|conflict|does not exist|warning|fehler|\
    erreur|ошибка";
/// Scripts without blanks between words: looked for anywhere.
const STRONG_ANYWHERE: &str = "不要|不能|不得|不准|不许|不可|必须|必需|务必|禁止|只能|只用|\
    只有|总是|一定|请勿|切勿|别|永远|從不|必須|必ず|ないで|してはいけ|\
    ならない|だけ|のみ|常に|절대|반드시|하지 마|항상|오직|금지|\
    만 ";
const WEAK_ANYWHERE: &str = "应该|應該|最好|请|請|希望|需要|改为|改成|现在是|使用|ください|\
    べき|たい|해주세요|해야";
const DECISION_ANYWHERE: &str = "决定|因为|问题|原因|完成|修复|接下来|发现|改为|ため|決定|原因は|\
    修正|完了|결정|완료|때문";
const ERROR_ANYWHERE: &str = "错误|失败|异常|エラー|失敗|오류|실패";

/// Which table is which bit.
const TABLES: [(&str, u8); 6] = [
    (STRONG, Signs::STRONG),
    (WEAK, Signs::WEAK),
    (DECISION, Signs::DECISION),
    (STEP, Signs::STEP),
    (END, Signs::END),
    (ERROR, Signs::ERROR),
];
const ANYWHERE: [(&str, u8); 4] = [
    (STRONG_ANYWHERE, Signs::STRONG),
    (WEAK_ANYWHERE, Signs::WEAK),
    (DECISION_ANYWHERE, Signs::DECISION),
    (ERROR_ANYWHERE, Signs::ERROR),
];

/// What may follow a word, and what it is then a sign of.
type Phrases = Vec<(Vec<&'static str>, u8)>;

/// The phrases by their first word.
static PHRASES: LazyLock<HashMap<&str, Phrases>> = LazyLock::new(|| {
    let mut phrases: HashMap<&str, Phrases> = HashMap::new();
    for (table, sign) in TABLES {
        for phrase in table.split('|') {
            let mut words = phrase.split(' ');
            let first = words.next().unwrap_or_default();
            phrases
                .entry(first)
                .or_default()
                .push((words.collect(), sign));
        }
    }
    phrases
});

impl Signs {
    const STRONG: u8 = 1;
    const WEAK: u8 = 2;
    const DECISION: u8 = 4;
    const STEP: u8 = 8;
    const END: u8 = 16;
    const ERROR: u8 = 32;

    /// Reads a sentence.
    pub(super) fn of(sentence: &str) -> Self {
        let mut signs = 0;
        let plain = sentence.to_lowercase().replace('’', "'");
        let is_inside = |c: char| c.is_alphanumeric() || c == '\'';
        let words: Vec<&str> = plain
            .split(|c: char| !is_inside(c))
            .filter(|word| !word.is_empty())
            .collect();
        for (n, word) in words.iter().enumerate() {
            for (rest, sign) in PHRASES.get(word).into_iter().flatten() {
                let behind = words.get(n + 1..).unwrap_or_default();
                if behind.starts_with(rest) {
                    signs |= sign;
                }
            }
        }
        if !sentence.is_ascii() {
            for (table, sign) in ANYWHERE {
                if table.split('|').any(|cue| sentence.contains(cue)) {
                    signs |= sign;
                }
            }
        }
        // `TypeError: …` is one word.
        if sentence.contains("Error:") || sentence.contains("Exception:") {
            signs |= Self::ERROR;
        }
        Self(signs)
    }

    fn has(self, sign: u8) -> bool {
        self.0 & sign != 0
    }

    /// Whether the sentence tells how something ended.
    pub(super) fn is_end(self) -> bool {
        self.has(Self::END | Self::ERROR)
    }

    /// Whether the sentence tells of an error.
    pub(super) fn is_error(self) -> bool {
        self.has(Self::ERROR)
    }
}

/// Whether `sentence` is a rule or a wish, and how strong; stated values are for `stale.rs`.
pub(super) fn rule(sentence: &str) -> Option<Rule> {
    let signs = Signs::of(sentence);
    if signs.has(Signs::STRONG) {
        Some(Rule::Strong)
    } else {
        signs.has(Signs::WEAK).then_some(Rule::Weak)
    }
}

/// How much `sentence` tells of what was decided, found, done or comes next.
pub(super) fn decision(sentence: &str) -> f64 {
    let signs = Signs::of(sentence);
    let worth: f64 = if signs.has(Signs::DECISION) {
        1.0
    } else if signs.has(Signs::STEP) {
        0.5
    } else {
        0.35
    };
    // "Now let me run the tests:" only leads to what is done next.
    if sentence.trim_end().ends_with(':') || sentence.starts_with('#') {
        worth * 0.25
    } else {
        worth
    }
}

/// Whether a line was more likely written by a machine than by a person: a log, a stack, code.
pub(super) fn is_machine(line: &str) -> bool {
    let line = line.trim();
    let (mut signs, mut all) = (0, 0);
    for c in line.chars() {
        all += 1;
        signs += usize::from(!c.is_alphanumeric() && !c.is_whitespace());
    }
    signs * 4 > all.max(24)
        || line.starts_with("at ")
        || line.ends_with(['{', ';', '}', '('])
        || line.starts_with("@@")
        || line.starts_with(['<', '{', '}', '|', '$', '+'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_known_by_their_words() {
        for (text, found) in [
            ("Never touch X.", Some(Rule::Strong)),
            ("please don’t push", Some(Rule::Strong)),
            ("DO NOT MODIFY: tests", Some(Rule::Strong)),
            ("under no\ncircumstances", Some(Rule::Strong)),
            ("I prefer tabs", Some(Rule::Weak)),
            ("不要修改文件", Some(Rule::Strong)),
            ("設定ファイルだけ編集", Some(Rule::Strong)),
            ("ok, continue", None),
            ("nevertheless it ran", None),
        ] {
            assert_eq!(rule(text), found, "{text}");
        }
        assert!(Signs::of("TypeError: x is undefined").is_error());
        assert!(Signs::of("12 passed").is_end());
        assert!(!Signs::of("const terror = 1").is_error());
    }
}
