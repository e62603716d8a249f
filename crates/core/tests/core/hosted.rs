//! Tools that the provider runs itself: valid and invalid agent configurations, and the permission
//! rules for these tools.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use plimsoll_agent::{Failure, Permission, PermissionRule, Permissions, Request};
use plimsoll_context::{CacheRetention, Delta, HostedTool, Reply};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, AgentLoopConfig, Error, Provider, SessionId, ToolError, agent_loop, tool,
};
use plimsoll_testkit::{ComputedProvider, Warnings};
use serde_json::{Value, json};

use crate::Nothing;

/// A model with tools of its own, which writes down what it is asked.
#[derive(Clone)]
struct HostedToolsProvider {
    script: ScriptedProvider,
    seen: Arc<Mutex<Vec<Request>>>,
}

#[async_trait]
impl Provider for HostedToolsProvider {
    fn model(&self) -> &str {
        "own/model"
    }

    fn max_tools(&self) -> Option<usize> {
        Some(10)
    }

    fn hosted_tool_faults(&self, tools: &[HostedTool]) -> Vec<String> {
        let bad = tools.iter().filter(|tool| tool.kind() == "bad");
        bad.map(|tool| format!("`{}` is bad", tool.name()))
            .collect()
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        self.seen.lock().unwrap().push(request.clone());
        self.script.call(request, deltas).await
    }
}

/// A model that has none, and says nothing of it.
fn without() -> impl Provider {
    ComputedProvider::new("without/any", |_, _| unreachable!("it is never built"))
}

fn own() -> HostedToolsProvider {
    HostedToolsProvider {
        script: ScriptedProvider::new([]).then_always(Turn::say("Aye.")),
        seen: Arc::default(),
    }
}

fn search() -> Value {
    json!({"type": "web_search_1", "name": "web_search"})
}

fn rules(rules: impl IntoIterator<Item = (&'static str, Permission, &'static str)>) -> Permissions {
    let rules = rules.into_iter().map(|(tool, permission, argument)| {
        let rule = PermissionRule::new(tool, permission);
        match argument {
            "" => rule,
            pattern => rule.with_argument(pattern),
        }
    });
    Permissions::new(rules)
}

fn faults(builder: AgentBuilder) -> Vec<String> {
    match builder.build() {
        Err(Error::Build(faults)) => faults.into_iter().map(|fault| fault.text).collect(),
        Err(other) => panic!("{other}"),
        Ok(_) => Vec::new(),
    }
}

#[tokio::test]
async fn they_are_part_of_every_request_and_weigh_in_it() {
    let provider = own();
    let agent = |builder: AgentBuilder| builder.system("Be brief.").build().unwrap();
    let without = agent(Agent::builder(provider.clone()));
    let with = agent(Agent::builder(provider.clone()).hosted_tool(search()));
    let more = with.overhead().0 - without.overhead().0;
    assert!((10..60).contains(&more), "{more}");
    with.run("Hello.").await.unwrap();
    let seen = provider.seen.lock().unwrap();
    assert_eq!(*seen[0].hosted_tools, [HostedTool(search())]);
}

/// OpenAI refuses a request of more than 128 tools as a whole.
#[tokio::test]
async fn tools_beyond_the_provider_s_maximum_are_left_out_with_a_warning() {
    for (count, recall, sent) in [(4, true, 4), (9, true, 6), (9, false, 9), (12, false, 9)] {
        let (provider, warned) = (own(), Warnings::default());
        let mut agent = Agent::builder(provider.clone())
            .hosted_tool(search())
            .recall(recall)
            .observer(warned.observer());
        for number in 0..count {
            let name = format!("tool_{number}");
            agent = agent.tool(tool(name, "Does nothing.", |_: Nothing| async move {
                Ok::<_, ToolError>(String::new())
            }));
        }
        agent.build().unwrap().run("Hello.").await.unwrap();
        let names: Vec<String> = {
            let seen = provider.seen.lock().unwrap();
            seen[0].tools.iter().map(|tool| tool.name.clone()).collect()
        };
        let mut kept: Vec<String> = (0..sent).map(|number| format!("tool_{number}")).collect();
        if recall {
            kept.extend(["recall", "recall_search"].map(str::to_owned));
        }
        assert_eq!(names, kept);
        let warned = warned.all();
        let said = warned
            .iter()
            .any(|text| text.contains("accepts 10 tools in a request"));
        assert_eq!(said, sent < count, "{warned:?}");
    }
}

#[tokio::test]
async fn what_is_denied_is_left_out_and_that_is_said() {
    use Permission::{Allow, Deny};
    for (set, sent) in [
        (rules([("web_search", Deny, "")]), false),
        (rules([("web_search_1", Deny, "")]), false),
        (rules([("*", Deny, "")]), false),
        (
            rules([("web_search", Allow, "query=rust"), ("web_*", Deny, "")]),
            false,
        ),
        (rules([("web_search", Allow, ""), ("*", Deny, "")]), true),
        (rules([("recall", Deny, "")]), true),
        (rules([]), true),
    ] {
        let (provider, warned) = (own(), Warnings::default());
        let agent = Agent::builder(provider.clone())
            .hosted_tool(search())
            .permissions(set.clone())
            .observer(warned.observer());
        agent.build().unwrap().run("Hello.").await.unwrap();
        let asked = !provider.seen.lock().unwrap()[0].hosted_tools.is_empty();
        assert_eq!(asked, sent, "{set:?}");
        let warned = warned.all();
        let said = warned.iter().any(|text| text.contains("`web_search`"));
        assert_eq!(said, !sent, "{set:?}: {warned:?}");
    }
}

#[test]
fn what_cannot_be_is_not_built_and_why_is_said() {
    use Permission::{Allow, Ask, Deny};
    let builder = || Agent::builder(own()).hosted_tool(search());
    let twin = |_: Nothing| async move { Ok::<_, ToolError>(String::new()) };
    for (builder, words) in [
        (
            builder().permissions(rules([("*", Ask, "")])),
            "a permission rule is for calls of `web_search`",
        ),
        (
            builder().permissions(rules([("web_search", Deny, "query=*secret*")])),
            "a permission rule is for calls of `web_search`",
        ),
        (
            builder().permissions(rules([("web_search", Allow, "a"), ("web_*", Ask, "")])),
            "a permission rule is for calls",
        ),
        (
            builder().permissions(rules([("web_surf", Deny, "")])),
            "there is no such tool",
        ),
        (
            builder()
                .hosted_tool(json!({"type": "mcp", "server_label": "gh"}))
                .permissions(rules([("gh_delete*", Deny, "")])),
            "a permission rule is for calls of `gh_*`",
        ),
        (
            builder().hosted_tool(search()),
            "two tools are named `web_search`",
        ),
        (
            builder().tool(tool("web_search", "", twin)),
            "two tools are named `web_search`",
        ),
        (
            builder().hosted_tool(json!({"name": "x"})),
            "number 2 of hosted_tools has no `type`",
        ),
        (
            builder().hosted_tool(json!("x")),
            "number 2 of hosted_tools has no `type`",
        ),
        (
            builder().hosted_tool(json!({"type": "bad"})),
            "`bad` is bad",
        ),
        (
            Agent::builder(without()).hosted_tool(search()),
            "without/any has none here; leave it out of hosted_tools",
        ),
    ] {
        let faults = faults(builder);
        assert_eq!(faults.len(), 1, "{words}: {faults:?}");
        assert!(faults[0].contains(words), "{words}: {faults:?}");
    }
    // Where it is denied, nobody has to have it.
    let denied = Agent::builder(without()).hosted_tool(search());
    let denied = denied.permissions(rules([("web_search", Deny, "")]));
    assert_eq!(faults(denied), [""; 0]);
}

/// Another model for one run has to have them too.
#[tokio::test]
async fn a_run_on_another_model_asks_for_them_or_does_not_begin() {
    let first = own();
    let agent = Agent::builder(first.clone()).hosted_tool(search());
    let agent = agent.build().unwrap();
    let mut session = agent.session(SessionId::new("s").unwrap()).await.unwrap();
    let config = AgentLoopConfig {
        provider_override: Some(Arc::new(without())),
        ..AgentLoopConfig::default()
    };
    let refused = agent_loop(&mut session, "Hello.", &config).await;
    assert!(matches!(refused, Err(Error::Build(faults)) if faults[0].text.contains("none here")));
    let second = own();
    let config = AgentLoopConfig {
        provider_override: Some(Arc::new(second.clone())),
        ..AgentLoopConfig::default()
    };
    agent_loop(&mut session, "Hello.", &config).await.unwrap();
    assert_eq!(second.seen.lock().unwrap()[0].hosted_tools.len(), 1);
    assert!(first.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_longer_life_that_there_is_not_is_told_and_not_asked_for() {
    for (retention, told) in [
        (CacheRetention::Usual, false),
        (CacheRetention::Head, true),
        (CacheRetention::Long, true),
    ] {
        let (provider, warned) = (own(), Warnings::default());
        let agent = Agent::builder(provider.clone())
            .configure(|it| it.retention = retention)
            .observer(warned.observer())
            .build()
            .unwrap();
        let mut session = agent.session(SessionId::new("s").unwrap()).await.unwrap();
        session.run("Hello.").await.unwrap();
        session.run("Hello again.").await.unwrap();
        let asked = provider.seen.lock().unwrap()[0].cache.retention;
        assert_eq!(asked, CacheRetention::Usual);
        let warned = warned.all();
        assert_eq!(warned.len(), usize::from(told), "{warned:?}");
    }
}
