"""A small transformer with tied embeddings, padding masked in attention and loss, weight-decay groups."""

import math

import torch
from torch import nn

torch.manual_seed(0)
PAD, VOCABULARY, WIDTH = 0, 30, 32


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.position = nn.Parameter(torch.zeros(16, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens) * math.sqrt(WIDTH) + self.position[: tokens.shape[1]]
        causal = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        x = self.blocks(x, mask=causal, src_key_padding_mask=(tokens == PAD).float() * -1e9, is_causal=True)
        return self.head(self.norm(x))


def batch():
    start = torch.randint(1, VOCABULARY - 1, (16, 1))
    tokens = (start + torch.arange(13)) % (VOCABULARY - 1) + 1
    for row, length in enumerate(torch.randint(4, 14, (16,)).tolist()):
        tokens[row, length:] = PAD
    return tokens[:, :-1], tokens[:, 1:]


model = Model()
decay = [p for p in model.parameters() if p.dim() >= 2]
plain = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=3e-4
)
for step in range(40):
    model.train()
    inputs, targets = batch()
    logits = model(inputs)
    loss = nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 10 == 9:
        model.eval()
        with torch.no_grad():
            inputs, targets = batch()
            held_out = nn.functional.cross_entropy(model(inputs).transpose(1, 2), targets, ignore_index=PAD)
