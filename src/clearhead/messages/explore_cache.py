"""Messages said by `web` about the cache of a model: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cache.encoder": (
        "an encoder reads a whole text at once and writes nothing, so there is no cache; open a decoder or an encoder-decoder to see one",
        "编码器一次读完整段文本，不写任何内容，因此没有缓存；请打开解码器或编码器-解码器来查看",
    ),
}
