"""Messages said by `formats` about GGUF files: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "gguf.package": (
        'GGUF files are read with the package gguf, which is not installed; run: pip install "clearhead[gguf]"',
        '读取 GGUF 文件需要 gguf 包，尚未安装；请运行：pip install "clearhead[gguf]"',
    ),
    "gguf.unreadable": (
        "{path} cannot be read: {reason}; correct the path or its permissions",
        "无法读取 {path}：{reason}；请更正路径或其权限",
    ),
    "gguf.foreign": (
        "{path} is not a GGUF file: it does not begin with the letters GGUF; take another file",
        "{path} 不是 GGUF 文件：开头不是 GGUF 四个字母；请换一个文件",
    ),
    "gguf.big_endian": (
        "{path} is a GGUF file in big-endian byte order, which clearhead does not read; convert the model again as little-endian",
        "{path} 是大端字节序的 GGUF 文件，clearhead 不支持；请以小端字节序重新转换模型",
    ),
    "gguf.version": (
        "{path} is a GGUF file of version {found}, and clearhead reads {known}; convert the model again with a recent converter",
        "{path} 是版本 {found} 的 GGUF 文件，clearhead 可读 {known}；请用较新的转换器重新转换模型",
    ),
    "gguf.cut": (
        "{path} is cut short or damaged: {what} takes {wanted} bytes where {left} are left; take another copy",
        "{path} 被截断或已损坏：{what} 需要 {wanted} 字节，而只剩 {left} 字节；请换一份",
    ),
    "gguf.long": (
        "{path} is damaged: with {what} its header takes {end} bytes, and none takes more than {most}; take another copy",
        "{path} 已损坏：算上 {what} 文件头有 {end} 字节，而任何文件头都不超过 {most} 字节；请换一份",
    ),
    "gguf.not_text": (
        "{path} is damaged: {what} is not UTF-8 text; take another copy",
        "{path} 已损坏：{what} 不是 UTF-8 文本；请换一份",
    ),
    "gguf.not_name": (
        "{path} is damaged: what stands as the name of {what} is none; take another copy",
        "{path} 已损坏：{what} 的名称不成名称；请换一份",
    ),
    "gguf.value_type": (
        "{path}: {name} is of type {kind}, which no GGUF file has; the file is damaged, take another copy",
        "{path}：{name} 的类型是 {kind}，GGUF 没有这种类型；文件已损坏，请换一份",
    ),
    "gguf.nested": (
        "{path}: {name} has arrays inside arrays more than {most} deep; the file is damaged, take another copy",
        "{path}：{name} 的数组嵌套超过 {most} 层；文件已损坏，请换一份",
    ),
    "gguf.twice": (
        "{path} is damaged: {name} is there twice; take another copy",
        "{path} 已损坏：{name} 出现了两次；请换一份",
    ),
    "gguf.alignment": (
        "{path}: general.alignment is {value} and must be a power of two; the file is damaged, take another copy",
        "{path}：general.alignment 是 {value}，应为 2 的幂；文件已损坏，请换一份",
    ),
    "gguf.axes": (
        "{path}: the tensor {name} has {axes} axes, and none has more than {most}; the file is damaged, take another copy",
        "{path}：张量 {name} 有 {axes} 个轴，而最多 {most} 个；文件已损坏，请换一份",
    ),
    "gguf.shape": (
        "{path}: the tensor {name} has the impossible shape {shape}; the file is damaged, take another copy",
        "{path}：张量 {name} 的形状 {shape} 不可能；文件已损坏，请换一份",
    ),
    "gguf.format": (
        "{path}: the tensor {name} is stored as {kind}, which cannot be read; take the model as F16, Q8_0, Q4_K or another common format",
        "{path}：张量 {name} 以 {kind} 存储，无法读取；请使用 F16、Q8_0、Q4_K 或其他常见格式的模型",
    ),
    "gguf.block": (
        "{path}: the tensor {name} has rows of {width} numbers, and {kind} wants a multiple of {numbers}; the file is damaged, take another copy",
        "{path}：张量 {name} 每行 {width} 个数，而 {kind} 要求 {numbers} 的倍数；文件已损坏，请换一份",
    ),
    "gguf.askew": (
        "{path}: the tensor {name} begins at {offset}, which is no multiple of {alignment}; the file is damaged, take another copy",
        "{path}：张量 {name} 始于 {offset}，不是 {alignment} 的倍数；文件已损坏，请换一份",
    ),
    "gguf.outside": (
        "{path} is cut short or damaged: the tensor {name} ends at byte {end} and the file at {size}; take another copy",
        "{path} 被截断或已损坏：张量 {name} 结束于第 {end} 字节，而文件只有 {size} 字节；请换一份",
    ),
    "gguf.overlap": (
        "{path} is damaged: the tensor {name} begins inside {before}; take another copy",
        "{path} 已损坏：张量 {name} 始于 {before} 之内；请换一份",
    ),
    "gguf.key_missing": (
        "{path} lacks {name}; take a complete copy",
        "{path} 缺少 {name}；请使用完整的文件",
    ),
    "gguf.key_kind": (
        "{path}: {name} is {value} and must be {wanted}; the file is damaged or not what it says it is",
        "{path}：{name} 是 {value}，应为 {wanted}；文件已损坏或名不副实",
    ),
    "gguf.kind": (
        "{path} holds a {kind} and not a model; take the file of the model itself",
        "{path} 中是 {kind} 而不是模型；请使用模型本身的文件",
    ),
    "gguf.split": (
        "{path} is one of {count} parts of a model; join them first: llama-gguf-split --merge FIRST_PART WHOLE.gguf",
        "{path} 是模型的 {count} 个部分之一；请先合并：llama-gguf-split --merge FIRST_PART WHOLE.gguf",
    ),
    "gguf.architecture": (
        "{path} holds a model of the architecture {found}, which clearhead does not read; it reads {known}, {nearest} being the nearest",
        "{path} 中模型的架构是 {found}，clearhead 不支持；支持 {known}，其中最接近的是 {nearest}",
    ),
    "gguf.blocks": (
        "{path}: block_count is {blocks} and there are {tensors} tensors in all; the file is damaged, take another copy",
        "{path}：block_count 是 {blocks}，而总共只有 {tensors} 个张量；文件已损坏，请换一份",
    ),
    "gguf.uneven": (
        "{path}: {name} is {value}, another number for some blocks than for others, which is not supported; use a model whose blocks are alike",
        "{path}：{name} 是 {value}，各层的数值不同，目前不支持；请使用各层相同的模型",
    ),
    "gguf.turns": (
        "{path}: rope_freqs.weight is none of the scalings that clearhead knows (Llama 3's by 8 or 32); use a model with one of these",
        "{path}：rope_freqs.weight 不是 clearhead 已知的缩放（Llama 3 的 8 或 32 倍）；请使用其中之一的模型",
    ),
}
