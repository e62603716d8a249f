//! All named dialects of Chat Completions, and their variants by templates and settings.

use plimsoll_wire::openai_chat::{Dialect, EchoReasoning, Template};

pub(crate) fn dialects() -> Vec<Dialect> {
    let mut dialects: Vec<Dialect> = Dialect::names().filter_map(Dialect::named).collect();
    for template in [
        Template::Gemma,
        Template::Mistral,
        Template::Qwen,
        Template::Llama31,
    ] {
        for name in ["openai", "llama.cpp", "mistral"] {
            dialects.push(Dialect::named(name).unwrap().with_template(template));
        }
    }
    for dialect in [Dialect::openai(), Dialect::named("mistral").unwrap()] {
        dialects.push(Dialect {
            echo_reasoning: EchoReasoning::Always,
            ..dialect
        });
    }
    dialects
}
