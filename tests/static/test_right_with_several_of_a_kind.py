"""Models made by one function, optimizers gone over, layers kept from moving: which of them is meant.

Beside each that is right, the fault that must still be told.
"""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

MADE = """
import copy

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.last_layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.last_layer(x)

def make(kind):
    if kind == "plain":
        net = Net()
    else:
        net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return net

def train(loader, kind):
    net = make(kind)
    before = make(kind)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    {freeze}
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), before(x))
        loss.backward()
        {clear}
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("freeze", "clear"),
    [
        ("for p in before.parameters(): p.requires_grad = False", "pass"),
        ("before.requires_grad_(False)", "pass"),
        ("pass", "before.zero_grad()"),
        ("pass", "for p in before.parameters(): p.grad = None"),
    ],
)
def test_one_function_makes_several_models(freeze: str, clear: str) -> None:
    assert told(TORCH + MADE.format(freeze=freeze, clear=clear)) == set()


@pytest.mark.parametrize(
    ("freeze", "clear"),
    [
        ("for p in net.parameters(): p.requires_grad = False  # GC303", "pass"),
        ("pass", "net.zero_grad()  # GC102"),
    ],
)
def test_of_the_only_one_it_is_known(freeze: str, clear: str) -> None:
    source = TORCH + MADE.format(freeze=freeze, clear=clear).replace(
        "before = make(kind)", "before = y = None"
    )
    source = source.replace("before(x)", "y")
    assert told(source) == marked(source)


RUN_TWICE = """
def make():
    return nn.Linear(4, 4)

def train(loader):
    model = {made}
    other = {other}
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.mse_loss(model(x), y).backward()
        {clear}
        opt.step()
        opt.zero_grad()

train(a)
train(b)
"""


@pytest.mark.parametrize("made", ["nn.Linear(4, 4)", "make()"])
def test_a_function_that_runs_twice_knows_the_model_it_makes(made: str) -> None:
    source = TORCH + RUN_TWICE.format(made=made, other="None", clear="model.zero_grad()  # GC102")
    assert told(source) == marked(source)


def test_of_two_that_it_makes_each_time_it_does_not() -> None:
    assert told(TORCH + RUN_TWICE.format(made="make()", other="make()", clear="other.zero_grad()")) == set()


LAYERS = """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.last_layer = nn.Linear(4, 4)

    def cancel(self, epoch):
        if epoch < 1:
            for p in {owner}.parameters():
                p.grad = None

    def forward(self, x):
        return self.last_layer(self.first(x))

def train(loader):
    head = Head()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for epoch in range(10):
        for x, y in loader:
            F.mse_loss(head(x), y).backward()
            {clear}
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("owner", "clear"),
    [
        ("self.last_layer", "head.cancel(epoch)"),
        ("self", "head.last_layer.zero_grad()"),
        ("self", "for p in head.last_layer.parameters(): p.grad = None"),
    ],
)
def test_some_layers_may_be_kept_from_moving(owner: str, clear: str) -> None:
    assert told(TORCH + LAYERS.format(owner=owner, clear=clear)) == set()


@pytest.mark.parametrize(
    "clear", ["head.zero_grad()  # GC102", "for p in head.parameters(): p.grad = None  # GC102"]
)
def test_all_of_them_are_not(clear: str) -> None:
    source = TORCH + LAYERS.format(owner="self.last_layer", clear=clear)
    assert told(source) == marked(source)


OF_ITSELF = """
class Trainer:
    def fit(self, loader):
        for x, y in loader:
            F.mse_loss({model}(x), y).backward()
            {model}.zero_grad(){mark}
            self.opt.step()
"""


@pytest.mark.parametrize(
    ("model", "mark"), [("self.head", "  # GC102"), ("self.model", "  # GC102"), ("self.parts.head", "")]
)
def test_what_somebody_has_is_no_part_of_a_model(model: str, mark: str) -> None:
    source = TORCH + OF_ITSELF.format(model=model, mark=mark)
    assert {finding for finding in told(source) if finding[0] == "GC102"} == marked(source)


UNSCALED = """
from project import each

def train(model, loader, optimizers):
    scaler = torch.amp.GradScaler()
    for x, y in loader:
        for o in optimizers:
            o.zero_grad()
        scaler.scale(F.mse_loss(model(x), y)).backward()
        for o in {over}:
            scaler.unscale_(o)
        {again}
        for o in {over}:
            scaler.step(o)
        scaler.update()
"""


@pytest.mark.parametrize("over", ["optimizers", "each(optimizers)", "optimizers.values()"])
def test_each_optimizer_is_unscaled_once(over: str) -> None:
    assert told(TORCH + UNSCALED.format(over=over, again="pass")) == set()


EACH_ITS_OWN = """
def train(model, pairs):
    scaler = torch.amp.GradScaler()
    for (x, y), o in pairs:
        scaler.scale(F.mse_loss(model(x), y)).backward()  # GC101
        scaler.unscale_(o)
        scaler.step(o)
        scaler.update()
"""


def test_a_loop_that_trains_goes_around_whatever_it_unscales() -> None:
    source = TORCH + EACH_ITS_OWN
    assert told(source) == marked(source)


OF_A_STATE = """
from project import each

class Trainer:
    def run(self, batches):
        for batch in batches:
            self.one(batch)
            {again}
            for optimizer in self.state.optimizers:
                self.state.scaler.step(optimizer)
            self.state.scaler.update()

    def one(self, batch):
        for optimizer in each(self.state.optimizers):
            optimizer.zero_grad()
        self.state.scaler.scale(F.mse_loss(self.model(batch), batch)).backward()
        for optimizer in each(self.state.optimizers):
            self.state.scaler.unscale_(optimizer){mark}
"""


def test_one_may_be_unscaled_by_another_name_than_it_steps_by() -> None:
    assert told(TORCH + OF_A_STATE.format(again="pass", mark="")) == set()


def test_twice_without_a_step_is_told_by_any_name() -> None:
    source = TORCH + OF_A_STATE.format(again="self.one(batch)", mark="  # GC502")
    assert told(source) == marked(source)


CLEARED = """
from project import each

def train(model, batches, optimizers):
    for batch in batches:
        {clear}
        F.mse_loss(model(batch), batch).backward(){mark}
        for optimizer in optimizers:
            optimizer.step()
"""


@pytest.mark.parametrize(
    "clear",
    [
        "for optimizer in each(optimizers): optimizer.zero_grad()",
        "for name, optimizer in each(optimizers): optimizer.zero_grad()",
    ],
)
def test_one_may_be_cleared_by_another_name_than_it_steps_by(clear: str) -> None:
    assert told(TORCH + CLEARED.format(clear=clear, mark="")) == set()


def test_what_is_only_looked_at_by_another_name_is_not_cleared() -> None:
    clear = "for optimizer in each(optimizers): print(optimizer.param_groups)"
    source = TORCH + CLEARED.format(clear=clear, mark="  # GC101")
    assert told(source) == marked(source)


WRONG_ONE = """
class Trainer:
    def train(self, model, optimizer, other_optimizer, state, batches):
        for batch in batches:
            {cleared}.zero_grad()
            F.mse_loss(model(batch), batch).backward()  # GC101
            {stepped}.step()
"""


@pytest.mark.parametrize(
    ("cleared", "stepped"),
    [
        ("other_optimizer", "optimizer"),
        ("self.opt_d", "self.opt_g"),
        ("state.opt_d", "state.opt_g"),
        ("self.state.opt_d", "self.state.opt_g"),
    ],
)
def test_the_wrong_one_is_cleared(cleared: str, stepped: str) -> None:
    source = TORCH + WRONG_ONE.format(cleared=cleared, stepped=stepped)
    assert told(source) == marked(source)


def test_one_that_is_unscaled_twice_is_told() -> None:
    twice = "for o in optimizers: scaler.unscale_(o)  # GC502"
    source = TORCH + UNSCALED.format(over="optimizers", again=twice)
    assert told(source) == marked(source)


WRITTEN = """
import copy

class Several:
    def __init__(self, count):
        self.classifier = nn.Linear(4, 2)
        self.heads = [nn.Linear(4, 2) for _ in range(count)]
        self.optimizers = [torch.optim.SGD(head.parameters(), lr=0.1) for head in self.heads]

    def update(self, batches):
        for head in self.heads:
            {write}
        loss = sum(F.cross_entropy(head(x), y) for head, (x, y) in zip(self.heads, batches))
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
"""


def test_data_that_is_written_leaves_the_parameter_where_it_is() -> None:
    write = "head.weight.data = copy.deepcopy(self.classifier.weight.data)"
    assert told(TORCH + WRITTEN.format(write=write)) == set()


def test_a_layer_that_is_replaced_does_not() -> None:
    source = TORCH + WRITTEN.format(write="head.inner = copy.deepcopy(self.classifier)  # GC302")
    assert told(source) == marked(source)


COUNTED = """
class Trainer:
    def __init__(self, model, loader, cfg):
        self.model, self.loader, self.cfg = model, loader, cfg
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 10)
        self.start = cfg.start

    def fit(self):
        for self.epoch in range(self.start, self.cfg.epochs):
            self.one_epoch()

    def one_epoch(self):
        if {asked}:
            self.schedule.step(){mark}
        for x, y in self.loader:
            self.optimizer.zero_grad()
            F.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize("asked", ["self.epoch > self.start", "self.epoch != self.start", "self.epoch > 0"])
def test_an_attribute_may_count_the_epochs(asked: str) -> None:
    assert told(TORCH + COUNTED.format(asked=asked, mark="")) == set()


def test_what_does_not_depend_on_it_is_told() -> None:
    source = TORCH + COUNTED.format(asked="self.cfg.decay", mark="  # GC112")
    assert told(source) == marked(source)
