"""Anthropic's SDK against a mock of Messages."""

import anthropic
from anthropic import Anthropic
from pydantic import BaseModel

from served import LONG, TWO_CALLS, Served, check, known, raises, tool

MODEL = "claude-opus-4-8"
TOOLS = [{"name": "read", "description": "Reads.", "input_schema": tool()}]
ASK = [{"role": "user", "content": "What is in a and b?"}]
ASKED = {"model": MODEL, "max_tokens": 4096}
THINKING = {"thinking": {"type": "adaptive"}}


class City(BaseModel):
    name: str
    people: int


def client(served, **more):
    settings = {"max_retries": 0, **more}
    return Anthropic(
        base_url=served.url, api_key="k", _strict_response_validation=True, **settings
    )


def serve(*turns, flags=()):
    return Served("anthropic", *turns, flags=flags)


@check("anthropic")
def plain():
    with serve({"say": "Hello."}) as served:
        answer = known(client(served).messages.create(messages=ASK, **ASKED))
    assert answer.content[0].text == "Hello." and answer.stop_reason == "end_turn"
    assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0
    assert not served.refused()


@check("anthropic")
def streamed():
    turn = {"think": "hm", "say": "Hello, you."}
    with serve(turn, turn) as served:
        speak = client(served).messages
        stream = speak.create(messages=ASK, stream=True, **ASKED, **THINKING)
        events = [known(event) for event in stream]
        with speak.stream(messages=ASK, **ASKED, **THINKING) as stream:
            kinds = {known(event).type for event in stream}
            final = known(stream.get_final_message())
    assert events[0].type == "message_start" and events[-1].type == "message_stop"
    assert {"thinking", "signature", "text", "message_stop"} <= kinds, kinds
    assert [block.type for block in final.content] == ["thinking", "text"]
    assert final.content[1].text == "Hello, you." and final.content[0].signature
    assert final.stop_reason == "end_turn" and final.usage.output_tokens > 1


@check("anthropic")
def text_alone():
    with serve({"say": "Hello, you."}) as served:
        with client(served).messages.stream(messages=ASK, **ASKED) as stream:
            said = list(stream.text_stream)
    assert "".join(said) == "Hello, you." and len(said) > 1


@check("anthropic")
def thinking_goes_back_with_its_calls():
    with serve({**TWO_CALLS, "redacted": True}, {"say": "Both are empty."}) as served:
        speak = client(served).messages
        asked = {"tools": TOOLS, **ASKED, **THINKING}
        turn = known(speak.create(messages=ASK, **asked))
        kinds = [block.type for block in turn.content]
        assert kinds == ["thinking", "redacted_thinking", "text", "tool_use", "tool_use"], kinds
        assert turn.stop_reason == "tool_use"
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "empty"}
            for block in turn.content
            if block.type == "tool_use"
        ]
        history = [
            *ASK,
            {"role": "assistant", "content": turn.content},
            {"role": "user", "content": results},
        ]
        last = known(speak.create(messages=history, **asked))
    assert last.content[-1].text == "Both are empty."
    assert not served.refused()


@check("anthropic")
def thinking_that_was_changed_is_refused():
    with serve(TWO_CALLS, {"say": "never"}) as served:
        speak = client(served).messages
        asked = {"tools": TOOLS, **ASKED, **THINKING}
        turn = speak.create(messages=ASK, **asked)
        blocks = [block.to_dict() for block in turn.content]
        blocks[0]["thinking"] = "Something else."
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "empty"}
            for block in blocks
            if block["type"] == "tool_use"
        ]
        history = [
            *ASK,
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": results},
        ]
        error = raises(
            anthropic.BadRequestError, lambda: speak.create(messages=history, **asked)
        )
    assert "Invalid `signature` in `thinking` block" in error.message


@check("anthropic")
def tools_in_a_stream():
    with serve(TWO_CALLS) as served:
        with client(served).messages.stream(messages=ASK, tools=TOOLS, **ASKED) as stream:
            partial = [known(event) for event in stream if event.type == "input_json"]
            final = known(stream.get_final_message())
    calls = [block for block in final.content if block.type == "tool_use"]
    assert [call.input for call in calls] == [{"path": "a"}, {"path": "b"}]
    assert len({call.id for call in calls}) == 2 and len(partial) > 2


@check("anthropic")
def tools_that_the_server_runs():
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    result = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {
                "type": "web_search_result",
                "url": "https://example.org",
                "title": "t",
                "encrypted_content": "e",
                "page_age": None,
            }
        ],
    }
    cited = {
        "type": "web_search_result_location",
        "url": "https://example.org",
        "title": "t",
        "encrypted_index": "i",
        "cited_text": "x",
    }
    turn = {"blocks": [use, result], "say_after": "Found."}
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    with serve(turn, turn, {"say": "It says so.", "citations": [cited]}) as served:
        speak = client(served).messages
        whole = known(speak.create(messages=ASK, tools=tools, **ASKED))
        with speak.stream(messages=ASK, tools=tools, **ASKED) as stream:
            for event in stream:
                known(event)
            streamed = known(stream.get_final_message())
        kinds = ["server_tool_use", "web_search_tool_result", "text"]
        assert [block.type for block in whole.content] == kinds
        assert [block.type for block in streamed.content] == kinds
        assert streamed.content[0].input == {"query": "x"}
        history = [
            *ASK,
            {"role": "assistant", "content": streamed.content},
            {"role": "user", "content": "And?"},
        ]
        with speak.stream(messages=history, tools=tools, **ASKED) as stream:
            last = known(stream.get_final_message())
    assert last.content[0].citations[0].cited_text == "x"
    assert not served.refused()


@check("anthropic")
def parsed():
    city = '{"name": "Riga", "people": 600000}'
    with serve({"say": city}) as served:
        answer = client(served).messages.parse(messages=ASK, output_format=City, **ASKED)
    assert answer.parsed_output == City(name="Riga", people=600000)
    assert not served.refused()


@check("anthropic")
def a_loop_that_the_sdk_drives():
    read = []

    @anthropic.beta_tool
    def read_file(path: str) -> str:
        """Reads a file.

        Args:
            path: Which.
        """
        read.append(path)
        return "empty"

    calls = [{"name": "read_file", "arguments": {"path": path}} for path in ("a", "b")]
    turns = [{"think": "hm", "call": calls}, {"call": calls[:1]}, {"say": "Done."}]
    with serve(*turns) as served:
        runner = client(served).beta.messages.tool_runner(
            messages=ASK, tools=[read_file], thread=False, **ASKED, **THINKING
        )
        turns = [known(turn) for turn in runner]
    assert read == ["a", "b", "a"] and turns[-1].content[-1].text == "Done."
    assert not served.refused() and len(served.asked) == 3


@check("anthropic")
def counted():
    with serve({"say": "a"}) as served:
        speak = client(served).messages
        count = known(speak.count_tokens(model=MODEL, messages=ASK, tools=TOOLS))
        answer = speak.create(messages=ASK, tools=TOOLS, **ASKED)
    assert count.input_tokens == answer.usage.input_tokens > 0


@check("anthropic")
def cached():
    system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
    hour = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    with serve(*[{"say": "a"}] * 3) as served:
        speak = client(served).messages
        first = known(speak.create(messages=ASK, system=system, **ASKED)).usage
        again = known(speak.create(messages=ASK, system=system, **ASKED)).usage
        other = known(speak.create(messages=ASK, system="x" + LONG, **ASKED)).usage
    assert first.cache_creation_input_tokens > 1024 and first.cache_read_input_tokens == 0
    assert again.cache_read_input_tokens == first.cache_creation_input_tokens
    assert first.cache_creation.ephemeral_5m_input_tokens == first.cache_creation_input_tokens
    assert other.cache_read_input_tokens == 0
    with serve({"say": "a"}) as served:
        usage = client(served).messages.create(messages=ASK, system=hour, **ASKED).usage
    assert usage.cache_creation.ephemeral_1h_input_tokens > 1024


@check("anthropic")
def models():
    with serve({"say": "a"}, flags=("--model", MODEL, "--model", "claude-haiku-4-5")) as served:
        listed = client(served).models.list()
        one = client(served).models.retrieve(MODEL)
    assert [known(model).id for model in listed] == [MODEL, "claude-haiku-4-5"]
    assert known(one).id == MODEL


@check("anthropic")
def too_long():
    messages = [{"role": "user", "content": LONG}]
    with serve({"say": "a"}, flags=("--window", "2000")) as served:
        ask = lambda: client(served).messages.create(model=MODEL, max_tokens=9, messages=messages)
        error = raises(anthropic.BadRequestError, ask)
    assert "prompt is too long" in error.message and "> 2000 maximum" in error.message
    assert error.body["error"]["type"] == "invalid_request_error"


@check("anthropic")
def refused():
    orphan = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}]},
        {"role": "user", "content": "and?"},
    ]
    with serve({"say": "a"}) as served:
        ask = lambda: client(served).messages.create(messages=orphan, tools=TOOLS, **ASKED)
        error = raises(anthropic.BadRequestError, ask)
    assert "`tool_use` ids were found without `tool_result` blocks" in error.message
    assert len(served.refused()) == 1


@check("anthropic")
def failures():
    kinds = {
        401: anthropic.AuthenticationError,
        403: anthropic.PermissionDeniedError,
        404: anthropic.NotFoundError,
        413: anthropic.RequestTooLargeError,
        429: anthropic.RateLimitError,
        500: anthropic.InternalServerError,
        529: anthropic.OverloadedError,
    }
    turns = [{"fail": status, "retry_after": 7} for status in kinds]
    with serve(*turns) as served:
        for status, kind in kinds.items():
            ask = lambda: client(served).messages.create(messages=ASK, **ASKED)
            error = raises(kind, ask)
            assert error.status_code == status and error.body["error"]["type"], error.body
            assert error.body["type"] == "error" and error.body["error"]["message"]
            assert error.response.headers["retry-after"] == "7"
            assert error.request_id, "no request id"


@check("anthropic")
def without_a_key():
    with serve({"say": "a"}) as served:
        headers = {"X-Api-Key": anthropic.omit, "Authorization": anthropic.omit}
        ask = lambda: client(served).messages.create(messages=ASK, extra_headers=headers, **ASKED)
        error = raises(anthropic.AuthenticationError, ask)
    assert error.body["error"]["type"] == "authentication_error"


@check("anthropic")
def retried():
    with serve({"fail": 529}, {"fail": 429, "retry_after": 1}, {"say": "At last."}) as served:
        speak = client(served, max_retries=2).messages
        answer = speak.create(messages=ASK, **ASKED)
    assert answer.content[0].text == "At last."
    assert [request["status"] for request in served.asked] == [529, 429, 200]


@check("anthropic")
def broken_in_the_stream():
    with serve({"say": "It begins well.", "fail_in_stream": 529}) as served:
        stream = client(served).messages.create(messages=ASK, stream=True, **ASKED)
        seen, error = [], None
        try:
            for event in stream:
                seen.append(known(event).type)
        except anthropic.APIStatusError as raised:
            error = raised
    assert error is not None and error.body["error"]["type"] == "overloaded_error", (seen, error)
    assert "message_stop" not in seen


@check("anthropic")
def the_window_ends_in_the_answer():
    turn = {"say": "word " * 3000}
    with serve(turn, flags=("--window", "1000", "--in-stream")) as served:
        answer = client(served).messages.create(messages=ASK, **ASKED)
    assert known(answer).stop_reason == "model_context_window_exceeded", answer.stop_reason
