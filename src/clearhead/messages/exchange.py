"""Messages said by `formats` about other people's files: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "exchange.field_kind": (
        "{path}: {field} is {value} and must be {wanted}; the file is damaged or not what it says it is",
        "{path}：{field} 是 {value}，应为 {wanted}；文件已损坏或名不副实",
    ),
    "exchange.field_missing": (
        "{path} lacks {field}, without which no {family} can be built; take the complete folder",
        "{path} 缺少 {field}，没有它无法构建 {family}；请使用完整的文件夹",
    ),
    "exchange.field_word": (
        "{path}: {field} is {value}, which clearhead does not know; it knows {known}",
        "{path}：{field} 是 {value}，clearhead 不认识；已知的有 {known}",
    ),
    "exchange.field_unsupported": (
        "{path}: {field} is {value}, which changes what a {family} computes and is not supported; use a model without it",
        "{path}：{field} 是 {value}，它会改变 {family} 的计算，目前不支持；请使用没有该项的模型",
    ),
    "exchange.field_unknown": (
        "{path}: clearhead does not know the field {field} ({value}) of a {family}; it may change the computation, so that nothing is loaded",
        "{path}：clearhead 不认识 {family} 的字段 {field}（{value}）；它可能改变计算，因此不加载",
    ),
    "exchange.not_finite": (
        "{path}: {name} holds a number that is not finite (NaN or infinity); the file is damaged, take another copy",
        "{path}：{name} 含有非有限的数（NaN 或无穷）；文件已损坏，请换一份",
    ),
    "exchange.unexpected": (
        "{path} holds {count} tensors that a {origin} of this configuration has no place for, {name} first; nothing is loaded, since they may change what it computes",
        "{path} 中有 {count} 个张量在此配置的 {origin} 中没有位置（首个为 {name}）；它们可能改变计算，因此不加载",
    ),
    "exchange.tied_differ": (
        "{path}: {name} differs from {first}, though the configuration says that they are one (tied); correct tie_word_embeddings or take another copy",
        "{path}：{name} 与 {first} 不同，而配置说它们是同一个（共享）；请更正 tie_word_embeddings 或换一份",
    ),
}
