"""A reader of torch.distributed.checkpoint that builds nothing but its own records.

torch reads the index of a checkpoint with plain pickle, which runs whatever a file tells it to.
"""

from __future__ import annotations

import pickle
from typing import Any

from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import Metadata

from gradclinic.train.errors import CheckpointError

_ALLOWED = {
    "torch.distributed.checkpoint.metadata": None,
    "torch.distributed.checkpoint.filesystem": {"_StorageInfo"},
    "torch.serialization": {"_get_layout"},
    "torch": {"Size", "device"},
    "collections": {"OrderedDict"},
    "pathlib": {"Path", "PosixPath", "PurePosixPath", "WindowsPath"},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        names = _ALLOWED.get(module, set())
        if names is not None and name not in names and not (module == "torch" and _is_dtype(name)):
            raise CheckpointError(
                f"the index of the checkpoint asks for {module}.{name}, which no checkpoint needs; do "
                "not use it"
            )
        return super().find_class(module, name)


def _is_dtype(name: str) -> bool:
    return name.rstrip("0123456789") in ("float", "bfloat", "int", "uint", "complex", "bool")


class SafeReader(FileSystemReader):
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        with self.fs.create_stream(self.fs.concat_path(self.path, ".metadata"), "rb") as stream:
            metadata: Metadata = _Unpickler(stream).load()
        if metadata.storage_meta is not None:
            metadata.storage_meta.load_id = self.load_id
        return metadata
