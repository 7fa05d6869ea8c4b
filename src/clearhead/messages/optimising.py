"""Messages said by `optimising`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "optimising.no_parts": (
        "logits can be made in chunks for a model of tokens that this library built, not for {model}; leave logits_at_once out",
        "只有本库构建的 token 模型才能分块计算 logits，{model} 不行；请不要给出 logits_at_once",
    ),
    "optimising.not_tokens": (
        "label smoothing and logits in chunks are for losses of tokens; leave label_smoothing and logits_at_once out",
        "标签平滑和分块计算 logits 只适用于 token 的损失；请不要给出 label_smoothing 和 logits_at_once",
    ),
    "optimising.no_matrices": (
        "muon moves the matrices of linear layers inside blocks, and none is trained here; choose the optimiser adamw",
        "muon 更新各个块内线性层的矩阵，而这里没有要训练的这类矩阵；请选择优化器 adamw",
    ),
}
