"""Messages said by `adapting`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "adapting.no_targets": (
        "lora.targets is empty; name patterns of linear layers, such as {usual}",
        "lora.targets 为空；请给出线性层名称的模式，例如 {usual}",
    ),
    "adapting.not_low_rank": (
        "the run's description says lora = {found!r}, which is no LoRA setting; restore its config.json",
        "运行的描述中 lora = {found!r}，不是 LoRA 设置；请恢复其 config.json",
    ),
    "adapting.no_such_layer": (
        "lora.targets: no linear layer is called {pattern}; there are {known}",
        "lora.targets：没有名为 {pattern} 的线性层；现有 {known}",
    ),
    "adapting.shared": (
        "lora.targets: {name} shares its weight with the embedding (tied) and cannot change alone; leave it out",
        "lora.targets：{name} 与嵌入共享权重（tied），不能单独改变；请不要包括它",
    ),
    "adapting.dropout": (
        "lora.dropout cannot be had by {name}, which is read in parts; use dropout 0, or targets without it",
        "lora.dropout 不适用于分块读取的 {name}；请用 dropout 0，或在 targets 中去掉它",
    ),
    "adapting.other_init": (
        "{model} holds other weights now than {out} was to begin with; delete {out} and train again",
        "{model} 现在的权重不是 {out} 本应开始时的权重；请删除 {out} 并重新训练",
    ),
    "adapting.not_begun": (
        "{out} was to begin with the weights of {model} and holds no checkpoint yet; delete it and train again",
        "{out} 本应从 {model} 的权重开始，但还没有检查点；请删除它并重新训练",
    ),
}
