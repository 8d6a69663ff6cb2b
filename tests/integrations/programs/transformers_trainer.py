"""A small BERT under the Trainer of transformers: `python transformers_trainer.py FAULT [--checkup]`."""

import sys

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

FAULT = sys.argv[1]


class FirstWord(Dataset):
    """Is the first word from the upper half of the vocabulary?"""

    def __init__(self, size, seed):
        draw = torch.Generator().manual_seed(seed)
        self.words = torch.randint(5, 50, (size, 12), generator=draw)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        words = self.words[i]
        mask = torch.ones(12, dtype=torch.long)
        return {"input_ids": words, "attention_mask": mask, "labels": (words[0] > 27).long()}


set_seed(0)
model = BertForSequenceClassification(
    BertConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
    )
)
arguments = TrainingArguments(
    "kept",
    num_train_epochs=2,
    per_device_train_batch_size=8,
    gradient_accumulation_steps=2,
    learning_rate=2e-3,
    max_grad_norm=1e-7 if FAULT == "clip" else 1.0,
    optim="sgd" if FAULT == "clip" else "adamw_torch",
    warmup_steps=10,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=10,
    report_to="none",
    use_cpu=True,
    disable_tqdm=True,
)
optimizers = (None, None)
if FAULT == "part":
    optimizers = (torch.optim.AdamW(model.classifier.parameters(), lr=1e-3), None)
callbacks = []
if "--checkup" in sys.argv:
    from gradclinic.integrations.transformers import Checkup

    callbacks = [Checkup()]
data = {"train_dataset": FirstWord(512, 0), "eval_dataset": FirstWord(64, 1)}
Trainer(model=model, args=arguments, optimizers=optimizers, callbacks=callbacks, **data).train()
