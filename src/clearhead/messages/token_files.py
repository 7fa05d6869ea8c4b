"""Messages said by `token_files`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "token_files.foreign": (
        "{path} is not a token file of clearhead: give another name, or delete it",
        "{path} 不是 clearhead 的 token 文件：请换一个名字，或删除它",
    ),
    "token_files.version": (
        "{path} is a token file of version {found}, this clearhead reads {known}: "
        "delete it, and it is made anew from the text",
        "{path} 是版本 {found} 的 token 文件，此 clearhead 只读 {known}：删除它，就会从文本重新生成",
    ),
    "token_files.length": (
        "{path} is damaged, it has {found:,} bytes where its header says {wanted:,}: "
        "delete it, and it is made anew from the text",
        "{path} 已损坏：文件有 {found:,} 字节，而文件头说有 {wanted:,} 字节；删除它，就会从文本重新生成",
    ),
    "token_files.contradiction": (
        "{path} is damaged, its {name} contradicts the rest: delete it, and it is made anew from the text",
        "{path} 已损坏：其中的 {name} 与其余部分矛盾；删除它，就会从文本重新生成",
    ),
    "token_files.content": (
        "{path} is damaged, its ids are not those that were written (their SHA-256 differs): "
        "delete it, and it is made anew from the text",
        "{path} 已损坏：其中的 token id 与写入时不同（SHA-256 不符）；删除它，就会从文本重新生成",
    ),
    "token_files.id_outside": (
        "{path} is damaged, it holds token id {id} and its vocabulary has {vocab}: "
        "delete it, and it is made anew from the text",
        "{path} 已损坏：其中有 token id {id}，而词表只有 {vocab} 个；删除它，就会从文本重新生成",
    ),
    "token_files.tokenizer": (
        "{path} was made with another tokenizer ({found}) than the one in use ({wanted}): "
        "make it anew from the text with this tokenizer, or use the one that made it",
        "{path} 由另一个分词器（{found}）生成，而现在用的是 {wanted}：请用此分词器从文本重新生成，或使用原来的分词器",
    ),
    "token_files.changed": (
        "{path} was changed or cut short while it was in use: start again",
        "{path} 在使用中被改动或截断：请重新开始",
    ),
}
