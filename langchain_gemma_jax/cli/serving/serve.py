"""``gemma-jax serve``: this machine's engine, for other processes."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_gemma_jax.cli.serving.group_options import add_group, group_of
from langchain_gemma_jax.cli.terminal.arguments import Verbs, count, given_settings, seconds, verb
from langchain_gemma_jax.cli.terminal.output import say
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.loading.model_names import FORMS

if TYPE_CHECKING:
    from langchain_gemma_jax.scale.hosts.leader import Leader

_SWITCH_SECONDS = 0.001  # instead of Python's 0.005: how long a busy thread may keep the event loop's waiting


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(
        verbs,
        "serve",
        "answer other processes with one engine",
        "gemma-jax serve google/gemma-3-1b-it       # and elsewhere: ChatGemmaJax(server='auto')\n"
        "  gemma-jax serve --host 127.0.0.1 --port 8000  # for clients of OpenAI, Anthropic and Ollama\n"
        "  gemma-jax serve --open                        # and a page to chat on, in the browser",
    )
    parser.take_words("models", "[MODEL ...]", f"{FORMS}; the first one where a client names none")
    parser.add_argument(
        "--model", action="append", default=[], help="the same as the words; may be given more than once"
    )
    parser.add_argument(
        "--socket", metavar="PATH", help="the Unix socket to listen at; by default one in your cache folder"
    )
    parser.add_argument(
        "--host", help="listen at a port of this address instead: 127.0.0.1 for programs on this machine"
    )
    parser.add_argument("--port", type=_port, help="the port; by default 8000, and 0 takes a free one")
    page = parser.add_mutually_exclusive_group()
    page.add_argument(
        "--open", action="store_true", help="open the page in a browser, at port 8000 unless --port names one"
    )
    page.add_argument("--no-page", action="store_true", help="serve no page for browsers, and no /activity")
    parser.add_argument(
        "--api-key-file",
        metavar="FILE",
        help="a file with an API key in each line; each is a tenant of its own, and clients without a key are refused",
    )
    parser.add_argument("--open-metrics", action="store_true", help="serve /metrics without a key")
    any_model = parser.add_mutually_exclusive_group()
    any_model.add_argument(
        "--any-model", action="store_true", default=None, help="let clients name any model, as at a socket by default"
    )
    any_model.add_argument(
        "--only-these",
        dest="any_model",
        action="store_false",
        help="serve only the named models, as at a port by default",
    )
    parser.add_argument(
        "--prefix-store", metavar="SIZE", help="disk space for prompts that survive a restart, such as 32GB"
    )
    parser.add_argument("--prefix-key-file", metavar="FILE", help="a file with the key that encrypts them")
    parser.add_argument(
        "--prefix-folder", metavar="FOLDER", help="a folder for them that replicas on other machines mount too"
    )
    parser.add_argument(
        "--prefix-peers",
        metavar="URL,...",
        help="addresses of the other replicas, with which prefixes are exchanged over HTTP",
    )
    parser.take_settings_of("a server")
    parser.add_argument(
        "--no-warmup",
        action="store_true",
        help="be ready when the weights are loaded, and compile at the first requests",
    )
    parser.add_argument(
        "--drain",
        type=seconds,
        default=30.0,
        metavar="SECONDS",
        help="time for open answers to finish on SIGTERM; by default 30",
    )
    parser.add_argument(
        "--max-connections", type=count, default=512, metavar="COUNT", help="the most open connections; by default 512"
    )
    add_group(parser)
    parser.set_defaults(run=_run)


def models_of(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the models that are named by words or by options. The first one is the default, so one list has to win.

    Raises:
        InputError: words and options both name models, and differ.
    """
    words, options_too = tuple(dict.fromkeys(options.models)), tuple(dict.fromkeys(options.model))
    if words and options_too and words != options_too:
        raise InputError(
            f"Expected the models as words or with --model, found both: {', '.join(words)}; --model "
            f"{' --model '.join(options_too)}. Write one list: gemma-jax serve {' '.join((*words, *options_too))}"
        )
    return words or options_too


def _port(text: str) -> int:
    if not text.isdecimal() or not int(text) < 2**16:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, found {text!r}")
    return int(text)


def _run(options: argparse.Namespace) -> int:
    group = group_of(options)
    if group is None:
        return _serve(options)
    from langchain_gemma_jax.scale.hosts.group import follow, leading

    if group.number > 0:
        say(f"Following {group.leader} as host {group.number} of {group.hosts}")
        follow(group)
    say(f"Waiting for {group.hosts - 1} hosts to come to {group.leader}")
    with leading(group) as leader:
        return _serve(options, leader, group.hosts)


def _serve(options: argparse.Namespace, leader: Leader | None = None, hosts: int = 1) -> int:
    """Serve, with the followers that a leader has."""
    from langchain_gemma_jax import engine
    from langchain_gemma_jax.config import default_model
    from langchain_gemma_jax.models.configuration.embedded import DEFAULT
    from langchain_gemma_jax.models.loading.model_names import check_name
    from langchain_gemma_jax.server.apis.caller import ServedModels
    from langchain_gemma_jax.server.app import GemmaJaxApp
    from langchain_gemma_jax.server.http.api_keys import read_keys
    from langchain_gemma_jax.server.http.limits import ServerLimits
    from langchain_gemma_jax.server.http.listening import is_loopback, listen_at_port, listen_at_socket
    from langchain_gemma_jax.server.readiness import Readiness
    from langchain_gemma_jax.server.running import RunningServer
    from langchain_gemma_jax.wire.addresses import default_socket

    at_port = options.host is not None or options.port is not None or options.open
    if at_port and options.socket is not None:
        found = "--open, and browsers open none" if options.open else "both"
        raise InputError(f"--socket: expected a socket or a port, found {found}.")
    host = options.host or "127.0.0.1"
    keys = None if options.api_key_file is None else read_keys(options.api_key_file)
    if at_port and keys is None and not is_loopback(host):
        raise InputError(
            f"--host {host}: other machines can connect, so expected --api-key-file FILE, with keys that they have to "
            "show. Without keys: --host 127.0.0.1, or a Unix socket."
        )
    models = models_of(options) or (default_model() or DEFAULT,)
    for model in models:
        check_name(model)
    others = not at_port if options.any_model is None else options.any_model
    served = ServedModels(models, others, _for_callers(options))
    limits = ServerLimits(drain_s=options.drain, connections=options.max_connections)
    listening = (
        listen_at_port(host, 8000 if options.port is None else options.port)
        if at_port
        else listen_at_socket(options.socket or default_socket())
    )
    try:
        _configure(options, leader)
        readiness = Readiness(
            models,
            warmup=not options.no_warmup,
            max_context=options.max_context,
            how=served.how,
            on_failure=lambda error: server.fail(error),  # noqa: PLW0108  made below
        )
        app = GemmaJaxApp(served, keys, limits, readiness, open_metrics=options.open_metrics, page=not options.no_page)
        server = RunningServer(app, listening, limits, hosts)
        if leader is not None:
            leader.when_lost(lambda error: server.fail(error, for_all=True))
        say(f"Serving {', '.join(models)} at {listening.shown}")
        if not at_port:
            say(f"  ChatGemmaJax(server={('auto' if options.socket is None else listening.shown)!r})")
        elif not options.no_page:
            say(f"  In a browser: {listening.page}")
        if options.open:
            # The browser waits for the server, which listens already; and a browser in a terminal keeps its caller.
            threading.Thread(target=webbrowser.open, args=(listening.page,), daemon=True).start()
        sys.setswitchinterval(_SWITCH_SECONDS)
        server.run()
    finally:
        listening.close()
    if leader is None or leader.lost is None:  # else a thread of the engine may never end
        engine().close(1)  # a dispatch that takes longer is left behind
    if server.failure is not None:
        raise server.failure
    return 0


def _engine_settings() -> set[str]:
    """Return the names of the settings that are the engine's, the same for all clients."""
    from langchain_gemma_jax.engine.base.settings import Settings

    return {each.name for each in dataclasses.fields(Settings)}


def _for_callers(options: argparse.Namespace) -> dict[str, object]:
    """Return the settings of the command that hold for callers who say nothing else.

    Raises:
        InputError: they cannot be together.
    """
    from langchain_gemma_jax.chat.asking.options import settings_of

    return settings_of({n: value for n, value in given_settings(options).items() if n not in _engine_settings()})


def _configure(options: argparse.Namespace, leader: Leader | None) -> None:
    """Configure the engine of this process, before it is made."""
    from langchain_gemma_jax import configure
    from langchain_gemma_jax.engine.api.process import lead

    if leader is not None:
        lead(leader)
    configure(**{name: value for name, value in given_settings(options).items() if name in _engine_settings()})
    named = ("prefix_key_file", "prefix_folder")
    places = {name: Path(path).expanduser().absolute() for name in named if (path := getattr(options, name))}
    if options.prefix_store is not None or places or options.prefix_peers:
        peers = [url.strip() for url in options.prefix_peers.split(",")] if options.prefix_peers else None
        configure(prefix_store=options.prefix_store, prefix_peers=peers, **places)
