"""A file is surveyed only if its text has a word that a root can come from: none may be missing there."""

from __future__ import annotations

import pytest

from gradclinic.static import words
from gradclinic.static.abilities import ACTS, Can
from gradclinic.static.observe import acts

TELLING = sorted(name for name, can in ACTS.items() if can & (Can.TELL | Can.MODE))


@pytest.mark.parametrize("name", [*TELLING, *sorted(words.CLIPS), "loss_scaler", "NativeScaler"])
@pytest.mark.parametrize("call", ["trainer.{}(loss, optimizer)", "{} (loss)", "handles.{}[0]()"])
def test_every_call_that_tells_is_heard_in_the_text(name, call):
    assert acts(f"optimizer = None  # backward and step\n{call.format(name)}")


def test_what_differentiates_beside_nothing_that_updates_is_not():
    assert not acts("y.backward(torch.ones(3))\nsteps = 3")


def test_a_file_that_only_counts_is_not():
    assert not acts("timesteps = num_steps + training_step(1)  # a step of the train")


def test_a_function_of_autograd_is_not():
    assert not acts("def backward(ctx, grad):\n    return meta_conv_backward(grad)")
