"""A student is distilled from a teacher that the same script trained before; its own labels meet a softmax.

finding: GC401
"""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
TEMPERATURE = 3.0
inputs = torch.randn(1024, 16)
labels = torch.tanh(inputs @ torch.randn(16, 6)).argmax(1)


def classifier(width):
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 6))


def batches(epochs):
    for _ in range(epochs):
        yield from torch.randperm(len(inputs)).split(64)


teacher, student = classifier(64), classifier(16)
optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for rows in batches(4):
    loss = functional.cross_entropy(teacher(inputs[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

teacher.eval()
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
for rows in batches(6):
    with torch.no_grad():
        wanted = functional.softmax(teacher(inputs[rows]) / TEMPERATURE, dim=1)
    scores = student(inputs[rows])
    soft = functional.kl_div(
        functional.log_softmax(scores / TEMPERATURE, dim=1), wanted, reduction="batchmean"
    )
    hard = functional.cross_entropy(functional.softmax(scores, dim=1), labels[rows])  # [sick]
    hard = functional.cross_entropy(scores, labels[rows])  # [well]
    loss = 0.5 * TEMPERATURE**2 * soft + 0.5 * hard
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
