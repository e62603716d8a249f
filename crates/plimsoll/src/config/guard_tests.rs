//! Tests that a configuration cannot reach out of its directory, send keys elsewhere or loosen
//! guards.

use super::*;
use plimsoll_context::{Money, Tokens};

#[cfg(unix)]
#[test]
fn files_of_a_project_have_an_effect_only_if_they_are_trusted() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("project");
    for (path, text) in [
        ("plimsoll.toml", "max_turns = 3\n"),
        ("AGENTS.md", "Be kind."),
        (".plimsoll/agents/mate.md", "---\nname: mate\n---\nHelp."),
        (
            ".claude/skills/pdf/SKILL.md",
            "---\nname: pdf\ndescription: x\n---\nPress.",
        ),
        (".agents/skills/large/SKILL.md", &"x".repeat(70_000)),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::write(home.path().join("secret"), "hush").unwrap();
    std::os::unix::fs::symlink("../../../secret", root.join(".plimsoll/agents/out.md")).unwrap();
    let files = ProjectFiles::new(&root);
    let found = files.found();
    let left_out: Vec<&str> = found.left_out().collect();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    let left_out = left_out.join("\n");
    assert!(left_out.contains("larger than 64 KiB") && left_out.contains("link out of"));
    for (files, turns, told) in [
        (files.clone(), None, vec![]),
        (files.trusting(found), Some(3), vec!["Be kind."]),
    ] {
        let config = files.config();
        let is_trusted = config.is_some();
        let config = files.add_agents(config.unwrap_or_default());
        let mut agent = config.defaults().unwrap();
        files.add_skills(&mut agent);
        if let Some(turns) = turns {
            assert_eq!(agent.settings().builder.limits.max_turns, Some(turns));
        }
        let agents: Vec<&str> = config.file_agents().collect();
        let skills = agent.skills();
        let skills: Vec<&str> = skills.names().collect();
        files.instruct(&mut agent, "Built in.").unwrap();
        let system = agent.settings().system.clone().unwrap();
        assert!(told.iter().all(|text| system.contains(text)), "{system}");
        if is_trusted {
            assert_eq!((agents, skills), (vec!["mate"], vec!["pdf"]));
        } else {
            assert_eq!((agents.len(), skills.len()), (0, 0));
            assert_eq!(system, "Built in.");
        }
    }
}

#[test]
fn what_the_configuration_obeys_or_runs_is_protected() {
    use plimsoll_agent::CallTarget;
    let home = tempfile::tempdir().unwrap();
    for name in ["mine.toml", "prompt.md", "guard.sh", "server.py", "free.md"] {
        std::fs::write(home.path().join(name), "").unwrap();
    }
    let path = home.path().join("mine.toml");
    std::fs::write(
        &path,
        "root = \".\"\nsystem_file = \"prompt.md\"\n\
         [[hooks]]\non = \"before_loop\"\ncommand = [\"sh\", \"guard.sh\"]\n\
         [[mcp]]\nname = \"x\"\ncommand = \"python3\"\nargs = [\"server.py\"]\n",
    )
    .unwrap();
    let mut agent = Config::read(&path).unwrap().defaults().unwrap();
    agent.protect(home.path().join("later.json"));
    let tools = agent.tools().unwrap();
    let write = tools
        .iter()
        .find(|tool| tool.spec().name == "write")
        .unwrap();
    for (name, protected) in [
        ("mine.toml", true),
        ("prompt.md", true),
        ("guard.sh", true),
        ("server.py", true),
        ("later.json", true),
        ("free.md", false),
    ] {
        let arguments = serde_json::json!({ "path": name, "content": "" });
        let CallTarget::Path(target) = write.target(&arguments) else {
            panic!("{name} is a path");
        };
        assert_eq!(target.is_protected, protected, "{name}");
    }
}

/// Returns an agent at the end of a chain of calls, with flags.
fn called(config: &Config, over: &Overrides) -> AgentConfig {
    let captain = config.resolve(Some("captain"), over).unwrap();
    let mate = captain.sibling("mate").unwrap();
    // Restrictions of a called agent apply to the agents that it calls.
    mate.sibling("boy").unwrap()
}

#[test]
fn guards_hold_for_agents_that_are_called() {
    let home = tempfile::tempdir().unwrap();
    let safe = home.path().join("safe");
    std::fs::create_dir_all(safe.join("deep")).unwrap();
    let path = home.path().join(CONFIG_FILE);
    let file = |own: &str| {
        std::fs::write(
            &path,
            format!(
                "[[agents]]\nname = \"captain\"\nsub_agents = [\"mate\"]\n[[agents]]\nname = \"mate\"\nsub_agents = [\"boy\"]\n\
                 [[agents]]\nname = \"boy\"\n{own}permissions = [{{ tool = \"bash\", then = \"allow\" }}]\n"
            ),
        )
        .unwrap();
        Config::read(&path).unwrap()
    };
    let root = safe.display().to_string();
    let variables = |name: &str| match name {
        "PLIMSOLL_PERMISSIONS" => Some("ask write".to_owned()),
        _ => None,
    };
    let over = || {
        Overrides::default()
            .flag("--root", "root", &root)
            .flag("--allow", "permissions", "allow edit")
            .flag("--deny", "permissions", "deny bash")
            .environment(&variables)
    };
    let boy = called(&file(""), &over());
    let rules: Vec<String> = boy
        .settings()
        .permissions
        .iter()
        .map(|rule| format!("{} {}", rule.then.name(), rule.tool))
        .collect();
    // The caller's permissions are not inherited, its restrictions are.
    assert_eq!(rules, ["deny bash", "ask write", "allow bash"]);
    assert_eq!(boy.settings().root, safe);
    for (own, there) in [
        ("root = \"safe/deep\"\n", safe.join("deep")),
        ("root = \"safe\"\n", safe.clone()),
        ("root = \".\"\n", safe.clone()),
        ("root = \"/\"\n", safe.clone()),
        ("root = \"safe/../safe/..\"\n", safe.clone()),
    ] {
        assert_eq!(called(&file(own), &over()).settings().root, there, "{own}");
    }
    let free = called(&file("root = \"/\"\n"), &Overrides::default());
    assert_eq!(free.settings().root, std::path::Path::new("/"));
    assert_eq!(free.settings().permissions.len(), 1);
}

#[test]
fn a_called_agent_is_never_less_strict_than_its_caller() {
    let boy = |captain: &str, boy: &str| {
        let text = format!(
            "[[agents]]\nname = \"captain\"\nsub_agents = [\"mate\"]\n{captain}\n\
             [[agents]]\nname = \"mate\"\nsub_agents = [\"boy\"]\n[[agents]]\nname = \"boy\"\n{boy}"
        );
        let boy = called(&Config::parse(&text).unwrap(), &Overrides::default());
        let settings = boy.settings();
        (settings.permission_mode().name(), settings.sandbox.name())
    };
    let loose = "permission_mode = \"yes\"\nsandbox = \"workspace-write\"";
    let strict = "permission_mode = \"read-only\"\nsandbox = \"read-only\"";
    for (captain, own) in [(strict, ""), (strict, loose), (loose, strict)] {
        assert_eq!(
            boy(captain, own),
            ("read-only", "read-only"),
            "{captain} {own}"
        );
    }
    assert_eq!(boy(loose, ""), ("yes", "workspace-write"));
}

/// One of two calls at a time would reserve all of it, and the other would not start.
#[test]
fn a_limit_of_the_whole_file_is_shared_with_called_agents() {
    let limits = |own: &str| {
        let text = format!(
            "max_cost = 0.5\nmax_total_tokens = 9_000\n\
             [[agents]]\nname = \"captain\"\nsub_agents = [\"mate\"]\n\
             [[agents]]\nname = \"mate\"\nsub_agents = [\"boy\"]\n\
             [[agents]]\nname = \"boy\"\n{own}"
        );
        let boy = called(&Config::parse(&text).unwrap(), &Overrides::default());
        let limits = boy.settings().builder.limits;
        (limits.max_cost, limits.max_total_tokens)
    };
    assert_eq!(limits(""), (None, None));
    let own = limits("max_cost = 0.1\nmax_total_tokens = 800");
    assert_eq!(own, (Some(Money(100_000_000)), Some(Tokens(800))));
}

#[test]
fn an_address_is_of_the_model_that_it_was_set_beside() {
    const PROXY: &str = "http://127.0.0.1:9/v1";
    let address = format!("base_url = \"{PROXY}\"\n");
    let variables = |name: &str| (name == "PLIMSOLL_BASE_URL").then(|| PROXY.to_owned());
    let nothing = |_: &str| None;
    for (file, flag, environment, kept) in [
        (format!("{address}model = \"openai/a\""), None, false, true),
        (address.clone(), None, false, true),
        (address.clone(), Some("openai-compatible/x"), false, true),
        (address.clone(), Some("openai/a"), false, false),
        (
            format!("{address}model = \"openai/a\""),
            Some("openai/b"),
            false,
            true,
        ),
        (
            format!("{address}model = \"groq/a\""),
            Some("openai/b"),
            false,
            false,
        ),
        (String::new(), Some("openai/b"), true, false),
        (
            "model = \"groq/a\"".to_owned(),
            Some("openai/b"),
            true,
            false,
        ),
        (
            "model = \"openai/a\"".to_owned(),
            Some("openai/b"),
            true,
            true,
        ),
        // Set together with a model, the address belongs to that model.
        ("model = \"openai/a\"".to_owned(), None, true, true),
        (
            format!("{address}[[agents]]\nname = \"a\"\nmodel = \"openai/gpt-5\""),
            None,
            false,
            false,
        ),
        (
            format!(
                "{address}model = \"openai/b\"\n[[agents]]\nname = \"a\"\nmodel = \"openai/gpt-5\""
            ),
            None,
            false,
            true,
        ),
        (
            format!("[[agents]]\nname = \"a\"\nmodel = \"openai/gpt-5\"\n{address}"),
            None,
            false,
            true,
        ),
    ] {
        let config = Config::parse(&file).unwrap();
        let variables: &dyn Fn(&str) -> Option<String> =
            if environment { &variables } else { &nothing };
        let mut over = Overrides::default().environment(variables);
        if let Some(model) = flag {
            over = over.flag("--model", "model", model);
        }
        let agent = config.resolve(config.agents().next(), &over).unwrap();
        let what = format!("{file} {flag:?} {environment}");
        assert_eq!(agent.settings().base_url.is_some(), kept, "{what}");
        assert_eq!(agent.origin("base_url").is_some(), kept, "{what}");
        let warned = agent.warnings().iter();
        let warned = warned.filter(|fault| fault.text.contains("is left out"));
        assert_eq!(warned.count(), usize::from(!kept), "{what}");
    }
}

#[test]
fn an_address_is_shown_without_its_secrets() {
    let text = "base_url = \"https://example.org/v1?key=hush#hush\"\n";
    let agent = Config::parse(text).unwrap().defaults().unwrap();
    for shown in agent.effective() {
        let said = format!("{} {}", shown.line(), shown.json());
        assert!(!said.contains("hush"), "{said}");
        if shown.key.name == "base_url" {
            assert!(said.contains("https://example.org/v1?***"), "{said}");
        }
    }
}

#[test]
fn an_agent_that_cannot_be_made_says_why_before_the_run() {
    let text = "[[agents]]\nname = \"captain\"\nsub_agents = [\"mate\"]\n[[agents]]\nname = \"mate\"\nsub_agents = [\"boy\"]\n\
                [[agents]]\nname = \"boy\"\nmodel = \"mine/x\"\n\
                [providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"PLIMSOLL_TEST_NO_SUCH_KEY\"\n";
    let captain = Config::parse(text).unwrap().agent("captain").unwrap();
    let provider = plimsoll_core::testing::ScriptedProvider::new([]);
    let error = captain.builder_on(std::sync::Arc::new(provider)).err();
    let said = error.unwrap().to_string();
    assert!(
        said.contains("the agent `boy` cannot be made: ")
            && said.contains("$PLIMSOLL_TEST_NO_SUCH_KEY, which is not set"),
        "{said}"
    );
}

#[test]
fn a_fault_of_many_agents_is_reported_once() {
    let agents = (0..50).map(|number| format!("[[agents]]\nname = \"a{number}\"\n"));
    let agents: String = agents.collect();
    let text = format!("max_parallel_tools = 65\nseed = 1\nmax_turns = 3\n{agents}");
    let error = Config::parse(&text).unwrap_err().to_string();
    assert_eq!(error, "line 1: max_parallel_tools is 65; choose 1 to 64");
}
