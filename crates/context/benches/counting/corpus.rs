//! Texts to count: made here, the same on every machine. Not recorded sessions.

use std::fmt::Write;

/// What kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Corpus {
    Prose,
    Code,
    Json,
    Chinese,
}

/// About how many bytes a corpus has.
const SIZE: usize = 512 * 1024;

const WORDS: &str = "\
the a this that every one ship harbour cargo captain surveyor voyage storm line water letter \
window question answer result session message counter budget request provider model house road \
carries leaves reaches counts measures signs refuses follows repairs remembers opens understands \
quickly never often before after within without between against across under over toward \
heavy light narrow unusual familiar transparent incomplete international responsible winter \
summer north Atlantic London Plimsoll Monday August it's don't we'll they've nobody's \
information approximately characteristics implementation acknowledgement particularly, however, \
therefore, and or but because while although unless until";

const CHINESE: &str = "\
我们 船 货物 港口 水面 横线 冬天 超载 检查 问题 结果 请求 消息 模型 预算 已经 可以 必须 不能 需要 \
知道 决定 记录 保留 恢复 因为 所以 如果 但是 以及 非常 可能 重要 安全 北大西洋 保险 船员 时间 方法 系统 \
数据 程序 使用 提供 管理 运行 之前 之后 其中 这个 那些 什么 为了";

impl Corpus {
    pub(crate) const ALL: [Self; 4] = [Self::Prose, Self::Code, Self::Json, Self::Chinese];

    pub(crate) fn text(self) -> String {
        match self {
            Self::Prose => sentences(WORDS, " ", ". ", 3),
            Self::Chinese => sentences(CHINESE, "", "。", 4),
            Self::Code => {
                let sources = [
                    include_str!("../../src/bpe.rs"),
                    include_str!("../../src/estimate.rs"),
                    include_str!("../../src/truncate.rs"),
                    include_str!("../../src/truncate/json.rs"),
                    include_str!("../../src/message.rs"),
                    include_str!("../../src/counter.rs"),
                ];
                let all = sources.concat();
                all.repeat(SIZE.div_ceil(all.len()))
            }
            Self::Json => {
                let mut text = String::from("[");
                let mut random = Random(3);
                while text.len() < SIZE {
                    // Writing to a String cannot fail.
                    let _ = write!(
                        text,
                        r#"{{"id":{},"user_name":"{}_{}","score":{}.{},"tags":["{}","{}"],"active":true}},"#,
                        random.below(1_000_000),
                        random.word(WORDS),
                        random.below(10_000),
                        random.below(100),
                        random.below(1_000),
                        random.word(WORDS),
                        random.word(WORDS),
                    );
                }
                text + "null]"
            }
        }
    }

    /// The text as the messages of a history, 1 KB or so each, all different.
    pub(crate) fn messages(self) -> Vec<String> {
        let text = self.text();
        let mut messages = Vec::new();
        let mut rest = text.as_str();
        while let Some((message, after)) = rest.split_at_checked(rest.floor_char_boundary(1_024)) {
            if message.is_empty() {
                break;
            }
            messages.push(format!("{}: {message}", messages.len()));
            rest = after;
        }
        messages
    }
}

fn sentences(words: &str, between: &str, stop: &str, per_line: u64) -> String {
    let mut random = Random(7);
    let mut text = String::new();
    while text.len() < SIZE {
        for _ in 0..per_line {
            for n in 0..6 + random.below(14) {
                text.push_str(if n == 0 { "" } else { between });
                text.push_str(random.word(words));
            }
            text.push_str(stop);
        }
        text.push('\n');
    }
    text
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }

    fn word<'a>(&mut self, words: &'a str) -> &'a str {
        let count = words.split_whitespace().count() as u64;
        let at = self.below(count) as usize;
        words.split_whitespace().nth(at).unwrap_or_default()
    }
}
