//! Extracts the contents of an error body. Proxies put the upstream's JSON into a string, put prefixes
//! before it, or send it as a stream's last event.

use serde_json::Value;

/// The maximum number of bytes of a body that are examined. Larger bodies echo the request or are HTML
/// pages.
pub const MAX_BODY: usize = 256 * 1024;
/// The maximum depth of texts inside texts. OpenRouter over a proxy over a provider has three levels.
pub const MAX_DEPTH: usize = 6;

/// Keys with texts for people.
const TEXT_KEYS: [&str; 12] = [
    "message",
    "error",
    "errors",
    "detail",
    "details",
    "msg",
    "raw",
    "title",
    "description",
    "error_message",
    "errormessage",
    "status_msg",
];
/// Keys with values for programs.
const CODE_KEYS: [&str; 8] = [
    "code",
    "type",
    "status",
    "reason",
    "error_code",
    "errorcode",
    "error_type",
    "__type",
];
/// Keys with an echo of the request.
const ECHO_KEYS: [&str; 5] = ["input", "messages", "request", "schema", "tools"];

/// Words in errors about the key.
const KEY_WORDS: [&str; 7] = [
    "key",
    "token",
    "credential",
    "auth",
    "log in",
    "login",
    "sign in",
];

/// The contents of an error body.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    /// All texts for people, in lower case, one per line.
    pub(super) text: String,
    /// All codes, types and statuses, in lower case.
    pub(super) codes: Vec<String>,
    /// The first number among the codes that is an HTTP status.
    pub(super) status: Option<u16>,
    /// llama.cpp's structured size of the request.
    pub(super) n_prompt_tokens: Option<u64>,
    /// llama.cpp's structured window.
    pub(super) n_ctx: Option<u64>,
    /// Whether the body is empty.
    pub(super) is_empty: bool,
}

impl Envelope {
    pub(super) fn open(body: &str) -> Self {
        let mut envelope = Self {
            is_empty: body.trim().is_empty(),
            ..Self::default()
        };
        envelope.take_text(head(body), MAX_DEPTH);
        envelope
    }

    /// Returns `true` if the error is about authentication and not a page for people.
    pub(super) fn is_of_a_key(&self) -> bool {
        let is_page = self.text.starts_with('<');
        !is_page && KEY_WORDS.iter().any(|word| self.text.contains(word))
    }

    fn take_text(&mut self, text: &str, depth: usize) {
        let trimmed = text.trim();
        if depth == 0 || trimmed.is_empty() {
            return;
        }
        if let Ok(value) = serde_json::from_str::<Value>(trimmed) {
            match value {
                Value::String(inner) => self.take_text(&inner, depth - 1),
                Value::Object(_) | Value::Array(_) => self.take("", &value, depth - 1),
                _ => {}
            }
            return;
        }
        self.text.push_str(&trimmed.to_ascii_lowercase());
        self.text.push('\n');
        // `litellm.BadRequestError: OpenAIException - {"error": …}`, `data: {"error": …}`
        if let Some(value) = object_in(trimmed) {
            self.take("", &value, depth - 1);
        } else {
            // The events of a stream, one per line.
            for value in trimmed.lines().filter_map(object_in) {
                self.take("", &value, depth - 1);
            }
        }
    }

    /// Takes a value under a key. The values of a list are all under the key of the list.
    fn take(&mut self, key: &str, value: &Value, depth: usize) {
        let is_code = CODE_KEYS.contains(&key);
        match value {
            Value::Object(_) | Value::Array(_) if ECHO_KEYS.contains(&key) => {}
            Value::Object(object) => {
                for (key, value) in object {
                    self.take(&key.to_ascii_lowercase(), value, depth);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.take(key, value, depth)),
            Value::String(text) if is_code => self.take_code(text),
            Value::String(text) if TEXT_KEYS.contains(&key) => self.take_text(text, depth),
            Value::Number(number) => match (key, number.as_u64()) {
                ("n_prompt_tokens", number) => self.n_prompt_tokens = number,
                ("n_ctx", number) => self.n_ctx = number,
                (_, Some(number)) if is_code => self.take_code(&number.to_string()),
                _ => {}
            },
            _ => {}
        }
    }

    fn take_code(&mut self, code: &str) {
        let status = code.parse::<u16>().ok();
        if let Some(status) = status.filter(|status| (400..=599).contains(status)) {
            self.status = self.status.or(Some(status));
            return;
        }
        // Bedrock: `ValidationException:http://internal…`
        let name = code.split_once(":http").map_or(code, |(name, _)| name);
        // Google: `type.googleapis.com/…#Name`
        let name = name.rsplit_once('#').map_or(name, |(_, name)| name);
        self.codes.push(name.trim().to_ascii_lowercase());
    }
}

/// Returns the object in a text, with any text before and behind it.
fn object_in(text: &str) -> Option<Value> {
    let inside = text.find('{').zip(text.rfind('}'));
    let inside = inside.and_then(|(from, to)| text.get(from..=to))?;
    serde_json::from_str(inside).ok()
}

/// Returns the beginning of a body, cut at a character.
fn head(body: &str) -> &str {
    let mut end = body.len().min(MAX_BODY);
    while !body.is_char_boundary(end) {
        end -= 1;
    }
    body.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_errors_are_opened() {
        let inner = r#"{"error":{"message":"Too Long","type":"bad"}}"#;
        let raw = serde_json::json!({"error": {"message": "Provider returned error", "code": 400,
            "metadata": {"raw": format!("litellm.X: OpenAIException - {inner}")}}});
        let envelope = Envelope::open(&format!("data: {raw}\n\n"));
        assert!(envelope.text.contains("too long\n"), "{}", envelope.text);
        assert_eq!(envelope.codes, ["bad"]);
        assert_eq!(envelope.status, Some(400));
    }

    #[test]
    fn the_depth_is_bounded() {
        let mut body = r#"{"message":"bottom"}"#.to_owned();
        for _ in 0..MAX_DEPTH + 2 {
            body = serde_json::json!({ "message": body }).to_string();
        }
        assert!(!Envelope::open(&body).text.contains("bottom\n"));
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        assert!(!Envelope::open(&deep).is_empty);
    }

    #[test]
    fn an_echo_of_the_request_is_not_the_error() {
        let body = r#"{"detail":[{"type":"missing","input":{"message":"context_length_exceeded"},
            "msg":"Field required"}]}"#;
        let envelope = Envelope::open(body);
        assert_eq!(envelope.text, "field required\n");
        assert!(Envelope::open(" \n").is_empty);
        assert_eq!(
            Envelope::open(&"ä".repeat(MAX_BODY)).text.len(),
            MAX_BODY + 1
        );
    }
}
