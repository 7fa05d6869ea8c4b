"""Messages said by `text`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "text.missing": (
        "There is no file {path}: check the name and the folder.",
        "找不到文件 {path}：请检查文件名和所在文件夹。",
    ),
    "text.directory": (
        "{path} is a folder, not a text file: name the files in it.",
        "{path} 是文件夹，不是文本文件：请写出其中的文件名。",
    ),
    "text.permission": (
        "{path} may not be read: give yourself permission to read it, or copy it to where you have it.",
        "没有读取 {path} 的权限：请先取得读取权限，或把它复制到可以读取的地方。",
    ),
    "text.unreadable": (
        "{path} cannot be read ({reason}): check the name and the disk.",
        "无法读取 {path}（{reason}）：请检查文件名和磁盘。",
    ),
    "text.empty": (
        "{path} holds no text: give a file with at least {least:,} bytes of text.",
        "{path} 中没有文字：请给出至少 {least:,} 字节的文本文件。",
    ),
    "text.too_small": (
        "{path} holds {size:,} bytes; at least {least:,} are needed: add text to it, or give a longer file.",
        "{path} 只有 {size:,} 字节，至少需要 {least:,} 字节：请补充文字，或换一个更长的文件。",
    ),
    "text.binary": (
        "{path} looks like a binary file: {count:,} control codes such as NUL in {total:,} characters, 0x{code:02X} on line "
        "{line:,} (behind {offset:,} characters). Remove them, give a text file, or name its encoding with --encoding.",
        "{path} 像是二进制文件：{total:,} 个字符中有 {count:,} 个 NUL 之类的控制码，其中 0x{code:02X} 在第 {line:,} 行"
        "（之前有 {offset:,} 个字符）。请删去它们，给出文本文件，或用 --encoding 指明编码。",
    ),
    "text.wrong_byte": (
        "{path} is not {encoding}: byte 0x{byte:02X} at offset {offset:,} does not fit. "
        "Mend that byte, or name the right encoding (such as --encoding gb18030, big5, shift_jis or cp1252).",
        "{path} 不是 {encoding} 编码：偏移 {offset:,} 处的字节 0x{byte:02X} 不合规则。"
        "请改正该字节，或指明正确的编码（如 --encoding gb18030、big5、shift_jis、cp1252）。",
    ),
    "text.unknown_encoding": (
        "There is no text encoding called {encoding}: use auto, utf-8, utf-16, gb18030, big5, shift_jis, cp1252 or "
        "another that Python knows.",
        "没有名为 {encoding} 的文本编码：可用 auto、utf-8、utf-16、gb18030、big5、shift_jis、cp1252 等 Python 认识的编码。",
    ),
    "text.encoding_recognised": ("{path}: {encoding} recognised", "{path}：识别为 {encoding} 编码"),
    "text.bom_removed": ("{path}: byte order mark (BOM) removed", "{path}：已去掉字节顺序标记（BOM）"),
    "text.line_ends": ("{path}: {kind} line ends became LF", "{path}：{kind} 换行已改为 LF"),
    "text.too_short_to_split": (
        "The text has {length} characters; at least {least} are needed to keep some for validation: give a longer text.",
        "文本只有 {length} 个字符，至少需要 {least} 个才能留出验证部分：请给出更长的文本。",
    ),
    "text.no_documents": (
        "There is no text to train on: name at least one file.",
        "没有可供训练的文本：请至少给出一个文件。",
    ),
    "text.context_not_positive": (
        "The context is {context}; it must be at least 1: choose a larger --model.context.",
        "上下文长度是 {context}，至少应为 1：请调大 --model.context。",
    ),
    "text.context_shrunk": (
        "The text is small: the context shrinks from {asked} to {context}, so that one window fits into the "
        "{train:,} characters for training and one into the {validation:,} for validation.",
        "文本较短：上下文长度由 {asked} 减为 {context}，使训练部分（{train:,} 个字符）和验证部分"
        "（{validation:,} 个字符）各容得下至少一个窗口。",
    ),
    "text.document_short": (
        "Document {number} has only {length:,} characters for training, less than one window of {window}: "
        "give a longer file or a smaller --model.context to train on it.",
        "第 {number} 个文件只有 {length:,} 个字符可供训练，不足一个窗口（{window} 个）：要用它训练，请加长文件或调小 --model.context。",
    ),
    "text.id_outside": (
        "Token id {id} is outside the vocabulary of {size} (ids 0 to {last}): use the tokenizer that made the ids.",
        "token 编号 {id} 超出词表（大小 {size}，编号 0 到 {last}）：请使用产生这些编号的分词器。",
    ),
    "text.ids_not_whole": (
        "Token ids must be one row of whole numbers, not {shape} of {kind}: give a flat list of int.",
        "token 编号应为一行整数，而不是形状 {shape} 的 {kind}：请给出由 int 组成的一维列表。",
    ),
    "text.no_characters": (
        "A character tokenizer needs at least one character: build it from a text that is not empty.",
        "字符分词器至少需要一个字符：请用非空文本建立。",
    ),
    "text.bad_character": (
        "The characters of a tokenizer hold {character} where it may not stand: each may occur once, "
        "and neither U+FFFD nor half of a surrogate pair may. CharacterTokenizer.of(text) makes a right one.",
        "分词器的字符表中不应有 {character}：每个字符只能出现一次，且不能是 U+FFFD 或半个代理对。"
        "可用 CharacterTokenizer.of(text) 建立。",
    ),
    "text.tokenizer_malformed": (
        "The saved tokenizer is damaged: {field} is {found}. Restore the file from the run that made it.",
        "保存的分词器已损坏：{field} 是 {found}。请从原来的训练结果中恢复该文件。",
    ),
    "text.tokenizer_version": (
        "The saved tokenizer has format version {found}; this clearhead reads version {known}: upgrade clearhead.",
        "保存的分词器格式版本是 {found}，本版 clearhead 只认识版本 {known}：请升级 clearhead。",
    ),
    "text.nothing_to_score": (
        "The validation text has no document of two tokens or more, so there is no next token to score: "
        "give a longer text.",
        "验证文本中没有两个 token 以上的文件，没有可以评分的下一个 token：请给出更长的文本。",
    ),
    "text.pair_no_tab": (
        "Line {line} of {path} has no tab: write source, a tab, target.",
        "{path} 第 {line} 行没有制表符：请写成“源文、制表符、目标文”。",
    ),
    "text.pair_columns": (
        "Line {line} of {path} has {count} columns: leave two, source and target, with one tab between them.",
        "{path} 第 {line} 行有 {count} 列：请只留源文和目标文两列，中间一个制表符。",
    ),
    "text.pair_no_source": (
        "Line {line} of {path} has no source: write it before the tab, or remove the line.",
        "{path} 第 {line} 行缺少源文：请写在制表符之前，或删去该行。",
    ),
    "text.pair_no_target": (
        "Line {line} of {path} has no target: write it after the tab, or remove the line.",
        "{path} 第 {line} 行缺少目标文：请写在制表符之后，或删去该行。",
    ),
    "text.no_pairs": (
        "{path} holds no pairs: write at least two, one a line: source, a tab, target.",
        "{path} 中没有句对：请至少写两对，每行一对，写成“源文、制表符、目标文”。",
    ),
    "text.one_pair": (
        "{path} holds one pair; at least two are needed, one to train on and one for validation: add pairs.",
        "{path} 只有一对，至少需要两对（一对用于训练，一对用于验证）：请补充句对。",
    ),
    "text.pairs_lone_cr": (
        "{path}: {count:,} CR without LF kept as characters of their lines",
        "{path}：{count:,} 个后面没有 LF 的 CR 保留为行内字符",
    ),
    "text.pairs_one_source": (
        "The pairs ({count:,}) have fewer than two different sources, so none can be kept for validation: "
        "add a pair with another source.",
        "这些句对（{count:,} 对）的源文不足两种，无法留出验证部分：请补充源文不同的句对。",
    ),
    "text.marked_twice": (
        "This tokenizer has marks already: give MarkedTokenizer the tokenizer inside it.",
        "该分词器已带有标记：请把它内部的分词器交给 MarkedTokenizer。",
    ),
}
