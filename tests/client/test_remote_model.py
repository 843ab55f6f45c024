"""A chat model whose engine is elsewhere: nothing is imported that is not needed, and every way to lose it is typed."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import dedent

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda

from langchain_gemma_jax import (
    ApiKeyError,
    BaseModelWarning,
    BusyError,
    ChatGemmaJax,
    DeadlineError,
    GuardError,
    GuardWarning,
    HostLostError,
    ServerError,
    ServerUnreachableError,
)
from langchain_gemma_jax.chat.calling.starting import clock_of
from langchain_gemma_jax.client import exchange
from langchain_gemma_jax.client.remote_model import answerer_at
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.host.warning_sink import warn, warning_sink
from langchain_gemma_jax.server.http.api_keys import ApiKeys
from langchain_gemma_jax.wire.addresses import address_of
from tests.chat.scripted import ScriptedEngine
from tests.serving import serving

ROOT = Path(__file__).parents[2]
KEY = "k" * 20
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
LINE = b'{"events":[["text","Hel"]]}\n'
CHUNK = b"%x\r\n%s\r\n" % (len(LINE), LINE)


@contextmanager
def answering(tmp_path: Path, *sends: bytes, then: Callable[[socket.socket], None] = socket.socket.close) -> Iterator:
    """A server that sends this, whatever it is asked, and then does that."""
    place = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    line, _ = listening.accept()
                except OSError:
                    return
                with suppress(OSError):  # whoever asked may be gone
                    line.recv(65536)
                    for each in sends:
                        line.sendall(each)
                then(line)

        threading.Thread(target=serve, daemon=True).start()
        yield f"unix:{place}"
        listening.shutdown(socket.SHUT_RDWR)


async def every_way(model: ChatGemmaJax) -> list[BaseException | None]:
    """Return the errors of a call, made in each way."""
    found: list[BaseException | None] = []

    async def atry(call) -> None:
        try:
            await call
        except Exception as error:  # noqa: BLE001
            found.append(error)
        else:
            found.append(None)

    async def streamed() -> None:
        async for _ in model.astream("Hi"):
            pass

    for call in (lambda: model.invoke("Hi"), lambda: list(model.stream("Hi")), lambda: model.get_num_tokens("Hi")):
        try:
            call()
        except Exception as error:  # noqa: BLE001
            found.append(error)
        else:
            found.append(None)
    await atry(model.ainvoke("Hi"))
    await atry(streamed())
    return found


async def test_nobody_answers(tmp_path):
    for server in (f"unix:{tmp_path}/none.sock", "auto", "http://127.0.0.1:9"):
        for error in await every_way(ChatGemmaJax(server=server)):
            assert type(error) is ServerUnreachableError
            assert "Start one: gemma-jax serve" in str(error)
            assert error.is_retryable


@pytest.mark.parametrize(
    "sends",
    [
        (),
        (b"HTTP/1.1 2",),
        (HEAD,),
        (HEAD + CHUNK,),
        (HEAD + CHUNK[:9],),
        (HEAD + CHUNK + b"0\r\n\r\n",),  # whole, but it does not say that it is
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}\n",),
    ],
)
async def test_an_answer_that_breaks_off_is_one_typed_error(tmp_path, sends):
    with answering(tmp_path, *sends) as server:
        for error in await every_way(ChatGemmaJax(server=server)):
            assert type(error) is ServerUnreachableError
            assert "went away in the middle" in str(error)


async def test_whoever_has_heard_from_a_group_of_hosts_hears_that_its_leader_is_lost(tmp_path):
    of_group = HEAD.replace(b"\r\n\r\n", b"\r\nX-Gemma-Jax-Hosts: 4\r\n\r\n")
    for number, sends in enumerate(((of_group,), (of_group + CHUNK,))):
        folder = tmp_path / str(number)
        folder.mkdir()
        with answering(folder, *sends) as server:
            for error in await every_way(ChatGemmaJax(server=server)):
                assert type(error) is HostLostError
                assert "leads the group of 4" in str(error)
                assert error.is_retryable
    for path in folder.iterdir():
        path.unlink()
    with answering(folder) as server:  # it has answered before, and this time it says nothing at all
        assert {type(error) for error in await every_way(ChatGemmaJax(server=server))} == {HostLostError}


async def test_what_is_no_server_of_ours_is_said(tmp_path):
    for number, sent in enumerate((b"SSH-2.0\r\n", b"HTTP/1.1 404 Nope\r\ncontent-length: 2\r\n\r\nno")):
        folder = tmp_path / str(number)
        folder.mkdir()
        with answering(folder, sent) as server:
            for error in await every_way(ChatGemmaJax(server=server)):
                assert type(error) is ServerError


async def test_what_a_router_in_front_says_is_said_in_our_words(tmp_path):
    kinds = ((500, ServerUnreachableError), (503, ServerUnreachableError), (429, BusyError))
    for status, kind in kinds:
        folder = tmp_path / str(status)
        folder.mkdir()
        sent = b"HTTP/1.1 %d Nope\r\ncontent-length: 12\r\n\r\nno replicas." % status
        with answering(folder, sent) as server:
            for error in await every_way(ChatGemmaJax(server=server)):
                assert (type(error), error.is_retryable) == (kind, True)
                assert f"status {status}" in str(error)


async def test_a_server_that_says_nothing_is_waited_for_until_the_deadline(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "GRACE_SECONDS", 0.0)
    kept: list[socket.socket] = []
    with answering(tmp_path, HEAD + CHUNK, then=kept.append) as server:
        for error in await every_way(ChatGemmaJax(server=server, timeout=0.1)):
            assert type(error) is DeadlineError
    for line in kept:
        line.close()


async def test_the_servers_own_words_of_a_deadline_come_through(tmp_path):
    told = b'{"error":{"name":"DeadlineError","arguments":["The time was up after 3 s."],"message":""}}\n'
    with answering(tmp_path, HEAD + CHUNK + b"%x\r\n%s\r\n" % (len(told), told)) as server:
        for error in await every_way(ChatGemmaJax(server=server, timeout=60)):
            assert (type(error), str(error)) == (DeadlineError, "The time was up after 3 s.")


def test_another_users_socket_is_not_told_anything(tmp_path, monkeypatch):
    if not sys.platform.startswith("linux"):
        pytest.skip("who listens is known on Linux alone")
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    monkeypatch.setattr(exchange.struct, "unpack", lambda *_: (1, 4321, 1))
    with answering(tmp_path, HEAD) as server, pytest.raises(ServerError, match="run by user 4321"):
        ChatGemmaJax(server=server).invoke("Hi")


def test_keys(tmp_path, monkeypatch):
    engine = ScriptedEngine(["Hello<turn|>"])
    monkeypatch.setattr(process, "engine", lambda: engine)
    with serving(None, keys=ApiKeys({KEY: "me"})) as server:
        at = server.listening.shown
        assert ChatGemmaJax(server=at, api_key=KEY, scope="a").invoke("Hi").text == "Hello"
        for key in (None, "wrong"):
            with pytest.raises(ApiKeyError):
                ChatGemmaJax(server=at, api_key=key).invoke("Hi")
        assert engine.submitted[0]["scope"] == "key:me/a"
        assert KEY not in repr(answerer_at(at, ChatGemmaJax(server=at, api_key=KEY).api_key))


def test_the_server_is_part_of_what_a_cache_goes_by():
    here, there = ChatGemmaJax(model="x"), ChatGemmaJax(model="x", server="auto")
    assert here._identifying_params != there._identifying_params


@pytest.mark.long
def test_a_process_that_asks_imports_no_jax_and_little_else(tmp_path, monkeypatch):
    engine = ScriptedEngine(["Hello<turn|>"] * 2)
    monkeypatch.setattr(process, "engine", lambda: engine)
    script = """
        import sys
        from langchain_gemma_jax import ChatGemmaJax
        model = ChatGemmaJax(server=sys.argv[1])
        print(model.invoke("Hi").text, "".join(chunk.text for chunk in model.stream("Hi")))
        heavy = {"jax", "jaxlib", "httpx", "uvicorn", "h11", "tokenizers", "huggingface_hub"}
        print(sorted(heavy & set(sys.modules)))
    """
    with serving(tmp_path) as server:
        done = subprocess.run(
            [sys.executable, "-c", dedent(script), server.listening.shown],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.stdout == "Hello Hello\n[]\n", done.stderr


def test_a_folder_is_found_from_wherever_the_server_runs(tmp_path, monkeypatch):
    engine = ScriptedEngine(["Hello<turn|>"] * 2)
    monkeypatch.setattr(process, "engine", lambda: engine)
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path) as server:
        ChatGemmaJax(server=server.listening.shown, model="./model").invoke([HumanMessage("Hi")])
        assert engine.loaded[0] == str(tmp_path / "model")
        ChatGemmaJax(server=server.listening.shown).invoke("Hi")
        assert engine.loaded[0] == "sprout-s"


async def test_models_are_named_as_their_caller_names_them(tmp_path, monkeypatch):
    engine = ScriptedEngine(["Hello<turn|>"] * 9)
    monkeypatch.setattr(process, "engine", lambda: engine)
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    for names, named, shown in (
        (("sprout-s",), "./model", "./model"),
        (("./model",), "../" + tmp_path.name + "/model", "./model"),  # which is what it is served as
        (("./model",), None, "./model"),
    ):
        folder = tmp_path / f"{len(engine.submitted)}"
        folder.mkdir()
        with serving(folder, models=names, others="sprout-s" in names) as server:
            model = ChatGemmaJax(server=server.listening.shown, model=named)
            whole, waited = model.invoke("Hi"), await model.ainvoke("Hi")
            *_, last = model.stream("Hi")
            for answer in (whole, waited, last):
                assert answer.response_metadata["model_name"] == shown


def test_the_head_says_whose_conversation_it_is_and_how_long_there_is():
    def asked(model: ChatGemmaJax, **given: object) -> dict[str, str]:
        options = model._options(None, given)
        request = answerer_at(model.server, model.api_key)._asked("answer", [], options, clock_of(model, options))
        first, *fields = request.request.decode("latin-1").partition("\r\n\r\n")[0].split("\r\n")
        assert first == "POST /gemma-jax/2/answer HTTP/1.1"
        return dict(field.split(": ", 1) for field in fields)

    model = ChatGemmaJax(server="auto", session="chat 7")
    assert asked(model)["x-session-id"] == "chat 7"
    assert asked(model, session="other")["x-session-id"] == "other"
    assert 200 < float(asked(model, timeout=300)["x-deadline-s"]) <= 300
    plain = ChatGemmaJax(server="auto")
    assert not {"x-session-id", "x-deadline-s"} & asked(plain).keys()
    elsewhere = ChatGemmaJax(server="http://127.0.0.1:8000")
    in_graph = RunnableLambda(lambda _: asked(elsewhere)["x-session-id"])
    one, same, other = (in_graph.invoke(0, {"configurable": {"thread_id": name}}) for name in ("a", "a", "b"))
    assert one == same != other
    assert asked(elsewhere, session="mine")["x-session-id"] == "mine"
    names = [asked(plain, session=name)["x-session-id"] for name in ("a\r\nb: c", "\ud800", "ä", "x" * 300, "x" * 301)]
    assert len(set(names)) == len(names)
    assert all(name.isascii() and name.isprintable() and 0 < len(name) <= 256 for name in names)


async def test_what_the_engine_would_warn_of_in_this_process_reaches_it(tmp_path, monkeypatch):
    kinds = [BaseModelWarning, GuardWarning]

    def warns() -> None:
        for kind in kinds:
            warn(kind(f"a {kind.__name__}"), warning_sink.get())

    engine = ScriptedEngine(["Hello<turn|>"] * 9, before=warns)
    monkeypatch.setattr(process, "engine", lambda: engine)
    with serving(tmp_path) as server:
        model = ChatGemmaJax(server=server.listening.shown)
        with pytest.warns() as found:
            list(model.stream("Hi"))
        assert {(each.category, str(each.message)) for each in found} == {(k, f"a {k.__name__}") for k in kinds}
        assert {each.filename for each in found} == {__file__}
        with pytest.warns(GuardWarning) as found:  # of a model it is said once
            await model.ainvoke("Hi")
        assert len(found) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(GuardError, match="a GuardWarning"):
                model.invoke("Hi")


def test_neither_the_words_nor_the_key_are_shown_with_a_request():
    asked = exchange.WireRequest(address_of("http://127.0.0.1:8000"), "answer", b"somebody's words", "a key")
    assert "words" not in repr(asked)
    assert "a key" not in repr(asked)
    assert "words" in asked.request.decode()
    assert "a key" in asked.request.decode()
