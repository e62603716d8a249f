"""OpenAI's SDK against a mock of Chat Completions."""

import openai
from openai import OpenAI
from pydantic import BaseModel

from served import LONG, TWO_CALLS, Served, check, known, raises, tool

# The models of many servers think aloud; OpenAI's own do not, and its SDK keeps the key aside.
ALOUD = ("reasoning_content",)
TOOLS = [
    {
        "type": "function",
        "function": {"name": "read", "description": "Reads.", "parameters": tool()},
    }
]
ASK = [{"role": "user", "content": "What is in a and b?"}]


class City(BaseModel):
    name: str
    people: int


def client(served, **more):
    settings = {"max_retries": 0, **more}
    return OpenAI(
        base_url=served.url, api_key="k", _strict_response_validation=True, **settings
    )


def serve(*turns, flags=()):
    return Served("openai", *turns, flags=flags)


@check("openai")
def plain():
    with serve({"say": "Hello."}) as served:
        answer = known(client(served).chat.completions.create(model="gpt-5", messages=ASK))
    assert answer.choices[0].message.content == "Hello."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert not served.refused()


@check("openai")
def streamed():
    with serve({"say": "Hello, you.", "think": "hm"}) as served:
        stream = client(served).chat.completions.create(
            model="gpt-5", messages=ASK, stream=True, stream_options={"include_usage": True}
        )
        chunks = [known(chunk, ALOUD) for chunk in stream]
    said = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(said) == "Hello, you." and len([one for one in said if one]) > 1
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].usage.completion_tokens > 0 and not chunks[-1].choices


@check("openai")
def tools_in_parallel():
    with serve(TWO_CALLS, {"say": "Both are empty."}) as served:
        speak = client(served).chat.completions
        turn = known(speak.create(model="gpt-5", messages=ASK, tools=TOOLS), ALOUD)
        message = turn.choices[0].message
        assert turn.choices[0].finish_reason == "tool_calls"
        assert [call.function.arguments for call in message.tool_calls] == [
            '{"path":"a"}',
            '{"path":"b"}',
        ]
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": "empty"}
            for call in message.tool_calls
        ]
        said = message.to_dict(exclude_none=True)
        last = speak.create(model="gpt-5", messages=[*ASK, said, *results], tools=TOOLS)
    assert known(last).choices[0].message.content == "Both are empty."
    assert not served.refused()


@check("openai")
def tools_in_a_stream():
    with serve(TWO_CALLS) as served:
        speak = client(served).chat.completions
        with speak.stream(model="gpt-5", messages=ASK, tools=TOOLS) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_completion()
    assert {"content.delta", "content.done", "tool_calls.function.arguments.done"} <= kinds
    calls = final.choices[0].message.tool_calls
    assert [call.function.arguments for call in calls] == ['{"path":"a"}', '{"path":"b"}']
    assert len({call.id for call in calls}) == 2


@check("openai")
def parsed():
    city = '{"name": "Riga", "people": 600000}'
    call = {"call": [{"name": "City", "arguments": city}]}
    with serve({"say": city}, call) as served:
        speak = client(served).chat.completions
        answer = speak.parse(model="gpt-5", messages=ASK, response_format=City)
        assert answer.choices[0].message.parsed == City(name="Riga", people=600000)
        tools = [openai.pydantic_function_tool(City)]
        answer = speak.parse(model="gpt-5", messages=ASK, tools=tools)
    called = answer.choices[0].message.tool_calls[0].function.parsed_arguments
    assert called == City(name="Riga", people=600000)
    assert not served.refused()


@check("openai")
def cached():
    messages = [{"role": "system", "content": LONG}, *ASK]
    with serve({"say": "a"}, {"say": "b"}) as served:
        speak = client(served).chat.completions
        first = speak.create(model="gpt-5", messages=messages).usage
        again = speak.create(model="gpt-5", messages=messages).usage
    assert first.prompt_tokens_details.cached_tokens == 0
    held = again.prompt_tokens_details.cached_tokens
    assert 1024 <= held <= again.prompt_tokens and held % 128 == 0


@check("openai")
def models():
    with serve({"say": "a"}, flags=("--model", "gpt-5", "--model", "gpt-5-mini")) as served:
        listed = client(served).models.list()
    assert [known(model).id for model in listed] == ["gpt-5", "gpt-5-mini"]


@check("openai")
def too_long():
    messages = [{"role": "user", "content": LONG}]
    with serve({"say": "a"}, flags=("--window", "1000")) as served:
        ask = lambda: client(served).chat.completions.create(model="gpt-5", messages=messages)
        error = raises(openai.BadRequestError, ask)
    assert error.code == "context_length_exceeded" and error.param == "messages"
    assert "This model's maximum context length is 1000 tokens." in error.message


@check("openai")
def refused():
    orphan = [*ASK, {"role": "tool", "tool_call_id": "call_x", "content": "r"}]
    with serve({"say": "a"}) as served:
        ask = lambda: client(served).chat.completions.create(model="gpt-5", messages=orphan)
        error = raises(openai.BadRequestError, ask)
    assert "must be a response to a preceeding message with 'tool_calls'" in error.message
    assert len(served.refused()) == 1


@check("openai")
def failures():
    kinds = {
        401: openai.AuthenticationError,
        403: openai.PermissionDeniedError,
        404: openai.NotFoundError,
        429: openai.RateLimitError,
        500: openai.InternalServerError,
        503: openai.InternalServerError,
    }
    turns = [{"fail": status, "retry_after": 7} for status in kinds]
    with serve(*turns) as served:
        for status, kind in kinds.items():
            ask = lambda: client(served).chat.completions.create(model="gpt-5", messages=ASK)
            error = raises(kind, ask)
            assert error.status_code == status and error.message
            assert error.response.headers["retry-after"] == "7"
            assert error.body["type"], error.body


@check("openai")
def retried():
    busy = {"fail": 429, "retry_after": 1}
    with serve(busy, {"fail": 500}, {"say": "At last."}) as served:
        speak = client(served, max_retries=2).chat.completions
        answer = speak.create(model="gpt-5", messages=ASK)
    assert answer.choices[0].message.content == "At last."
    assert [request["status"] for request in served.asked] == [429, 500, 200]


@check("openai")
def broken_in_the_stream():
    with serve({"say": "It begins well.", "fail_in_stream": 503}) as served:
        stream = client(served).chat.completions.create(
            model="gpt-5", messages=ASK, stream=True
        )
        error = raises(openai.APIError, lambda: list(stream))
    assert error.body["type"] == "server_error", error.body


@check("openai")
def byte_by_byte():
    with serve({"say": "Ünïcödé 🦀 in pieces", "bytewise": True}) as served:
        stream = client(served).chat.completions.create(
            model="gpt-5", messages=ASK, stream=True
        )
        said = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert "".join(said) == "Ünïcödé 🦀 in pieces"
