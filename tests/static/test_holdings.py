"""What an optimizer holds, followed through freezing and replacement in source."""

from __future__ import annotations

from tests.rules.scripts import codes_by_lint

HEAD = """
import torch
from torch import nn
from torchvision.models import resnet18

model = resnet18()
"""
TRAIN = """
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""


def test_a_head_that_is_replaced_after_the_optimizer_was_built_is_named():
    build = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    head = "model.fc = nn.Linear(512, 10)\n"
    assert codes_by_lint(HEAD + build + head + TRAIN) == ["GC302"]
    assert codes_by_lint(HEAD + head + build + TRAIN) == []
    added = "optimizer.add_param_group({'params': model.fc.parameters()})\n"
    assert codes_by_lint(HEAD + build + head + added + TRAIN) == []


def test_a_coat_for_the_model_replaces_nothing():
    build = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    for coat in ("torch.compile(model)", "nn.DataParallel(model)", "model.to('cuda')", "wrap(model)"):
        assert codes_by_lint(f"{HEAD}{build}model = {coat}\n{TRAIN}") == []


def test_a_chain_that_the_model_is_put_into_holds_it():
    build = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    chain = "model = nn.Sequential(nn.BatchNorm2d(3, affine=False), model)\n"
    assert codes_by_lint(HEAD + build + chain + TRAIN) == []
    grown = "block = nn.Linear(9, 9)\nmodel = nn.Sequential(*model, block)\n"
    added = "optimizer.add_param_group({'params': block.parameters()})\n"
    assert codes_by_lint(HEAD + build + grown + added + TRAIN) == []
    assert codes_by_lint(f"{HEAD}{build}model = nn.Sequential(nn.Linear(9, 9))\n{TRAIN}") == ["GC302"]


def test_freezing_all_that_the_optimizer_holds_is_named():
    build = "optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.1)\n"
    freeze = "for p in model.parameters():\n    p.requires_grad = False\n"
    assert codes_by_lint(HEAD + build + freeze + TRAIN) == ["GC303"]
    assert codes_by_lint(HEAD + freeze + build + TRAIN) == []


def test_freezing_some_of_it_or_for_a_while_is_left_alone():
    build = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    some = "for name, p in model.named_parameters():\n    if 'fc' in name:\n        p.requires_grad = False\n"
    assert codes_by_lint(HEAD + build + some + TRAIN) == []
    back = "    if thawed(step):\n        model.requires_grad_(True)\n"
    assert codes_by_lint(HEAD + build + "model.requires_grad_(False)\n" + TRAIN + back) == []


def test_the_default_of_an_option_tells_the_decay():
    option = "parser.add_argument('--weight-decay', default={}, type=float)\nargs = parser.parse_args()\n"
    build = "optimizer = torch.optim.Adam(model.parameters(), weight_decay=args.weight_decay)\n"
    assert codes_by_lint(HEAD + option.format(0.1) + build + TRAIN) == ["GC304"]
    assert codes_by_lint(HEAD + option.format(0) + build + TRAIN) == []
