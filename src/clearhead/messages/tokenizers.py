"""Messages said by `tokenizers`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "text.library_refuses": (
        "The tokenizer cannot be read ({reason}): give a tokenizer.json of the `tokenizers` library.",
        "无法读取该分词器（{reason}）：请给出 `tokenizers` 库的 tokenizer.json。",
    ),
    "text.library_empty": (
        "The tokenizer has no token at all: give one that was trained, or train one with `clearhead tokenizer train`.",
        "该分词器没有任何 token：请给出训练过的分词器，或用 `clearhead tokenizer train` 训练一个。",
    ),
    "text.library_id": (
        "The tokenizer has the id {id}; {most:,} ids are the most that are read: the file is damaged, get it again.",
        "该分词器含有编号 {id}，而最多读取 {most:,} 个编号：文件已损坏，请重新获取。",
    ),
    "text.library_shared_id": (
        "Two tokens of the tokenizer share one id: the file is damaged, get it again.",
        "该分词器有两个 token 共用一个编号：文件已损坏，请重新获取。",
    ),
    "text.library_mark": (
        "The tokenizer's {name} is {id}, which is none of its special ids: choose a special token's id, or none.",
        "分词器的 {name} 是 {id}，不是它的特殊编号：请选用某个特殊 token 的编号，或不设。",
    ),
    "text.library_rows": (
        "The tokenizer has {tokens:,} tokens and the model {rows:,} ids; they do not belong together: take both from the same place.",
        "分词器有 {tokens:,} 个 token，而模型只有 {rows:,} 个编号；二者不是一套：请使用同一来源的文件。",
    ),
    "text.numbers_alone": (
        "{path} has no tokenizer: its texts are ids, written as numbers with spaces between (5 17 3); whatever else is written is left out.",
        "{path} 没有分词器：它的文本是以空格分隔的数字编号（5 17 3），其他内容都会被忽略。",
    ),
    "text.numbers_size": (
        "A vocabulary of {size} ids cannot be: choose between 1 and {most:,}.",
        "词表不可能有 {size} 个编号：请选 1 到 {most:,} 之间的数。",
    ),
    "text.numbers_mark": (
        "The {name} of texts is {id}, which is outside the vocabulary of {size}: choose one of its ids, or none.",
        "文本的 {name} 是 {id}，超出大小为 {size} 的词表：请选用其中的编号，或不设。",
    ),
    "text.tokenizer_no_json": (
        "{path} is damaged or no tokenizer: it is no JSON ({reason}). Give a tokenizer.json, or a folder that holds one.",
        "{path} 已损坏或不是分词器：内容不是 JSON（{reason}）。请给出 tokenizer.json，或含有它的文件夹。",
    ),
    "text.no_tokenizer": (
        "{path} holds no tokenizer: give a tokenizer.json, or a folder that holds one.",
        "{path} 中没有分词器：请给出 tokenizer.json，或含有它的文件夹。",
    ),
    "text.bpe_vocab": (
        "A vocabulary of {vocab} is too small: {least} ids are needed, 256 for bytes and {specials} for special tokens. "
        "Ask for more.",
        "词表大小 {vocab} 太小：至少需要 {least} 个编号，其中 256 个给字节，{specials} 个给特殊 token。请调大。",
    ),
    "text.bpe_nothing": (
        "There is no text to learn tokens from: give files with text in them.",
        "没有可供学习 token 的文字：请给出有内容的文件。",
    ),
    "text.special_spelling": (
        "A special token cannot be spelt {spelling}: use two characters or more that differ from every other token, "
        "such as <|end|>.",
        "特殊 token 不能写作 {spelling}：请用两个以上的字符，且不同于其他 token，例如 <|end|>。",
    ),
}
