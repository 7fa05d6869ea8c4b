"""Messages said by `web` about the alignment of two texts: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "alignment.one_text": (
        "this model reads one text and has no cross-attention; ask for the alignment of an encoder-decoder",
        "该模型只读一段文本，没有交叉注意力；请对编码器-解码器查看对齐",
    ),
    "alignment.no_layer": (
        "a head is one of a layer; add layer= to the address, or leave head= out",
        "头属于某一层；请在地址中加上 layer=，或去掉 head=",
    ),
}
