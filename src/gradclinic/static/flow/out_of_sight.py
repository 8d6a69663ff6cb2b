"""What calls give that cannot be followed: by their names, and by what they are given."""

from __future__ import annotations

import ast
import re

from gradclinic.facts import CutKind
from gradclinic.static import words
from gradclinic.static.flow.machine import Machine
from gradclinic.static.flow.tensors import cut_off
from gradclinic.static.flow.values import (
    SOME_LAYER,
    Flow,
    carries,
    flows_in,
    made_of,
    shade_of,
    shadowed,
)
from gradclinic.static.syntax import names_in
from gradclinic.static.values import Unknown, Value
from gradclinic.static.walk import Arguments


def out_of_sight(machine: Machine, func: Value, name: str, args: Arguments, node: ast.Call) -> Value:
    """A function of another file: what it returns may hold any graph it was given, and more."""
    if name == "detach" and isinstance(func, Unknown):
        return cut_off(shade_of([func]) or Flow(grad=False), CutKind.DETACH, machine.at(node))
    values = args.all()
    given = [flow for value in values for flow in flows_in(value)]
    live = [flow for flow in given if flow.grad is not False]
    path = func.path if isinstance(func, Unknown) else name
    machine.log.checked.update(flow.unchecked for flow in given if flow.unchecked is not None)
    if live and not (words.harmless(name) or _keeps_record(machine, path, name)):
        machine.log.handed_out += [(len(machine.log.uses), flow) for flow in live]
    of_torch = path.startswith(SOME_LAYER)
    computes = path.startswith(f"{SOME_LAYER}()") or _computes(machine, func, name)
    computes = computes or (bool(given) and _is_part(func, name))
    if not of_torch and ((computes and not words.LOSS_FUNCTION.search(name)) or RECURRENT.search(name)):
        machine.log.unseen.add(f"{path}.{name}")
    if computes:
        machine.ids += 1
        shade = shade_of(values) or Flow()
        nodes = frozenset({machine.ids}) | shade.nodes
        if not (words.LOSS_FUNCTION.search(name) or words.CRITERION_NAME.search(name)):
            machine.log.run.add(machine.ids)
        elif _TELLS.match(name) or not words.CRITERION_NAME.search(name):
            machine.log.unsure.add(machine.ids)
        anew = shade.anew and (of_torch or not any(_may_share(value) for value in values))
        return Flow(
            nodes=nodes, grad=None if not machine.no_grad else False, known=False, anew=anew,
            scalar=words.CRITERION_NAME.search(name) is not None,
        )  # fmt: skip
    may = bool(live) or any(carries(value) for value in values) or carries(func)
    if _COUNTS.search(name):
        return Unknown(f"{path}()")
    if not may:
        run = _runs_a_part(machine, node) and not machine.no_grad
        made = f"{path}(){_OF_BATCH if _is_given_a_batch(machine, values, node) else ''}"
        return shadowed(made) if run else Unknown(made)
    # Without gradients it makes no graph, but may give back what it was given.
    return made_of(f"{path}()", *values) if machine.no_grad else made_of(f"{path}()", func, *values)


def _keeps_record(machine: Machine, path: str, name: str) -> bool:
    """`meters.update(loss)` shows it later on, as does what a meter hands on: none goes through a graph."""
    if path.startswith(_DRAWS):
        return True
    told = words.KEEPS_RECORDS.search(path.rpartition(".")[2]) or _RECORDS.match(machine.frame.qualname)
    told = told or _COUNTS_HITS.search(name)
    return told is not None and words.LEARNS_FROM.search(name) is None


def _runs_a_part(machine: Machine, node: ast.Call) -> bool:
    """`self.mask = self.embedding(mask_id)` in a constructor: its graph is a part of every forward's."""
    if not machine.frame.qualname.endswith(".__init__") or not isinstance(node.func, ast.Attribute):
        return False
    return isinstance(node.func.value, ast.Name) and node.func.value.id == "self"


def _is_given_a_batch(machine: Machine, values: list[Value], node: ast.Call) -> bool:
    """`inputs = prepare(batch)` in the loop over the batches, or `prepare(inputs)` of what came out of it."""
    if any(isinstance(value, Unknown) and _OF_BATCH in value.path for value in values):
        return True
    loop = machine.loops[-1] if machine.loops else None
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    items = set(names_in(loop.target))
    return any(isinstance(given, ast.Name) and given.id in items for given in node.args)


def _may_share(value: Value) -> bool:
    """Whether it was made out of sight by something that does not sound like data, and of nothing seen."""
    if not isinstance(value, Unknown) or value.holds:
        return False
    return "()" in value.path and not _DATA.search(value.path) and not _COUNTS.search(value.path)


def _computes(machine: Machine, func: Value, name: str) -> bool:
    """Whether it sounds like running a model or a loss on something."""
    receiver = func.path.rsplit(".", 1)[-1] if isinstance(func, Unknown) else ""
    if name in machine.models or (name in _FORWARDS and receiver in machine.models):
        return True
    # `D` and `G` are models, `Net` is a class.
    if (name[:1].isupper() and len(name) > 1) or _PREPARES.match(name):
        return False
    return bool(
        words.LOSS_FUNCTION.search(name)
        or words.CRITERION_NAME.search(name)
        or words.MODEL_NAME.search(name)
        or (name in _FORWARDS and (words.MODEL_NAME.search(receiver) or A_MODEL.search(receiver)))
    )


def _is_part(func: Value, name: str) -> bool:
    """`model.extractor(x)`: given a tensor, a part of a model is run as the whole of it would be."""
    return (
        isinstance(func, Unknown)
        and bool(_WHOLE.search(func.path))
        and not (_PREPARES.match(name) or _DOES_MORE.match(name) or words.harmless(name))
    )


RECURRENT = words.Pattern(r"lstm|gru\b|rnn|recurren|\bhx\b", re.I)
"""What models sound like that may remember what they computed."""
_OF_BATCH = "<batch>"
"""In the path of what a call has made of the data of one iteration: no other shares it."""
_COUNTS = words.Pattern(r"(mask|lengths?|(^|_)ind(ex|ices))[()\[\]]*$", re.I)
"""Functions that give whole numbers or truths, behind which there is no graph."""
_WHOLE = words.Pattern(
    r"(^|\.)(\w+_)?(model|net|network|bert|backbone)\d?(\.(module|\w*(encoder|decoder|predictor|embeddings?)))*$",
    re.I,
)
_DOES_MORE = words.Pattern(
    r"_?(train|fit|optim|step|zero|parameters|named|state|add|register|append|apply|sample|generate)"
)
_PREPARES = words.Pattern(
    r"_?(build|create|get|make|load|init|setup|set|prepare|wrap|save|update|log|reset|print|plot)"
)
A_MODEL = words.Pattern(
    r"(Net|Network|Model|Encoder|Decoder|Critic|Actor|Policy|Generator|Discriminator|Classifier)(\w?|V?\d)\(\)$"
)
"""One of a class out of sight, by the name of the class: `networks.ValueNetwork()`."""
_RECORDS = words.Pattern(r"\w*(Meters?|Logger|Tracker|Recorder|History|Writer)\.")
"""Methods of a class that keeps records."""
_COUNTS_HITS = words.Pattern(r"(^|_)(acc(uracy)?|metrics?|auroc|auc|f1|precision|recall)(_|$)", re.I)
"""What is given scores in order to count how many are right, and keeps no graph of them."""
_DRAWS = ("torchvision.utils.", "torchvision.transforms.")
_TELLS = words.Pattern(r"_*(compute|calc|get|measure|eval|test|val|report|train|run|do|step|batch)")
"""How functions begin that may give back the number of a loss."""
_DATA = words.Pattern(r"^torch\.|[Ll]oad|[Dd]ata|[Bb]atch|[Ss]ampl|[Mm]emory|[Bb]uffer|[Rr]eplay|next|env")
_FORWARDS = words.names(
    "forward encode decode embed embedding embeddings predict evaluate evaluate_actions sample_normal "
    "get_value training_step"
)
