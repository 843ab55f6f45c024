"""The share of a device's memory that a process may have, wherever its limit was set."""

from __future__ import annotations

import os
import random
import resource
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.residency import device_memory
from langchain_gemma_jax.engine.residency.device_memory import (
    HOST_KV_PARTS,
    HOST_SHARE,
    KV_PARTS,
    SHARE,
    host_kv_budget,
    host_memory,
    kv_budget,
    memory_budget,
)
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.seams.placement import SingleDevice
from tests.engine.faults_support import SMALL, greedy

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
UNLIMITED = "9223372036854771712\n"  # as the old hierarchy says it
MB = 2**20

V2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
OTHERS = (
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
)

OURS = {
    "platform": "cpu",
    "process_index": 0,
    "client": SimpleNamespace(process_index=lambda: 0),
}  # a device of this process


def tree(root: Path, groups: str, mounts: str, files: dict[str, str]) -> Path:
    """A machine as the kernel shows it. Files are named from ``/sys/fs/cgroup`` on."""
    proc = root / "proc" / "self"
    proc.mkdir(parents=True)
    (proc / "cgroup").write_text(groups)
    (proc / "mountinfo").write_text(OTHERS + mounts)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


# What the process is in, what is mounted, what the files say, and the limit in MB; None: as much as there is.
HIERARCHIES: dict[str, tuple[str, str, dict[str, str], int | None]] = {
    "none": ("0::/\n", V2, {"cgroup.procs": ""}, None),
    "v2, its own group": ("0::/a/b\n", V2, {"a/b/memory.max": f"{300 * MB}\n", "a/memory.max": "max\n"}, 300),
    "v2, the group above": ("0::/a/b\n", V2, {"a/b/memory.max": "max\n", "a/memory.max": f"{200 * MB}\n"}, 200),
    "v2, the least of several": (
        "0::/a/b/c\n",
        V2,
        {
            f"{where}memory.max": f"{size * MB}\n"
            for where, size in (("", 900), ("a/", 400), ("a/b/", 150), ("a/b/c/", 700))
        },
        150,
    ),
    "v2, throttled": ("0::/a\n", V2, {"a/memory.max": f"{900 * MB}\n", "a/memory.high": f"{500 * MB}\n"}, 500),
    "v2, a neighbor's": ("0::/ab\n", V2, {"a/memory.max": f"{1 * MB}\n", "ab/memory.max": f"{600 * MB}\n"}, 600),
    "systemd": (
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-u1.scope\n",
        V2,
        {"user.slice/user-1000.slice/memory.max": f"{250 * MB}\n", "user.slice/memory.high": "max\n"},
        250,
    ),
    "container, a namespace of its own": ("0::/\n", V2, {"memory.max": f"{128 * MB}\n"}, 128),
    "container, the host's names": (
        "0::/docker/c0ffee/worker\n",
        V2.replace(" / /sys", " /docker/c0ffee /sys"),
        {"memory.max": f"{128 * MB}\n", "worker/memory.max": f"{64 * MB}\n"},
        64,
    ),
    "container, names that do not fit": (
        "0::/kubepods/pod1/c0ffee\n",
        V2.replace(" / /sys", " /../.. /sys"),
        {"memory.max": f"{70 * MB}\n"},
        70,
    ),
    "moved out of its namespace": (
        "0::/../other\n",
        V2,
        {"memory.max": f"{90 * MB}\n", "../other/memory.max": "1\n"},
        90,
    ),
    "deleted": ("0::/a/b (deleted)\n", V2, {"a/memory.max": f"{80 * MB}\n"}, 80),
    "v1": ("4:memory:/a\n", V1, {"memory/a/memory.limit_in_bytes": f"{111 * MB}\n"}, 111),
    "v1, unlimited": ("4:memory:/a\n", V1, {"memory/a/memory.limit_in_bytes": UNLIMITED}, None),
    "v1, with others": ("4:cpu,memory,pids:/a\n", V1, {"memory/a/memory.limit_in_bytes": f"{112 * MB}\n"}, 112),
    "Slurm": (
        "9:cpuset:/slurm/uid_5\n5:memory:/slurm/uid_5/job_7/step_0/task_3\n0::/\n",
        V1 + V2.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"),
        {
            "memory/slurm/uid_5/job_7/step_0/task_3/memory.limit_in_bytes": UNLIMITED,
            "memory/slurm/uid_5/job_7/step_0/memory.limit_in_bytes": f"{500 * MB}\n",
            "memory/slurm/uid_5/job_7/memory.limit_in_bytes": f"{400 * MB}\n",
            "memory/slurm/uid_5/memory.limit_in_bytes": UNLIMITED,
        },
        400,
    ),
    "v1, a container that sees no group above": (
        "4:memory:/docker/c0ffee\n",
        V1.replace(" / /sys", " /docker/c0ffee /sys"),
        {
            "memory/memory.limit_in_bytes": UNLIMITED,
            "memory/memory.stat": f"cache 5\nhierarchical_memory_limit {99 * MB}\nhierarchical_memsw_limit 7\n",
        },
        99,
    ),
    "both": (
        "4:memory:/a\n0::/b\n",
        V1 + V2.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"),
        {"memory/a/memory.limit_in_bytes": f"{60 * MB}\n", "unified/b/memory.max": f"{50 * MB}\n"},
        50,
    ),
    "mounted elsewhere, with a blank": (
        "0::/a:b c\n",
        V2.replace("/sys/fs/cgroup", "/sys/fs/cgroup/my\\040groups"),
        {"my groups/a:b c/memory.max": f"{40 * MB}\n"},
        40,
    ),
    "mounted twice": (
        "0::/a/b\n",
        V2 + V2.replace(" / /sys/fs/cgroup", " /a /sys/fs/cgroup/again"),
        {"again/memory.max": f"{30 * MB}\n"},
        30,
    ),
    "not numbers": (
        "0::/a/b/c/d/e/f\n",
        V2,
        {
            "a/b/c/d/e/f/memory.max": "",
            "a/b/c/d/e/memory.max": "-1\n",
            "a/b/c/d/memory.max": "1_000\n",
            "a/b/c/memory.max": "\u0661\u0662\n",
            "a/b/memory.max": "9" * 5000,
            "a/memory.max": "0\n",
            "memory.max": f"{20 * MB}\n",
        },
        20,
    ),
}


@pytest.fixture(autouse=True)
def _no_limits_of_this_machine(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.mark.parametrize("name", HIERARCHIES)
def test_the_least_limit_on_the_way_to_the_root_counts(name, tmp_path):
    groups, mounts, files, limit = HIERARCHIES[name]
    assert host_memory(tree(tmp_path, groups, mounts, files)) == (MACHINE if limit is None else limit * MB)


def test_a_machine_without_any_of_it_has_its_memory(tmp_path):
    assert host_memory(tmp_path) == MACHINE
    (tmp_path / "proc/self/cgroup").mkdir(parents=True)  # where a file is expected
    (tmp_path / "proc/self/mountinfo").symlink_to("mountinfo")
    assert host_memory(tmp_path) == MACHINE


def test_what_is_malformed_is_no_limit_and_harms_nobody(tmp_path):
    numbers = random.Random(7)
    cases = list(HIERARCHIES.values())
    for seed in range(300):
        groups, mounts, files, _ = numbers.choice(cases)
        root = tree(tmp_path / str(seed), groups, mounts, {})
        for path, text in ((root / "proc/self/cgroup", groups), (root / "proc/self/mountinfo", mounts)):
            broken = bytearray(text.encode())
            for _ in range(numbers.randint(1, 8)):
                where = numbers.randrange(len(broken))
                broken[where : where + numbers.randint(0, 9)] = numbers.randbytes(numbers.randint(0, 5))
                broken = broken or bytearray(b"-")
            path.write_bytes(broken)
        for name, text in files.items():
            path = root / "sys/fs/cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(numbers.choice([text.encode(), numbers.randbytes(20), b"\xff\xfe", b"max", b" \n"]))
        assert 0 < host_memory(root) <= MACHINE


@pytest.mark.parametrize("which", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_what_the_process_is_limited_to_counts_too(which, tmp_path, monkeypatch):
    limits = {which: (123 * MB, resource.RLIM_INFINITY)}
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda asked: limits.get(asked, unlimited))
    assert host_memory(tmp_path) == 123 * MB


def test_every_budget_follows_from_the_one_rule(tmp_path, monkeypatch):
    root = tree(tmp_path, "0::/a\n", V2, {"a/memory.max": f"{160 * MB}\n"})
    monkeypatch.setattr(device_memory, "host_memory", partial(host_memory, root))
    host = SingleDevice(SimpleNamespace(memory_stats=lambda: None, **OURS))
    full = SingleDevice(SimpleNamespace(memory_stats=lambda: {"bytes_limit": 80 * 2**30, "bytes_in_use": 1}, **OURS))
    assert memory_budget(Settings(), host) == int(HOST_SHARE * 160 * MB)
    assert kv_budget(Settings(), host) == 160 * MB // KV_PARTS
    assert host_kv_budget(Settings()) == 160 * MB // HOST_KV_PARTS
    assert memory_budget(Settings(), full) == int(SHARE * 80 * 2**30)
    assert kv_budget(Settings(), full) == 80 * 2**30 // KV_PARTS
    own = Settings(memory_budget="1MB", kv_bytes=5, host_kv_bytes=0)
    assert (memory_budget(own, host), kv_budget(own, host), host_kv_budget(own)) == (10**6, 5, 0)
    without_books = SingleDevice(SimpleNamespace(memory_stats=lambda: None, **OURS | {"platform": "gpu"}))
    with pytest.raises(InputError, match=r"keeps no books of this GPU.*configure\(memory_budget="):
        memory_budget(Settings(), without_books)
    assert memory_budget(own, without_books) == 10**6


@pytest.mark.parametrize("limited", ["by a control group", "by configure"])
def test_a_tenant_pays_for_what_is_beyond_its_share_of_a_small_limit(
    limited, engine_of, tiny_model, tmp_path, monkeypatch, lazily
):
    engine = engine_of(ladders=SMALL)
    entry = engine._models.known(engine.serve(tiny_model)).entry
    need = entry.weights + entry.workspace + 4 * entry.floor + entry.floor // 2  # room for four conversations
    settings: dict[str, object] = {"ladders": SMALL, "scope_share": 0.5}
    if limited == "by configure":
        settings["memory_budget"] = need
    else:
        # What conversations may take of that is more than the four that there is room for.
        root = tree(tmp_path, "0::/a\n", V2, {"a/memory.max": str(-(-need * 10 // 8))})
        monkeypatch.setattr(device_memory, "host_memory", partial(host_memory, root))
    engine = engine_of(**settings)
    served = engine.serve(tiny_model)

    def ask(scope: str, first: int) -> None:
        engine.submit(served, [first, first, first], greedy(2), scope=scope).result()

    ask("modest", 10)
    for first in (11, 12, 13):
        ask("greedy", first)
    room = engine.report().kv_bytes_by_scope
    assert room["greedy"] == 3 * room["modest"], "all four are there"
    ask("modest", 14)  # somebody has to go: by use alone it would be the modest one's own first
    assert engine.report().kv_bytes_by_scope == {"greedy": 2 * room["modest"], "modest": 2 * room["modest"]}
