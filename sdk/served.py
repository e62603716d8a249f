"""A mock server for one check, and what every check wants of an answer.

Not a client: the official SDKs are.
"""

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKS = []


def check(protocol):
    """Names a check of that protocol."""

    def keep(act):
        CHECKS.append((protocol, act))
        return act

    return keep


class Served:
    """`plimsoll-mock` with a script, while a `with` lasts.

    `asked` has its requests afterwards.
    """

    program = "plimsoll-mock"

    def __init__(self, protocol, *turns, flags=()):
        self.protocol = protocol
        self.turns = turns
        self.flags = flags
        self.asked = []

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        script = Path(self.folder.name) / "turns.jsonl"
        script.write_text("".join(json.dumps(turn) + "\n" for turn in self.turns))
        command = [self.program, "--protocol", self.protocol, "--json"]
        command += ["--script", str(script), *self.flags]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(self.process.stderr.read())
        return self

    def __exit__(self, kind, error, trace):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=20)
        self.folder.cleanup()
        self.asked = [json.loads(line) for line in out.splitlines() if line]
        if kind is not None:
            sys.stderr.write(err)

    def refused(self):
        """The rules that requests broke."""
        return [request["fault"] for request in self.asked if request["fault"]]


def unknown(answer, path="", allowed=()):
    """Keys that the SDK does not know, wherever in an answer they are."""
    found = []
    extra = getattr(answer, "model_extra", None) or {}
    found += [f"{path}.{key}" for key in extra if key not in allowed]
    if hasattr(answer, "model_fields_set"):
        for key in type(answer).model_fields:
            found += unknown(getattr(answer, key, None), f"{path}.{key}", allowed)
    elif isinstance(answer, list):
        for at, inner in enumerate(answer):
            found += unknown(inner, f"{path}[{at}]", allowed)
    return found


def known(answer, allowed=()):
    """The answer, if the SDK knows all of it."""
    strange = unknown(answer, allowed=allowed)
    assert not strange, f"the SDK does not know {strange}"
    return answer


def raises(kind, act):
    """The error of that kind that an act ends with."""
    try:
        act()
    except kind as error:
        # A subclass would be another promise.
        assert type(error) is kind, f"{type(error).__name__} in place of {kind.__name__}"
        return error
    raise AssertionError(f"no {kind.__name__}")


def tool(name="read"):
    """The schema of a tool of ours."""
    return {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    }


TWO_CALLS = {
    "think": "Two files would tell.",
    "say": "Let me look.",
    "call": [
        {"name": "read", "arguments": {"path": "a"}},
        {"name": "read", "arguments": {"path": "b"}},
    ],
}
LONG = "Every word of this is sent twice and paid for once. " * 400
