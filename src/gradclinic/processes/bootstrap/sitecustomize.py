"""Python imports this at its start wherever this folder is on PYTHONPATH.

Does nothing unless the process belongs to a watched command, and then nothing until torch is imported.
Runs under whatever Python the command uses, so it keeps to old syntax and imports little.
"""

from __future__ import annotations

import os
import sys

FOLDER = "GRADCLINIC_RECORDS"  # as in gradclinic.processes.environment, which is not imported here
OLDEST = (3, 11)
HERE = os.path.dirname(os.path.abspath(__file__))


class WhenTorchIsImported:
    """Finds torch as Python would, and attaches the observers once it is there."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "torch":
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self.follow(spec.loader)
                return spec
        return None

    def follow(self, loader: object) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: object) -> None:
            del loader.exec_module  # type: ignore[attr-defined]
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            attach()

        loader.exec_module = exec_module  # type: ignore[attr-defined]


def attach() -> None:
    """Start observing; if that is not possible, leave word of it and let the program run."""
    folder = os.environ.get(FOLDER)
    if not folder or any("compile_worker" in word for word in getattr(sys, "orig_argv", ())):
        return
    if sys.version_info < OLDEST:
        leave_word(folder, "it runs Python {}.{}, which is too old".format(*sys.version_info))
        return
    try:
        find_gradclinic()
        from gradclinic.runtime.attached import attach_to_this_process

        attach_to_this_process(folder)
    except Exception as error:
        leave_word(folder, f"{type(error).__name__}: {error}")


def find_gradclinic() -> None:
    """The very package this file belongs to, without putting its neighbours on the path."""
    if "gradclinic" in sys.modules:
        return
    from importlib.util import module_from_spec, spec_from_file_location

    package = os.path.dirname(os.path.dirname(HERE))
    spec = spec_from_file_location(
        "gradclinic", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    if spec is not None and spec.loader is not None:
        sys.modules["gradclinic"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


def leave_word(folder: str, reason: str) -> None:
    try:
        with open(os.path.join(folder, f"{os.getpid()}.unwatched"), "w") as file:
            file.write(reason)
    except OSError:
        pass


def hand_over() -> None:
    """To the sitecustomize that Python would have found without us."""
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or os.curdir) != HERE]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


if os.environ.get(FOLDER):
    sys.meta_path.insert(0, WhenTorchIsImported())
hand_over()
