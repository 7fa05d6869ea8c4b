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
        "{path}: what is not {encoding} became U+FFFD, {count:,} times, the first at offset {offset:,}",
        "{path}：不是 {encoding} 编码的地方已改为 U+FFFD，共 {count:,} 处，第一处在偏移 {offset:,}",
    ),
    "jsonl.broken": (
        "Line {line} of {path} is no whole JSON (it breaks at character {column:,}): mend that line, or remove it.",
        "{path} 第 {line} 行不是完整的 JSON（在第 {column:,} 个字符处中断）：请改正或删去该行。",
    ),
    "jsonl.too_much": (
        "Line {line} of {path} holds a number too long or brackets too deep to be read: mend that line, or remove it.",
        "{path} 第 {line} 行中有过长的数字或过深的括号，无法读取：请改正或删去该行。",
    ),
    "jsonl.no_object": (
        'Line {line} of {path} is JSON, but no object: write it as {{"text": "..."}}.',
        '{path} 第 {line} 行是 JSON，但不是对象：请写成 {{"text": "..."}}。',
    ),
    "jsonl.half_character": (
        "Line {line} of {path} holds half of a character (a surrogate such as \\ud83d alone): "
        "write the other half too, or read with --errors replace.",
        "{path} 第 {line} 行中有半个字符（单独的代理项，如 \\ud83d）：请补上另一半，或用 --errors replace 读取。",
    ),
    "sources.conversation": (
        "Line {line} of {path} is a conversation (messages) and has no text in the field {field}: conversations are for a Decoder "
        "alone, all files must hold them, and --field must not be named; for anything else write text into that field.",
        "{path} 第 {line} 行是对话（messages），字段 {field} 中没有文本：对话只能用于 Decoder，所有文件都必须是对话，"
        "且不要写 --field；其他情况请在该字段中写入文本。",
    ),
    "sources.no_field": (
        "Line {line} of {path} has no field {field}, only {fields}: name the one that holds the text with --field.",
        "{path} 第 {line} 行没有字段 {field}，只有 {fields}：请用 --field 指明存放文本的字段。",
    ),
    "sources.no_string": (
        "Line {line} of {path}: the field {field} is no string: write text in quotes there, or name another with --field.",
        "{path} 第 {line} 行的字段 {field} 不是字符串：请在那里写上带引号的文本，或用 --field 指明另一字段。",
    ),
    "sources.empty_folder": (
        "The folder {path} holds no text: put files into it whose names end with {suffixes} (.gz may follow).",
        "文件夹 {path} 中没有文本：请放入文件名以 {suffixes} 结尾的文件（后面可再加 .gz）。",
    ),
    "sources.nothing": (
        "There is not one document in {names}: all is blank. Name a file with text in it.",
        "{names} 中一个文档也没有，全是空白：请给出有文字的文件。",
    ),
    "sources.too_small": (
        "{names}: {size:,} bytes of text in all; at least {least:,} are needed: add text, or name more files.",
        "{names}：总共只有 {size:,} 字节的文本，至少需要 {least:,} 字节：请补充文字，或给出更多文件。",
    ),
    "sources.blank": (
        "{count:,} blank documents passed over",
        "跳过了 {count:,} 个空白文档",
    ),
    "sources.more_notes": (
        "... and {count:,} notes more of this kind",
        "……还有 {count:,} 条同类说明",
    ),
    "split.by_document": (
        "{train:,} documents train and {validation:,} validate, chosen by a hash of their text",
        "{train:,} 个文档用于训练，{validation:,} 个用于验证，由文本的哈希值决定",
    ),
    "split.by_characters": (
        "The first {train:,} characters train; the last 10% of each document, {validation:,} in all, validate",
        "前 {train:,} 个字符用于训练，每个文档的最后 10%（共 {validation:,} 个字符）用于验证",
    ),
    "split.all_equal": (
        "All {count:,} documents are equal, so none can be kept for validation: add others.",
        "全部 {count:,} 个文档都相同，无法留出验证部分：请补充不同的文档。",
    ),
    "split.changed": (
        "The files changed while they were being read: start again when nothing writes to them.",
        "读取期间文件发生了变化：请在没有程序写入时重新开始。",
    ),
    "split.nothing_to_predict": (
        "The longest part to train on has length {train:,}, the longest to validate on {validation:,}; each needs 2, one to "
        "read and one to predict: give longer texts.",
        "训练部分最长为 {train:,}，验证部分最长为 {validation:,}，两者都至少应为 2（一个用来读，一个用来预测）：请给出更长的文本。",
    ),
    "split.context_shrunk_tokens": (
        "The text is small: the context shrinks from {asked} to {context}, so that one window fits into the longest document "
        "for training ({train:,} tokens) and one into the longest for validation ({validation:,}).",
        "文本较短：上下文长度由 {asked} 减为 {context}，使最长的训练文档（{train:,} 个 token）和最长的验证文档"
        "（{validation:,} 个 token）各容得下至少一个窗口。",
    ),
    "split.document_short_tokens": (
        "Document {number} has only {length:,} tokens for training, less than one window of {window}: "
        "give a longer text or a smaller --model.context to train on it.",
        "第 {number} 个文档只有 {length:,} 个 token 可供训练，不足一个窗口（{window} 个）：要用它训练，请加长文本或调小 --model.context。",
    ),
    "split.many_short": (
        "{count:,} of {total:,} documents are shorter than one window of {window}: "
        "give longer texts or a smaller --model.context to train on them.",
        "{total:,} 个文档中有 {count:,} 个不足一个窗口（{window} 个）：要用它们训练，请加长文本或调小 --model.context。",
    ),
    "pairs.header": (
        "{path}: line {line}, source and target, is a header and no pair",
        "{path}：第 {line} 行（source 和 target）是表头，不算句对",
    ),
    "pairs.no_pairs_csv": (
        "{path} holds no pairs: write at least two, one a line: source, a comma, target.",
        "{path} 中没有句对：请至少写两对，每行一对，写成“源文、逗号、目标文”。",
    ),
    "pairs.quotes": (
        "Line {line} of {path} begins a record whose double quotes do not match: close them, and write one inside a field "
        "twice.",
        "{path} 第 {line} 行开始的记录中双引号不配对：请补全引号；字段内的引号要写两遍。",
    ),
    "pairs.columns_csv": (
        "Line {line} of {path} has {count} columns: leave two, source and target, and put a field with commas in it in double "
        "quotes.",
        "{path} 第 {line} 行有 {count} 列：请只留源文和目标文两列；含逗号的字段要加双引号。",
    ),
    "pairs.no_source_csv": (
        "Line {line} of {path} has no source: write it before the comma, or remove the line.",
        "{path} 第 {line} 行缺少源文：请写在逗号之前，或删去该行。",
    ),
    "pairs.no_target_csv": (
        "Line {line} of {path} has no target: write it after the comma, or remove the line.",
        "{path} 第 {line} 行缺少目标文：请写在逗号之后，或删去该行。",
    ),
    "messages.none": (
        "{path} holds no conversations: write at least one, one a line.",
        "{path} 中没有对话：请至少写一段，每行一段。",
    ),
    "messages.no_list": (
        'Line {line} of {path} has no list called messages: write {{"messages": [...]}}.',
        '{path} 第 {line} 行没有名为 messages 的列表：请写成 {{"messages": [...]}}。',
    ),
    "messages.empty": (
        "Line {line} of {path} has no messages: write a user's and an assistant's, or remove the line.",
        "{path} 第 {line} 行没有任何消息：请写上 user 和 assistant 的消息，或删去该行。",
    ),
    "messages.no_message": (
        'Line {line} of {path}: message {number} is not {{"role": ..., "content": ...}}: write it so.',
        '{path} 第 {line} 行：第 {number} 条消息不是 {{"role": ..., "content": ...}}：请写成这样。',
    ),
    "messages.role": (
        "Line {line} of {path}: message {number} has the role {role}: use system, user or assistant.",
        "{path} 第 {line} 行：第 {number} 条消息的角色是 {role}：请用 system、user 或 assistant。",
    ),
    "messages.content": (
        "Line {line} of {path}: the content of message {number} is no string: write plain text in quotes.",
        "{path} 第 {line} 行：第 {number} 条消息的 content 不是字符串：请写带引号的纯文本。",
    ),
    "messages.late_system": (
        "Line {line} of {path}: message {number} is the system's, which may only come first: move it there.",
        "{path} 第 {line} 行：第 {number} 条是 system 的消息，它只能放在最前：请移到最前。",
    ),
    "messages.unasked": (
        "Line {line} of {path}: message {number} is the assistant's, and no user has spoken before: write what is answered.",
        "{path} 第 {line} 行：第 {number} 条是 assistant 的消息，但之前没有 user 的消息：请写上被回答的内容。",
    ),
    "messages.no_answer": (
        "Line {line} of {path} has no message of the assistant's, so there is nothing to learn: write its answer.",
        "{path} 第 {line} 行没有 assistant 的消息，没有可学的内容：请写上回答。",
    ),
}
