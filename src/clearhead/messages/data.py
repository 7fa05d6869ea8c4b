"""Messages said by `training` of its batches: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "training.batch_of_ranks": (
        "a batch of {batch} cannot be shared by {ranks} processes; give a --batch of at least {ranks}",
        "批大小 {batch} 不够分给 {ranks} 个进程；请把 --batch 设为至少 {ranks}",
    ),
    "training.no_window": (
        "no text has more than {context} tokens, the context; give a longer text, or a smaller --model.context",
        "没有一个文本多于 {context} 个 token（上下文长度）；请给出更长的文本，或调小 --model.context",
    ),
    "training.nothing_to_learn": (
        "there is nothing to learn: no token of the {documents} documents comes after another; give longer texts",
        "没有可学的内容：{documents} 个文档中没有任何 token 排在另一个之后；请给出更长的文本",
    ),
    "training.nothing_to_hide": (
        "there is nothing to learn: the {documents} documents have no token that could be hidden; give longer texts",
        "没有可学的内容：{documents} 个文档中没有可以遮住的 token；请给出更长的文本",
    ),
}
