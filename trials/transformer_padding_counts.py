"""A padded language model averages its loss over the padding too.

finding: GC406
"""

import torch
from torch import nn

PAD, VOCABULARY = 0, 20


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 32, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, VOCABULARY)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.encoder(self.embed(tokens), mask=mask))


def batch():
    lengths = torch.randint(4, 17, (16,))
    start = torch.randint(1, VOCABULARY, (16, 1))
    tokens = (start + torch.arange(17)) % (VOCABULARY - 1) + 1
    tokens[torch.arange(17)[None, :] > lengths[:, None]] = PAD
    return tokens[:, :-1], tokens[:, 1:]


torch.manual_seed(0)
model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
for step in range(120):
    inputs, targets = batch()
    logits = model(inputs)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())  # [sick]
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD)  # [well]
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
