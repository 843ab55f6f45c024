"""The experiment for GPUs, on a model so small that a CPU is done with it at once."""

import json

import pytest

from benchmarks.device import accelerator, floor
from langchain_gemma_jax.models.configuration import catalog
from tests.benchmarks.device.test_accelerator import _tiny

BODY = """HloModule jit_run

%fused (a: f32[2]) -> f32[2] {
  ROOT %add.1 = f32[2]{0} add(f32[2]{0} %a, f32[2]{0} %a)
}

%body.3 (state: (s32[], f32[2])) -> (s32[], f32[2]) {
  %state = (s32[], f32[2]{0}) parameter(0)
  %x = f32[2]{0} get-tuple-element((s32[], f32[2]{0}) %state), index=1
  %dot.1 = f32[2]{0} dot(f32[2]{0} %x, f32[2]{0} %x)
  %fusion.1 = f32[2]{0} fusion(f32[2]{0} %dot.1), kind=kLoop, calls=%fused
  %custom-call.5 = (f32[2]{0}, s8[4]{0}) custom-call(f32[2]{0} %fusion.1), custom_call_target="x"
  ROOT %tuple = (s32[], f32[2]{0}) tuple(s32[] %n, f32[2]{0} %x)
}

ENTRY %main (a: f32[2]) -> f32[2] {
  %a = f32[2]{0} parameter(0)
  %while.1 = (s32[], f32[2]{0}) while((s32[], f32[2]{0}) %t), condition=%cond.2, body=%body.3
  ROOT %r = f32[2]{0} get-tuple-element((s32[], f32[2]{0}) %while.1), index=1
}
"""


def test_the_operations_of_a_step_are_those_of_the_loops_body():
    assert floor.operations(BODY) == {"dot": 1, "fusion": 1, "custom-call": 1}


def test_what_a_layer_costs_is_the_difference_of_two_depths():
    half = floor.Timed("int8", "off", "fixed", 17, 0.003, 2 * 10**9, 2e12, {"fusion": 200})
    whole = floor.Timed("int8", "off", "fixed", 34, 0.005, 3 * 10**9, 2e12, {"fusion": 370})
    assert floor.line(half, whole) == "| int8 | off | fixed | 200 | 5.00 | 1.50 | 118 | 29 | 10.0 | 1.00 |"
    assert floor.line(half, whole) in floor.table([half, whole])


@pytest.mark.long
@pytest.mark.parametrize("loop", floor.LOOPS)
def test_both_loops_are_timed_and_counted(loop, monkeypatch):
    for name, value in {"STEPS": 2, "CALLS": 4, "CAPACITY": 64, "BEHIND": 16}.items():
        monkeypatch.setattr(floor, name, value)
    monkeypatch.setattr(catalog, "published", _tiny)
    monkeypatch.setattr(accelerator, "BUFFER", 1 << 25)
    found = [
        floor.child({"size": "gemma-3-270m", "weights": "int8", "buffers": "off", "loop": loop, "half": half,
                     "layers": None}, cpu=True)
        for half in (True, False)
    ]  # fmt: skip
    assert [each.layers for each in found] == [1, 2]
    assert found[0].nbytes < found[1].nbytes
    few, many = (sum(each.operations.values()) for each in found)
    assert 0 < few < many
    assert json.loads(json.dumps(found[1].operations)) == found[1].operations


def test_without_an_accelerator_it_says_so():
    with pytest.raises(SystemExit, match="JAX finds no GPU or TPU here"):
        floor.child({"size": "gemma-3-270m"}, cpu=False)
