"""Names that tell what a thing is: torch's own, and the ones people give to theirs."""

from __future__ import annotations

import builtins
import re
from functools import cache, lru_cache


class Pattern:
    """A regular expression that remembers its answers: a file asks about few names, over and over."""

    __slots__ = ("match", "search")

    def __init__(self, text: str, flags: int = 0) -> None:
        # Compiled when first asked: a file that trains nothing asks for none of them.
        compiled = cache(lambda: re.compile(text, flags))
        self.search = lru_cache(maxsize=4096)(lambda name: compiled().search(name))
        self.match = lru_cache(maxsize=4096)(lambda name: compiled().match(name))


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TORCH_OPTIMIZERS = names(
    "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD SparseAdam"
)
TORCH_SCHEDULES = names(
    "ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR "
    "LambdaLR LinearLR MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR ReduceLROnPlateau "
    "SequentialLR StepLR"
)
SCHEDULE_BUILDERS = Pattern(r"^get_\w*schedule\w*$|^get_scheduler$|^(Warmup\w*|ConstantLR)Schedule$")
"""Functions of transformers and diffusers that return a torch LambdaLR, and the classes they once were."""
SCHEDULE_LENGTHS = ("T_max", "total_steps", "total_iters", "num_training_steps", "t_total", "training_steps")
GRAD_SCALERS = names("GradScaler ShardedGradScaler")
DATA_SCALERS = names("StandardScaler MinMaxScaler RobustScaler MaxAbsScaler")
WRAPPERS = names(
    "DataParallel DistributedDataParallel FullyShardedDataParallel DDP FSDP compile convert_sync_batchnorm "
    "quantize_dynamic"
)
"""What takes a model and returns the same model in a coat."""
CLIPS = names("clip_grad_norm_ clip_grad_norm clip_grad_value_ clip_grads_with_norm_ clip_gradients")
OWN_CLIP = Pattern(r"_?(clip_(the_)?grad(s|ients?)?(_norms?|_values?)?|grad(ient)?s?_clip(ping)?)_?$")
"""What a project calls its own."""
CLIP_FUNCTION = Pattern(
    r"(grad(ient)?s?_?clip(per|ping)?|clip_?(grad(ient)?s?)?(_norm|_value)?)_?(fn|fun|func|function)$"
)
"""What holds one that was chosen elsewhere."""
MODULE_METHODS = names(
    "parameters named_parameters train eval zero_grad state_dict load_state_dict to cuda cpu half float "
    "forward backward step requires_grad_ modules children named_modules apply no_sync register_buffer"
)

LOSS_FUNCTION = Pattern(r"loss|cross_?entropy|nll|kl_div|_bce|^bce|criterion", re.I)
CRITERION_NAME = Pattern(
    r"(^|_)(crit(?!ic)\w*|loss_?(fn|func|function|fct|f|layer|module|obj)?|bce|mse|ce|l1)$|loss$", re.I
)
GOES_OVER = Pattern(r"^(log_every|progress\w*|track|iterate|with_progress)$")
"""Functions that show how far they are with what they are given to go over."""
LOSS_NAME = Pattern(r"loss|^err|_err|objective|^cost", re.I)

OPTIMIZER_NAME = Pattern(r"(^|_)(opt(im(izer)?)?s?)(\d*$|_|$)|optim", re.I)
OPTIMIZER_CLASS = Pattern(
    r"Adam|SGD|Optim|Lion|Adafactor|LAMB|LARS|RMSprop|Muon|Prodigy|Shampoo|Ranger|Adan|Sophia|MADGRAD", re.I
)
OPTIMIZER_FACTORY = Pattern(
    r"^(get|build|create|make|configure|init|setup|prepare)_(\w+_)?optim(izer)?s?(_v\d)?$", re.I
)
OPTIMIZER_WRAPPER = Pattern(r"Optim|SAM|Lookahead|SWA|FP16|ZeRO", re.I)
NOT_AN_OPTIMIZER = Pattern(
    r"^(envs?|environment|world|game|sim|simulator|simulation|physics|gym|prof|profiler|p|sampler)\d*$|"
    r"stopp(er|ing)$|checkpointer$|_envs?$|[pP]rofiler?(\(\))?$|(Soft|Hard)Update\(\)$|(evaluator|calculator|meter|metric)s?$"
)
SCHEDULE_NAME = Pattern(r"sched|lr_decay|annealer|warmup", re.I)
SCALER_NAME = Pattern(r"scaler$|^scaler|_scaler", re.I)
MODEL_NAME = Pattern(
    r"(^|_)(model|net|network|module|generator|discriminator|critic|actor|policy|encoder|decoder|classifier|"
    r"backbone|agent|unet|transformer|gan|vae|student|teacher|engine|model_engine|ddp|fsdp)s?(_?[a-z0-9])?$|"
    r"net[A-Z]?$|^[GD](_[A-Za-z0-9]+)?$|^model|[a-z]Model$|_net|^net_"
)
NOT_A_MODEL = Pattern(
    r"^(get|build|create|make|load|init)_|"
    r"(builder|factory|cls|class|fn|func|name|path|dir|file|config|cfg|args|type|state|dict|ema|opt\w*|"
    r"_(len|length|size|dim|id|ids|names|kwargs|version|info|arch|inputs?|outputs?|preds?|dtype|root|hash))$|optim",
    re.I,
)
MODEL_FACTORY = Pattern(
    r"^(get|build|create|make|load|init)_(\w+_)?(model|net|network|generator|discriminator|policy)$|"
    r"[a-z0-9](Net|Model|GAN|VAE|Former|former|GPT|BERT|Bert)$|^from_pretrained$"
)
WRAPS_MODEL = Pattern(
    r"wrap|parallel|ddp|fsdp|compile|convert|shard|prepare|to_|^to$|unwrap|peft|lora|freeze", re.I
)
DRIVER_NAME = Pattern(r"agent|trainer|learner|runner|engine|solver", re.I)
"""What holds a model and drives its training."""
STEPS_BY_ITSELF = Pattern(r"optim|train_|_train|^fit|^learn|update_|^update|backward|_step$|^step_", re.I)
"""Methods of a model that may well update it,"""
_LOOKS_ON = Pattern(
    r"^_?(get|print|show|log|load|save|register|num|count|is|has|list|dump|export)_(?!.*_and_)|^forward_train(ing)?$",
    re.I,
)
"""unless they begin with a word for what changes no weight: `load_pretrain_params`; or merely go forward."""
AVERAGE = Pattern(r"(^|[._])(\w+_)?(ema|swa|averaged?)(_\w+)?$|ema$", re.I)
"""Averages of the weights of a model: their `update` and `step` read those, and train nothing."""
AVERAGES = Pattern(
    r"(^|_)(soft|hard|polyak|moving|ema|momentum|target|teacher|key)_(\w+_)?updates?(_|$)|"
    r"(^|_)updates?_(\w+_)?(ema|swa|target|teacher|average|moving|momentum|key)",
    re.I,
)
"""What moves one model towards another: `soft_update(target, model)`, `model.update_moving_average()`."""

SETTINGS = Pattern(
    r"(^|[._=])(args?|cfg|config|conf|hparams?|hps|flags|options?|params|settings|hyp)(\.|\[|=|$)", re.I
)
"""Paths that lead through a configuration."""
SETTING_NAME = Pattern(
    r"_(type|name|rate|lr|steps?|epochs?|kwargs|args|config|cfg|params|cls|class|class_path|fn|func|interval|freq|"
    r"state|state_dict|path|ckpt|factor|ratio|iters?|decay|momentum|eps|size|dim|mode)$"
)
ACCUMULATION_NAME = Pattern(
    r"accum|micro_?(batch|step)|update_(freq|every|interval|step)$|grad(ient)?_?(steps|every|iters)|iter_size|"
    r"virtual_|batch_?(split|multipl)|subdivision|backward_passes_per",
    re.I,
)
AMOUNT_NAME = Pattern(
    r"(^|_)(counts?|n(um)?(_\w+)?|n?(tokens|samples|words|frames|examples)|sample_size|denom\w*)$", re.I
)
"""What a loss that is a sum is given back with, for others to divide by."""
UPDATES_NAME = Pattern(
    r"max_train(ing)?_steps|(num|total)_(train(ing)?|update|optimi[sz]ation)_steps|(max|total|num)_updates$",
    re.I,
)
"""Lengths of a training that are counted in optimizer updates by convention."""
EPOCH_NAME = Pattern(
    r"^(?!.*(per_?epoch|epoch_?(len|size|steps|iter|batch|p?bar|loader|data)|(len|size)_?epoch)).*epoch", re.I
)
"""What counts epochs, and not what is in one: `steps_per_epoch`, `epoch_iterator`."""
LOADER_NAME = Pattern(
    r"load|batch|data|train|(^|_)dl$|_iter$|iterator|generator|sampler|bar$|pbar|progress|corpus|examples|samples|"
    r"stream|reader|prefetch|queue",
    re.I,
)
SAMPLES_NAME = Pattern(r"(dataset|_set|data|samples|corpus)$", re.I)
"""Collections of single samples, not of batches."""
SEVERAL_LOSSES = Pattern(
    r"loss|task|head|term|objective|domain|level|scale|layer|param|optim|model|key|name", re.I
)
"""What is looped over within one batch."""
FETCH_FUNCTION = Pattern(
    r"^_?(get|next|load|sample|fetch|make|generate)_?(next)?_?(mini)?_?(train_?)?batch|^next$|^get_data$"
)
AVERAGES_GRADIENTS = Pattern(r"(average|avg|sync\w*|reduce)_?\w*grad|grad\w*_(average|sync|reduce)", re.I)
"""Functions that average gradients over ranks by hand."""
FILLS_GRADIENTS = Pattern(
    r"backward|backprop|(^|_)(accum\w*|compute|calc\w*|collect|estimate)_(\w+_)?grad(s|ients?)?$|"
    r"_(and|with)_grad(s|ients?)?$",
    re.I,
)
"""Functions that may well call backward, or do what it does."""
MAY_TRAIN = Pattern(
    r"train|fit|learn|optim|minimi|maximi|step|update|backward|backprop|grad|clip|zero|clear|reset|clean|flush|"
    r"before|after|hook|run|process|perform|exec|handle|iter|epoch|batch|closure|regular|penal|accum|loop|inner|adapt|"
    r"attack|search|tune|round|phase|stage|cycle|play|perturb|fn$|func|callback|call|solve|calibrat|"
    r"(^|_)(do|on|pre|post|begin|start|end|finish|main|work|go|f|op)(_|$)",
    re.I,
)
"""Functions that may well train, clear or clip, and those that may do anything."""
EVALUATES = Pattern(r"_*((run|do)_)?(vali(d|_|$)|val_|val$|eval|test_|test$)", re.I)
"""Functions that by their name measure a model and do not train it."""
TAKES_ACCURACY = Pattern(r"(^|_)acc(uracy)?(_|$)", re.I)
HELD_OUT = Pattern(
    r"(^|_)(val|valid|validation|test|testing|eval|evaluation|held_?out|hold_?out)s?"
    r"($|_|\d|(data|load|set|iter|gen|dl$|ds$|batch|sampl|sequence|queue|feed|x$))|"
    r"(^|_)dev_?(data|load|set|iter|dl$|ds$|batch|x$)|^dev$",
    re.I,
)
"""Data that nothing is trained on."""
MEASURES = Pattern(r"acc(uracy)?$|^acc|correct|metric|(val|test|eval)\w*_?loss|loss|score|error", re.I)
"""What an evaluation is for."""
MEASURES_HELD_OUT = Pattern(
    r"(^|_)(hits?|m?iou|ious|dice|psnr|ssim|auc|auroc|f1|precision|recall|bleu|rouge|wer|cer|rmse|mse|mae|mape|"
    r"pred|prediction|predicted)s?($|_)|"
    r"argmax|confusion",
    re.I,
)
"""And other names for it, of which some mean something else where anything but held-out data is gone over."""
KEEPS_RECORDS = Pattern(
    r"meter|metric|logger|writer|tracker|recorder|history|wandb|tensorboard|progress|(^|_)p?bar$|averager?$",
    re.I,
)
"""Objects that are told of losses in order to show them,"""
ADDS_UP = Pattern(r"(loss(es)?|acc(uracy)?)(_dict)?(\[.*\])?$", re.I)
"""and those that most likely are; a sum of losses may also go backward,"""
LEARNS_FROM = Pattern(r"optimi[sz]e|minimi[sz]e|backward|train|step", re.I)
"""unless they are asked for more."""
TOGGLES_GRADIENTS = Pattern(r"freeze|(toggle|require|set|enable|disable|switch)s?_\w*grad", re.I)
"""Functions that are given a model in order to say whether it needs gradients."""
SETS_MODE = Pattern(r"(set|switch|toggle|change)_?\w*(train|eval|mode)|(train|eval)_?mode", re.I)
"""Functions that put a model into train or eval mode."""
SCALE_ASKED = Pattern(r"get_scale|found_inf|overflow|skip", re.I)
"""Conditions that ask whether the scaler skipped the step."""

TEST_FILE = Pattern(r"(^|[/\\])(tests?[/\\][^/\\]*|test_[^/\\]*|[^/\\]*_test)\.py$")
"""Files of tests: they go a few steps, and what costs memory or time does not matter there."""

_HARMLESS = (
    "log|print|append|add_|meter|metric|write|record|track|format|accura|acc$|score|item|float|int$|str$|repr|save|load|"
    "dump|state|checkpoint|resume|lr|learning_rate|len$|isinstance|hasattr|getattr|type|id$|zip|enumerate|list|dict|"
    "tuple|set_|sorted|deepcopy|copy|wandb|tensorboard|info|debug|warning|report|display|show|plot|draw|visual|summar|"
    "count|num_|profile|flops|watch|name|describe|seed|is_?|has_|get_|device|finite|reduce|gather|average|avg|all_|"
    "barrier|sync|broadcast|norm|history|stat|monitor|timer|time|export|push|upload|assert|check|verify|valid|sched|"
    "param_group|group|freeze|unfreeze"
)
HARMLESS = Pattern(rf"(^|_)({_HARMLESS})", re.I)
_MAKES_READY = Pattern(
    r"^_*(?!\w*(check_?point|snapshot|sample|stat(?!e)|acc(?!um)|metric|meter|summar|hidden|timer|seed|vi[sz]|graph|log|"
    r"print|plot|dir|path|image|figure|data|input))"
    r"((get|make)_(ready|room)|format_\w*grad|prepare|set_?up|init(ialize)?(_\w*(step|batch|iter|update|grad)|$))",
    re.I,
)
"""Words for making something ready. Called for every batch and for nothing that they give, `prepare(model)`
and `get_ready(optimizer)` are there for what they do; `make_samples(model, x)` is there for samples."""
HARMLESS_FOR_MODEL = Pattern(
    rf"(^|_)({_HARMLESS}|eval|test|infer|predict|generate|sample|ema|init|wrap|parallel|compil|convert|quant|prune|cuda|"
    r"to_|to$|build|create|make|setup|prepare|loss|crit|forward|encode|decode|embed|swap|apply|register|requires|toggle|"
    r"params|decay|shard|fsdp|ddp|lora|peft|adapter|tie|resize|rollout|clip_weights|weight_clip|clamp|early_?stop)|loss|eval|valid|"
    r"ema|^from_",
    re.I,
)
_DOES_MORE = Pattern(
    r"(zero|clear|reset|wipe|empty|none)(?!\w*(meter|metric|log|cache|seed|stat|output|shot|hidden|env|timer|count))|"
    r"_(and|then)_\w*(step|update|advance|backward|optimi|train)",
    re.I,
)
"""Words for more than looking on, whatever else a function is there for: `check_and_zero`, `log_and_step`."""
PURE = names(
    "item mean sum max min abs argmax softmax size numel view reshape permute transpose squeeze unsqueeze "
    "to cuda cpu long float int bool str len detach numpy tolist clone cat stack randn rand zeros ones "
    "tensor range sqrt exp pow eq any all join split strip keys values items get time perf_counter "
    "manual_seed synchronize empty_cache print format enumerate zip round sorted isinstance from_numpy "
    "arange full topk flatten sigmoid tanh contiguous array dim"
)
"""Functions and methods that change nothing they are given."""


PYTHONS_OWN = frozenset(dir(builtins)) - {"setattr", "delattr", "exec", "eval"}
"""Functions of Python itself that change no attribute of what they are given."""


def called(word: str, text: str) -> bool:
    """Whether a source calls it by that name, and does not define it only."""
    # What begins with letters is searched for fast.
    pattern = rf"{word}(?<!def {word})(?:(?<!\w{word})|(?<=manual_{word})|(?<=optimizer_{word}))\s*[\[(\\]"
    return word in text and re.search(pattern, text) is not None


def steps_by_itself(name: str) -> bool:
    return STEPS_BY_ITSELF.search(name) is not None and _LOOKS_ON.match(name) is None


_LOSSES = ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss")


def speaks_of_losses(text: str) -> bool:
    """Whether a source has a loss that minds what it is given: scores, probabilities or their logarithms."""
    return any(word in text for word in _LOSSES)


def harmless(name: str) -> bool:
    """Whether a function of another file with such a name is taken not to touch gradients."""
    return HARMLESS.search(name) is not None and _DOES_MORE.search(name) is None


def makes_ready(name: str) -> bool:
    """Whether a function by its name makes ready what it is given, which may mean to clear gradients."""
    return _MAKES_READY.match(name) is not None


def harmless_for_model(name: str) -> bool:
    """The same for one that is given a model or a loss only."""
    return HARMLESS_FOR_MODEL.search(name) is not None and _DOES_MORE.search(name) is None
