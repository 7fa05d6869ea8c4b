"""Messages said by `formats` about other people's tokenizers: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "exchange.words": (
        "{path} (the tokenizer): {reason}",
        "{path}（分词器）：{reason}",
    ),
    "exchange.words_damaged": (
        "{path} cannot be used as a part of a tokenizer ({reason}); it is damaged, take another copy",
        "{path} 无法用作分词器的一部分（{reason}）；文件已损坏，请换一份",
    ),
    "exchange.words_unknown": (
        "{path}: {name} is {found}, a way of making tokens that clearhead does not know; it knows {known}",
        "{path}：{name} 是 {found}，clearhead 不认识这种分词方式；已知的有 {known}",
    ),
    "exchange.words_mark": (
        "{path}: {name} is {id}, and there are {count} tokens; the file is damaged, take another copy",
        "{path}：{name} 是 {id}，而 token 只有 {count} 个；文件已损坏，请换一份",
    ),
    "exchange.words_lists": (
        "{path}: {name} has {found} entries for {wanted} tokens; the file is damaged, take another copy",
        "{path}：{name} 有 {found} 项，而 token 有 {wanted} 个；文件已损坏，请换一份",
    ),
    "exchange.words_twice": (
        "{path}: the tokens {first} and {second} are both spelt {spelling}; the file is damaged, take another copy",
        "{path}：编号 {first} 与 {second} 的 token 都写作 {spelling}；文件已损坏，请换一份",
    ),
    "exchange.words_long": (
        "{path} holds a token of {length} characters, and none has more than {most}; the file is damaged, take another copy",
        "{path} 中有一个 {length} 个字符的 token，而任何 token 都不超过 {most} 个字符；文件已损坏，请换一份",
    ),
    "exchange.words_merge": (
        "{path}: {merge} is no merge, which is two tokens with one space between them; the file is damaged, take another copy",
        "{path}：{merge} 不是合并规则，合并规则应为两个 token，中间一个空格；文件已损坏，请换一份",
    ),
    "exchange.words_scores": (
        "{path}: {name} holds a number that is not finite (NaN or infinity); the file is damaged, take another copy",
        "{path}：{name} 含有非有限的数（NaN 或无穷）；文件已损坏，请换一份",
    ),
}
