"""Messages said by `tracing`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "tracing.no_name": (
        "no tensor of this model is called {names}; `clearhead trace MODEL` lists all names, * stands for anything",
        "该模型没有名为 {names} 的张量；`clearhead trace MODEL` 列出全部名称，* 代表任意内容",
    ),
    "tracing.no_tokenizer": (
        "a text needs a tokenizer, and a bare model has none; give ids, or what `load` gave",
        "文本需要分词器，而单独的模型没有；请给 id，或给 `load` 返回的对象",
    ),
    "tracing.no_target": (
        "the decoder has nothing to read; give target= with at least one id",
        "解码器没有可读的内容；请给 target=，至少一个 id",
    ),
    "tracing.edit_shape": (
        "the edit of {name} gave {found} in place of {wanted}; it must give the same shape",
        "对 {name} 的修改给出 {found}，应为 {wanted}；形状必须相同",
    ),
}
