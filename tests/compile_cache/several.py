"""Stories of several processes, told by one that has no threads and no JAX, so that it can fork as it likes.

Run as ``python -m tests.compile_cache.several <story> <folder> <arguments>``; ``tell`` does. What a story returns
is printed as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from langchain_gemma_jax.compile_cache.store import Store
from tests.waiting import until

REPOSITORY = Path(__file__).parents[2]


def tell(story: Callable[..., object], folder: Path, *arguments: object) -> dict[str, object]:
    """Run a story in a process of its own. Any warning there is an error, and goes to the log, which is checked."""
    done = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-W", "ignore:This process:DeprecationWarning"),
            *("-m", "tests.compile_cache.several", story.__name__, str(folder), json.dumps(arguments)),
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def child(work: Callable[[], object]) -> int:
    """A process that does it. Its exit status is 0 if that did not raise."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001  a child must never go on as its parent
        traceback.print_exc()
    finally:
        os._exit(status)


def status(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed_once(pid: int, reached: int) -> None:
    """Kill a child that has reached its point: the other end of ``reached`` is written to, or closed."""
    os.read(reached, 1)
    os.kill(pid, signal.SIGKILL)
    assert status(pid) == -signal.SIGKILL


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


# The stories


def made_once(folder: Path, processes: int, rounds: int) -> dict[str, object]:
    """All want the same program at the same time, and it takes a while to compile."""
    log = os.open(folder.parent / "made", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ready, start = os.pipe()

    def work() -> None:
        store = Store(folder)
        os.close(start)
        os.read(ready, 1)  # its end comes for all of them at once
        for program in range(rounds):
            with store.claim(str(program), patience=3600) as alone:
                entry = store.get(str(program))
                if entry is None:
                    os.write(log, b"%d\n" % program)
                    time.sleep(0.05)
                    assert store.put(str(program), b"%d" % program, label="", seconds=0.05)
                    entry = store.get(str(program))
            assert alone
            assert entry.payload == b"%d" % program

    begun = [child(work) for _ in range(processes)]
    os.close(start)
    statuses = [status(pid) for pid in begun]
    made = (folder.parent / "made").read_text().split()
    return {"statuses": statuses, "made": sorted(made), "files": names(folder)}


def killed_holder(folder: Path) -> dict[str, object]:
    """The one who compiles is killed while others wait."""
    reached, say = os.pipe()

    def hold() -> None:
        with Store(folder).claim("a", patience=0):
            os.write(say, b"x")
            signal.pause()

    def wait() -> None:
        with Store(folder).claim("a", patience=3600) as alone:
            assert alone

    holder = child(hold)
    os.read(reached, 1)
    waiting = [child(wait) for _ in range(3)]
    time.sleep(0.1)
    os.kill(holder, signal.SIGKILL)
    statuses = [status(pid) for pid in waiting]
    return {"statuses": statuses, "files": names(folder)}


def stopped_holder(folder: Path, patience: float) -> dict[str, object]:
    """The one who compiles is stopped. The others lose their patience; when it goes on, it breaks nothing."""
    reached, say = os.pipe()

    def hold() -> None:
        store = Store(folder)
        with store.claim("a", patience=0):
            os.write(say, b"x")
            os.kill(os.getpid(), signal.SIGSTOP)
            assert store.put("a", b"late", label="", seconds=1)

    def wait() -> None:
        store = Store(folder)
        with store.claim("a", patience=patience) as alone:
            assert not alone
            assert store.put("a", b"code", label="", seconds=1)
        assert store.get("a").payload == b"code"

    holder = child(hold)
    os.read(reached, 1)
    statuses = [status(pid) for pid in [child(wait) for _ in range(3)]]
    os.kill(holder, signal.SIGCONT)
    statuses.append(status(holder))
    return {"statuses": statuses, "last": Store(folder).get("a").payload.decode(), "files": names(folder)}


def inherited_claim(folder: Path) -> dict[str, object]:
    """A holder forks, and is killed. What it was forked into lives on, and must not keep the claim."""
    reached, say = os.pipe()
    orphan_lives, end_orphan = os.pipe()

    def hold() -> None:
        with Store(folder).claim("a", patience=0):
            if not os.fork():
                os.close(end_orphan)
                os.read(orphan_lives, 1)
                os._exit(0)
            os.write(say, b"x")
            signal.pause()

    killed_once(child(hold), reached)
    with Store(folder).claim("a", patience=3600) as alone:
        return {"alone": alone}


def forked_in_claim(folder: Path) -> dict[str, object]:
    """A child that leaves the block of its parent's claim does not give it back."""
    store = Store(folder)
    with store.claim("a", patience=0):
        pid = os.fork()
        if pid:
            child_status = status(pid)
            with Store(folder).claim("a", patience=0) as other:
                pass
    if not pid:
        os._exit(0 if store.get("b") is None and store.put("b", b"code", label="", seconds=1) else 1)
    with store.claim("a", patience=0) as again:
        pass
    return {"child": child_status, "other": other, "again": again, "hits": int(store.get("b") is not None)}


def forked_amid_threads(folder: Path, times: int) -> dict[str, object]:
    """A process forks while its threads read, write and claim. Each child goes on with the same store."""
    store = Store(folder)
    stop = threading.Event()

    def busy(which: int) -> None:
        step = 0
        while not stop.is_set():
            step += 1
            with store.claim(f"{which} {step % 3}", patience=1):
                store.put(f"{which} {step % 3}", b"x" * 1000, label="", seconds=1)
            store.get(f"{which} {step % 3}")

    def work() -> None:
        signal.alarm(120)  # a deadlock ends it
        for which in range(2):
            with store.claim(f"{which} 0", patience=60) as alone:
                assert alone
            entry = store.get(f"{which} 0")
            assert entry is None or entry.payload == b"x" * 1000
        assert store.put("mine", b"y", label="", seconds=1)
        assert store.get("mine").payload == b"y"

    threads = [threading.Thread(target=busy, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    statuses = [status(child(work)) for _ in range(times)]
    stop.set()
    for thread in threads:
        thread.join()
    return {"statuses": statuses, "rejected": store.counts.rejected}


def forked_while_locked(folder: Path) -> dict[str, object]:
    """A process forks while a thread of it opens a folder, and another one counts."""
    store = Store(folder)
    store._files._opening.acquire()
    store._files._counting.acquire()

    def work() -> None:
        signal.alarm(60)  # a deadlock ends it
        assert store.put("a", b"code", label="", seconds=1)
        assert store.get("a").payload == b"code"

    return {"status": status(child(work))}


def payload_of(name: str, version: int) -> bytes:
    return b"%s %d " % (name.encode(), version) + random.Random(f"{name} {version}").randbytes(1_000_000)


def killed_writers(folder: Path, kills: int) -> dict[str, object]:
    """Writers are killed at random moments. The next process finds only what is right, and nothing of the dead."""
    chance = random.Random(0)
    right = {(name, version): payload_of(name, version) for name in "abc" for version in range(3)}
    torn = found = wrong = 0

    def write(turn: int) -> None:
        store = Store(folder)
        while True:
            for (name, _), payload in random.Random(turn).sample(list(right.items()), k=len(right)):
                with store.claim(name, patience=1):
                    store.put(name, payload, label="", seconds=1)
                    store.get(name)

    for turn in range(kills):
        pid = child(partial(write, turn))
        if turn % 2:  # it has begun to write, or has been killed before
            until(lambda: any(name.endswith(".tmp") for name in names(folder)))
        time.sleep(chance.uniform(0, 0.01))
        os.kill(pid, signal.SIGKILL)
        status(pid)
        torn += any(name.endswith(".tmp") for name in names(folder))
        store = Store(folder)
        for name in "abc":
            if entry := store.get(name):
                found += 1
                wrong += entry.payload not in {right[name, version] for version in range(3)}
        assert store.counts.rejected == 0, "an entry is there whole or not at all"
        assert not [name for name in names(folder) if not name.endswith((".entry", "manifest"))]
    return {"torn": torn, "found": found, "wrong": wrong}


if __name__ == "__main__":
    story, folder, arguments = sys.argv[1:]
    print(json.dumps(globals()[story](Path(folder), *json.loads(arguments))))  # noqa: T201  for ``tell``
