//! Words by which rules, decisions and errors are known, in several languages. Not a parser: a
//! sentence that is taken for a rule without being one costs room, one that is missed may be lost.

use super::pieces::normal;

/// How much of a rule a sentence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// A wish, or a value that was stated.
    Weak,
    /// A thing that must or must not be.
    Strong,
}

const STRONG: &[&str] = &[
    "never",
    "always",
    "must",
    "must not",
    "mustn't",
    "don't",
    "dont",
    "do not",
    "cannot",
    "can't",
    "may not",
    "not allowed",
    "no longer",
    "only",
    "under no circumstances",
    "at all times",
    "forbidden",
    "prohibited",
    "required",
    "has to",
    "have to",
    "needs to stay",
    "make sure",
    "ensure",
    "be sure",
    "without asking",
    "avoid",
    "refrain",
    "stay away",
    "leave alone",
    "hands off",
    "off limits",
    "from now on",
    "unless",
    "remember",
    "important",
    "instead of",
    "keep in mind",
    "no matter",
    "at least",
    "at most",
    "no more than",
    "exactly",
    "mandatory",
    "stop",
    "stick to",
    "alone",
    "unchanged",
    "untouched",
    "compatible",
    "rather than",
    "until",
    // German, French, Spanish, Portuguese, Italian, Russian.
    "nie",
    "niemals",
    "immer",
    "nicht",
    "kein",
    "keine",
    "muss",
    "müssen",
    "darf",
    "nur",
    "jamais",
    "toujours",
    "ne",
    "pas",
    "doit",
    "doivent",
    "uniquement",
    "nunca",
    "siempre",
    "debe",
    "deben",
    "solo",
    "solamente",
    "não",
    "sempre",
    "deve",
    "apenas",
    "mai",
    "soltanto",
    "никогда",
    "всегда",
    "нельзя",
    "должен",
    "должны",
    "только",
    "не",
];
const WEAK: &[&str] = &[
    "should",
    "shouldn't",
    "prefer",
    "preferably",
    "please",
    "want",
    "wants",
    "would like",
    "need",
    "needs",
    "use",
    "keep",
    "leave",
    "let's",
    "actually",
    "now",
    "instead",
    "like",
    "is called",
    "set",
    "change",
    "switch",
    "rename",
    "make",
    "shall",
    "expected",
    "supposed",
    "rule",
    "limit",
    "bitte",
    "soll",
    "sollte",
    "veuillez",
    "por favor",
    "debería",
    "надо",
    "пожалуйста",
];
/// Scripts without blanks between words: looked for anywhere.
const STRONG_ANYWHERE: &[&str] = &[
    "不要",
    "不能",
    "不得",
    "不准",
    "不许",
    "不可",
    "必须",
    "必需",
    "务必",
    "禁止",
    "只能",
    "只用",
    "只有",
    "总是",
    "一定",
    "请勿",
    "切勿",
    "别",
    "永远",
    "從不",
    "必須",
    "必ず",
    "ないで",
    "してはいけ",
    "ならない",
    "だけ",
    "のみ",
    "常に",
    "절대",
    "반드시",
    "하지 마",
    "항상",
    "오직",
    "금지",
    "만 ",
];
const WEAK_ANYWHERE: &[&str] = &[
    "应该",
    "應該",
    "最好",
    "请",
    "請",
    "希望",
    "需要",
    "改为",
    "改成",
    "现在是",
    "使用",
    "ください",
    "べき",
    "たい",
    "해주세요",
    "해야",
];
const DECISION: &[&str] = &[
    "decided",
    "decision",
    "root cause",
    "problem",
    "issue",
    "bug",
    "because",
    "instead of",
    "turns out",
    "found",
    "confirmed",
    "fixed",
    "fix",
    "completed",
    "finished",
    "remaining",
    "will use",
    "should use",
    "so that",
    "means",
    "therefore",
    "approach",
    "conclusion",
    "verified",
    "committed",
    "todo",
    "missing",
    "blocked",
    "fails",
    "failing",
    "caused",
    "since",
    "need to",
    "needs to",
    "must",
    "rather than",
    "does not",
    "doesn't",
    "unused",
    "next step",
];
const END: &[&str] = &[
    "passed",
    "passing",
    "pass",
    "ok",
    "done",
    "success",
    "successful",
    "successfully",
    "finished",
    "completed",
    "total",
    "tests",
    "built",
    "compiled",
    "up to date",
    "created",
    "updated",
    "fail",
];
const STEP: &[&str] = &[
    "done",
    "works",
    "passes",
    "passed",
    "next",
    "plan",
    "now",
    "created",
    "added",
    "removed",
    "changed",
    "moved",
    "renamed",
    "implemented",
    "summary",
    "still",
    "updated",
    "i'll",
    "let me",
];
const DECISION_ANYWHERE: &[&str] = &[
    "决定",
    "因为",
    "问题",
    "原因",
    "完成",
    "修复",
    "接下来",
    "发现",
    "改为",
    "ため",
    "決定",
    "原因は",
    "修正",
    "完了",
    "결정",
    "완료",
    "때문",
];
const ERROR: &[&str] = &[
    "error",
    "errors",
    "err",
    "failed",
    "failure",
    "fatal",
    "exception",
    "traceback",
    "panic",
    "panicked",
    "denied",
    "cannot",
    "can't",
    "unable",
    "undefined",
    "not found",
    "no such",
    "invalid",
    "timed out",
    "timeout",
    "refused",
    "unexpected",
    "missing",
    "abort",
    "aborted",
    "segfault",
    "conflict",
    "does not exist",
    "warning",
    "fehler",
    "erreur",
    "ошибка",
];
const ERROR_ANYWHERE: &[&str] = &["错误", "失败", "异常", "エラー", "失敗", "오류", "실패"];

/// Whether `sentence` is a rule, a wish or a stated value, and how strong.
pub(super) fn rule(sentence: &str) -> Option<Rule> {
    let words = Words::of(sentence);
    if words.has(STRONG) || has_anywhere(sentence, STRONG_ANYWHERE) {
        Some(Rule::Strong)
    } else if words.has(WEAK) || has_anywhere(sentence, WEAK_ANYWHERE) || states_value(sentence) {
        Some(Rule::Weak)
    } else {
        None
    }
}

/// How much `sentence` tells of what was decided, found, done or comes next.
pub(super) fn decision(sentence: &str) -> f64 {
    let words = Words::of(sentence);
    let worth: f64 = if words.has(DECISION) || has_anywhere(sentence, DECISION_ANYWHERE) {
        1.0
    } else if words.has(STEP) {
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

/// Whether `line` tells how something ended.
pub(super) fn ends(line: &str) -> bool {
    Words::of(line).has(END) || is_error(line)
}

/// Whether `line` tells of an error.
pub(super) fn is_error(line: &str) -> bool {
    Words::of(line).has(ERROR)
        || has_anywhere(line, ERROR_ANYWHERE)
        // `TypeError: …`, `ENOENT`, `E0432`.
        || line.contains("Error:")
        || line.contains("Exception:")
}

/// Whether a line was more likely written by a machine than by a person: a log, a stack, code.
pub(super) fn is_machine(line: &str) -> bool {
    let line = line.trim();
    let (mut signs, mut all) = (0, 0);
    for c in line.chars() {
        all += 1;
        signs += usize::from(!c.is_alphanumeric() && !c.is_whitespace());
    }
    signs * 5 > all.max(20)
        || line.starts_with("at ")
        || line.ends_with(['{', ';', '}', '('])
        || line.starts_with(['<', '{', '}', '|', '$', '+', '@'])
}

fn states_value(sentence: &str) -> bool {
    let has_value = sentence.contains(|c: char| c.is_ascii_digit());
    has_value
        && (sentence.contains(" is ")
            || sentence.contains(" = ")
            || sentence.contains(": ")
            || sentence.contains(" to ")
            || sentence.contains('是')
            || sentence.contains('は'))
}

fn has_anywhere(text: &str, cues: &[&str]) -> bool {
    !text.is_ascii() && cues.iter().any(|cue| text.contains(cue))
}

/// The words of a sentence between single blanks, with one at each end.
struct Words(String);

impl Words {
    fn of(sentence: &str) -> Self {
        let mut words = String::with_capacity(sentence.len() + 2);
        words.push(' ');
        for word in
            normal(sentence).split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '’'))
        {
            if !word.is_empty() {
                words.push_str(&word.replace('’', "'"));
                words.push(' ');
            }
        }
        Self(words)
    }

    fn has(&self, cues: &[&str]) -> bool {
        // Each cue with its blanks, without making a string of it.
        cues.iter().any(|cue| {
            self.0.match_indices(cue).any(|(at, cue)| {
                let before = self.0.get(..at).is_some_and(|head| head.ends_with(' '));
                let after = self
                    .0
                    .get(at + cue.len()..)
                    .is_some_and(|tail| tail.starts_with(' '));
                before && after
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_known_by_their_words() {
        for (text, found) in [
            ("Never touch X.", Some(Rule::Strong)),
            ("please don’t push", Some(Rule::Strong)),
            ("the port is 8431", Some(Rule::Weak)),
            ("I prefer tabs", Some(Rule::Weak)),
            ("不要修改文件", Some(Rule::Strong)),
            ("設定ファイルだけ編集", Some(Rule::Strong)),
            ("ok, continue", None),
            ("nevertheless it ran", None),
        ] {
            assert_eq!(rule(text), found, "{text}");
        }
    }
}
