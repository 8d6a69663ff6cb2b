"""Small tensors: a second thread costs more than it gives."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
