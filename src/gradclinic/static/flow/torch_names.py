"""What torch's layers, functions and losses are called, and what they do to a value."""

from __future__ import annotations

from gradclinic.static.words import names

LAYERS = {
    "Linear": "linear", "LazyLinear": "linear", "Bilinear": "linear",
    "Conv1d": "conv", "Conv2d": "conv", "Conv3d": "conv", "LazyConv2d": "conv",
    "ConvTranspose1d": "conv", "ConvTranspose2d": "conv", "ConvTranspose3d": "conv",
    "ReLU": "relu", "Tanh": "tanh", "Sigmoid": "sigmoid", "Softmax": "softmax", "Softmax2d": "softmax",
    "LogSoftmax": "log_softmax", "LogSigmoid": "logsigmoid",
    "Dropout": "dropout", "Dropout1d": "dropout", "Dropout2d": "dropout", "Dropout3d": "dropout",
    "BatchNorm1d": "batch_norm", "BatchNorm2d": "batch_norm", "BatchNorm3d": "batch_norm",
}  # fmt: skip
"""By class, the operation in the words of `facts.Op`; others go by their own name."""
WEIGHTLESS = names(
    "ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Tanh Sigmoid Hardtanh Hardsigmoid Hardswish "
    "Softplus Softsign Softmax Softmax2d LogSoftmax LogSigmoid Softmin Dropout Dropout1d Dropout2d "
    "Dropout3d AlphaDropout MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d "
    "AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d Upsample PixelShuffle "
    "ZeroPad2d ReflectionPad2d Flatten Identity Unflatten GLU Threshold Softshrink Hardshrink"
)
SHAPE_LAYERS = names("Flatten Unflatten Identity")
RETURNS = {
    "LSTM": "state", "GRU": "pair", "RNN": "pair", "LSTMCell": "pair", "MultiheadAttention": "pair",
}  # fmt: skip
CONTAINERS = names("ModuleList ModuleDict ParameterList ParameterDict")

LOSSES = {
    "CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "NLLLoss2d": "nll_loss",
    "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "MSELoss": "mse_loss", "L1Loss": "l1_loss", "SmoothL1Loss": "smooth_l1_loss", "HuberLoss": "huber_loss",
    "KLDivLoss": "kl_div", "PoissonNLLLoss": "poisson_nll_loss", "GaussianNLLLoss": "gaussian_nll_loss",
    "CTCLoss": "ctc_loss", "TripletMarginLoss": "triplet_margin_loss",
    "MarginRankingLoss": "margin_ranking_loss",
    "CosineEmbeddingLoss": "cosine_embedding_loss", "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss",
    "MultiMarginLoss": "multi_margin_loss", "SoftMarginLoss": "soft_margin_loss",
    "HingeEmbeddingLoss": "hinge_embedding_loss",
}  # fmt: skip
LOSS_FUNCTIONS = frozenset(LOSSES.values())
SETTINGS_AT = {
    "cross_entropy": ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction"),
    "nll_loss": ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction"),
}
"""Positions of a functional loss's arguments, where they are ever passed by position."""

SHAPING = names(
    "view reshape squeeze unsqueeze permute transpose t contiguous flatten unflatten expand expand_as "
    "view_as reshape_as movedim moveaxis swapaxes chunk split unbind narrow select index_select repeat "
    "gather masked_select take T mT swapdims tile roll flip resize resize_ resize_as_"
)
"""Other shape, same values."""
UNCHANGED = names(
    "to cuda cpu float double half bfloat16 type type_as clone requires_grad_ pin_memory retain_grad xpu "
    "Variable squeeze_ unsqueeze_ as_tensor asarray"
)
MAY_COPY = names("to cuda cpu float double half bfloat16 type type_as clone xpu")
"""Of these, what may well be a copy."""
REDUCING = names("mean sum")
PLAIN = names(
    "size dim numel shape ndim dtype device argmax argmin argsort eq ne gt lt ge le any all nonzero "
    "multinomial bernoulli sign isnan isinf isfinite is_contiguous stride element_size data_ptr tolist "
    "topk"
)
"""Methods whose result has no gradient to lose."""
CREATING = names(
    "randn rand zeros ones randint arange empty full eye linspace normal zeros_like ones_like randn_like "
    "rand_like full_like empty_like tensor from_numpy randperm FloatTensor LongTensor Tensor IntTensor "
    "DoubleTensor ByteTensor BoolTensor HalfTensor load"
)
BLANK = names("zeros empty full zeros_like empty_like full_like new_zeros new_empty new_full")
COPYING = names("tensor Tensor FloatTensor DoubleTensor LongTensor")
"""Make a new leaf of whatever they are given."""
WRAPPING = names(
    "DataParallel DistributedDataParallel FullyShardedDataParallel DDP FSDP compile script "
    "prepare spectral_norm weight_norm convert_sync_batchnorm prepare_model trace"
)
"""Give back the module they are given, in a coat."""
MODULE_SAME = names(
    "to cuda cpu half float double bfloat16 train eval requires_grad_ compile share_memory apply type xpu "
    "module"
)
SAVES_RESULT = frozenset({"sigmoid", "tanh", "softmax", "log_softmax", "relu", "exp", "sqrt"})
"""Operations whose backward needs the very value they returned."""
WEIGHS = frozenset({"linear", "conv"})
"""Layers whose backward to their input needs the very weights of the forward."""
OF_TENSORS_ONLY = names("exp log sqrt square pow abs clamp sigmoid tanh softmax mean sum prod")
"""Methods that no number has."""
