"""Each update's numbers are told as they are made, and a listener that fails harms nobody."""

import torch
from torch import nn
from torch.nn import functional

from gradclinic.runtime import Recording


class Notes:
    """Writes down what it is told."""

    def __init__(self):
        self.names, self.steps, self.samples, self.activations, self.memory = [], [], [], [], None

    def introduced(self, optimizer, tensors):
        self.names = [tensor.name for tensor in tensors]

    def updated(self, optimizer, step):
        self.steps.append(step)

    def sampled(self, optimizer, sample):
        self.samples.append(sample)

    def activated(self, optimizer, activations):
        self.activations.append(activations)

    def weighed(self, memory):
        self.memory = memory


class Broken(Notes):
    def updated(self, optimizer, step):
        raise RuntimeError("no space left")


def _train(*listeners, steps=12):
    torch.manual_seed(0)
    with Recording() as recording:
        for listener in listeners:
            recording.listen(listener)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(steps):
            x = torch.randn(16, 4)
            optimizer.zero_grad()
            functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
            optimizer.step()
    return recording


def test_a_listener_hears_every_update():
    notes = Notes()
    _train(notes)
    assert notes.names == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [step.index for step in notes.steps] == list(range(12))
    assert all(step.loss > 0 and len(step.gradients) == 4 for step in notes.steps)
    assert [sample.index for sample in notes.samples][:6] == [0, 1, 2, 3, 4, 10]
    assert {one.kind for told in notes.activations for one in told} == {"relu"}


def test_the_memory_of_each_tensor_is_told_once_updates_are_under_way():
    notes = Notes()
    _train(notes)
    first = next(one for one in notes.memory.held if one.name == "0.weight")
    assert (first.values, first.gradient) == (4 * 8 * 4, 4 * 8 * 4)
    # Adam's two averages, and its count of updates.
    assert first.state == 2 * first.values + 4


def test_a_listener_that_fails_is_left_out_and_the_others_go_on():
    notes = Notes()
    recording = _train(Broken(), notes)
    assert len(notes.steps) == 12
    assert recording.problems == ("Broken failed and was left out: RuntimeError: no space left",)
    assert len(recording.observation().cases) > 1
