//! Asks a server for the window of a model and for the names of its models. Never guesses: a server may
//! run a model with a smaller window than the model was trained for.

use plimsoll_context::Tokens;
use reqwest::Url;
use serde_json::{Value, json};

use crate::http::{Http, LOAD_TIMEOUT};
use crate::protocol::messages_url;
use crate::vendor::WindowReport;

/// The keys of the served window in lists of models: vLLM; Groq; OpenRouter, Together and Kimi;
/// Mistral.
const WINDOW_KEYS: [&str; 4] = [
    "max_model_len",
    "context_window",
    "context_length",
    "max_context_length",
];

/// A window that the server reports, if it does.
pub(crate) type Report = Result<Option<Tokens>, NoAnswer>;

/// The server did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoAnswer;

/// Asks for a model's window.
pub(crate) async fn window(http: &Http, tells: WindowReport, model: &str) -> Report {
    match tells {
        WindowReport::Nothing => Ok(None),
        WindowReport::Models => in_models(http, model).await,
        WindowReport::Props => in_props(http).await,
        WindowReport::Ollama => at_ollama(http, model).await,
        WindowReport::LmStudio => at_lmstudio(http, model).await,
        WindowReport::Anthropic => at_anthropic(http, model).await,
        WindowReport::LikeAnthropic => match at_anthropic(http, model).await? {
            None => Ok(in_props(http).await.unwrap_or_default()),
            window => Ok(window),
        },
        WindowReport::Google => at_google(http, model).await,
        WindowReport::Perhaps => match in_models(http, model).await? {
            None => in_props(http).await,
            window => Ok(window),
        },
    }
}

/// Asks for the list of models. Returns the HTTP status, and the names if the answer is a list.
pub(crate) async fn models(http: &Http) -> Option<(u16, Option<Vec<String>>)> {
    let url = http.base.endpoint("models");
    let (status, body) = http.question(url, None, http.timeouts.probe).await?;
    let list: Value = serde_json::from_slice(&body).unwrap_or_default();
    let listed = list.get("data").unwrap_or(&list).as_array();
    let names = listed.map(|listed| {
        let names = listed.iter().filter_map(name);
        names.map(str::to_owned).collect()
    });
    Some((status, names))
}

/// Checks for a property that only llama.cpp's server reports.
pub(crate) async fn is_llama_cpp(http: &Http) -> bool {
    let props = ask_at_root(http, "props").await;
    props.is_ok_and(|props| props.get("default_generation_settings").is_some())
}

async fn in_models(http: &Http, model: &str) -> Report {
    let list = ask(http, "models").await?;
    Ok(entry(&list, model).and_then(served))
}

/// Asks for the window of one slot, the window of one request.
async fn in_props(http: &Http) -> Report {
    let props = ask_at_root(http, "props").await?;
    Ok(tokens(props.pointer("/default_generation_settings/n_ctx")))
}

/// Asks Ollama. Only a loaded model has a window, which depends on the machine and Ollama's
/// settings. The run needs the loaded model anyway.
async fn at_ollama(http: &Http, model: &str) -> Report {
    let window = running(&ask_at_root(http, "api/ps").await?, model);
    if window.is_some() {
        return Ok(window);
    }
    // A request without a prompt only loads the model.
    let load = json!({"model": model, "stream": false});
    let url = http.base.at_root("api/generate");
    if http.ask(url, Some(&load), LOAD_TIMEOUT).await.is_none() {
        return Ok(None);
    }
    let list = ask_at_root(http, "api/ps").await;
    Ok(list.ok().and_then(|list| running(&list, model)))
}

/// Asks LM Studio. Only a loaded model has a window.
async fn at_lmstudio(http: &Http, model: &str) -> Report {
    let list = ask_at_root(http, "api/v0/models").await?;
    let loaded = entry(&list, model);
    Ok(loaded.and_then(|loaded| tokens(loaded.get("loaded_context_length"))))
}

/// Asks Anthropic. Most servers that imitate it do not have this endpoint.
async fn at_anthropic(http: &Http, model: &str) -> Report {
    let url = messages_url(&http.base, &format!("models/{model}"));
    in_entry(http, url, "max_input_tokens").await
}

/// Asks Google. Requests are refused by their input size, so the input limit is the window.
async fn at_google(http: &Http, model: &str) -> Report {
    let path = format!("models/{model}");
    let url = if http.base.has_version() {
        http.base.at_root(&format!("v1beta/{path}"))
    } else {
        http.base.endpoint(&path)
    };
    in_entry(http, url, "inputTokenLimit").await
}

/// Asks for the window in a model's own entry.
async fn in_entry(http: &Http, url: Url, key: &str) -> Report {
    let answer = http.question(url, None, http.timeouts.probe).await;
    let (_, body) = answer.ok_or(NoAnswer)?;
    let entry: Value = serde_json::from_slice(&body).unwrap_or_default();
    Ok(tokens(entry.get(key)))
}

async fn ask(http: &Http, path: &str) -> Result<Value, NoAnswer> {
    let url = http.base.endpoint(path);
    let answer = http.ask(url, None, http.timeouts.probe).await;
    answer.ok_or(NoAnswer)
}

async fn ask_at_root(http: &Http, path: &str) -> Result<Value, NoAnswer> {
    let url = http.base.at_root(path);
    let answer = http.ask(url, None, http.timeouts.probe).await;
    answer.ok_or(NoAnswer)
}

/// Finds a model in a list: `{"data": [..]}`, `{"models": [..]}` or a bare array (Together).
fn entry<'a>(list: &'a Value, model: &str) -> Option<&'a Value> {
    let list = list
        .get("data")
        .or_else(|| list.get("models"))
        .unwrap_or(list);
    let mut entries = list.as_array()?.iter();
    entries.find(|entry| name(entry).is_some_and(|name| same(name, model)))
}

fn name(entry: &Value) -> Option<&str> {
    ["id", "name", "model"]
        .iter()
        .find_map(|key| entry.get(*key)?.as_str())
}

/// Compares names. Ollama lists the tag `:latest`, which users leave out.
pub(crate) fn same(listed: &str, asked: &str) -> bool {
    listed == asked || listed.strip_suffix(":latest") == Some(asked)
}

/// Returns the window in a list's entry. If the entry also describes the server that is tried
/// first, the smaller window applies.
fn served(entry: &Value) -> Option<Tokens> {
    let window = WINDOW_KEYS.iter().find_map(|key| tokens(entry.get(*key)));
    let first = tokens(entry.pointer("/top_provider/context_length"));
    [window, first].into_iter().flatten().min()
}

/// Returns the window of a model that Ollama is running.
fn running(list: &Value, model: &str) -> Option<Tokens> {
    tokens(entry(list, model)?.get("context_length"))
}

fn tokens(value: Option<&Value>) -> Option<Tokens> {
    let tokens = value?.as_u64().filter(|tokens| *tokens > 0)?;
    Some(Tokens(tokens))
}
