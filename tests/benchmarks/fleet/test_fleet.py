"""The simulator of fleets: every request is answered once, times are those that a hand computes, a seed is enough."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from benchmarks.fleet.fleet import agents, main, simulate, work_of
from benchmarks.fleet.fleet_replicas import Machine, Replica, machine_of
from benchmarks.fleet.fleet_routers import ROUTERS, Ring
from benchmarks.fleet.fleet_trace import Conversation, Request, Shape, made_up, read_trace

# A prompt's 100 tokens take a second; a step takes 0.1 s with one row, 0.2 s with two; two tokens between steps.
PLAIN = Machine(prefill=100.0, steps=((1, 0.1), (2, 0.2)), chunk=50, rows=2, kv_tokens=10_000)


def talk(name: str, begins: float, *requests: tuple[int, int, float], app: str = "a", shared: int = 0) -> Conversation:
    return Conversation(name, app, shared, begins, tuple(Request(*each) for each in requests))


def test_two_requests_by_hand():
    # A is read from 0 to 1 s; B comes at 1 s. While B's 100 tokens are read, a round is a chunk of 50 tokens (0.5 s)
    # and a step of one row (0.1 s): two rounds, so B's first token is at 2.2 s, and A has 1 + 2 tokens by then. Both go
    # on at 0.2 s a step: A's last 3 tokens are there at 2.8 s. B has 1 + 3 then, and 2 others at 0.1 s each: 3.0 s.
    found = simulate([talk("A", 0.0, (100, 6, 0.0)), talk("B", 1.0, (100, 6, 0.0), app="b")], PLAIN, 1, "random")
    times = {job.conversation.name: (job.first_token, job.done) for job in found.jobs}
    assert times["A"] == pytest.approx((1.0, 2.8))
    assert times["B"] == pytest.approx((2.2, 3.0))
    assert found.busy == (pytest.approx(3.0),)


def test_what_is_in_memory_is_not_read_again():
    # The second request begins with the 110 tokens of the first: 90 are new. A stranger of the same application has the
    # 60 tokens of its system prompt.
    trace = [talk("A", 0.0, (100, 10, 0.0), (200, 1, 5.0), shared=60), talk("B", 50.0, (100, 1, 0.0), shared=60)]
    jobs = simulate(trace, PLAIN, 1, "random").jobs
    assert [job.reused for job in jobs] == [0, 110, 60]
    assert [job.first_token - job.arrived for job in jobs] == pytest.approx([1.0, 0.9, 0.4])
    small = Machine(prefill=100.0, steps=PLAIN.steps, chunk=50, rows=2, kv_tokens=210)
    other = talk("B", 3.0, (100, 1, 0.0), app="b")  # which takes the room of A's 110 tokens
    jobs = simulate([trace[0], other], Machine(**{**vars(small), "kv_tokens": 205}), 1, "random").jobs
    assert [job.reused for job in sorted(jobs, key=lambda each: each.arrived)] == [0, 0, 0]
    jobs = simulate([trace[0], other], Machine(**{**vars(small), "kv_tokens": 211}), 1, "random").jobs
    assert [job.reused for job in sorted(jobs, key=lambda each: each.arrived)] == [0, 0, 110]


def test_each_request_is_answered_once_and_in_its_turn():
    for seed in range(3):
        machine = Machine(kv_tokens=12_000, rows=3)
        trace = agents(5, 12, 0.9, machine, seed, Shape())
        expected = sorted((one.name, number) for one in trace for number in range(len(one.requests)))
        for router in ROUTERS:
            jobs = simulate(trace, machine, 5, router, seed).jobs
            assert sorted((job.conversation.name, job.number) for job in jobs) == expected, router
            chains: dict[str, list] = {}
            for job in sorted(jobs, key=lambda each: each.number):
                assert job.arrived <= job.first_token <= job.done
                assert 0 <= job.reused < job.prompt
                chains.setdefault(job.conversation.name, []).append(job)
            for one, next_one in (pair for chain in chains.values() for pair in pairwise(chain)):
                pause = next_one.conversation.requests[next_one.number].pause
                assert next_one.arrived == pytest.approx(one.done + pause)


def test_a_device_does_no_less_than_what_has_to_be_done():
    machine = Machine()
    trace = agents(3, 30, 0.7, machine, 5, Shape())
    for router in ROUTERS:
        assert sum(simulate(trace, machine, 3, router).busy) > work_of(trace, machine)


def test_with_one_replica_all_routers_are_alike_and_a_seed_is_enough():
    machine = Machine()
    trace = agents(1, 20, 0.8, machine, 1, Shape())
    assert trace == agents(1, 20, 0.8, machine, 1, Shape()) != agents(1, 20, 0.8, machine, 2, Shape())
    alone = [simulate(trace, machine, 1, router).figures for router in ROUTERS]
    assert all(told == alone[0] for told in alone)
    many = agents(6, 20, 0.8, machine, 1, Shape())
    for router in ROUTERS:
        assert simulate(many, machine, 6, router, 3).figures == simulate(many, machine, 6, router, 3).figures


def test_conversations_that_stay_are_reused_and_those_that_do_not_are_read_again():
    machine = Machine()
    trace = agents(8, 40, 0.5, machine, 0, Shape())
    told = {router: simulate(trace, machine, 8, router).figures for router in ROUTERS}
    for router in ("sticky", "remembered", "prefix-aware"):
        assert told[router]["hit"] > told["random"]["hit"] + 0.2
        assert told[router]["cost"] < told["least loaded"]["cost"]
        assert told[router]["p95"] < told["least loaded"]["p95"]


def test_a_ring_moves_few_when_a_replica_comes():
    fleet = [Replica(number, PLAIN) for number in range(11)]
    names = [f"chat {number}" for number in range(2000)]
    before, after = (Ring(fleet[:count]) for count in (10, 11))
    moved = [name for name in names if before.of(name, lambda _: True) is not after.of(name, lambda _: True)]
    assert 0 < len(moved) < 2 * len(names) / 11
    assert {after.of(name, lambda _: True).number for name in moved} == {10}


def test_a_trace_of_ones_own(tmp_path, capsys):
    lines = [
        {"conversation": "x", "app": "billing", "at": 3.0, "shared": 40, "prompt": 100, "answer": 10},
        {"conversation": "y", "at": 3.5, "prompt": 50, "answer": 5},
        {"conversation": "x", "at": 9.0, "prompt": 140, "answer": 10},
    ]
    found = read_trace(map(json.dumps, lines))
    assert found == [
        talk("x", 3.0, (100, 10, 0.0), (140, 10, 6.0), app="billing", shared=40),
        talk("y", 3.5, (50, 5, 0.0), app=""),
    ]
    wrong = ("3", "{", '{"conversation": "x", "at": 1, "prompt": 0, "answer": 1}', '{"at": 1}')
    for line in wrong:
        with pytest.raises(ValueError, match="line 1: expected"):
            read_trace([line])
    with pytest.raises(ValueError, match=r"line 2: expected .* in the order of time"):
        read_trace([json.dumps(lines[2]), json.dumps(lines[0])])
    file, figures = tmp_path / "trace.jsonl", tmp_path / "figures.json"
    file.write_text("\n".join(map(json.dumps, lines)))
    figures.write_text(json.dumps({"prefill": 100, "steps": [[2, 0.2], [1, 0.1]], "rows": 2}))
    assert main(["--trace", str(file), "--figures", str(figures), "--replicas", "2"]) == 0
    assert capsys.readouterr().out.count("| 2 | ") == len(ROUTERS)
    figures.write_text('{"speed": 3}')
    assert main(["--figures", str(figures)]) == 2
    assert "found 'speed'" in capsys.readouterr().err


def test_figures_that_are_none_are_refused():
    for told in ({"rows": 0}, {"steps": []}, {"steps": [[1, 0.1], [1, 0.2]]}, {"steps": 3}, {"prefill": "fast"}):
        with pytest.raises(ValueError, match=r"expected|figures"):
            machine_of(told)
    assert machine_of({"steps": [[2, 0.2], [1, 0.1]]}).step(3) == pytest.approx(0.3)
    assert [len(each.requests) for each in made_up(3, 1.0, 0)] == [len(each.requests) for each in made_up(3, 9.0, 0)]
