"""Optimizers that step between a forward and a backward that needs the weights of that forward."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

MADE = """
class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, z):
        return self.main(z)

class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))

    def forward(self, x):
        return self.main(x)

g, d = G(), D()
optimizer_g = torch.optim.Adam(g.parameters())
optimizer_d = torch.optim.Adam(d.parameters())
"""

LOOP = """
for real in loader:
    fake = g(torch.randn(8, 4))
    on_fake = d(fake)
    d_loss = F.softplus(on_fake).mean() + F.softplus(-d(real)).mean()
    {g_loss}
    optimizer_d.zero_grad()
    d_loss.backward(retain_graph=True)
    {step}
    {after}
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
"""


def loop(
    g_loss: str = "g_loss = F.softplus(-on_fake).mean()",
    step: str = "optimizer_d.step()  # GC207",
    after: str = "",
) -> str:
    return MADE + LOOP.format(g_loss=g_loss, step=step, after=after)


THREE = """
both = torch.optim.Adam([*g.parameters(), *d.parameters()])
class Trainer:
    def __init__(self, gpu):
        self.g, self.d = G(), D()
        self.optimizer = torch.optim.Adam(self.g.parameters())
        self.other = torch.optim.Adam(self.d.parameters())
        if gpu:
            self.criterion = nn.MSELoss().cuda()
        else:
            self.criterion = nn.MSELoss()

    def train(self, loader):
        for z, y in loader:
            out = self.d(self.g(z))
            loss = self.criterion(out, y)
            self.optimizer.zero_grad()
            loss.backward(retain_graph=True)
            self.optimizer.step()  # GC207
            second = self.criterion(out, 1 - y)
            self.other.zero_grad()
            second.backward()
            self.other.step()
"""

FAULTY = {
    "of one loss by the other's network": loop(),
    "through a scaler": loop(step="scaler.step(optimizer_d)  # GC207"),
    "before the loss is put together": loop(g_loss="", after="g_loss = F.softplus(-on_fake).mean()"),
    "on one batch twice": MADE + THREE,
}

RIGHT = {
    "computed anew": loop(g_loss="", after="g_loss = F.softplus(-d(fake)).mean()", step="optimizer_d.step()"),
    "steps at the end": loop(step="").replace(
        "    optimizer_g.step()\n", "    optimizer_d.step()\n    optimizer_g.step()\n"
    ),
    "nothing computed with those weights": loop(
        g_loss="g_loss = fake.pow(2).mean()", step="optimizer_d.step()"
    ),
    "a head whose input needs no gradient": """
body, one, two = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
optimizer_one = torch.optim.Adam(one.parameters())
optimizer_two = torch.optim.Adam(two.parameters())
for x, y in loader:
    with torch.no_grad():
        hidden = body(x)
    first, second = one(hidden), two(hidden)
    loss = F.mse_loss(first, y)
    other = F.mse_loss(first + second, y)
    optimizer_one.zero_grad()
    loss.backward(retain_graph=True)
    optimizer_one.step()
    optimizer_two.zero_grad()
    other.backward()
    optimizer_two.step()
""",
    "weights that have no gradient yet": MADE
    + """
for real in loader:
    on_fake = d(g(torch.randn(8, 4)))
    optimizer_g.zero_grad()
    on_fake.mean().backward(retain_graph=True)
    optimizer_g.step()
    optimizer_g.zero_grad()
""",
    "a step that only some updates take": loop(step="if skip:\n        optimizer_d.step()"),
    "under autocast, where copies are computed with": loop(step="optimizer_d.step()").replace(
        "    fake = g(", "    with torch.autocast('cuda'):\n        pass\n    fake = g("
    ),
    "an embedding, which needs no weights": """
words, head = nn.Embedding(9, 4), nn.Linear(4, 1)
for_words = torch.optim.SGD(words.parameters(), lr=0.1)
for_head = torch.optim.SGD(head.parameters(), lr=0.1)
for x, y in loader:
    vectors = words(x)
    vectors.pow(2).mean().backward(retain_graph=True)
    for_words.step()
    F.mse_loss(head(vectors), y).backward()
    for_head.step()
""",
    "a state detached between updates": """
cell, head = nn.Linear(8, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
state = torch.zeros(1, 4)
for x, y in loader:
    state = torch.tanh(cell(torch.cat([x, state.detach()], 1)))
    loss = F.mse_loss(head(state), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}


@pytest.mark.parametrize("source", FAULTY.values(), ids=FAULTY)
def test_a_step_under_a_graph_is_told(source: str) -> None:
    source = TORCH + source
    assert {one for one in told(source) if one[0] == "GC207"} == marked(source) != set()


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_a_step_that_harms_no_backward_is_not(source: str) -> None:
    assert "GC207" not in {code for code, _ in told(TORCH + source)}


CHOSEN = """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.out, self.aux = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x):
        h = self.body(x)
        return self.out(h), self.aux(h)

net = Two()
aside = torch.optim.SGD({aside}, lr=0.1)
main = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y, z in loader:
    out, aux = net(x)
    first, second = F.cross_entropy(aux, z), F.cross_entropy(out, y)
    aside.zero_grad()
    first.backward(retain_graph=True)
    aside.step()
    main.zero_grad()
    second.backward({into})
    main.step()
"""


@pytest.mark.parametrize(
    ("aside", "into"),
    [
        ('[p for n, p in net.named_parameters() if "aux" in n]', ""),
        ("list(net.parameters())[-2:]", ""),
        ("[p.detach().clone().requires_grad_() for p in net.parameters()]", ""),
        ("net.aux.parameters()", ""),
        ("net.parameters()", "inputs=list(net.out.parameters())"),
    ],
)
def test_some_of_the_weights_or_copies_of_them_are_not_what_is_needed(aside: str, into: str) -> None:
    assert "GC207" not in {code for code, _ in told(TORCH + CHOSEN.format(aside=aside, into=into))}


def test_all_of_the_weights_are() -> None:
    assert "GC207" in {code for code, _ in told(TORCH + CHOSEN.format(aside="net.parameters()", into=""))}
