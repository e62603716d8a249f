"""OpenAI's SDK against a mock of Responses."""

import openai
from openai import OpenAI
from pydantic import BaseModel

from served import LONG, TWO_CALLS, Served, check, known, raises, tool

TOOLS = [
    {
        "type": "function",
        "name": "read",
        "description": "Reads.",
        "parameters": tool(),
        "strict": True,
    }
]
# The API says whether it stores a response, and older SDKs want the tool's name beside its
# arguments; the types of this one have no place for either.
ASIDE = ("store", "name")
STATELESS = {"store": False, "include": ["reasoning.encrypted_content"]}


class City(BaseModel):
    name: str
    people: int


def client(served, **more):
    settings = {"max_retries": 0, **more}
    return OpenAI(
        base_url=served.url, api_key="k", _strict_response_validation=True, **settings
    )


def serve(*turns, flags=()):
    return Served("openai-responses", *turns, flags=flags)


@check("openai-responses")
def plain():
    with serve({"say": "Hello."}) as served:
        answer = known(client(served).responses.create(model="gpt-5", input="hi"), ASIDE)
    assert answer.output_text == "Hello." and answer.status == "completed"
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert not served.refused()


@check("openai-responses")
def streamed():
    turn = {"think": "hm", "say": "Hello, you."}
    with serve(turn, turn) as served:
        speak = client(served).responses
        events = [known(event, ASIDE) for event in speak.create(model="gpt-5", input="hi", stream=True)]
        with speak.stream(model="gpt-5", input="hi") as stream:
            told = [known(event, ASIDE) for event in stream]
            final = stream.get_final_response()
    assert final.output_text == "Hello, you."
    numbers = [event.sequence_number for event in events]
    assert numbers == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == "Hello, you." and len(deltas) > 1
    assert {event.type for event in told} >= {"response.output_text.delta", "response.completed"}


@check("openai-responses")
def reasoning_goes_back_with_its_calls():
    with serve(TWO_CALLS, {"say": "Both are empty."}) as served:
        speak = client(served).responses
        asked = {"model": "gpt-5", "tools": TOOLS, **STATELESS}
        history = [{"role": "user", "content": "What is in a and b?"}]
        turn = known(speak.create(input=history, **asked), ASIDE)
        kinds = [item.type for item in turn.output]
        assert kinds == ["reasoning", "message", "function_call", "function_call"], kinds
        assert turn.output[0].encrypted_content
        history += turn.output
        history += [
            {"type": "function_call_output", "call_id": item.call_id, "output": "empty"}
            for item in turn.output
            if item.type == "function_call"
        ]
        last = known(speak.create(input=history, **asked), ASIDE)
    assert last.output_text == "Both are empty."
    assert not served.refused()


@check("openai-responses")
def tools_in_a_stream():
    with serve(TWO_CALLS) as served:
        speak = client(served).responses
        with speak.stream(model="gpt-5", input="hi", tools=TOOLS, **STATELESS) as stream:
            events = [known(event, ASIDE) for event in stream]
            final = stream.get_final_response()
    done = [e for e in events if e.type == "response.function_call_arguments.done"]
    assert [event.arguments for event in done] == ['{"path":"a"}', '{"path":"b"}']
    calls = [item for item in final.output if item.type == "function_call"]
    assert len({call.call_id for call in calls}) == 2


@check("openai-responses")
def reasoning_that_was_changed_is_refused():
    with serve(TWO_CALLS, {"say": "never"}) as served:
        speak = client(served).responses
        turn = speak.create(model="gpt-5", input="hi", tools=TOOLS, **STATELESS)
        items = [item.to_dict() for item in turn.output]
        items[0]["encrypted_content"] = "gAAAAABchanged"
        items += [
            {"type": "function_call_output", "call_id": item["call_id"], "output": "x"}
            for item in items
            if item["type"] == "function_call"
        ]
        ask = lambda: speak.create(model="gpt-5", input=items, tools=TOOLS, **STATELESS)
        error = raises(openai.BadRequestError, ask)
    assert error.code == "invalid_encrypted_content", error.body


@check("openai-responses")
def parsed():
    city = '{"name": "Riga", "people": 600000}'
    call = {"call": [{"name": "City", "arguments": city}]}
    with serve({"say": city}, call) as served:
        speak = client(served).responses
        answer = speak.parse(model="gpt-5", input="hi", text_format=City)
        assert answer.output_parsed == City(name="Riga", people=600000)
        tools = [openai.pydantic_function_tool(City)]
        answer = speak.parse(model="gpt-5", input="hi", tools=tools)
    called = [item for item in answer.output if item.type == "function_call"][0]
    assert called.parsed_arguments == City(name="Riga", people=600000)
    assert not served.refused()


@check("openai-responses")
def counted():
    with serve({"say": "a"}) as served:
        speak = client(served).responses
        count = known(speak.input_tokens.count(model="gpt-5", input="How long is this?"))
        answer = speak.create(model="gpt-5", input="How long is this?")
    assert count.input_tokens == answer.usage.input_tokens > 0


@check("openai-responses")
def cached():
    with serve({"say": "a"}, {"say": "b"}) as served:
        speak = client(served).responses
        first = speak.create(model="gpt-5", instructions=LONG, input="hi").usage
        again = speak.create(model="gpt-5", instructions=LONG, input="hi").usage
    assert first.input_tokens_details.cached_tokens == 0
    held = again.input_tokens_details.cached_tokens
    assert 1024 <= held <= again.input_tokens and held % 128 == 0


@check("openai-responses")
def models():
    with serve({"say": "a"}, flags=("--model", "gpt-5")) as served:
        listed = client(served).models.list()
    assert [known(model).id for model in listed] == ["gpt-5"]


@check("openai-responses")
def too_long():
    with serve({"say": "a"}, flags=("--window", "1000")) as served:
        ask = lambda: client(served).responses.create(model="gpt-5", input=LONG)
        error = raises(openai.BadRequestError, ask)
    assert error.code == "context_length_exceeded"
    assert "Your input exceeds the context window of this model" in error.message


@check("openai-responses")
def too_long_in_the_stream():
    with serve({"say": "a"}, flags=("--window", "1000", "--in-stream")) as served:
        # Not strict: the API says a code that the SDK's types do not have.
        lenient = OpenAI(base_url=served.url, api_key="k", max_retries=0)
        stream = lenient.responses.create(model="gpt-5", input=LONG, stream=True)
        last = list(stream)[-1]
    assert last.type == "response.failed", last
    assert last.response.error.code == "context_length_exceeded"
    assert "exceeds the context window" in last.response.error.message


@check("openai-responses")
def refused():
    orphan = [{"type": "function_call_output", "call_id": "call_x", "output": "r"}]
    with serve({"say": "a"}) as served:
        ask = lambda: client(served).responses.create(model="gpt-5", input=orphan)
        error = raises(openai.BadRequestError, ask)
    assert "No tool call found for function call output with call_id call_x" in error.message


@check("openai-responses")
def failures():
    kinds = {
        401: openai.AuthenticationError,
        403: openai.PermissionDeniedError,
        429: openai.RateLimitError,
        500: openai.InternalServerError,
    }
    turns = [{"fail": status, "retry_after": 7} for status in kinds]
    with serve(*turns) as served:
        for status, kind in kinds.items():
            ask = lambda: client(served).responses.create(model="gpt-5", input="hi")
            error = raises(kind, ask)
            assert error.status_code == status and error.message
            assert error.response.headers["retry-after"] == "7"


@check("openai-responses")
def broken_in_the_stream():
    with serve({"say": "It begins well.", "fail_in_stream": 500}) as served:
        stream = client(served).responses.create(model="gpt-5", input="hi", stream=True)
        seen = []
        try:
            for event in stream:
                seen.append(known(event, ASIDE).type)
        except openai.APIError:
            seen.append("raised")
    assert seen[-1] in ("raised", "response.failed", "error"), seen
    assert "response.completed" not in seen


@check("openai-responses")
def cut_short():
    with serve({"say": "Too much", "stop": "max_output_tokens"}) as served:
        answer = client(served).responses.create(model="gpt-5", input="hi", max_output_tokens=16)
    known(answer, ASIDE)
    assert answer.status == "incomplete", answer.status
    assert answer.incomplete_details.reason == "max_output_tokens"
