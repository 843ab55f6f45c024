"""Two replicas on Ray: conversations stay with theirs, outlive it, and lose nothing in an update."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_gemma_jax import ChatGemmaJax, ServerUnreachableError
from langchain_gemma_jax.client.sessions import session_of
from langchain_gemma_jax.wire.message_forms import messages_out
from tests.serving import asked
from tests.waiting import until

ROOT = Path(__file__).parents[2]
CONVERSATIONS, TURNS = 12, 5

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra [ray]")


class Cluster:
    """A cluster in a process of its own, and what it is told."""

    def __init__(self, place: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self._log = (place / "log").open("w+")
        environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": str(place), "TMPDIR": str(place)}
        environment["GEMMA_JAX_COMPILE_CACHE"] = str(place / "programs")  # the second replica has them from the first
        command = [sys.executable, "-m", "tests.scale.ray_cluster", str(port)]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def hears(self, answer: str) -> None:
        for line in self._process.stdout:  # among lines of Ray's own
            if line == f"{answer}\n":
                return
        self._log.seek(0)
        raise AssertionError(self._log.read()[-5000:])

    def tell(self, what: str) -> None:
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()

    def end(self) -> None:
        try:
            self.tell("end")
            self._process.wait()
        finally:
            self._process.kill()
            self._process.communicate()
            self._log.close()

    def replica_of(self, session: str) -> int:
        """The process that answers a session, as it says itself."""
        status, told, _ = asked(self.address, "/sprout/health", headers={"x-session-id": session})
        assert status == 200, told
        return told["process"]


class Conversation:
    """A conversation through the cluster: its turns, and what it had to ask for twice."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.messages: list[BaseMessage] = [HumanMessage(f"Hello number {number}!")]
        self.session = session_of(messages_out(self.messages), "")
        self.model = ChatGemmaJax(server=f"{cluster.address}/sprout", max_tokens=12, seed=number, temperature=0.5)
        self.retried = 0
        self.reused: list[int] = []

    def turn(self, retries: int = 0) -> AIMessage:
        for left in range(retries, -1, -1):
            try:
                answer = self.model.invoke(self.messages)
                break
            except ServerUnreachableError:
                if not left:
                    raise
                self.retried += 1
        assert answer.text
        self.reused.append(answer.usage_metadata["input_token_details"].get("cache_read", 0))
        if len(self.messages) > 2 * TURNS:  # as long as its context allows
            del self.messages[1:]
        else:
            self.messages += [answer, HumanMessage("And then?")]
        return answer


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    # A Unix socket's path has 107 bytes, of which Ray takes most.
    place = Path(f"/tmp/gj-ray-{os.getpid()}")
    place.mkdir(mode=0o700)
    found = Cluster(place)
    try:
        found.hears("ready")
        yield found
    finally:
        found.end()
        subprocess.run(["rm", "-rf", str(place)], check=True)


@needs_ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_conversations_stay_outlive_their_replica_and_lose_nothing(cluster):
    talks = [Conversation(cluster, number) for number in range(CONVERSATIONS)]
    homes = {talk.session: cluster.replica_of(talk.session) for talk in talks}
    assert len(homes) == CONVERSATIONS
    assert len(set(homes.values())) == 2, "both replicas have some"
    with ThreadPoolExecutor(CONVERSATIONS) as pool:
        for turn in range(TURNS):
            list(pool.map(Conversation.turn, talks))
            assert {talk.session: cluster.replica_of(talk.session) for talk in talks} == homes, turn
    # Its replica remembers all that was said before: no turn was answered by another one.
    assert all(later > 0 for talk in talks for later in talk.reused[1:]), [talk.reused for talk in talks]

    killed = homes[talks[0].session]
    with ThreadPoolExecutor(CONVERSATIONS) as pool:
        under_way = [pool.submit(lambda talk: [talk.turn(retries=1) for _ in range(8)], talk) for talk in talks]
        time.sleep(0.5)
        os.kill(killed, signal.SIGKILL)
        for each in under_way:
            assert all(answer.text for answer in each.result())
    assert sum(talk.retried for talk in talks) >= 1, "it was killed in the middle of a call"
    assert all(talk.retried <= 1 for talk in talks)
    others = [talk for talk in talks if homes[talk.session] != killed]
    assert [talk.retried for talk in others] == [0] * len(others)
    assert all(cluster.replica_of(talk.session) == homes[talk.session] for talk in others), "these stay where they were"

    until(lambda: len({cluster.replica_of(talk.session) for talk in talks}) == 2)  # a new one has taken its place
    before = {cluster.replica_of(talk.session) for talk in talks}
    updated, counts = threading.Event(), []

    def go_on(talk: Conversation) -> int:
        count = 0
        while not updated.is_set() or not count:
            talk.turn()  # without a second try
            count += 1
        return count

    with ThreadPoolExecutor(CONVERSATIONS) as pool:
        under_way = [pool.submit(go_on, talk) for talk in talks]
        try:
            cluster.tell("update")
            cluster.hears("updated")
        finally:
            updated.set()
        counts = [each.result() for each in under_way]
    after = {cluster.replica_of(talk.session) for talk in talks}
    assert after.isdisjoint(before)
    print(f"{sum(counts)} calls during the update, none lost; asked twice after the kill: {[t.retried for t in talks]}")  # noqa: T201
