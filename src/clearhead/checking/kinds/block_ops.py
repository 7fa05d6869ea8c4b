"""Names of operations, by what they do to a stream."""

from __future__ import annotations

ADDED = frozenset((
    "__add__", "__iadd__", "__radd__", "add", "add_",
))  # fmt: skip
"""Sums."""

TAKEN = frozenset((
    "__isub__", "__rsub__", "__sub__", "rsub", "sub", "sub_", "subtract",
))  # fmt: skip
"""Differences."""

TIMES = frozenset((
    "__imul__", "__mul__", "__rmul__", "mul", "mul_", "multiply",
))  # fmt: skip
"""Products, element by element."""

OVER = frozenset((
    "__itruediv__", "__truediv__", "div", "div_", "divide", "true_divide",
))  # fmt: skip
"""Quotients, element by element."""

PASSING = frozenset((
    "T", "__getitem__", "alias", "alpha_dropout", "bfloat16", "cat", "clone", "concat", "contiguous", "data", "detach", "double", "dropout",
    "dropout1d", "dropout_", "expand", "expand_as", "feature_dropout", "flatten", "float", "half", "identity", "mT", "masked_fill",
    "masked_fill_", "movedim", "nan_to_num", "narrow", "pad", "permute", "requires_grad_", "reshape", "reshape_as", "squeeze", "swapaxes",
    "swapdims", "to", "transpose", "type", "type_as", "unflatten", "unsqueeze", "view", "view_as",
))  # fmt: skip
"""What changes no value of the stream: types, views, dropout in evaluation, padding set to a constant, tokens put before it."""

NORMS = frozenset((
    "batch_norm", "fused_rms_norm", "group_norm", "instance_norm", "layer_norm", "native_layer_norm", "normalize", "rms_norm",
))  # fmt: skip
"""Norms that PyTorch has a function for."""

REDUCING = frozenset((
    "amax", "linalg_vector_norm", "logsumexp", "max", "mean", "norm", "std", "std_mean", "sum", "var", "var_mean", "vector_norm",
))  # fmt: skip
"""What makes one number of several."""

STATISTIC = REDUCING | ADDED | TAKEN | TIMES | OVER | frozenset((
    "__getitem__", "__pow__", "__rdiv__", "__rtruediv__", "abs", "clamp", "clamp_", "clamp_min", "clone", "contiguous", "data", "detach",
    "double", "exp", "expand", "float", "log", "maximum", "pow", "pow_", "reciprocal", "reshape", "rsqrt", "rsqrt_", "sqrt", "sqrt_", "square",
    "to", "type_as", "unsqueeze", "view",
))  # fmt: skip
"""What a statistic is made with: reductions, and functions of them."""

LINEAR = frozenset((
    "__matmul__", "__rmatmul__", "addmm", "baddbmm", "bmm", "conv1d", "conv2d", "einsum", "linear", "matmul", "mm", "tensordot",
))  # fmt: skip
"""Products with a matrix."""

FUSED = frozenset((
    "_native_multi_head_attention", "multi_head_attention_forward", "scaled_dot_product_attention",
))  # fmt: skip
"""Attention in one operation."""

BENDS = frozenset((
    "__pow__", "abs", "celu", "clamp", "clamp_", "clamp_min", "elu", "elu_", "erf", "exp", "gelu", "gelu_", "glu", "hardsigmoid", "hardswish",
    "hardtanh", "leaky_relu", "leaky_relu_", "logsigmoid", "max", "maximum", "mish", "pow", "prelu", "relu", "relu6", "relu_", "rrelu", "selu",
    "sigmoid", "sigmoid_", "silu", "silu_", "softmax", "softplus", "softsign", "square", "tanh", "tanh_", "threshold", "where",
))  # fmt: skip
"""Operations that are no linear maps; a product of two tensors of the stream is none either."""

GATES = TIMES | {"lerp", "where", "gru_cell", "addcmul"}
"""What may let a share of the stream through, as told by the input itself."""

JOINING = frozenset({"cat", "concat", "stack", "hstack", "vstack"})
"""Linear in all that they join."""

PARTING = frozenset({"__getitem__", "chunk", "narrow", "split", "tensor_split", "unbind"})
"""What gives a part of what it is given."""
