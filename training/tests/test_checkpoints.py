import numpy as np
import pytest

from training import checkpoints
from training.checkpoints import Progress


def test_what_is_saved_comes_back(tmp_path):
    state = ({"a": np.arange(6.0).reshape(2, 3), "b": [np.int32(3)]}, np.ones(2, np.float32))
    path = tmp_path / "deep" / "checkpoint.safetensors"
    checkpoints.save(path, state, Progress(7, {"model": "x"}, [[1.0, 2.0, 0.5]]))
    found = checkpoints.load(path, state)
    assert np.array_equal(found[0]["a"], state[0]["a"])
    assert found[0]["b"][0] == 3
    assert checkpoints.read_progress(path) == Progress(7, {"model": "x"}, [[1.0, 2.0, 0.5]])
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_failed_write_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.safetensors"
    checkpoints.save(path, np.zeros(2), Progress(1, {}, []))

    def full(_arrays, target, _metadata):
        target.write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(checkpoints, "save_file", full)
    with pytest.raises(OSError, match="space"):
        checkpoints.save(path, np.ones(2), Progress(2, {}, []))
    assert checkpoints.read_progress(path).step == 1
    assert checkpoints.load(path, np.ones(2)).tolist() == [0, 0]


def test_another_models_checkpoint_is_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    checkpoints.save(path, np.zeros(2), Progress(1, {}, []))
    with pytest.raises(ValueError, match="others"):
        checkpoints.load(path, np.zeros(3))
