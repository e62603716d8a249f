"""Records what real clients send: each plays a session of two questions against a strict mock server.

    python record.py PLIMSOLL_MOCK FOLDER_OF_NODE_MODULES OUTPUT_FOLDER [PART_OF_A_NAME]

Every request goes byte for byte into OUTPUT_FOLDER/NAME/, and OUTPUT_FOLDER/NAME/client.json says who sent
them, which protocol they speak and which of them the mock server refused. The requests contain the prompts of
their vendors: never commit them. `cargo xtask clients` calls this.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

# Seconds that a client may take for one question.
TIMEOUT = 180
QUESTIONS = [
    "Read README.md and notes.txt, then say what the lamp does. Never touch the folder prod.",
    "And which of the notes is the longest? Look again.",
]
FILES = {
    "README.md": "# Lighthouse\n" + "The lamp turns once in ten seconds.\n" * 40,
    "notes.txt": "".join(f"{n}: a line of the keeper's notes\n" for n in range(200)),
}


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def session(read, shell):
    """The mock server's turns: parallel calls, a call that fails, large results, two answers."""
    return [
        {"think": "I look.", "call": [read("README.md"), shell("cat notes.txt")]},
        {"think": "It may fail.", "call": [shell("false")]},
        {"think": "Once more.", "call": [shell("cat README.md notes.txt")]},
        {"think": "I know.", "say": "The lamp turns once in ten seconds."},
        {"think": "Again.", "call": [read("notes.txt")]},
        {"think": "And the other.", "call": [shell("wc -c notes.txt"), shell("wc -l notes.txt")]},
        {"think": "I know.", "say": "The last one."},
        {"say": "ok", "repeat": True},
    ]


class Client:
    def __init__(self, name, package, protocol, turns, command, environment=None, prepare=None):
        self.name, self.package, self.protocol, self.turns = name, package, protocol, turns
        self.command, self.environment, self.prepare = command, environment, prepare


def claude(model):
    turns = session(
        lambda path: call("Read", file_path=path),
        lambda line: call("Bash", command=line, description="A look"),
    )

    def environment(url):
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "dummy",
            "ANTHROPIC_MODEL": model,
            "ANTHROPIC_SMALL_FAST_MODEL": model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def command(bin, _url, question, again):
        more = ["--continue"] if again else []
        return [bin / "claude", "-p", question, *more, "--allowedTools", "Read,Bash"]

    name = f"claude-code-{model}"
    return Client(name, "@anthropic-ai/claude-code", "anthropic", turns, command, environment)


def codex(model):
    def shell(line):
        return call("exec_command", cmd=line)

    # Reasoning of a mock server cannot be decrypted by anybody else, and it is not what is looked at here.
    turns = [
        {key: value for key, value in turn.items() if key != "think"}
        for turn in session(lambda path: shell(f"cat {path}"), shell)
    ]

    def command(bin, url, question, again):
        provider = f'{{name="local",base_url="{url}",wire_api="responses",env_key="LOCAL_KEY"}}'
        settings = ["-c", "model_provider=local", "-c", f"model_providers.local={provider}"]
        if again:
            return [bin / "codex", "exec", "resume", "--last", "--skip-git-repo-check", "-m", model, *settings, question]
        return [bin / "codex", "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "-m", model, *settings, question]

    return Client(f"codex-{model}", "@openai/codex", "openai-responses", turns, command, lambda _: {"LOCAL_KEY": "dummy"})


def opencode():
    turns = session(
        lambda path: call("read", filePath=path),
        lambda line: call("bash", command=line, description="A look"),
    )
    # It asks for a title first.
    turns.insert(0, {"say": "A lighthouse"})

    def prepare(_home, work, url):
        model = {"name": "local", "limit": {"context": 131072, "output": 1024}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "local",
            "options": {"baseURL": url, "apiKey": "dummy"},
            "models": {"local": model},
        }
        settings = {
            "autoupdate": False,
            "share": "disabled",
            "model": "local/local",
            "small_model": "local/local",
            "provider": {"local": provider},
        }
        (work / "opencode.json").write_text(json.dumps(settings))

    def command(bin, _url, question, again):
        return [bin / "opencode", "run", *(["-c"] if again else []), "-m", "local/local", question]

    return Client("opencode", "opencode-ai", "openai", turns, command, None, prepare)


def pi():
    turns = session(lambda path: call("read", path=path), lambda line: call("bash", command=line))

    def prepare(home, _work, url):
        folder = home / ".pi" / "agent"
        folder.mkdir(parents=True)
        model = {"id": "local", "name": "local", "contextWindow": 131072, "maxTokens": 1024}
        provider = {"baseUrl": url, "api": "openai-completions", "apiKey": "dummy", "models": [model]}
        (folder / "models.json").write_text(json.dumps({"providers": {"local": provider}}))

    def command(bin, _url, question, again):
        return [bin / "pi", "--provider", "local", "--model", "local", *(["-c"] if again else []), "-p", question]

    return Client("pi", "@mariozechner/pi-coding-agent", "openai", turns, command, None, prepare)


# Claude Code sends another form to older models, to newer ones and to those that it does not know; Codex has one
# for models before GPT-5.6 and another for those from it on.
CLIENTS = [
    claude("claude-sonnet-4-5"),
    claude("claude-opus-5"),
    claude("a-model-nobody-knows"),
    codex("gpt-5.5"),
    codex("gpt-5.6-sol"),
    opencode(),
    pi(),
]


def record(client, program, modules, output):
    shutil.rmtree(output, ignore_errors=True)
    turns = "".join(json.dumps(turn) + "\n" for turn in client.turns)
    arguments = ["--protocol", client.protocol, "--script", "-", "--record", output, "--json"]
    mock = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        mock.stdin.write(turns)
        mock.stdin.close()
        url = mock.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as work:
            home, work = pathlib.Path(home), pathlib.Path(work)
            for name, text in FILES.items():
                (work / name).write_text(text)
            if client.prepare:
                client.prepare(home, work, url)
            # Nothing of this machine's user: an empty home, and only what the client needs.
            environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb"}
            environment.update(client.environment(url) if client.environment else {})
            for again, question in enumerate(QUESTIONS):
                subprocess.run(
                    client.command(modules / ".bin", url, question, again > 0),
                    cwd=work,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=TIMEOUT,
                    check=False,
                )
        mock.send_signal(signal.SIGINT)
        asked = [json.loads(line) for line in mock.stdout]
    finally:
        mock.kill()
        mock.wait()
    asked = [one for one in asked if one["body"] is not None]
    version = json.loads((modules / client.package / "package.json").read_text())["version"]
    refused = [number for number, one in enumerate(asked, 1) if one["status"] != 200]
    for number in refused:
        print(f"  request {number} was refused: {asked[number - 1]['fault']}")
    about = {"client": client.package, "version": version, "protocol": client.protocol, "refused": refused}
    (output / "client.json").write_text(json.dumps(about, indent=1) + "\n")
    print(f"{client.name} {version}: {len(asked)} requests, {len(refused)} refused")
    return len(asked) - len(refused) >= len(QUESTIONS)


def main():
    program, modules, output = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    part = sys.argv[4] if len(sys.argv) > 4 else ""
    failed = []
    for client in CLIENTS:
        if part not in client.name:
            continue
        folder = output / client.name
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            done = record(client, program, modules, folder)
        except subprocess.TimeoutExpired:
            print(f"{client.name}: no answer within {TIMEOUT} s")
            done = False
        if not done:
            failed.append(client.name)
    if failed:
        sys.exit(f"not recorded: {', '.join(failed)}")


main()
