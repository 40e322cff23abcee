"""Reads streams with one client of chat completions, unmodified, and prints as JSON what it told of each.

    python readStreams.py openai|litellm|litellm_with_usage|langchain|langchain_with_usage BASE_URL KEY MODEL...
"""

import json
import sys
from functools import partial

MESSAGES = [{"role": "user", "content": "What is up?"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def called(calls):
    return [{"name": name, "args": json.loads(args)} for name, args in calls]


class Chunks:
    """Puts chunks in the form of the openai package together."""

    def __init__(self, heard):
        self.heard = heard
        self.calls = {}

    def take(self, chunk):
        heard = self.heard
        heard["id"] = chunk.id
        usage = getattr(chunk, "usage", None)
        if usage is not None:
            heard["promptTokens"] = usage.prompt_tokens
            heard["completionTokens"] = usage.completion_tokens
            heard["cost"] = getattr(usage, "cost", None)
        for choice in chunk.choices:
            heard["text"] += choice.delta.content or ""
            heard["finishReason"] = choice.finish_reason or heard.get("finishReason")
            for call in choice.delta.tool_calls or []:
                name, args = self.calls.get(call.index, ("", ""))
                said = call.function
                self.calls[call.index] = (name + (said.name or ""), args + (said.arguments or ""))
        heard["calls"] = list(self.calls.values())


def read_openai(base_url, key, model, heard):
    from openai import OpenAI

    client = OpenAI(api_key=key, base_url=base_url, max_retries=0)
    chunks = Chunks(heard)
    for chunk in client.chat.completions.create(model=model, messages=MESSAGES, tools=[WEATHER], stream=True):
        chunks.take(chunk)
    # Its own helper puts the chunks together.
    with client.chat.completions.stream(model=model, messages=MESSAGES, tools=[WEATHER]) as stream:
        whole = stream.get_final_completion()
    heard["id"] = whole.id
    heard["finishReason"] = whole.choices[0].finish_reason


def read_litellm(base_url, key, model, heard, **options):
    import litellm

    asked = {"api_base": base_url, "api_key": key, "messages": MESSAGES, "tools": [WEATHER], "num_retries": 0}
    chunks = Chunks(heard)
    kept = []
    for chunk in litellm.completion(model=f"openrouter/{model}", stream=True, **asked, **options):
        kept.append(chunk)
        chunks.take(chunk)
    whole = litellm.stream_chunk_builder(kept, messages=MESSAGES)
    assert (whole.choices[0].message.content or "") == heard["text"], whole


def read_langchain(base_url, key, model, heard, **options):
    from langchain_openai import ChatOpenAI

    asked = ChatOpenAI(model=model, base_url=base_url, api_key=key, max_retries=0, **options)
    whole = None
    for chunk in asked.bind_tools([WEATHER]).stream("What is up?"):
        heard["text"] += chunk.content
        whole = chunk if whole is None else whole + chunk
    heard["finishReason"] = whole.response_metadata.get("finish_reason")
    usage = whole.usage_metadata or {}
    heard["promptTokens"] = usage.get("input_tokens")
    heard["completionTokens"] = usage.get("output_tokens")
    heard["calls"] = [(call["name"], json.dumps(call["args"])) for call in whole.tool_calls]


READERS = {
    "openai": read_openai,
    "litellm": read_litellm,
    "litellm_with_usage": partial(read_litellm, stream_options={"include_usage": True}),
    "langchain": read_langchain,
    "langchain_with_usage": partial(read_langchain, stream_usage=True),
}


def main(client, base_url, key, *models):
    told = []
    for model in models:
        heard = {"text": "", "calls": []}
        try:
            READERS[client](base_url, key, model, heard)
        except Exception as error:  # the error that its users would see
            heard["error"] = f"{type(error).__name__}: {error}"
        heard["calls"] = called(heard["calls"]) if "error" not in heard else []
        told.append(heard)
    print(json.dumps(told))


main(*sys.argv[1:])
