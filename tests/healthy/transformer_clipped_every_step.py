"""A tiny language model with warm-up, cosine decay and max_norm=1, clipped at nearly every update."""

import math

import torch
from torch import nn

torch.manual_seed(0)
text = torch.randint(0, 32, (2000,)).cumsum(0) % 32


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 48)
        self.place = nn.Parameter(torch.randn(16, 48) * 0.02)
        layer = nn.TransformerEncoderLayer(48, 4, 96, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(48, 32)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.layers(self.embed(tokens) + self.place, mask=mask, is_causal=True))


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda k: min(1.0, (k + 1) / 20) * 0.5 * (1 + math.cos(math.pi * min(k, 120) / 120))
)
model.train()
for step in range(120):
    starts = torch.randint(0, 1980, (8,))
    batch = torch.stack([text[i : i + 17] for i in starts.tolist()])
    optimizer.zero_grad(set_to_none=True)
    logits = model(batch[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
