"""Messages said by `layers` and `models`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "models.id_outside": (
        "token id {id} is outside the vocabulary of {vocab}; ids run from 0 to vocab - 1",
        "token id {id} 超出了大小为 {vocab} 的词表；id 的范围是 0 到词表大小减 1",
    ),
    "models.no_tokens": (
        "there are no tokens to read; give at least one",
        "没有可读的 token；请至少给出一个",
    ),
    "models.too_long": (
        "{length} positions do not fit the model's context of {context}; shorten the input or build a longer context",
        "{length} 个位置超出了模型的上下文长度 {context}；请缩短输入，或使用更长上下文的模型",
    ),
    "models.source_too_long": (
        "the source needs {length} positions, its marks included, and this model reads {context}; shorten it, or train with a"
        " longer --model.source_context",
        "源连同标记需要 {length} 个位置，而该模型只能读 {context} 个；请缩短源，或用更大的 --model.source_context 训练",
    ),
    "models.no_segments": (
        "this model has no segments; leave them out, or build one with EncoderConfig(segments=2)",
        "这个模型没有段（segments）；请不要给出，或用 EncoderConfig(segments=2) 构建",
    ),
    "models.not_divisible": (
        "{larger} = {larger_value} is not divisible by {smaller} = {smaller_value}; choose {smaller} from {divisors}",
        "{larger} = {larger_value} 不能被 {smaller} = {smaller_value} 整除；{smaller} 可选 {divisors}",
    ),
    "models.too_small": (
        "{field} = {value} must be at least {least}",
        "{field} = {value} 至少应为 {least}",
    ),
    "models.not_probability": (
        "{field} = {value} must be at least 0 and below 1",
        "{field} = {value} 必须不小于 0 且小于 1",
    ),
    "models.out_of_range": (
        "{field} = {value} must be {wanted}",
        "{field} = {value} 应为 {wanted}",
    ),
    "models.clash": (
        "{first} and {second} do not go together; choose {instead}",
        "{first} 与 {second} 不能同时使用；请选择 {instead}",
    ),
    "models.sight_positions": (
        "a block of a cycle can have Rotary or NoPositions of its own, not {name}",
        "cycle 中的块只能单独使用 Rotary 或 NoPositions，不能用 {name}",
    ),
    "models.nothing_turned": (
        "Rotary with fraction {fraction} turns no pair of a head width of {width}; give a larger fraction or heads of width 2 or more",
        "fraction 为 {fraction} 的 Rotary 在宽度为 {width} 的头里一对特征也不旋转；请增大 fraction，或使头宽不小于 2",
    ),
    "models.no_preset": (
        "there is no preset {name}; there are {known}",
        "没有名为 {name} 的预设；可选 {known}",
    ),
    "models.unknown_type": (
        "there is no {kind} called {name}; there are {known}",
        "没有名为 {name} 的 {kind}；可选 {known}",
    ),
    "models.unknown_field": (
        "{name} has no field {field}; it has {known}",
        "{name} 没有字段 {field}；它的字段有 {known}",
    ),
    "models.no_device": (
        "there is no device {name} here; there is {there}",
        "这里没有设备 {name}；可用的有 {there}",
    ),
    "models.no_dtype": (
        "there is no number type {name}; there are {known}",
        "没有数值类型 {name}；可选 {known}",
    ),
    "models.missing_field": (
        "{name} lacks the field {field}; add it",
        "{name} 缺少字段 {field}；请补上",
    ),
    "models.wrong_type": (
        "{name}.{field} = {value!r} must be {wanted}",
        "{name}.{field} = {value!r} 应为 {wanted}",
    ),
}
