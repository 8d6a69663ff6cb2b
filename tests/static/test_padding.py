"""Targets that are filled up where batches are made, and losses that count the filling."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

COLLATED = """
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader
from tqdm import tqdm

PAD = 0

def collate(batch):
    src, tgt = zip(*batch)
    {collate}
    return src, tgt

def train(model, dataset):
    loader = DataLoader(dataset, batch_size=4, collate_fn=collate)
    criterion = nn.CrossEntropyLoss({settings})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for src, tgt in {source}:
        optimizer.zero_grad()
        out = model(src, tgt[:, :-1])
        loss = {loss}
        loss.backward()
        optimizer.step()
"""
PADDED = "tgt = pad_sequence([torch.tensor(row) for row in tgt], batch_first=True, padding_value=PAD)"
WRITTEN = """rows = torch.{made}
    for i, row in enumerate(tgt):
        rows[i, :len(row)] = row
    tgt = rows"""
ALL = "criterion(out.reshape(-1, 9), tgt[:, 1:].reshape(-1))"


def collated(collate: str, *, settings: str = "", source: str = "loader", loss: str = ALL) -> str:
    return TORCH + COLLATED.format(collate=collate, settings=settings, source=source, loss=loss)


@pytest.mark.parametrize(
    "source",
    [
        collated(PADDED, loss=f"{ALL}  # GC406"),
        collated(PADDED, source="tqdm(loader)", loss=f"{ALL}  # GC406"),
        collated(PADDED, settings="ignore_index=-1", loss=f"{ALL}  # GC406"),
        collated(PADDED.replace("PAD", "vocabulary['<pad>']"), loss=f"{ALL}  # GC406"),
        collated(PADDED.replace("PAD", "tokenizer.pad_token_id"), loss=f"{ALL}  # GC406"),
        collated(WRITTEN.format(made="zeros(len(tgt), 30).long()"), loss=f"{ALL}  # GC406"),
        collated(WRITTEN.format(made="full((len(tgt), 30), PAD)"), loss=f"{ALL}  # GC406"),
        collated(
            "tgt = torch.tensor([list(row) + [PAD] * (30 - len(row)) for row in tgt])",
            loss=f"{ALL}  # GC406",
        ),
    ],
)
def test_padding_of_a_collating_function_reaches_the_loss(source: str) -> None:
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize(
    "source",
    [
        collated(PADDED, settings="ignore_index=PAD"),
        collated(PADDED, settings="ignore_index=dataset.pad"),
        collated(PADDED.replace("PAD", "-100")),
        collated(PADDED.replace("PAD", "choose_pad()")),
        collated(PADDED.replace("PAD", "config['pad']")),
        collated(PADDED.replace("PAD", "vocabulary['<pad>']"), settings="ignore_index=vocabulary['<pad>']"),
        collated(PADDED.replace("PAD", "labels['pad']")),
        collated(PADDED, loss="criterion(out[tgt != PAD], tgt[tgt != PAD])"),
        collated(PADDED, loss="criterion(out, pack_padded_sequence(tgt, dataset.lengths)[0])"),
        collated(PADDED, settings="reduction='none'", loss=f"({ALL} * weights).sum()"),
        collated("src = pad_sequence(src)"),
        collated(WRITTEN.format(made="full((len(tgt), 30), -100)")),
        collated(WRITTEN.format(made="zeros(len(tgt), 30).long()").replace(":len(row)", ":")),
        collated("tgt = torch.tensor([1] * len(src) + [0] * len(tgt))"),
        collated("tgt = torch.tensor(list(tgt) + [0] * len(src))"),
    ],
)
def test_what_is_left_out_or_fills_nothing_up_is_right(source: str) -> None:
    assert told(source) == set()


DATASET = """
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, rows, size):
        self.rows, self.size, self.pad = rows, size, {pad}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = list(self.rows[i])
        {fill}
        row = torch.tensor(row, dtype=torch.long)
        return {{"input": row[:-1], "target": row[1:]}}

def train(model, rows):
    loader = DataLoader(Rows(rows, 32), batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, batch in enumerate(loader):
        logits = model(batch["input"])
        loss = F.cross_entropy(logits.view(-1, 9), batch["target"].view(-1){settings})  # GC406
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "fill",
    [
        "row += [self.pad] * (self.size - len(row))",
        "row = row + [self.pad] * (self.size - len(row))",
        "row = (row + [self.pad] * (self.size - len(row)))[1:]",
        "row.extend([self.pad] * (self.size - len(row)))",
        "n_pad = self.size - len(row)\n        row = [self.pad] * n_pad + row",
    ],
)
def test_padding_of_a_dataset_reaches_the_loss(fill: str) -> None:
    source = TORCH + DATASET.format(pad=4, fill=fill, settings="")
    assert told(source) == marked(source) != set()
    for pad, settings in ((4, ", ignore_index=4"), (-100, ""), ("find_pad()", "")):
        assert told(TORCH + DATASET.format(pad=pad, fill=fill, settings=settings)) == set()


def test_a_class_written_out_as_zeros_and_a_one_is_no_padding() -> None:
    source = f"""{TORCH}
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __getitem__(self, i):
        x, label = self.rows[i]
        return torch.tensor(x), torch.tensor([0] * label + [1] + [0] * (self.size - label - 1))

def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, target in DataLoader(Rows(), batch_size=8):
        optimizer.zero_grad()
        F.cross_entropy(model(x), target).backward()
        optimizer.step()
"""
    assert told(source) == set()


def test_what_no_object_is_written_to_may_be_the_background() -> None:
    source = f"""{TORCH}
def train(model, loader, queries):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, objects in loader:
        target = torch.zeros(len(objects), queries, dtype=torch.long)
        for i, classes in enumerate(objects):
            target[i, :len(classes)] = classes
        optimizer.zero_grad()
        F.cross_entropy(model(x).transpose(1, 2), target).backward()
        optimizer.step()
"""
    assert told(source) == set()
