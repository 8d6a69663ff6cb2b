"""Names that tell what a thing is: torch's own, and the ones people give to theirs."""

from __future__ import annotations

import re

TORCH_OPTIMIZERS = frozenset(
    [
        "ASGD",
        "Adadelta",
        "Adafactor",
        "Adagrad",
        "Adam",
        "AdamW",
        "Adamax",
        "LBFGS",
        "Muon",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Rprop",
        "SGD",
        "SparseAdam",
    ]
)
TORCH_SCHEDULES = frozenset(
    [
        "ChainedScheduler",
        "ConstantLR",
        "CosineAnnealingLR",
        "CosineAnnealingWarmRestarts",
        "CyclicLR",
        "ExponentialLR",
        "LambdaLR",
        "LinearLR",
        "MultiStepLR",
        "MultiplicativeLR",
        "OneCycleLR",
        "PolynomialLR",
        "ReduceLROnPlateau",
        "SequentialLR",
        "StepLR",
    ]
)
SCHEDULE_BUILDERS = re.compile(r"^get_\w*schedule\w*$|^get_scheduler$")
"""transformers' and diffusers' functions that return a torch LambdaLR."""

GRAD_SCALERS = frozenset({"GradScaler", "ShardedGradScaler"})
WRAPPERS = frozenset(
    {"DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "DDP", "FSDP", "compile"}
)
"""What takes a model and returns the same model in a coat."""
CLIPS = frozenset(
    {"clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "clip_grads_with_norm_", "clip_gradients"}
)

LOSS_FUNCTION = re.compile(r"(loss|cross_entropy|nll|kl_div|_bce|^bce|criterion)", re.I)
CRITERION_NAME = re.compile(
    r"(^|_)(crit\w*|loss_?(fn|func|function|fct|f|layer|module|obj)?|bce|mse|ce|l1)$|loss$", re.I
)

OPTIMIZER_NAME = re.compile(r"(^|_)(opt(im(izer)?)?s?)(\d*$|_|$)|optim", re.I)
SCHEDULE_NAME = re.compile(r"sched|lr_decay|annealer|warmup", re.I)
SCALER_NAME = re.compile(r"scaler$|^scaler|_scaler", re.I)
MODEL_NAME = re.compile(
    r"(^|_)(model|net|network|module|generator|discriminator|critic|actor|policy|encoder|decoder|classifier|"
    r"backbone|agent|unet|transformer|gan|vae|student|teacher|engine|model_engine|ddp|fsdp)s?(_?[a-z0-9])?$|net[A-Z]?$|"
    r"^[GD](_[A-Za-z0-9]+)?$|^model|[a-z]Model$|_net|^net_",
)
NOT_A_MODEL = re.compile(r"(name|path|dir|file|config|cfg|args|type|state|dict|ema|opt\w*)$|optim", re.I)
LOSS_NAME = re.compile(r"loss|^err|_err|objective|^cost", re.I)
ACCUMULATION_NAME = re.compile(
    r"accum|micro_?(batch|step)|update_(freq|every|interval|step)|grad(ient)?_?(steps|every|iters)|iter_size|virtual_|"
    r"batch_?(split|multipl)|subdivision|backward_passes_per",
    re.I,
)
EPOCH_NAME = re.compile(r"epoch", re.I)
LOADER_NAME = re.compile(
    r"load|batch|data|train|(^|_)dl$|_iter$|iterator|generator|sampler|bar$|pbar|progress|corpus|examples|samples|"
    r"samples|stream|reader|prefetch|minibatch|queue|dataset",
    re.I,
)
SEVERAL_LOSSES = re.compile(
    r"loss|task|head|term|objective|domain|level|scale|layer|param|optim|model|key|name", re.I
)
FETCH_FUNCTION = re.compile(
    r"^(get|next|load|sample|fetch|make|generate)_?(mini)?_?(train_?)?batch|^next$|^get_data$"
)
NOT_AN_OPTIMIZER = re.compile(
    r"^(env|envs|world|game|sim|simulator|simulation|physics|gym|prof|profiler|p|sampler)\d*$"
)

_HARMLESS_WORDS = [
    "log",
    "print",
    "append",
    "meter",
    "metric",
    "writ",
    "record",
    "track",
    "format",
    "accura",
    "score",
    "item",
    "float",
    "int",
    "str",
    "repr",
    "save",
    "load",
    "dump",
    "state",
    "checkpoint",
    "resume",
    "lr",
    "learning_rate",
    "len",
    "isinstance",
    "hasattr",
    "getattr",
    "type",
    "id",
    "zip",
    "enumerate",
    "list",
    "dict",
    "tuple",
    "set",
    "sorted",
    "deepcopy",
    "copy",
    "wandb",
    "tensorboard",
    "add_scalar",
    "add_histogram",
    "info",
    "debug",
    "warning",
    "report",
    "display",
    "show",
    "plot",
    "draw",
    "visual",
    "summary",
    "count",
    "num_",
    "profile",
    "flops",
    "watch",
    "name",
    "describe",
    "set_postfix",
    "set_description",
    "seed",
    "is_",
    "has_",
    "get_",
    "device",
    "isnan",
    "isinf",
    "isfinite",
    "finite",
    "reduce",
    "gather",
    "average",
    "avg",
    "barrier",
    "sync",
    "broadcast",
    "norm",
    "history",
    "stat",
    "monitor",
    "timer",
    "time",
    "export",
    "push",
    "upload",
    "assert",
    "check",
    "verify",
    "valid",
    "sched",
    "param_group",
    "group",
    "freeze",
]
HARMLESS = re.compile("|".join(re.escape(word) for word in _HARMLESS_WORDS), re.I)
"""Functions of other files with such names are taken not to touch gradients."""
HARMLESS_FOR_MODEL = re.compile(
    HARMLESS.pattern
    + r"|eval|test|infer|predict|generate|sample|ema|init|wrap|parallel|compil|convert|quant|prune|"
    r"cuda|to_|^to$|build|create|make|setup|prepare|loss|crit|forward|encode|decode|embed|swap|average|apply|register|"
    r"modelsum|requires|toggle|params|decay|shard|checkpoint|fsdp|ddp|lora|peft|adapter|tie|resize",
    re.I,
)

SCHEDULE_LENGTHS = ("T_max", "total_steps", "total_iters", "num_training_steps", "t_total", "training_steps")

OPTIMIZER_CLASS = re.compile(
    r"(Adam|SGD|Optim|Lion|Adafactor|LAMB|LARS|RMSprop|Muon|Prodigy|Shampoo|Ranger|Adan)", re.I
)
OPTIMIZER_LIKE = frozenset({"Lamb", "Lars", "Sophia", "SophiaG", "MADGRAD"})
OPTIMIZER_FACTORY = re.compile(
    r"^(get|build|create|make|configure|init|setup|prepare)_(\w+_)?optim(izer)?s?$", re.I
)
OPTIMIZER_WRAPPER = re.compile(r"Optim|SAM|Lookahead|SWA|FP16|ZeRO", re.I)
DATA_SCALERS = frozenset({"StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler"})
SCALE_ASKED = re.compile(r"get_scale|found_inf|overflow|skip", re.I)
"""Conditions that ask whether the scaler skipped the step."""
STEPS_BY_ITSELF = re.compile(r"optim|train_|_train|^fit|^learn|update_|^update|backward|_step$|^step_", re.I)
WRAPS_MODEL = re.compile(
    r"wrap|parallel|ddp|fsdp|compile|convert|shard|prepare|to_|^to$|unwrap|peft|lora|freeze", re.I
)
MODEL_FACTORY = re.compile(
    r"^(get|build|create|make|load|init)_(\w+_)?(model|net|network|generator|discriminator|policy)$|"
    r"[a-z0-9](Net|Model|GAN|VAE|Former|former|GPT|BERT|Bert)$|^from_pretrained$|^(Linear|Sequential)$"
)
