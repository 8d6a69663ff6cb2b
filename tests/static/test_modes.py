"""Which mode a model is trained and evaluated in, read from source."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from gradclinic.engine import judge
from gradclinic.findings import Severity
from gradclinic.static import observe_source
from gradclinic.static.layers import layers_of_class
from gradclinic.static.survey import Survey
from tests.rules.scripts import codes_by_lint

HEAD = """
import torch
from torch import nn
from torchvision.models import resnet18
"""
TRAIN = """
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""
EVALUATE = """
def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    {after}
    return correct
"""


def script(*, after: str = "", before: str = "", model: str = "resnet18()", when: str = "True") -> str:
    """A training with an evaluation after each epoch, written with the usual helper."""
    lines = [before, TRAIN, f"if {when}:", "    print(evaluate(model, held_out))"]
    return "\n".join(
        [
            HEAD,
            EVALUATE.format(after=after),
            f"model = {model}",
            "criterion = nn.CrossEntropyLoss()",
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
            "for epoch in range(epochs):",
            *(indent(dedent(part).strip(), "    ") for part in lines[:2]),
            *(indent(part, "    ") for part in lines[2:]),
        ]
    )


def test_an_evaluation_that_leaves_eval_mode_behind_is_named():
    assert codes_by_lint(script()) == ["GC701"]


def test_it_is_named_when_the_evaluation_runs_every_few_epochs_only():
    assert codes_by_lint(script(when="(epoch + 1) % every == 0")) == ["GC701"]


@pytest.mark.parametrize(
    "right",
    [
        {"after": "model.train()"},
        {"before": "model.train()"},
        {"after": "model.train(was_training)"},
        {"after": "if was_training: model.train()"},
        {"before": "model.switch_to_train()"},
        {"before": "set_mode(model, 'train')"},
        {"model": "nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))"},
    ],
    ids=str,
)
def test_a_model_that_is_back_in_train_mode_or_has_no_mode_is_left_alone(right: dict[str, str]):
    assert codes_by_lint(script(**right)) == []


def test_each_fold_has_a_model_of_its_own():
    """The last fold's model was left in eval mode, and that is the end of it."""
    fold = script().replace("for epoch in range(epochs):", "for epoch in range(1):")
    body = fold[fold.index("model = resnet18()") :]
    assert codes_by_lint(fold.replace(body, f"for fold in range(5):\n{indent(body, '    ')}")) == []


def test_an_evaluation_without_no_grad_is_named_where_it_begins():
    source = script(before="model.train()").replace("with torch.no_grad():", "if True:")
    assert codes_by_lint(source) == ["GC703"]


def test_gradients_an_evaluation_needs_are_left_alone():
    source = script(before="model.train()").replace(
        "with torch.no_grad():", "with torch.enable_grad():  # saliency"
    )
    assert codes_by_lint(source) == []


def test_classes_made_of_each_other_are_read_once_each():
    many = range(40)
    calls = ", ".join(f"C{i}()" for i in many)
    classes = "\n".join(
        f"class C{i}(nn.Module):\n    def __init__(self):\n        self.a = [{calls}]" for i in many
    )
    tree = ast.parse(classes)
    survey = Survey(tree)
    layers_of_class(survey, survey.classes["C0"])
    assert len(survey.layers) <= 5 * len(many)


def test_what_a_unit_test_evaluates_may_build_graphs() -> None:
    source = dedent(
        """
        import torch
        from torch import nn

        def test_the_model_learns():
            model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 1))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.mse_loss(model(x), y).backward()
                optimizer.step()
            model.eval()
            for x, y in held_out:
                error = nn.functional.mse_loss(model(x), y)
                assert error.item() < 0.1
        """
    )
    assert [f.code for f in judge([observe_source(source, "train.py")])] == ["GC703"]
    assert not judge([observe_source(source, "tests/test_model.py")])


CALLS_ITSELF = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(4, 1), nn.Dropout())
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1)

    def forward(self, x):
        return self.layer(x)

    def fit(self, loader, held_out):
        for x, y in loader:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.__call__(x), y).backward()
            self.optimizer.step()
        self.eval()
        {quietly}
            for x, y in held_out:
                print(self.__call__(x))
        self.train()
"""


def test_a_model_may_spell_its_call_out() -> None:
    assert "GC703" in codes_by_lint(HEAD + CALLS_ITSELF.format(quietly="if True:"))
    assert "GC703" not in codes_by_lint(HEAD + CALLS_ITSELF.format(quietly="with torch.no_grad():"))


SPLITS = """
def run(loaders, splits, model, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(9):
        for split in splits:
            if split == "train":
                model.train()
            else:
                model.eval()
            for x, y in loaders[split]:
                {forward}
                if split == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
"""


def test_one_loop_for_all_splits_builds_graphs_for_those_that_do_not_train() -> None:
    assert codes_by_lint(HEAD + SPLITS.format(forward="loss = criterion(model(x), y)")) == ["GC703"]
    quietly = "with torch.set_grad_enabled(split == 'train'): loss = criterion(model(x), y)"
    assert codes_by_lint(HEAD + SPLITS.format(forward=quietly)) == []


RECURRENT = """
from nets import Tagger
encoder = Tagger()
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
def evaluate(loader):
    encoder.eval()
    hidden = encoder.{first}
    total = 0
    for x, y in loader:
        output, hidden = encoder(x, hidden)
        total += (output.max(1)[1] == y).sum().item()
    return total
for epoch in range(9):
    encoder.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(encoder(x, None)[0], y).backward()
        optimizer.step()
    print(evaluate(held_out))
"""


def test_a_fresh_hidden_state_leaves_the_mode_as_it_is() -> None:
    assert codes_by_lint(HEAD + RECURRENT.format(first="init_hidden(8)")) == ["GC703"]
    assert codes_by_lint(HEAD + RECURRENT.format(first="begin_training(8)")) == []


def test_a_list_of_parameters_called_after_the_optimizer_is_none() -> None:
    grouped = """
        if args.on_cpu:
            param_optimizer = [(n, p.clone().to("cpu")) for n, p in model.named_parameters()]
        else:
            param_optimizer = list(model.named_parameters())
        groups = [{"params": [p for n, p in param_optimizer if "bias" not in n]}]
        optimizer = BertAdam(groups, lr=args.rate)
        """
    built = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
    assert codes_by_lint(script().replace(built, dedent(grouped))) == ["GC701"]
    assert codes_by_lint(script(before="model.train()").replace(built, dedent(grouped))) == []


SWITCHES_GRADIENTS = """
model = resnet18()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(10):
    for split in ["train", "valid"] + (["test"] if args.test else []):
        if split == "train":
            model.train()
        else:
            model.eval()
        SWITCH
        for x, y in loaders[split]:
            loss = nn.functional.cross_entropy(model(x), y)
            if split == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""


def test_gradients_switched_by_a_statement_are_off_where_it_says_so() -> None:
    script = HEAD + SWITCHES_GRADIENTS
    assert codes_by_lint(script.replace("SWITCH", "print(split)")) == ["GC703"]
    assert codes_by_lint(script.replace("SWITCH", "torch.set_grad_enabled(split == 'train')")) == []


TRAINS_OR_TESTS = """
def train():
    net = resnet18()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

def test(path):
    net = resnet18()
    net.load_state_dict(torch.load(path))
    net.eval()
    right = 0
    for x, y in held_out:
        right += (net(x).argmax(1) == y).sum().item()
    print(right)

if training:
    train()
else:
    test("net.pt")
"""


def test_a_test_with_a_network_of_its_own_is_noted_beside_the_training() -> None:
    found = judge([observe_source(HEAD + TRAINS_OR_TESTS, "train.py")])
    assert [(finding.code, finding.severity) for finding in found] == [("GC703", Severity.INFO)]


@pytest.mark.parametrize(
    ("between", "codes"),
    [
        ("save_model(model, path)", ["GC701"]),
        ("save_in_train_mode(model, path)", []),
        ("set_model_mode('train', [model])", []),
    ],
)
def test_to_save_a_model_does_not_change_its_mode(between: str, codes: list[str]) -> None:
    assert codes_by_lint(script(before=between)) == codes
