//! Settings of a single run: its hooks, its context, its steering and its model, each for that run only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_agent::{Event, ExecutionLimits, ToolExecutionStrategy};
use plimsoll_context::{CompactionConfig, ContextConfig, ContextStrategy, Money, Tokens};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, AgentLoopConfig, Error, Hooks, Session, SessionId, ToolError, agent_loop,
    new_session_id, tool,
};
use serde_json::json;

use crate::{Nothing, price_sheet};

fn look(provider: &ScriptedProvider) -> AgentBuilder {
    let look = |_: Nothing| async { Ok::<_, ToolError>("a wave rolls by; ".repeat(100)) };
    Agent::builder(provider.clone()).tool(tool("look", "Looks.", look))
}

async fn session(builder: AgentBuilder) -> Session {
    let id: SessionId = new_session_id();
    builder.build().unwrap().session(id).await.unwrap()
}

/// Looks `calls` times, then answers.
fn looks(calls: usize) -> Vec<Turn> {
    let mut turns = vec![Turn::call("look", json!({})); calls];
    turns.push(Turn::say("Aye."));
    turns
}

#[tokio::test]
async fn hooks_of_a_run_come_after_the_agents_and_end_with_it() {
    let provider = ScriptedProvider::new([looks(1), looks(1)].concat());
    let (agents, runs) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (of_agent, of_run) = (Arc::clone(&agents), Arc::clone(&runs));
    let builder = look(&provider).before_tool_execution(move |_, _, _| {
        of_agent.fetch_add(1, Ordering::Relaxed);
        true
    });
    let mut session = session(builder).await;
    let hooks = Hooks::new().before_tool_execution(move |_, _, _| {
        of_run.fetch_add(1, Ordering::Relaxed);
        false
    });
    let config = AgentLoopConfig {
        hooks: Some(hooks),
        ..AgentLoopConfig::default()
    };
    let output = agent_loop(&mut session, "Go.", &config).await.unwrap();
    assert!(output.steps[0].is_error, "{:?}", output.steps);
    let output = session.run("Again.").await.unwrap();
    assert!(!output.steps[0].is_error, "{:?}", output.steps);
    let called = (agents.load(Ordering::Relaxed), runs.load(Ordering::Relaxed));
    assert_eq!(called, (2, 1));
}

#[tokio::test]
async fn a_run_has_steering_of_its_own() {
    let provider = ScriptedProvider::new(looks(1)).then_always(Turn::say("Aye."));
    let mut session = session(look(&provider)).await;
    let asked = AtomicUsize::new(0);
    let hooks =
        Hooks::new().get_steering_messages(move || match asked.fetch_add(1, Ordering::Relaxed) {
            0 => vec!["Mind the rocks."],
            _ => Vec::new(),
        });
    let config = AgentLoopConfig {
        hooks: Some(hooks),
        ..AgentLoopConfig::default()
    };
    agent_loop(&mut session, "Go.", &config).await.unwrap();
    let requests = provider.requests();
    let second = requests[1].to_string();
    assert!(second.contains("rocks"), "{second}");
    session.run("Again.").await.unwrap();
}

/// How many plans a run of twelve results has with this configuration.
async fn plans(session: &mut Session, config: AgentLoopConfig) -> u64 {
    let mut run = session.start_with("Go.", config);
    let mut plans = 0;
    while let Some(event) = run.next().await {
        plans += u64::from(matches!(event, Event::PlanApplied(applied) if applied.is_compaction));
    }
    assert_eq!(run.output().await.unwrap().plans, plans);
    plans
}

#[tokio::test]
async fn a_run_has_a_context_of_its_own() {
    let turns: Vec<Turn> = std::iter::repeat_with(|| looks(12))
        .take(5)
        .flatten()
        .collect();
    let provider = ScriptedProvider::new(turns).with_window(Tokens(100_000));
    let unlimited = look(&provider).context_strategy(ContextStrategy::Unlimited {});
    let mut session = session(unlimited).await;
    assert_eq!(plans(&mut session, AgentLoopConfig::default()).await, 0);
    let config = AgentLoopConfig {
        context_config: Some(ContextConfig {
            max_context_tokens: Tokens(6_000),
            system_prompt_tokens: Tokens(500),
            compaction: CompactionConfig::default(),
        }),
        ..AgentLoopConfig::default()
    };
    assert!(plans(&mut session, config).await > 0);
    // Afterwards the agent's own holds again.
    assert_eq!(plans(&mut session, AgentLoopConfig::default()).await, 0);
}

#[tokio::test]
async fn the_faults_of_a_run_are_all_named() {
    let provider = ScriptedProvider::new(looks(0));
    let mut session = session(look(&provider)).await;
    let config = AgentLoopConfig {
        tool_execution: Some(ToolExecutionStrategy::Batched(0)),
        hooks: Some(Hooks::new().hook_timeout(std::time::Duration::ZERO)),
        max_tokens: Some(Tokens(0)),
        temperature: Some(-1.0),
        config_id: Some(String::new()),
        ..AgentLoopConfig::default()
    };
    let error = agent_loop(&mut session, "Go.", &config).await.unwrap_err();
    let Error::Build(faults) = error else {
        panic!("{error}")
    };
    assert_eq!(faults.len(), 5, "{faults:?}");
    // The session is as before.
    assert_eq!(session.run("Go.").await.unwrap().text, "Aye.");
}

#[tokio::test]
async fn a_run_has_a_model_with_prices_of_its_own() {
    let own = ScriptedProvider::new([Turn::say("Own."), Turn::say("Own again.")]);
    let other = ScriptedProvider::new([Turn::say("Other.")]);
    let mut session = session(Agent::builder(own)).await;
    let config = AgentLoopConfig {
        provider_override: Some(Arc::new(other)),
        prices: Some(price_sheet(15.0)),
        execution_limits: ExecutionLimits {
            max_cost: Some(Money(1_000_000_000)),
            ..ExecutionLimits::default()
        },
        ..AgentLoopConfig::default()
    };
    let output = agent_loop(&mut session, "Go.", &config).await.unwrap();
    assert_eq!(output.text, "Other.");
    assert!(output.cost.known > Money(0) && output.cost.unpriced == 0);
    let output = session.run("And you?").await.unwrap();
    assert_eq!(output.text, "Own.");
}
