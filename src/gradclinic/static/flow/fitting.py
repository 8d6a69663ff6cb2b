"""Libraries that are handed a model and a loss, and give the one to the other for every batch."""

from __future__ import annotations

from gradclinic.static.flow.torch_names import LOSS_FUNCTIONS, LOSSES
from gradclinic.static.flow.values import Chain, Loss
from gradclinic.static.values import ClassDef, Instance, Lib, Value
from gradclinic.static.walk import Arguments

_Place = tuple[int, str]
_TAKE = {
    ("ignite", "create_supervised_trainer"): ((0, "model"), (2, "loss_fn")),
    ("ignite", "supervised_training_step"): ((0, "model"), (2, "loss_fn")),
    ("fastai", "Learner"): ((1, "model"), (2, "loss_func")),
    ("torchbearer", "Trial"): ((0, "model"), (2, "criterion")),
    ("poutyne", "Model"): ((0, "network"), (2, "loss_function")),
    ("skorch", "NeuralNet"): ((0, "module"), (1, "criterion")),
    ("skorch", "NeuralNetClassifier"): ((0, "module"), (-1, "criterion")),
    ("skorch", "NeuralNetBinaryClassifier"): ((0, "module"), (-1, "criterion")),
    ("skorch", "NeuralNetRegressor"): ((0, "module"), (-1, "criterion")),
}  # fmt: skip
"""By the library and the name in it: where the model stands, and where the loss."""
LOSS_KEYWORDS = frozenset(loss[1] for _, loss in _TAKE.values())
_BETWEEN = frozenset({"model_transform", "model_fn", "splitter"})
"""What changes the output on its way to the loss, or says that it is no plain training."""
_USUAL = {"NeuralNetBinaryClassifier": "binary_cross_entropy_with_logits"}
"""The loss if none is given."""


def handed_together(name: str, args: Arguments) -> tuple[Value, Loss] | None:
    """The model, or its class, and the loss that the call of a library brings together."""
    root, last = name.partition(".")[0], name.rpartition(".")[2]
    places = _TAKE.get((root, last)) or _of_skorch(root, last)
    if places is None or not _BETWEEN.isdisjoint(args.keywords):
        return None
    model, loss = (_at(args, place) for place in places)
    judged = loss_of(loss) if loss is not None else Loss(_USUAL[last]) if last in _USUAL else None
    if judged is None or not isinstance(model, (Chain, Instance, ClassDef)):
        return None
    # skorch takes the logarithm itself where the loss is nll_loss.
    return None if judged.name == "nll_loss" and "skorch" in root else (model, judged)


def _of_skorch(root: str, last: str) -> tuple[_Place, _Place] | None:
    """What others build on skorch, as `ray_skorch.RayTrainNeuralNet`, takes both by their names."""
    return ((0, "module"), (-1, "criterion")) if "skorch" in root and last.endswith("NeuralNet") else None


def _at(args: Arguments, place: _Place) -> Value | None:
    position, keyword = place
    return args.keywords.get(keyword) if position < 0 else args.get(position, keyword)


def loss_of(value: Value | None) -> Loss | None:
    """A loss of torch, be it an object, a class or a function."""
    if isinstance(value, Loss):
        return value
    if not isinstance(value, Lib) or not value.name.startswith("torch."):
        return None
    last = value.name.rpartition(".")[2]
    return Loss(LOSSES.get(last, last)) if last in LOSSES or last in LOSS_FUNCTIONS else None
