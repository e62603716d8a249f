//! An agent built from a configuration, on a scripted model, and everything observable: the
//! provider's requests, the observed events, the end of the run, and its duration.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll::cache::CacheRetention;
use plimsoll::config::{AgentConfig, Config};
use plimsoll::model::{Failure, HostedTool, Reply, Request, ToolSpec};
use plimsoll::permissions::{Answer, Question};
use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{
    AgentOutput, Delta, Error, Event, Gate, Message, Observer, Provider, SessionEvent, Tool,
    ToolContext, ToolError, ToolOutput,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    /// It answers at once.
    Talk,
    /// It looks somewhere else so many times, each result about 3,000 bytes long, then answers.
    Work(usize),
    /// The same while commands run, which take real time.
    Commands(usize),
    /// It looks at the same thing again and again.
    Same,
    /// Nine looks in three messages.
    Batches,
    /// Its calls have long arguments.
    Notes(usize),
    /// Three runs of so many looks in one session.
    Runs(usize),
    /// The model cannot be reached.
    Fails,
    /// The provider asks to wait a minute.
    Limited,
    /// The model never answers.
    Hangs,
    /// An idempotent tool never returns.
    Stuck,
    /// A tool asks, and nobody answers.
    Asks,
    /// A hook never returns.
    Hooked,
    /// It reads a file with the configuration's own tools.
    Reads,
    /// The model that writes summaries never answers.
    SlowSummary,
    /// Its results have 60 short lines.
    Lines(usize),
}

/// All that can be seen.
#[derive(Debug, Default)]
pub(crate) struct SceneOutcome {
    pub(crate) requests: Vec<Request>,
    pub(crate) events: Vec<Event>,
    pub(crate) output: Option<AgentOutput>,
    pub(crate) elapsed: Duration,
    /// Why there was no run.
    pub(crate) error: String,
    /// Tools that ran at once, at most.
    pub(crate) at_once: usize,
    /// Calls of tools that began.
    pub(crate) calls: usize,
    /// Whether the run has tools, which a request for a summary has not.
    has_tools: bool,
}

/// The folder of the configuration, with the files that it names.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("sub")).unwrap();
    std::fs::create_dir_all(path("skills/a")).unwrap();
    let skill = "---\nname: a\ndescription: A.\n---\nDo it.\n";
    std::fs::write(path("skills/a/SKILL.md"), skill).unwrap();
    std::fs::write(path("prompt.md"), "A prompt from a file.").unwrap();
    std::fs::write(path("long.md"), "The sea is calm. ".repeat(600)).unwrap();
    std::fs::write(path("note.txt"), "the outer note").unwrap();
    std::fs::write(path("sub/note.txt"), "the inner note").unwrap();
    folder
}

/// Reads a configuration and does what it says.
pub(crate) async fn play(text: &str, scene: Scene) -> SceneOutcome {
    let folder = folder();
    let path = folder.path().join("plimsoll.toml");
    let text = text.replace("@long@", &"The sea is calm. ".repeat(300));
    std::fs::write(&path, text).unwrap();
    let config = match Config::read(&path) {
        Ok(config) => config,
        Err(error) => {
            return SceneOutcome {
                error: error.to_string(),
                ..SceneOutcome::default()
            };
        }
    };
    let agent = match config.agents().next() {
        Some(name) => config.agent(name).unwrap(),
        None => config.defaults().unwrap(),
    };
    stage(&agent, scene).await
}

async fn stage(agent: &AgentConfig, scene: Scene) -> SceneOutcome {
    let (recorder, tools) = (Recorder::new(scene), Arc::new(Counts::default()));
    let watcher = Arc::new(Watcher::default());
    let builder = agent.builder_on(Arc::new(recorder.clone()));
    let mut builder = builder
        .unwrap()
        .tools(agent.tools().unwrap())
        .tools(own_tools(scene, &tools))
        .shared_observer(Arc::clone(&watcher) as Arc<dyn Observer>);
    if scene == Scene::Asks {
        builder = builder.gate(Nobody);
    }
    if scene == Scene::Hooked {
        builder = builder.before_turn(|_, _| async {
            std::future::pending::<()>().await;
            true
        });
    }
    let built = match builder.build() {
        Ok(built) => built,
        Err(error) => {
            return SceneOutcome {
                error: error.to_string(),
                ..SceneOutcome::default()
            };
        }
    };
    let began = tokio::time::Instant::now();
    let output = drive(&built, scene).await;
    SceneOutcome {
        requests: recorder.seen.lock().unwrap().clone(),
        events: watcher.0.lock().unwrap().clone(),
        output: Some(output),
        elapsed: began.elapsed(),
        error: String::new(),
        has_tools: recorder.has_tools,
        at_once: tools.most.load(Ordering::SeqCst),
        calls: tools.begun.load(Ordering::SeqCst),
    }
}

async fn drive(agent: &plimsoll::Agent, scene: Scene) -> AgentOutput {
    let mut session = agent
        .session(plimsoll::session::new_session_id())
        .await
        .unwrap();
    let task = match scene {
        // It is the oldest of three: then it may shrink where that is allowed.
        Scene::Runs(_) => "Mind the rocks. ".repeat(60),
        _ => "Look around.".to_owned(),
    };
    let output = session.run(&task).await;
    let mut output = output.or_else(Error::into_output).unwrap();
    if let Scene::Runs(_) = scene {
        for task in ["Look again.", "And once more."] {
            output = session.run(task).await.unwrap();
        }
    }
    output
}

/// A model that writes down what it receives.
#[derive(Clone)]
struct Recorder {
    script: ScriptedProvider,
    summaries: Summaries,
    /// Whether the run has tools, which a request for a summary has not.
    has_tools: bool,
    seen: Arc<Mutex<Vec<Request>>>,
}

/// What the model answers where a summary is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Summaries {
    Good,
    Never,
}

impl Recorder {
    fn new(scene: Scene) -> Self {
        let look = |n: usize| Turn::call("look", json!({ "at": n }));
        let end = || Turn::say("Nothing but water.");
        let works = |count: usize| ScriptedProvider::new((0..count).map(look).chain([end()]));
        let transient = |retry_after_ms| Failure::Transient {
            status: Some(503),
            retry_after_ms,
            message: "away".to_owned(),
        };
        let script = match scene {
            Scene::Talk | Scene::Hooked => works(0).then_always(end()),
            Scene::Work(count) | Scene::Commands(count) | Scene::Lines(count) => works(count),
            Scene::SlowSummary => works(16),
            Scene::Same => ScriptedProvider::new([]).then_always(look(1)),
            Scene::Batches => {
                let batch = |at: usize| {
                    Turn::calls([at, at + 1, at + 2].map(|at| ("look", json!({ "at": at }))))
                };
                ScriptedProvider::new([batch(0), batch(3), batch(6), end()])
            }
            Scene::Notes(count) => {
                let note = |n: usize| {
                    let text = format!("note {n}: {}", "the sea is calm ".repeat(150));
                    Turn::call("note", json!({ "text": text }))
                };
                ScriptedProvider::new((0..count).map(note).chain([end()]))
            }
            Scene::Runs(count) => {
                let run = |at: usize| (0..count).map(move |n| look(at * 100 + n)).chain([end()]);
                ScriptedProvider::new((1..4).flat_map(run))
            }
            Scene::Fails => ScriptedProvider::new([]).then_always(Turn::Fail(transient(None))),
            Scene::Limited => {
                let limited = Failure::RateLimited {
                    retry_after_ms: Some(60_000),
                    message: "slowly".to_owned(),
                };
                ScriptedProvider::new([Turn::Fail(limited), end()])
            }
            Scene::Hangs => ScriptedProvider::new([]).then_always(Turn::Hang),
            Scene::Stuck => ScriptedProvider::new([Turn::call("stuck", json!({})), end()]),
            Scene::Asks => ScriptedProvider::new([Turn::call("ask", json!({})), end()]),
            Scene::Reads => {
                let read = Turn::call("read", json!({ "path": "note.txt" }));
                ScriptedProvider::new([read, end()])
            }
        };
        Self {
            script,
            summaries: match scene {
                Scene::SlowSummary => Summaries::Never,
                _ => Summaries::Good,
            },
            has_tools: !matches!(scene, Scene::Talk | Scene::Hooked),
            seen: Arc::default(),
        }
    }
}

#[async_trait::async_trait]
impl Provider for Recorder {
    fn model(&self) -> &str {
        "openai/gpt-9"
    }

    fn keeps(&self, _: CacheRetention) -> bool {
        true
    }

    fn hosted_tool_faults(&self, _: &[HostedTool]) -> Vec<String> {
        Vec::new()
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        self.seen.lock().unwrap().push(request.clone());
        if !request.tools.is_empty() || !self.has_tools {
            return self.script.call(request, deltas).await;
        }
        if self.summaries == Summaries::Never {
            std::future::pending::<()>().await;
        }
        // As good a summary as the run accepts, and longer than it may be.
        let headings = [
            "Goal",
            "Constraints",
            "Decisions",
            "Files",
            "Errors",
            "Open work",
            "Next step",
        ];
        let text: String = headings
            .iter()
            .map(|heading| {
                let waves = (0..120).map(|n| format!("{heading}-{n} comes before wave-{n}. "));
                format!("## {heading}\n{}\n", waves.collect::<String>())
            })
            .collect();
        ScriptedProvider::new([Turn::say(text)])
            .call(request, deltas)
            .await
    }
}

/// Everything that a request says.
pub(crate) fn text_of(request: &Request) -> String {
    let messages = request.messages.iter().map(|message| said(message));
    messages.collect::<Vec<_>>().join("\n")
}

/// Everything that a message says.
pub(crate) fn said(message: &Message) -> String {
    serde_json::to_string(message).unwrap()
}

#[derive(Debug, Default)]
struct Counts {
    now: AtomicUsize,
    most: AtomicUsize,
    begun: AtomicUsize,
}

/// What a tool of the scene does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SceneAction {
    Look,
    Lines,
    Note,
    Stuck,
    Ask,
}

struct SceneTool {
    spec: ToolSpec,
    deed: SceneAction,
    counts: Arc<Counts>,
}

fn own_tools(scene: Scene, counts: &Arc<Counts>) -> Vec<Arc<dyn Tool>> {
    let deeds: &[(&str, SceneAction)] = match scene {
        Scene::Talk | Scene::Reads | Scene::Hooked => &[],
        Scene::Notes(_) => &[("note", SceneAction::Note)],
        Scene::Stuck => &[("stuck", SceneAction::Stuck)],
        Scene::Asks => &[("ask", SceneAction::Ask)],
        Scene::Lines(_) => &[("look", SceneAction::Lines)],
        _ => &[("look", SceneAction::Look)],
    };
    let own = deeds.iter().map(|(name, deed)| {
        let own = SceneTool {
            spec: ToolSpec {
                name: (*name).to_owned(),
                description: "Does it.".to_owned(),
                schema: json!({ "type": "object" }),
            },
            deed: *deed,
            counts: Arc::clone(counts),
        };
        Arc::new(own) as Arc<dyn Tool>
    });
    own.collect()
}

#[async_trait::async_trait]
impl Tool for SceneTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn idempotent(&self) -> bool {
        self.deed == SceneAction::Stuck
    }

    fn asks(&self) -> bool {
        self.deed == SceneAction::Ask
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(50)
    }

    async fn call(&self, arguments: Value, _cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let counts = &self.counts;
        counts.begun.fetch_add(1, Ordering::SeqCst);
        let now = counts.now.fetch_add(1, Ordering::SeqCst) + 1;
        counts.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
        counts.now.fetch_sub(1, Ordering::SeqCst);
        let at = arguments["at"].as_u64().unwrap_or_default();
        let text = match self.deed {
            SceneAction::Look => {
                format!("at {at}: {}", format!("wave {at} rolls by; ").repeat(160))
            }
            SceneAction::Lines => (0..60).map(|n| format!("line {n} of {at}\n")).collect(),
            SceneAction::Note | SceneAction::Ask => "done".to_owned(),
            SceneAction::Stuck => {
                std::future::pending::<()>().await;
                String::new()
            }
        };
        Ok(text.into())
    }
}

/// Somebody who never answers.
struct Nobody;

#[async_trait::async_trait]
impl Gate for Nobody {
    async fn decide(&self, _question: &Question) -> Answer {
        std::future::pending().await
    }
}

#[derive(Default)]
struct Watcher(Mutex<Vec<Event>>);

impl Observer for Watcher {
    fn see(&self, SessionEvent { event, .. }: &SessionEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl SceneOutcome {
    pub(crate) fn output(&self) -> &AgentOutput {
        self.output
            .as_ref()
            .unwrap_or_else(|| panic!("no run: {}", self.error))
    }

    /// How the run ended, in a word.
    pub(crate) fn end(&self) -> &str {
        self.output().reason.word()
    }

    fn is_summary(&self, request: &Request) -> bool {
        self.has_tools && request.tools.is_empty()
    }

    /// Requests of the run itself.
    pub(crate) fn turns(&self) -> Vec<&Request> {
        self.requests
            .iter()
            .filter(|request| !self.is_summary(request))
            .collect()
    }

    /// Requests for summaries.
    pub(crate) fn summaries(&self) -> Vec<&Request> {
        self.requests
            .iter()
            .filter(|request| self.is_summary(request))
            .collect()
    }

    pub(crate) fn first(&self) -> &Request {
        self.turns()
            .first()
            .copied()
            .unwrap_or_else(|| panic!("no request: {}", self.error))
    }

    /// The first request after a plan.
    pub(crate) fn planned(&self) -> &Request {
        let turns = self.turns();
        let mut pairs = turns.windows(2);
        let smaller = pairs.find(|pair| pair[1].counted < pair[0].counted);
        smaller.unwrap_or_else(|| panic!("no plan"))[1]
    }

    pub(crate) fn last(&self) -> &Request {
        self.turns().last().copied().unwrap()
    }

    pub(crate) fn tools(&self) -> Vec<&str> {
        names_of_tools(self.first())
    }

    /// The tools of the last request, with those that have joined.
    pub(crate) fn last_tools(&self) -> Vec<&str> {
        names_of_tools(self.requests.last().unwrap())
    }

    /// The plans that were applied: tokens before and after, messages after, and the plan's stages.
    pub(crate) fn plans(&self) -> Vec<(u64, u64, usize, Vec<String>)> {
        let plans = self.events.iter().filter_map(|event| match event {
            Event::PlanApplied(applied) if applied.is_compaction => Some((
                applied.tokens_before.0,
                applied.tokens_after.0,
                applied.messages_after,
                applied
                    .plan
                    .stages
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
            )),
            _ => None,
        });
        plans.collect()
    }

    /// Where a plan is due, as the first turn has it.
    pub(crate) fn trigger(&self) -> u64 {
        let mut turns = self.events.iter().filter_map(|event| match event {
            Event::TurnStart { trigger, .. } => Some(trigger.map_or(0, |tokens| tokens.0)),
            _ => None,
        });
        turns
            .next()
            .unwrap_or_else(|| panic!("no turn: {}", self.error))
    }

    /// What a request weighed, at most.
    pub(crate) fn largest(&self) -> u64 {
        self.turns()
            .iter()
            .map(|request| request.counted.0)
            .max()
            .unwrap_or_default()
    }
}

fn names_of_tools(request: &Request) -> Vec<&str> {
    let names = request.tools.iter().map(|tool| tool.name.as_str());
    names.collect()
}
