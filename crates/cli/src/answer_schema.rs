//! [`AnswerSchema`]: the JSON Schema of a run's answer (`--json-schema`).
//!
//! The task tells the model the schema, and the answer is checked. The providers' own structured
//! output is not used, because it differs between providers and works badly together with tools.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use boon::{CompileError, Compiler, SchemaIndex, Schemas, SchemeUrlLoader, ValidationError};
use serde_json::Value;

use crate::error::CliError;

/// Maximum size of a schema, in bytes. It is part of the task.
const MAX_SCHEMA: u64 = 64 << 10;
/// Maximum number of faults of an answer that are reported to the model.
const MAX_FAULTS: usize = 8;
/// The URL by which the schema refers to itself.
const NAME: &str = "answer:schema";

/// A JSON Schema that answers must match.
#[derive(Clone)]
pub(crate) struct AnswerSchema {
    text: Arc<str>,
    schemas: Arc<Schemas>,
    index: SchemaIndex,
}

impl AnswerSchema {
    /// Reads a schema: a file, or the JSON itself if `given` begins with a brace.
    ///
    /// # Errors
    /// If it cannot be read, is too large, or is no JSON Schema.
    pub(crate) fn read(given: &Path) -> Result<Self, CliError> {
        let (name, text) = match given.to_str().filter(|given| given.starts_with('{')) {
            Some(inline) => (PathBuf::from("the schema"), inline.to_owned()),
            None => (given.to_owned(), read(given)?),
        };
        let name = name.display();
        let refused = |why: String| CliError::usage(format!("--json-schema: {name} {why}"));
        if text.len() as u64 > MAX_SCHEMA {
            let limit = MAX_SCHEMA >> 10;
            return Err(refused(format!(
                "is larger than {limit} KiB, and every request contains it"
            )));
        }
        let schema: Value = serde_json::from_str(&text)
            .map_err(|error| refused(format!("is not valid JSON: {error}")))?;
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        // Other documents are not read: no scheme is known.
        compiler.use_loader(Box::new(SchemeUrlLoader::new()));
        let none = |error| refused(format!("is not a JSON Schema: {}", reason(&error)));
        compiler.add_resource(NAME, schema).map_err(none)?;
        let index = compiler.compile(NAME, &mut schemas).map_err(none)?;
        Ok(Self {
            text: text.trim().into(),
            schemas: Arc::new(schemas),
            index,
        })
    }

    /// Returns the instruction that is added to the task.
    pub(crate) fn instruction(&self) -> String {
        format!(
            "Your last message must be one JSON value and nothing else: no words before or after it. It \
             must match this JSON Schema:\n{}",
            self.text
        )
    }

    /// Returns the JSON of an answer, without the fence around it if it has one.
    ///
    /// # Errors
    /// If it is not JSON, or does not match. The error is for the model.
    pub(crate) fn check<'a>(&self, answer: &'a str) -> Result<&'a str, String> {
        let json = unfenced(answer);
        let value: Value = serde_json::from_str(json)
            .map_err(|error| format!("the answer is not exactly one JSON value ({error})"))?;
        match self.schemas.validate(&value, self.index) {
            Ok(()) => Ok(json),
            Err(error) => Err(format!(
                "the answer does not match the JSON Schema: {}",
                faults(&error)
            )),
        }
    }
}

fn read(path: &Path) -> Result<String, CliError> {
    let text = File::open(path).and_then(|file| io::read_to_string(file.take(MAX_SCHEMA + 1)));
    text.map_err(|error| CliError::usage(format!("--json-schema {}: {error}", path.display())))
}

/// Returns the reason why a schema is rejected, in one line.
fn reason(error: &CompileError) -> String {
    let text = match error {
        CompileError::ValidationError { src, .. } => faults(src),
        CompileError::LoadUrlError { src, .. } => src.to_string(),
        error => error.to_string().replace(NAME, ""),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the faults that the error of a value lists below its headline.
fn faults(error: &ValidationError<'_, '_>) -> String {
    let text = error.to_string();
    let faults = text.lines().skip(1).take(MAX_FAULTS);
    let faults: Vec<&str> = faults
        .map(|fault| fault.trim_start_matches([' ', '-']))
        .collect();
    faults.join("; ")
}

/// Removes the code fence around an answer, if there is one.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let inside = answer
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'));
    match inside {
        Some((language, json)) if !language.contains('{') => json.trim(),
        _ => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> Result<AnswerSchema, String> {
        AnswerSchema::read(Path::new(text)).map_err(|stop| stop.to_string())
    }

    #[test]
    fn an_answer_is_json_that_matches_or_the_model_is_told_why_not() {
        let schema = schema(
            r#"{"type":"object","required":["name","age"],"additionalProperties":false,
               "properties":{"name":{"type":"string","minLength":1},"age":{"type":"integer","minimum":0}}}"#,
        )
        .unwrap_or_else(|why| panic!("{why}"));
        for (answer, json) in [
            (r#"{"name":"Ada","age":36}"#, r#"{"name":"Ada","age":36}"#),
            (
                "\n```json\n{\"name\":\"Ada\",\"age\":36.0}\n```\n",
                r#"{"name":"Ada","age":36.0}"#,
            ),
            (
                "```\n{\"name\":\"Ada\",\"age\":1e2}```",
                r#"{"name":"Ada","age":1e2}"#,
            ),
        ] {
            assert_eq!(schema.check(answer), Ok(json), "{answer}");
        }
        for (answer, says) in [
            ("Ada is 36.", "not exactly one JSON value"),
            (
                r#"Here: {"name":"Ada","age":36}"#,
                "not exactly one JSON value",
            ),
            (r#"{"name":"Ada"}"#, "missing properties 'age'"),
            (r#"{"name":"Ada","age":-1}"#, "at '/age': "),
            (r#"{"name":"","age":"old","x":1}"#, "'x'"),
            ("", "not exactly one JSON value"),
        ] {
            let why = schema.check(answer).err().unwrap_or_default();
            assert!(why.contains(says), "{answer}: {why}");
        }
    }

    #[test]
    fn a_schema_that_is_none_is_refused_in_one_sentence() {
        for (text, says) in [
            ("{", "is not valid JSON"),
            (r#"{"type":"strong"}"#, "is not a JSON Schema"),
            (
                r#"{"$ref":"file:///etc/passwd"}"#,
                "unsupported scheme in file:///etc/passwd",
            ),
            (r##"{"$ref":"#/$defs/none"}"##, "is not a JSON Schema"),
            (r#"{"pattern":"("}"#, "is not a JSON Schema"),
            ("no/such/file.json", "no/such/file.json"),
        ] {
            let why = schema(text).err().unwrap_or_default();
            assert!(why.contains(says) && !why.contains('\n'), "{text}: {why}");
        }
    }
}
