"""Messages said by `web` about the masks that a page asks for: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "masks.not_understood": (
        "mask={value!r} is no mask; leave it empty, or write full, or parts joined by points in this order: causal, window-8, prefix-3, documents-4-9, padding-2, with numbers from 1",
        "mask={value!r} 不是掩码；请留空，或写 full，或用点连接以下部分并保持顺序：causal、window-8、prefix-3、documents-4-9、padding-2，数字从 1 开始",
    ),
    "masks.documents": (
        "mask={value!r} names documents that do not begin one after another; write where each begins, rising: documents-4-9",
        "mask={value!r} 中各文档的开头不是依次递增的；请按递增顺序写出每个文档的开头：documents-4-9",
    ),
    "masks.prefix_alone": (
        "mask={value!r} has a prefix and nothing that it could open; write causal before it: causal.prefix-3",
        "mask={value!r} 有前缀，却没有可供它放开的限制；请在前面写上 causal：causal.prefix-3",
    ),
}
