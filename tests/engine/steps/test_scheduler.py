"""Who runs next: fairness between reading and stepping, between the old and the short, and whose draft is verified."""

from __future__ import annotations

from collections import Counter

import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.prompt import Prompt, token_keys
from langchain_gemma_jax.engine.requests.request import Request, RequestSpec
from langchain_gemma_jax.engine.requests.resident import Resident
from langchain_gemma_jax.engine.steps.scheduler import Read, Scheduler, Step, Verify


class NoText:
    def push(self, token_id: int) -> str:
        return ""

    def finish(self) -> str:
        return ""


def request(tokens=10, held=0, *, model="m", max_tokens=None, draft=(), ahead=False):
    prompt, sampling = Prompt.of_tokens(range(tokens)), Sampling(max_tokens=max_tokens)
    asked = RequestSpec(model, prompt, sampling, 0, frozenset(), 100, ahead=ahead)
    made = Request(asked, NoText())
    made.on_device.resident = Resident("", 64, token_keys(range(held)))
    made.progress.draft = draft
    return made


def scheduler(*running, rows=8):
    made = Scheduler(rows)
    for one in running:
        made.waiting.append(one)
        made.start(one)
    return made


def carry_out(work):
    """Apply the effect of running it to the requests."""
    if isinstance(work, Read):
        one = work.request
        one.on_device.resident.keys.extend(one.keys(one.held, one.held + 10))
        if one.to_read == 0:
            one.progress.context.append(7)
    else:
        for one in work.requests if isinstance(work, Step) else (work.request,):
            one.on_device.resident.keys.append(one.progress.context[-1])
            one.progress.context.append(7)


def test_nothing_to_do():
    assert scheduler().next() is None
    full = request(tokens=99, held=98)
    full.progress.issued = 1
    assert scheduler(full).next() is None  # its last token is on its way
    assert scheduler(request(10, 10)).next() is None  # so is its first one


def test_one_with_more_than_a_token_to_read_reads_and_one_with_a_single_token_steps():
    reader, stepper = request(10, 8), request(10, 9)
    assert scheduler(reader).next() == Read(reader)
    assert scheduler(stepper).next() == Step((stepper,))


def test_what_is_read_ahead_is_read_when_nothing_else_runs_or_somebody_waits_for_it():
    ahead, stepper, reader = request(90, ahead=True), request(10, 9), request(50)
    plan = scheduler(ahead, stepper, reader)
    for _ in range(20):
        work = plan.next()
        assert work != Read(ahead)
        carry_out(work)
    for each in (stepper, reader):  # their next tokens are on their way, and have to be looked at first
        each.progress.issued, each.progress.wants_state = 1, True
    assert plan.next() is None, "a chunk now would keep them waiting"
    plan.remove(stepper)
    plan.remove(reader)
    assert plan.next() == Read(ahead)
    plan = scheduler(ahead, request(10, 9))
    ahead.progress.awaited = True
    assert Read(ahead) in {plan.next(), plan.next()}


def test_reading_and_stepping_take_turns():
    reader, stepper = request(90), request(10, 9)
    plan = scheduler(reader, stepper)
    seen = []
    for _ in range(8):
        seen.append(type(work := plan.next()))
        carry_out(work)
    assert seen == [Read, Step] * 4


def test_the_one_with_the_least_left_reads_first_and_every_fourth_time_the_oldest():
    old, short, middle = request(90), request(12), request(40)
    plan = scheduler(old, short, middle)
    order = []
    for _ in range(5):
        work = plan.next()
        while not isinstance(work, Read):
            carry_out(work)
            work = plan.next()
        order.append(work.request)
        carry_out(work)
    assert order == [short, short, middle, old, middle]


def test_a_long_prompt_is_read_however_many_short_ones_keep_coming():
    long = request(90)
    plan = scheduler(long, rows=1000)
    for turn in range(200):
        if turn % 2 == 0:
            plan.waiting.append(one := request(15))
            plan.start(one)
        work = plan.next()
        carry_out(work)
        if long.to_read <= 1:
            return
    pytest.fail("the long prompt was never read")


def test_those_of_one_model_share_a_step_however_long_they_are_and_every_model_gets_its_turn():
    groups = {
        "m": [request(10, 9), request(70, 69)],
        "other": [request(10, 9, model="other")],
        "a third": [request(10, 9, model="a third")],
    }
    plan = scheduler(*[one for group in groups.values() for one in group])
    turns = Counter()
    for _ in range(9):
        work = plan.next()
        assert list(work.requests) == groups[work.requests[0].group]
        turns[work.requests[0].group] += 1
        carry_out(work)
    assert turns == dict.fromkeys(groups, 3)


def test_steps_go_ahead_of_what_is_on_its_way_as_far_as_there_is_room():
    one = request(10, 9, max_tokens=2)
    plan = scheduler(one)
    assert plan.next() == Step((one,))
    one.progress.issued = 1
    assert plan.next() == Step((one,))
    one.progress.issued = 2
    assert plan.next() is None


def test_a_draft_is_verified_once_nothing_is_on_its_way():
    one = request(10, 9, draft=(1, 2))
    plan = scheduler(one)
    one.progress.issued = 1
    assert plan.next() is None
    one.progress.issued = 0
    assert plan.next() == Verify(one)


def test_two_may_draft_and_more_share_their_steps():
    drafting = [request(10, 9, draft=(1, 2)) for _ in range(3)]
    assert [scheduler(*drafting[:2]).next(), Verify(drafting[0])].count(Verify(drafting[0])) == 2
    assert scheduler(*drafting).next() == Step(tuple(drafting))
    plain = request(10, 9)
    plan = scheduler(drafting[0], plain)
    assert [plan.next(), plan.next()] == [Verify(drafting[0]), Step((plain,))]


def test_a_round_skips_what_is_no_longer_true():
    first, second = request(10, 9), request(10, 9, model="other")
    plan = scheduler(first, second)
    assert plan.next() == Step((first,))
    second.progress.issued = 1
    second.progress.draft = (1,)
    first.progress.issued = 1
    assert plan.next() == Step((first,))


@pytest.mark.parametrize("leave", ["remove", "put_back"])
def test_one_that_leaves_is_in_no_step_any_more(leave):
    first, second = request(10, 9), request(10, 9, model="other")
    plan = scheduler(first, second)
    assert plan.next() == Step((first,))
    getattr(plan, leave)(second)
    assert plan.next() == Step((first,))
    assert (second in plan) is (leave == "put_back")


def test_rows_are_limited_and_one_that_was_put_back_is_the_next():
    first, second, third = request(), request(), request()
    plan = scheduler(first, second, rows=2)
    plan.waiting.append(third)
    assert not plan.has_room
    plan.put_back(second)
    assert plan.has_room
    assert list(plan.waiting) == [second, third]
    assert len(plan) == 3
    plan.remove(third)
    assert third not in plan
