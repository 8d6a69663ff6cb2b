"""Models of libraries whose layers mind the mode, as their names tell."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

PROGRAM = """
import timm
import torchvision
from torchvision import models
import segmentation_models_pytorch as smp
from efficientnet_pytorch import EfficientNet
from transformers import (
    AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification, BertForSequenceClassification,
    LlamaForCausalLM,
)

{more}

def main(args, train_loader, val_loader):
    model = {made}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        {train}
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        {mode}
        correct = 0
        with torch.no_grad():
            for x, y in val_loader:
                correct += (model(x).argmax(1) == y).sum().item(){fault}
"""
MADE = [
    "models.resnet18(weights=None)",
    "timm.create_model('efficientnet_b0', pretrained=True, num_classes=10)",
    "smp.Unet('resnet34', classes=2)",
    "EfficientNet.from_pretrained('efficientnet-b0', num_classes=5)",
    "BertForSequenceClassification.from_pretrained(args.path)",
    "AutoModel.from_pretrained('hfl/chinese-roberta-wwm-ext')",
    "torch.hub.load('pytorch/vision:v0.10.0', 'resnet18', pretrained=True)",
]


def _program(
    made: str, *, train: str = "model.train()", mode: str = "pass", fault: str = "", more: str = ""
) -> str:
    return TORCH + PROGRAM.format(made=made, train=train, mode=mode, fault=fault, more=more)


@pytest.mark.parametrize("made", MADE)
def test_an_evaluation_in_train_mode_is_told(made: str) -> None:
    source = _program(made, fault="  # GC702")
    assert told(source) == marked(source)


@pytest.mark.parametrize("made", MADE)
def test_nothing_is_told_in_eval_mode(made: str) -> None:
    assert told(_program(made, mode="model.eval()")) == set()


@pytest.mark.parametrize(
    "made",
    [
        "timm.create_model('vit_base_patch16_224')",
        "timm.create_model(args.model)",
        "timm.create_model('resnet50_gn')",
        "timm.create_model('resnetv2_50x1_bit.goog_in21k')",
        "BertForSequenceClassification(make_config())",
        "BertForSequenceClassification.from_pretrained(args.path, config=config)",
        "AutoModelForSequenceClassification.from_pretrained(args.path)",
        "timm.create_model('resnet50', norm_layer=FrozenNorm)",
        "LlamaForCausalLM.from_pretrained(args.path)",
        "AutoModelForCausalLM.from_pretrained(args.path)",
        "AutoModel.from_pretrained('albert-base-v2')",
        "AutoModel.from_pretrained(args.path)",
        "BertForSequenceClassification.from_pretrained(args.path, hidden_dropout_prob=0.0)",
        "torchvision.models.detection.fasterrcnn_resnet50_fpn()",
        "torchvision.models.vit_b_16()",
        "torch.hub.load('facebookresearch/dinov2', 'dinov2_vits14')",
    ],
)
def test_nothing_is_told_where_the_name_does_not_tell(made: str) -> None:
    assert told(_program(made)) == set()


def test_what_is_loaded_stays_in_eval_mode_until_somebody_says_otherwise() -> None:
    made = "BertForSequenceClassification.from_pretrained(args.path)"
    assert told(_program(made, train="pass")) == set()


WITHIN = """
class Net(nn.Module):
    def __init__(self, path):
        super().__init__()
        self.encoder = {part}
        self.head = nn.Linear(768, 2)

    def forward(self, x):
        return self.head(self.encoder(x))
"""


@pytest.mark.parametrize(
    ("part", "train", "fault"),
    [
        ("models.resnet50(pretrained=True)", "model.train()", "  # GC702"),
        ("models.resnet50(pretrained=True)", "pass", "  # GC702"),
        ("models.resnet50(pretrained=True).eval()", "model.train()", ""),
        ("AutoModel.from_pretrained('bert-base-cased')", "model.train()", "  # GC702"),
        ("AutoModel.from_pretrained('bert-base-cased')", "pass", ""),
        ("AutoModel.from_pretrained(path)", "model.train()", ""),
    ],
)
def test_a_part_of_a_model_of_the_file(part: str, train: str, fault: str) -> None:
    source = _program("Net(args.path)", train=train, fault=fault, more=WITHIN.format(part=part))
    assert told(source) == marked(source)


ONLY_FEATURES = """
class Features(nn.Module):
    def __init__(self):
        super().__init__()
        {made}
        self.head = nn.Linear(512, 2)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))
"""


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        ("self.body = models.vgg16(pretrained=True).features", ""),
        ("self.body = nn.Sequential(*list(models.vgg16().children())[:-1])", ""),
        ("self.body = nn.Sequential(*list(models.resnet18().children())[:-2])", "  # GC702"),
        ("self.body = models.vgg16()", "  # GC702"),
        ("self.body = models.vgg16_bn(pretrained=True).features", "  # GC702"),
    ],
)
def test_a_part_that_is_taken_without_what_drops(made: str, fault: str) -> None:
    source = _program("Features()", more=ONLY_FEATURES.format(made=made), fault=fault)
    assert told(source) == marked(source)


@pytest.mark.parametrize(
    ("put_in", "fault"),
    [
        ("model.classifier = nn.Linear(25088, 2)", ""),
        ("model.classifier[6] = nn.Linear(4096, 2)", "  # GC702"),
    ],
)
def test_a_part_that_is_put_in_for_what_drops(put_in: str, fault: str) -> None:
    source = _program("models.vgg16(pretrained=True)", fault=fault)
    source = source.replace("    optimizer =", f"    {put_in}\n    optimizer =")
    assert told(source) == marked(source)


@pytest.mark.parametrize(
    "setting",
    [
        "config.hidden_dropout_prob = 0.0",
        "config.update({'attention_probs_dropout_prob': 0.0})",
        "config = make_config(hidden_dropout_prob=0.0)",
    ],
)
def test_settings_that_may_drop_nothing(setting: str) -> None:
    source = _program("BertForSequenceClassification.from_pretrained(args.path, config=config)")
    assert told(source.replace("    model =", f"    {setting}\n    model =")) == set()


@pytest.mark.parametrize(
    "coat",
    ["nn.SyncBatchNorm.convert_sync_batchnorm", "torch.jit.script", "torch.quantization.quantize_dynamic"],
)
def test_what_comes_back_by_its_name_is_the_same_model(coat: str) -> None:
    source = _program("models.resnet18()", fault="  # GC702")
    source = source.replace(
        "    optimizer =", f"    if args.coat:\n        model = {coat}(model)\n    optimizer ="
    )
    assert told(source) == marked(source)


DECLARED = """
from transformers import T5ForConditionalGeneration, PreTrainedModel, LlamaForCausalLM

def train(model: {declared}, optimizer, loader):
    model.train()
    for batch in loader:
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()

{decorator}
def {judging}(model: {declared}, tokenizer, loader):
    {mode}
    preds = []
    for batch in loader:
        preds += tokenizer.batch_decode(model.generate(batch["ids"])){fault}
    return preds

def main(model: {declared}, tokenizer, train_loader, val_loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(3):
        train(model, optimizer, train_loader)
        print({judging}(model, tokenizer, val_loader))
"""


@pytest.mark.parametrize(
    ("declared", "judging", "decorator", "mode", "fault"),
    [
        ("T5ForConditionalGeneration", "validate", "@torch.no_grad()", "pass", "  # GC702"),
        ("T5ForConditionalGeneration", "predict", "@torch.no_grad()", "pass", "  # GC702"),
        ("T5ForConditionalGeneration", "validate", "", "model.eval()", ""),
        ("LlamaForCausalLM", "validate", "@torch.no_grad()", "pass", ""),
        ("PreTrainedModel", "validate", "@torch.no_grad()", "pass", ""),
    ],
)
def test_what_a_model_writes_in_an_evaluation(
    declared: str, judging: str, decorator: str, mode: str, fault: str
) -> None:
    program = DECLARED.format(declared=declared, judging=judging, decorator=decorator, mode=mode, fault=fault)
    source = TORCH + program
    assert told(source) == marked(source)


ROLLOUTS = """
from transformers import AutoModelForCausalLM, GPT2LMHeadModel

def rollouts(model: GPT2LMHeadModel, prompts):
    answers = []
    with torch.no_grad():
        for ids in prompts:
            answers.append(model.generate(ids))
    return answers

def main(model: GPT2LMHeadModel, reward, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    model.train()
    for prompts in loader:
        answers = rollouts(model, prompts)
        scores = [reward(answer) for answer in answers]
        for answer, score in zip(answers, scores):
            optimizer.zero_grad()
            (model(answer).loss * score).backward()
            optimizer.step()
"""


def test_what_is_written_to_be_trained_on_is_no_evaluation() -> None:
    assert told(TORCH + ROLLOUTS) == set()


@pytest.mark.parametrize(
    "altered", ["disable_dropout(model)", "freeze_batch_norm_2d(model)", "bn_to_gn(model)"]
)
def test_what_takes_layers_out_of_a_model_leaves_it_unknown(altered: str) -> None:
    assert told(_program("timm.create_model('resnet50')", more=altered)) == set()
