"""A text classifier whose weight decay is stronger than its loss.

finding: GC614
"""

import torch
from torch import nn

torch.manual_seed(3)
WORDS, CLASSES = 200, 5
topic_of = torch.randint(0, CLASSES, (WORDS,))


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 32)
        self.body = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.head = nn.Linear(64, CLASSES)

    def forward(self, words):
        return self.head(self.body(self.embed(words).mean(1)))


def batch():
    labels = torch.randint(0, CLASSES, (64,))
    favoured = (topic_of[None, :] == labels[:, None]).float() * 6 + 1
    return torch.multinomial(favoured, 20, replacement=True), labels


model = Bag()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, weight_decay=0.05)  # [sick]
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, weight_decay=5e-5)  # [well]
for step in range(250):
    words, labels = batch()
    loss = nn.functional.cross_entropy(model(words), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, round(loss.item(), 4))
