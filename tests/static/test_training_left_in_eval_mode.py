"""Training that goes on in the mode of an evaluation, whoever called eval(); and where it is put right."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told
from tests.static.test_evaluations_by_functions import EPOCHS, HEAD

A_PART_THAT_DECODES = """
from models import Tagger

def evaluate(model, loader):
    for x, mask in loader:
        model.eval()  # GC701
        with torch.no_grad():
            scores = model(x)
            tags = model.crf.{method}(scores, mask)

def main(loader, dev_loader):
    model = Tagger()
    model.drop = nn.Dropout(0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        evaluate(model, dev_loader)
"""


def test_a_part_that_decodes_leaves_the_mode_as_it_is() -> None:
    source = HEAD + A_PART_THAT_DECODES.format(method="decode")
    assert told(source) == marked(source)
    assert told(HEAD + A_PART_THAT_DECODES.format(method="leave_eval")) == set()


TWO_MODELS = """
def train(encoder, decoder, encoder_optimizer, decoder_optimizer, loader, val_loader):
    BEFORE
    for epoch in range(10):
        AGAIN
        for x, y in loader:
            encoder_optimizer.zero_grad()
            decoder_optimizer.zero_grad()
            F.cross_entropy(decoder(encoder(x)), y).backward()
            encoder_optimizer.step()
            decoder_optimizer.step()
        validate(encoder, decoder, val_loader)

def validate(encoder, decoder, loader):
    encoder.eval()  # GC701
    decoder.eval()  # GC701
    with torch.no_grad():
        for x, y in loader:
            print(F.cross_entropy(decoder(encoder(x)), y))
"""


def test_two_models_and_which_optimizer_has_which_is_not_known() -> None:
    trained = "encoder.train()\n{0}decoder.train()"
    once = TWO_MODELS.replace("BEFORE", trained.format(" " * 4)).replace("AGAIN", "pass")
    assert told(HEAD + once) == marked(HEAD + once)
    each = TWO_MODELS.replace("BEFORE", "pass").replace("AGAIN", trained.format(" " * 8))
    assert told(HEAD + each) == set()
    never = TWO_MODELS.replace("BEFORE", "pass").replace("AGAIN", "pass")
    assert told(HEAD + never) == set()  # One of them may be of a training before.


WRITTEN_BY_THE_MODEL = """
from transformers import AutoModelForSeq2SeqLM

model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
optimizer = torch.optim.AdamW(model.parameters())
model.train()
for epoch in range(3):
    for batch in train_loader:
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    model.eval()  # GC701
    for batch in val_loader:
        with torch.no_grad():
            print(model.generate(batch["input_ids"]))
"""


def test_what_the_model_writes_is_an_evaluation() -> None:
    source = HEAD + WRITTEN_BY_THE_MODEL
    assert told(source) == marked(source)
    assert told(source.replace("for batch in train", "model.train()\n    for batch in train")) == set()


ONE_LOSS_FOR_BOTH = """
class Trainer:
    def __init__(self, loader, val_loader):
        self.net = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.loader, self.val_loader = loader, val_loader

    def fit(self):
        for epoch in range(10):
            for batch in self.loader:
                self.optimizer.zero_grad()
                self.loss_of(batch).backward()
                self.optimizer.step()
            self.score()

    def loss_of(self, batch):
        return F.cross_entropy(self.net(batch[0]), batch[1])

    @torch.no_grad()
    def score(self):
        self.net.eval()  # GC701
        return [self.loss_of(batch).item() for batch in self.val_loader]
"""


def test_training_and_evaluation_have_their_forward_in_common() -> None:
    source = HEAD + ONE_LOSS_FOR_BOTH
    assert told(source) == marked(source)
    assert (
        told(
            source.replace(
                "for batch in self.loader", "self.net.train()\n            for batch in self.loader"
            )
        )
        == set()
    )


def test_the_mode_is_put_back_as_it_was() -> None:
    source = HEAD + EPOCHS.format(
        signature="test()",
        data="test_loader",
        call="before = model.training; test(); model.train(before)",
        marks="",
    ).replace("    model.train()\n", "").replace("for epoch", "model.train()\nfor epoch")
    left = source.replace("    correct = 0", "    model.eval()\n    correct = 0").replace(
        "def test", "@torch.no_grad()\ndef test"
    )
    assert told(left) == set()
    assert {code for code, _ in told(left.replace("; model.train(before)", ""))} == {"GC701"}


AN_AGENT = """
class Agent:
    def __init__(self):
        self.net = Net()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def act(self, state):
        self.net.eval()  # GC701
        with torch.no_grad():
            return self.net(state).argmax()

    def learn(self, states, goals):
        BEFORE
        self.optimizer.zero_grad()
        F.mse_loss(self.net(states), goals).backward()
        self.optimizer.step()

def main(env, memory):
    agent = Agent()
    state = env.reset()
    for step in range(1000):
        state = env.step(agent.act(state))
        memory.push(state)
        agent.learn(*memory.sample(32))
"""
IN_EVAL_MODE_ON_PURPOSE = """
model = Net()
optimizer = torch.optim.Adam(model.parameters())
for x in loader:
    model.eval()
    with torch.no_grad():
        goal = model(x)
    optimizer.zero_grad()
    F.mse_loss(model(x + noise), goal).backward()
    optimizer.step()
"""


def test_a_function_acts_in_eval_mode_and_leaves_it_so() -> None:
    source = HEAD + AN_AGENT.replace("BEFORE", "pass")
    assert told(source) == marked(source)
    assert told(HEAD + AN_AGENT.replace("BEFORE", "self.net.train()")) == set()
    assert told(HEAD + IN_EVAL_MODE_ON_PURPOSE) == set()


FOR_ANOTHER_FORWARD = """
encoder = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
for epoch in range(10):
    {epoch}
    for x, y in loader:
        {batch}
        optimizer.zero_grad()
        loss = F.mse_loss(encoder(x), y)
        {after}
        (loss + F.mse_loss(encoder(y), x)).backward()
        optimizer.step()
"""


def test_a_loop_comes_back_to_a_forward_that_was_in_train_mode() -> None:
    source = HEAD + FOR_ANOTHER_FORWARD.format(epoch="pass", batch="pass", after="encoder.eval()  # GC701")
    assert told(source) == marked(source)


@pytest.mark.parametrize(
    "placed",
    [
        {"batch": "encoder.train()", "after": "encoder.eval()"},
        {"epoch": "if epoch == 5: encoder.eval()"},
        {"epoch": "encoder.eval()"},
        {"batch": "if epoch > 5: encoder.eval()"},
        {"after": "encoder[1].eval()"},
    ],
    ids=["put back", "frozen from some epoch on", "always frozen", "frozen by batches", "a part of it"],
)
def test_a_mode_that_is_put_back_or_set_before_all_that_is_trained_is_meant(placed: dict[str, str]) -> None:
    given = {"epoch": "pass", "batch": "pass", "after": "pass", **placed}
    assert told(HEAD + FOR_ANOTHER_FORWARD.format(**given)) == set()


@pytest.mark.parametrize("when", ["epoch == 5", "epoch == freeze_after", "True"])
def test_eval_for_no_other_forward_freezes_statistics_from_there_on(when: str) -> None:
    one = FOR_ANOTHER_FORWARD.replace("(loss + F.mse_loss(encoder(y), x)).backward()", "loss.backward()")
    frozen = f"if {when}: encoder.eval()"
    assert told(HEAD + one.format(epoch="pass", batch="pass", after=frozen)) == set()


A_FROZEN_PART = """
import torch
import torchvision
from torch import nn
import torch.nn.functional as F

class Probe(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.backbone = {made}
        {then}
        self.fc = nn.Linear(width, 10)

    def forward(self, x):
        return self.fc(self.backbone(x))

def evaluate(model, loader):
    model.eval()  # GC701
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)

def main(train, test):
    model = Probe(512)
    optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.1)
    for epoch in range(10):
        for x, y in train:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(evaluate(model, test))
"""
DROPS = "nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))"


@pytest.mark.parametrize(
    ("made", "then"),
    [
        ("torchvision.models.resnet18().eval()", "pass"),
        (DROPS, "self.backbone.eval()"),
    ],
)
def test_a_part_that_its_class_puts_into_eval_mode_is_meant_to_stay_so(made: str, then: str) -> None:
    assert told(A_FROZEN_PART.format(made=made, then=then)) == set()


def test_any_other_part_is_not() -> None:
    source = A_FROZEN_PART.format(made=DROPS, then="pass")
    assert told(source) == marked(source)


AS_IT_WAS_LOADED = """
from nets import Encoder

def load(path):
    encoder = Encoder()
    encoder.load_state_dict(torch.load(path))
    {loaded}
    return encoder

def evaluate(model, encoder, loader):
    model.eval()
    encoder.eval(){mark}
    with torch.no_grad():
        score = sum(F.mse_loss(model(encoder(x)), y).item() for x, y in loader)
    model.train()
    return score

def train(path, loader, test_loader):
    encoder = load(path)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam([*model.parameters(), *encoder.parameters()])
    for epoch in range(9):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(encoder(x)), y).backward()
            optimizer.step()
        print(evaluate(model, encoder, test_loader))
"""


def test_a_part_that_is_loaded_in_eval_mode_is_evaluated_as_it_is_trained() -> None:
    assert told(TORCH + AS_IT_WAS_LOADED.format(loaded="encoder.eval()", mark="")) == set()
    source = TORCH + AS_IT_WAS_LOADED.format(loaded="pass", mark="  # GC701")
    assert told(source) == marked(source) != set()
