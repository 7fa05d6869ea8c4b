"""Messages said by `formats`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "formats.cannot_write": (
        "{path} cannot be written: {reason}; what was there before is unharmed",
        "无法写入 {path}：{reason}；原有内容未受影响",
    ),
    "formats.bad_tensors": (
        "{path} cannot be read as safetensors ({reason}); use another checkpoint",
        "无法把 {path} 读作 safetensors（{reason}）；请换一个检查点",
    ),
    "formats.bad_base": (
        "{path} cannot be read ({reason}): it holds the weights that this run's changes belong to; restore it or train anew",
        "无法读取 {path}（{reason}）：本运行的改动依附于其中的权重；请恢复该文件或重新训练",
    ),
    "formats.other_base": (
        "{path} holds other weights (digest {found}...) than this run began with ({recorded}...); restore it or train anew",
        "{path} 中的权重（摘要 {found}...）不是本运行开始时的权重（{recorded}...）；请恢复该文件或重新训练",
    ),
    "formats.missing": (
        "{path} lacks {count} of the model's tensors, {name} first; it belongs to another configuration",
        "{path} 缺少模型的 {count} 个张量（首个为 {name}）；它属于另一个配置",
    ),
    "formats.unexpected": (
        "{path} holds {count} tensors that the model has no place for, {name} first; it belongs to another configuration",
        "{path} 中有 {count} 个张量在模型里没有位置（首个为 {name}）；它属于另一个配置",
    ),
    "formats.shape": (
        "{path}: {name} has shape {found}, the configuration wants {wanted}",
        "{path}：{name} 的形状是 {found}，配置要求 {wanted}",
    ),
    "formats.no_checkpoint": (
        "{path} holds no checkpoint yet; train it further with `clearhead train --out {path} --resume`",
        "{path} 中还没有检查点；请用 `clearhead train --out {path} --resume` 继续训练",
    ),
    "formats.no_model": (
        "{path}: there is no such model; give a run directory, a Hugging Face folder, a .gguf or .pt file, or a name that `clearhead models` lists",
        "{path}：没有这个模型；请给出运行目录、Hugging Face 文件夹、.gguf 或 .pt 文件，或 `clearhead models` 列出的名字",
    ),
    "formats.not_a_run": (
        "{path} is neither a run directory nor another model's folder (it has no config.json); give the --out of `clearhead train`, or a folder that is complete",
        "{path} 既不是运行目录，也不是其他模型的文件夹（其中没有 config.json）；请给出 `clearhead train` 的 --out 或完整的文件夹",
    ),
    "formats.version": (
        "{path} has format_version {found}, this clearhead reads {known}; use the version that wrote it",
        "{path} 的 format_version 是 {found}，此版本只读 {known}；请使用写出它的版本",
    ),
    "formats.bad_json": (
        "{path} cannot be read as a JSON object: {reason}",
        "无法把 {path} 读作 JSON 对象：{reason}",
    ),
    "formats.not_a_decoder": (
        "{path} is an encoder alone; this command runs decoders and encoder-decoders",
        "{path} 只是编码器；此命令运行解码器与编码器-解码器",
    ),
    "formats.no_marks": (
        "{path}: an encoder-decoder needs a tokenizer with marks that begin and end a target, which {name} has not",
        "{path}：编码器-解码器的分词器需要目标的起止标记，而 {name} 没有",
    ),
    "formats.vocab": (
        "{path}: the tokenizer has {tokenizer} ids and the model {model}; they do not belong together",
        "{path}：分词器有 {tokenizer} 个 id，而模型有 {model} 个；二者不是一套",
    ),
}
