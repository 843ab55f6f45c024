"""The traffic of a soak: what tenants ask of two models, in threads and in an event loop, in every way there is."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import string
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from benchmarks.soak.soak_watch import Findings
from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.errors import DeadlineError, ForkedError, SchemaError

MODELS = ("sprout-s", "sprout-m")
QUESTIONS = (
    "What is the capital of France?",
    "Write the number 4711 in words.",
    "Who are you?",
    "Say hello to Katharina.",
)
PATIENCE = 120.0  # seconds after which a call takes whatever it waits for as hanging
FORK_SECONDS = 20.0


@dataclass(frozen=True)
class Tenant:
    """A tenant who asks. The secret stands in all that the tenant sends: prompts, names, schemas, results, scope."""

    secret: str

    @property
    def scope(self) -> str:
        return f"tenant-{self.secret}"

    def asks(self, question: str) -> list[BaseMessage]:
        return [
            SystemMessage(f"You work for {self.secret}."),
            HumanMessage(f"{question} It is for {self.secret}.pdf."),
        ]

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "title": f"Order_{self.secret}",
            "description": f"An order of {self.secret}.",
            "type": "object",
            "properties": {
                f"key_{self.secret}": {"type": "string", "enum": [f"{self.secret}-a", f"{self.secret}-b"]},
                "count": {"type": "integer", "minimum": 1, "maximum": 99},
                "name": {"type": "string", "maxLength": 12},
            },
            "required": [f"key_{self.secret}", "count", "name"],
            "additionalProperties": False,
        }

    @property
    def tool(self) -> dict[str, Any]:
        return {
            "name": f"send_{self.secret}",
            "description": f"Send something to somebody of {self.secret}.",
            "parameters": {
                "type": "object",
                "properties": {"to": {"type": "string"}, f"key_{self.secret}": {"type": "integer"}},
                "required": ["to"],
            },
        }


def new_tenant() -> Tenant:
    """One with a secret that is found nowhere else."""
    return Tenant("canary" + os.urandom(6).hex())


def chat(model: str, scope: str, **settings: Any) -> ChatGemmaJax:
    """Greedy, short, and not for ever, unless said otherwise."""
    return ChatGemmaJax(
        **{"model": model, "scope": scope, "temperature": 0, "max_tokens": 24, "timeout": PATIENCE, **settings}
    )


# What is asked greedily, so that it can be compared.


def questions(tenant: Tenant, model: str) -> Iterator[tuple[str, Callable[[str], str]]]:
    """For each greedy question a name, and what asks it in a scope."""
    for number, question in enumerate(QUESTIONS):

        def answer(scope: str, question: str = question) -> str:
            return chat(model, scope).invoke(tenant.asks(question)).text

        yield f"{model} question {number} {tenant.secret}", answer

    def structured(scope: str) -> str:
        asked = chat(model, scope, max_tokens=80).with_structured_output(tenant.schema, include_raw=True)
        return raw_text(asked.invoke(tenant.asks("Order 7 pears for Anna.")))

    def called(scope: str) -> str:
        llm = chat(model, scope, max_tokens=80).bind_tools([tenant.tool], tool_choice="any")
        first = llm.invoke(said := tenant.asks("Send 12 to Bert."))
        told: list[BaseMessage] = [*said, first]
        told += [ToolMessage(f"sent by {tenant.secret}", tool_call_id=call["id"]) for call in first.tool_calls[:1]]
        last = chat(model, scope).bind_tools([tenant.tool]).invoke(told) if first.tool_calls else first
        return json.dumps([[call["args"] for call in each.tool_calls] + [each.text] for each in (first, last)])

    yield f"{model} object {tenant.secret}", structured
    yield f"{model} call {tenant.secret}", called


def raw_text(found: Mapping[str, Any]) -> str:
    """Return what a model wrote, where an object was asked for."""
    raw = found["raw"]
    return raw.text if isinstance(raw, AIMessage) else ""


class Traffic:
    """One request after the other, of kinds that chance picks."""

    def __init__(self, tenants: list[Tenant], cold: Mapping[str, str], findings: Findings) -> None:
        self.tenants, self.cold, self.findings = tenants, cold, findings
        self.stop = threading.Event()
        self._asked = {tenant.scope: [*self._all_of(tenant)] for tenant in tenants}

    def kinds(self) -> list[Callable[[random.Random, Tenant, str], None]]:
        """Return the kinds of requests that threads make."""
        return [
            self.greedy,
            self.greedy,
            self.stream,
            self.leave,
            self.drawn,
            self.new_schema,
            self.hostile,
            self.late,
            self.batch,
        ]

    def live(self, seed: int) -> None:
        """A thread's work until it is told to stop."""
        rng = random.Random(seed)
        while not self.stop.is_set():
            self.one(rng.choice(self.kinds()), rng)

    def one(self, kind: Callable[[random.Random, Tenant, str], None], rng: random.Random) -> None:
        """One request, or a few that belong together."""
        tenant, model = rng.choice(self.tenants), rng.choice(MODELS)
        with self._counted(kind.__name__, tenant):
            kind(rng, tenant, model)

    @contextmanager
    def _counted(self, kind: str, tenant: Tenant) -> Iterator[None]:
        expected = _EXPECTED.get(kind, ())
        try:
            yield
        except BaseException as error:  # noqa: BLE001  whatever it is, it is what is looked for
            self.findings.failed(kind, tenant.scope, error, expected)
        else:
            self.findings.done()

    def greedy(self, rng: random.Random, tenant: Tenant, model: str) -> None:
        """A question whose answer is known."""
        key, ask = rng.choice([each for each in self._asked[tenant.scope] if each[0].startswith(model)])
        self._same(key, ask(tenant.scope), tenant)

    def stream(self, rng: random.Random, tenant: Tenant, model: str) -> None:
        """The same, in pieces."""
        number = rng.randrange(len(QUESTIONS))
        pieces = chat(model, tenant.scope).stream(tenant.asks(QUESTIONS[number]))
        self._same(f"{model} question {number} {tenant.secret}", "".join(piece.text for piece in pieces), tenant)

    def leave(self, rng: random.Random, tenant: Tenant, model: str) -> None:
        """Stop listening in the middle of an answer."""
        pieces = chat(model, tenant.scope, max_tokens=200, temperature=1).stream(tenant.asks(_words(rng, 20)))
        for _ in range(rng.randrange(1, 5)):
            next(pieces, None)
        getattr(pieces, "close", lambda: None)()

    def drawn(self, rng: random.Random, tenant: Tenant, model: str) -> None:
        """A conversation that nobody had before."""
        llm = chat(model, tenant.scope, temperature=1, max_tokens=rng.randrange(1, 60))
        told: list[BaseMessage] = tenant.asks(_words(rng, rng.randrange(1, 60)))
        for _ in range(rng.randrange(1, 4)):
            answer = llm.invoke(told)
            self.findings.given("an answer", tenant.scope, str(answer))
            told += [answer, HumanMessage(_words(rng, 5))]

    def new_schema(self, rng: random.Random, tenant: Tenant, model: str) -> None:
        """A schema that nobody had before, cut off perhaps."""
        name = _name(rng)
        schema = tenant.schema | {"title": f"Order_{name}"}
        schema["properties"] |= {name: {"type": "string", "pattern": f"^{name}[0-9]{{1,4}}$"}}
        llm = chat(model, tenant.scope, temperature=1, max_tokens=rng.choice([8, 60, 120]))
        found = llm.with_structured_output(schema, include_raw=True).invoke(tenant.asks(_words(rng, 5)))
        self.findings.given("an object", tenant.scope, str(found))

    def hostile(self, rng: random.Random, tenant: Tenant, model: str) -> None:
        """A schema that cannot be promised."""
        pattern = rng.choice([f"({tenant.secret}", f"^(?={tenant.secret})a$", f"{tenant.secret}\\1"])
        schema = tenant.schema | {"properties": {tenant.secret: {"type": "string", "pattern": pattern}}}
        chat(model, tenant.scope).with_structured_output(schema | {"required": [tenant.secret]}).invoke("Go.")

    def late(self, rng: random.Random, tenant: Tenant, model: str) -> None:
        """Ask with a deadline that is too short."""
        limit = rng.choice([0.001, 0.05, 0.3])
        chat(model, tenant.scope, timeout=limit, max_tokens=200, temperature=1).invoke(tenant.asks(_words(rng, 30)))

    def batch(self, rng: random.Random, tenant: Tenant, model: str) -> None:
        """Several at once."""
        answers = chat(model, tenant.scope, temperature=1).batch([tenant.asks(_words(rng, 8)) for _ in range(3)])
        self.findings.given("a batch", tenant.scope, str(answers))

    # In an event loop.

    def live_in_loop(self, seed: int, tasks: int = 2) -> None:
        """The work of a thread with an event loop, until it is told to stop."""
        asyncio.run(self._tasks(seed, tasks))

    async def _tasks(self, seed: int, tasks: int) -> None:
        await asyncio.gather(*(self._task(seed + number) for number in range(tasks)))

    async def _task(self, seed: int) -> None:
        rng = random.Random(seed)
        while not self.stop.is_set():
            kind = rng.choice([self.alone, self.astream, self.cancelled])
            tenant, model = rng.choice(self.tenants), rng.choice(MODELS)
            with self._counted(kind.__name__, tenant):
                await kind(rng, tenant, model)

    async def alone(self, rng: random.Random, tenant: Tenant, model: str) -> None:
        """A question whose answer is known."""
        number = rng.randrange(len(QUESTIONS))
        answer = await chat(model, tenant.scope).ainvoke(tenant.asks(QUESTIONS[number]))
        self._same(f"{model} question {number} {tenant.secret}", answer.text, tenant)

    async def astream(self, rng: random.Random, tenant: Tenant, model: str) -> None:
        """The same, in pieces."""
        number = rng.randrange(len(QUESTIONS))
        pieces = [piece.text async for piece in chat(model, tenant.scope).astream(tenant.asks(QUESTIONS[number]))]
        self._same(f"{model} question {number} {tenant.secret}", "".join(pieces), tenant)

    async def cancelled(self, rng: random.Random, tenant: Tenant, model: str) -> None:
        """A task that is cancelled."""
        asked: Awaitable[object] = chat(model, tenant.scope, temperature=1, max_tokens=200).ainvoke(
            tenant.asks(_words(rng, 20))
        )
        async with asyncio.timeout(rng.random()):
            await asked

    def _all_of(self, tenant: Tenant) -> Iterator[tuple[str, Callable[[str], str]]]:
        for model in MODELS:
            yield from questions(tenant, model)

    def _same(self, key: str, answer: str, tenant: Tenant) -> None:
        self.findings.compare(key, answer, self.cold[key])
        self.findings.given("an answer", tenant.scope, answer)


# Where an answer may be cut off, or a time be up, that is no mistake.
_EXPECTED: Mapping[str, tuple[type[BaseException], ...]] = {
    "hostile": (SchemaError,),
    "late": (DeadlineError,),
    "cancelled": (TimeoutError,),
    "new_schema": (OutputParserException,),
}


def fork(findings: Findings, seconds: float = FORK_SECONDS) -> None:
    """Have a forked child ask something: it is told that it cannot, and ends."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            chat(MODELS[0], "").invoke("Hello")
        except ForkedError:
            code = 0
        except BaseException:  # noqa: BLE001  it must end in any case
            code = 2
        finally:
            os._exit(code)
    until = time.monotonic() + seconds
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
        time.sleep(0.05)
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        problem = f"it did not end within {seconds:g} s"
    elif (code := os.waitstatus_to_exitcode(ended[1])) == 0:
        findings.done()
        return
    else:
        problem = {1: "it was answered", 2: "it got another error than ForkedError"}.get(code, f"it ended by {-code}")
    with findings.lock:
        findings.requests += 1
        findings.errors["fork"] += 1
        findings.unexpected.append(f"a forked child: {problem}")


def _words(rng: random.Random, count: int) -> str:
    return " ".join("".join(rng.choices(string.ascii_lowercase, k=rng.randrange(2, 8))) for _ in range(count))


def _name(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=12))
