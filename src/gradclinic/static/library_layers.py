"""Layers that mind the mode in models of libraries, as far as a name tells of them."""

from __future__ import annotations

import re
from collections.abc import Collection

from gradclinic.static import words

PRETRAINED = ".from_pretrained"
"""What transformers loads is in eval mode until somebody calls train()."""
_OF = "Dropout of "
LIBRARIES = words.names(
    "torchvision timm transformers efficientnet_pytorch segmentation_models_pytorch pretrainedmodels"
)
_DROPS = words.Pattern(
    r"(Bert|Roberta|XLMRoberta|Camembert|DistilBert|MobileBert|Electra|Deberta(V2)?|M?T5|M?Bart|GPT2|"
    r"OpenAIGPT|XLNet|Longformer|BigBird|Pegasus|Marian|LayoutLM(v\d)?|Wav2Vec2|Hubert|TrOCR|VisionEncoderDecoder|"
    r"EncoderDecoder|Segformer)(?!\w*(Config|Tokenizer|Processor|Extractor))"
)
"""Families of transformers that drop unless their settings say otherwise; many others do not."""
_DROPS_BY_NAME = words.Pattern(
    r"(?!.*albert)(.*/)?(\w+-)*(bert|roberta|distil\w*bert|electra|deberta|t5|mt5|bart|mbart|gpt2|xlnet|longformer|"
    r"bigbird|pegasus|wav2vec2?|hubert|layoutlm\w*|xlm|camembert)($|-|_)",
    re.I,
)
_NORMALISES = words.Pattern(
    r"(?!.*(_gn|_bit|_evos|_ln)|resnetv2_\d+x)(tf_|gluon_|legacy_)?(seres|resne|wide_resnet|ecares|densenet|efficientnet|mobilenet|regnet|rexnet|hrnet|dla\d|"
    r"xception|inception|mnasnet|dpn\d|nasnet|seresn|senet|skres|res2ne|selecsls|cspres|cspdark|ghostnet|hardcorenas)"
)
"""Names of networks that are made with batch norm, whoever makes them."""
_DECODERS = words.names("Unet UnetPlusPlus MAnet Linknet FPN PSPNet DeepLabV3 DeepLabV3Plus PAN")


def layers_of_library(name: str, first: object, settings: Collection[str]) -> tuple[str, ...] | None:
    """Of what `library.module.Name(first, setting=...)` gives; None where the name does not tell."""
    library, _, rest = name.partition(".")
    last = rest.rpartition(".")[2]
    if library not in LIBRARIES:
        return None
    chosen = ("drop", "config") if library == "transformers" else ("drop", "norm")
    if any(word in setting for setting in settings for word in chosen):
        return None  # somebody may have chosen that it has none
    if library == "torchvision":
        return layers_of_torchvision(name)
    if library == "transformers":
        return _of_transformers(rest, first)
    if library == "timm":
        known = last == "create_model" and isinstance(first, str) and _NORMALISES.match(first)
        return ("BatchNorm2d",) if known else None
    if library == "efficientnet_pytorch":
        return ("BatchNorm2d", "Dropout") if "EfficientNet" in rest.split(".") else None
    if library == "segmentation_models_pytorch":
        return ("BatchNorm2d",) if last in _DECODERS else None
    return ("BatchNorm2d",) if _NORMALISES.match(last) else None


def layers_of_torchvision(name: str) -> tuple[str, ...] | None:
    """Of `torchvision.models.resnet18` and the like, which are made in train mode."""
    module, _, last = name.rpartition(".")
    if not module.startswith("torchvision.models") or "quantization" in module or "detection" in module:
        return None
    if re.search(r"resn|densenet|mobilenet|shufflenet|mnasnet|inception|efficientnet|regnet|_bn$", last):
        return ("BatchNorm2d",)
    if re.match(r"r3d|mc3|r2plus1d|s3d", last):
        return ("BatchNorm3d",)
    return ("Dropout",) if re.match(r"vgg|alexnet|squeezenet|googlenet", last) else None


def drops(layer: str) -> bool:
    """Whether it is what a model of transformers has, rather than a layer that somebody wrote."""
    return layer.startswith(_OF)


def is_made_in_train_mode(name: str) -> bool:
    return not name.startswith("transformers.")


def _of_transformers(rest: str, first: object) -> tuple[str, ...] | None:
    """`BertModel.from_pretrained(path)` drops, `AutoModel.from_pretrained("bert-base")` does by that name.

    What is made of a configuration may have been told to drop nothing.
    """
    made, _, how = rest.rpartition(".")
    if f".{how}" != PRETRAINED:
        return None
    cls = made.rpartition(".")[2]
    by_name = cls.startswith(("AutoModel", "TFAutoModel")) and isinstance(first, str)
    drops = _DROPS.match(cls) or (by_name and _DROPS_BY_NAME.match(str(first)))
    return (f"{_OF}{cls}{PRETRAINED}",) if drops else None
