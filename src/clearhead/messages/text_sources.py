"""Messages said by the readers of `text`: sources, files in blocks, splits, .csv and .jsonl: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "text.damaged_gzip": (
        "{path} is no whole .gz file: compress it again, or drop .gz from its name if it is not compressed.",
        "{path} 不是完整的 .gz 文件：请重新压缩；如果它没有压缩，请去掉文件名中的 .gz。",
    ),
    "text.pipe": (
        "{path} is no plain file, and a text is read more than once: save it to a file first.",
        "{path} 不是普通文件，而文本要读多次：请先存成文件。",
    ),
    "text.replaced": (
        "{path}: {count:,} places are not {encoding} and became U+FFFD, the first at offset {offset:,}",
        "{path}：有 {count:,} 处不是 {encoding} 编码，已改为 U+FFFD，第一处在偏移 {offset:,}",
    ),
}
