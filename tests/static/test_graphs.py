"""Graphs read from source: what cuts them, what keeps them, what goes through them twice."""

from __future__ import annotations

import pytest

from tests.static.test_losses import found

HEAD = """
from torch.autograd import Variable
net, head = nn.Linear(4, 8), nn.Linear(8, 1)
losses, total, state = [], 0, torch.zeros(8, 4)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
def step(x, y):
    return F.mse_loss(head(net(x)), y)
"""


def in_loop(*lines: str) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"{HEAD}for x, y in loader:\n    optimizer.zero_grad()\n{body}\n    optimizer.step()\n"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("GC201", ["loss = step(x, y).item()", "torch.tensor(loss, requires_grad=True).backward()"]),
        ("GC201", ["loss = step(x, y).detach()", "loss.requires_grad = True", "loss.backward()"]),
        ("GC201", ["loss = Variable(step(x, y).data, requires_grad=True)", "loss.backward()"]),
        ("GC201", ["loss, parts = outside(net, x, y)", "loss.item().backward()"]),
        ("GC202", ["loss = step(x, y) + 0.1 * float(head(net(x)).pow(2).mean())", "loss.backward()"]),
        ("GC203", ["loss = torch.tensor([step(x, y), step(x, x)]).sum()", "loss.backward()"]),
        ("GC209", ["loss = step(x, y)", "loss.backward(retain_graph=True)"]),
        ("GC212", ["loss = step(x, y)", "loss.backward()", "total += loss"]),
        (
            "GC202",
            ["h = net(x)", "at = criterion_at(h, y).detach()", "(F.mse_loss(head(h), y) + at).backward()"],
        ),
        ("GC212", ["loss = step(x, y)", "loss.backward()", "total += loss / len(loader)"]),
        ("GC212", ["loss = step(x, y)", "loss.backward()", "total = total + loss"]),
        ("GC212", ["loss = step(x, y)", "losses.append((loss.mean(), 0.1 * loss))", "loss.backward()"]),
        ("GC212", ["loss = step(x, y)", "losses.append(loss)", "loss.backward()"]),
        ("GC212", ["out = head(net(x))", "F.mse_loss(out, y).backward()", "losses.append(out)"]),
        ("GC212", ["state = net(state[:, :4])", "head(state).sum().backward()"]),
        ("GC213", ["with torch.autograd.detect_anomaly():", "    step(x, y).backward()"]),
        ("GC213", ["step(x, y).backward()", "torch.autograd.set_detect_anomaly(True)"]),
    ],
)
def test_what_is_lost_is_found(code: str, lines: list[str]) -> None:
    assert set(found(in_loop(*lines))) == {code}


@pytest.mark.parametrize(
    "lines",
    [
        ["loss = step(x, y)", "loss.backward()", "print(loss.item())"],
        [
            "try:",
            "    step(x, y).backward()",
            "except RuntimeError:",
            "    with torch.autograd.detect_anomaly():",
            "        step(x, y).backward()",
            "    raise",
        ],
        [
            "torch.autograd.set_detect_anomaly(True)",
            "step(x, y).backward()",
            "torch.autograd.set_detect_anomaly(False)",
            "step(x, y).backward()",
        ],
        ["loss = step(x, y)", "(loss / loss.detach()).backward()"],
        ["loss = step(x, y)", "at = head(net(x)).mean().item()", "(at + (loss - loss.item())).backward()"],
        ["hidden = net(x)", "hidden = x + (hidden - x).detach()", "F.mse_loss(head(hidden), y).backward()"],
        ["with torch.no_grad():", "    target = step(x, y)", "(step(x, y) - target).pow(2).backward()"],
        ["with torch.set_grad_enabled(train):", "    loss = step(x, y)", "if train:", "    loss.backward()"],
        ["hidden = net(x)", "step(x, hidden).backward(retain_graph=True)", "hidden.sum().backward()"],
        ["loss = outside(net(x), y)", "loss.backward(retain_graph=True)", "other.backward()"],
        ["loss = step(x, y)", "loss.backward(retain_graph=keep)"],
        ["loss = step(x, y)", "total += loss.item()", "losses.append(loss.detach())", "loss.backward()"],
        ["total = total + step(x, y)", "total.backward()", "total = total.detach()"],
        ["loss = step(x, y)", "loss.backward()", "total = total + loss.item() / len(loader)"],
        ["loss = step(x, y)", "losses.append((loss.item(), 0.1 * loss.detach()))", "loss.backward()"],
        ["h = net(x)", "at = criterion_at(h, y).detach()", "(F.mse_loss(head(h), y) * at).backward()"],
        [
            "losses.append(step(x, y))",
            "losses.append(step(x, x))",
            "sum(losses).backward()",
            "losses.clear()",
        ],
        ["with torch.no_grad():", "    total += step(x, y)", "step(x, y).backward()"],
        ["state = net(state.detach()[:, :4])", "head(state).sum().backward()"],
        ["loss, size = outside.criterion(net(x))", "loss.backward()", "total += size"],
        ["with torch.autograd.set_detect_anomaly(debug):", "    step(x, y).backward()"],
    ],
)
def test_what_is_meant_is_left_alone(lines: list[str]) -> None:
    assert found(in_loop(*lines)) == {}


def test_a_graph_made_before_the_loop_is_gone_through_every_time() -> None:
    source = (
        HEAD
        + """
hidden = net(torch.randn(8, 4))
for x, y in loader:
    optimizer.zero_grad()
    F.mse_loss(head(hidden), y).backward(retain_graph=True)
    optimizer.step()
"""
    )
    assert found(source) == {}


def test_a_temperature_of_its_own_requires_a_gradient() -> None:
    source = """
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = nn.Linear(4, 1)
        self.first = torch.tensor(0.1)
        self.first.requires_grad = True
        self.second = torch.zeros(1)
        self.second.requires_grad_()
        self.third = torch.zeros(1)
        self.optimizer = torch.optim.Adam([self.third], lr=0.1)

    def train_net(self, x):
        chance = self.policy(x).detach()
        for temperature in (self.first, self.second, self.third):
            self.optimizer.zero_grad()
            (temperature.exp() * chance).mean().backward()
            self.optimizer.step()
"""
    assert found(source) == {}


def test_a_copy_has_parameters_of_its_own() -> None:
    source = (
        "import copy\n"
        + HEAD
        + """
teacher = copy.deepcopy(net)
for x, y in loader:
    optimizer.zero_grad()
    step(x, y).backward()
    optimizer.step()
    for kept, new in zip(teacher.parameters(), net.parameters()):
        kept.data.mul_(0.99).add_(new.data, alpha=0.01)
"""
    )
    assert found(source) == {}


def test_a_write_to_the_whole_of_a_tensor_is_read() -> None:
    assert found(in_loop("y[()] = 0", "step(x, y).backward()")) == {}


LOOP = """
class Trainer:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    def update(self, x, y):
        loss = F.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {returned}

    def epoch(self, loader):
        total = 0
        for x, y in loader:
            total += self.update(x, y)
        return total / len(loader)
"""


def test_losses_that_a_method_returns_pile_up_in_the_loop_that_calls_it() -> None:
    assert found(LOOP.format(returned="loss")) == {"GC212": 20}
    assert found(LOOP.format(returned="loss.item()")) == {}


RETAINS = """
def train(model, loader, optimizer, {parameter}):
    for x, y in loader:
        out{state} = model(x{state})
        loss = nn.functional.mse_loss(out, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""


def test_a_number_called_hidden_is_no_memory() -> None:
    assert found(RETAINS.format(parameter="hidden=256", state="")) == {"GC209": 11}
    assert found(RETAINS.format(parameter="hidden", state=", hidden")) == {}


AGENT = """
from networks import ActorNetwork, ValueNetwork
class Agent:
    def __init__(self):
        self.actor, self.value = ActorNetwork(), ValueNetwork()

    def learn(self, state):
        state = torch.tensor(state)
        value, chances = self.value(state), self.actor.forward(state)
        self.value.optimizer.zero_grad()
        F.mse_loss(value, chances).backward(retain_graph=True)
        self.value.optimizer.step()
        {again}
        self.actor.optimizer.zero_grad()
        chances.mean().backward()
        self.actor.optimizer.step()
"""


def test_a_network_of_another_file_computes_anew_when_it_is_called() -> None:
    assert found(AGENT.format(again="chances = self.actor.forward(state)")) == {"GC209": 15}
    assert found(AGENT.format(again="pass")) == {}


FIT = """
def fit(model, loader, optimizer):
    losses = []
    for batch in loader:
        loss = model.training_step(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append({kept})
"""


def test_what_a_training_step_returns_is_a_loss() -> None:
    assert found(FIT.format(kept="loss")) == {"GC212": 13}
    assert found(FIT.format(kept="loss.detach()")) == {}


FIT_IN_A_DICT = """
def fit(module, loader, optimizer):
    outputs = []
    for i, batch in enumerate(loader):
        optimizer.zero_grad()
        output = module.training_step(batch, i)
        output["loss"].backward()
        optimizer.step()
        {before}
        outputs.append(output)
    return module.training_epoch_end(outputs)
"""


def test_what_holds_the_loss_keeps_its_graph() -> None:
    assert found(FIT_IN_A_DICT.format(before="pass")) == {"GC212": 14}


def test_what_held_the_loss_keeps_nothing() -> None:
    for before in (
        'output["loss"] = output["loss"].item()',
        'output["loss"] = output["loss"].detach()',
        'del output["loss"]',
        "output = {name: value.detach() for name, value in output.items()}",
        "output = output['loss'].item()",
    ):
        assert found(FIT_IN_A_DICT.format(before=before)) == {}, before


def test_a_sum_in_a_new_tensor_overwrites_nothing() -> None:
    lines = ["h = torch.relu(net(x))", "h = h + 1", "F.mse_loss(head(h), y).backward()"]
    assert found(in_loop(*lines)) == {}
    assert set(found(in_loop(lines[0], "h += 1", lines[2]))) == {"GC207"}


PENALISED = """
def fit(net, critic, loader, penalised):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        h = net(x)
        penalty = 0
        if penalised:
            penalty = {penalty}
        {objective}
        loss.backward()
        optimizer.step()
"""
TOGETHER = "loss = F.mse_loss(h, y) + penalty"
APART = "loss = F.mse_loss(h, y) + penalty if penalised else F.mse_loss(h, y)"


def test_a_number_added_on_one_branch_only_trains_nothing_there() -> None:
    term = "critic(h).mean().detach().item()"
    assert found(PENALISED.format(penalty=term, objective=TOGETHER)) == {"GC202": 13}
    assert found(PENALISED.format(penalty=term, objective=APART)) == {"GC202": 13}


def test_what_trains_on_the_other_branch_is_held_back_on_purpose() -> None:
    for otherwise in ("critic(h).mean()", "penalty.detach()"):
        source = PENALISED.format(penalty=otherwise, objective=TOGETHER)
        assert found(source) == {}, otherwise
    late = (
        "penalty = critic(h).mean()\n        loss = F.mse_loss(h, y) + (penalty if late else penalty.item())"
    )
    assert found(PENALISED.format(penalty="0", objective=late)) == {}


WEIGHED = """
def fit(model, loader, optimizer, args, memory, coefs, decay=0.1):
    for x, y in loader:
        optimizer.zero_grad()
        pitch = model.extractor(x)
        loss = args["mse"] * F.mse_loss(model.decoder(pitch, length_to_mask(y)), y){more}
        loss.backward(retain_graph=True)
        optimizer.step()
"""


def test_parts_of_a_model_and_settings_bring_no_graph_from_before() -> None:
    assert found(WEIGHED.format(more=" + decay * pitch.norm()")) == {"GC209": 11}


def test_what_comes_from_outside_the_loop_may_need_the_graph_again() -> None:
    assert found(WEIGHED.format(more=" + memory.mean()")) == {}
    assert found(WEIGHED.format(more=" + memory * pitch.norm()")) == {}
    assert found(WEIGHED.format(more=' + coefs["l1"] * pitch.norm()')) == {}


OUT_OF_SIGHT = """
def attack(model, features, images):
    for step in range(9):
        images.requires_grad = True
        loss = F.mse_loss(model(images), torch.randn(4))
        {extra}
        {total}
        loss.backward()
        images = images.detach()
"""


def test_the_number_of_a_loss_trains_nothing_wherever_its_input_is_from() -> None:
    extra = "extra = F.mse_loss(features(model), torch.zeros(4))"
    number = "loss = loss + extra.detach().item()"
    assert found(OUT_OF_SIGHT.format(extra=extra, total=number)) == {"GC202": 11}
    assert found(OUT_OF_SIGHT.format(extra=extra, total="loss = loss + extra.detach()")) == {}
    for meant in (f"{extra}\n        extra.backward()", "extra = F.mse_loss(images.data, torch.zeros(4))"):
        assert found(OUT_OF_SIGHT.format(extra=meant, total=number)) == {}
