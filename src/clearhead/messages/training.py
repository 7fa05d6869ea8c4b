"""Messages said by `training`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "training.setting": (
        "{name} = {value} must be {wanted}",
        "{name} = {value} 应满足 {wanted}",
    ),
    "training.sizes": (
        "Size for {characters} characters: {layers} blocks, {heads} heads, width {width}, context {context}, dropout {dropout}"
        " (--model.layers --model.heads --model.width --model.context choose another).",
        "按 {characters} 个字符选定的规模：{layers} 个块、{heads} 个头、宽度 {width}、上下文 {context}、dropout {dropout}"
        "（可用 --model.layers --model.heads --model.width --model.context 另选）。",
    ),
    "training.steps": (
        "Steps: {steps}, as this machine ({device}) trains about {speed} tokens/s and about {seconds} s are planned;"
        " small data is not read more than {epochs} times (--steps chooses another).",
        "步数：{steps}。本机（{device}）每秒约训练 {speed} 个 token，计划用约 {seconds} 秒；"
        "小文本最多读 {epochs} 遍（可用 --steps 另选）。",
    ),
    "training.fewest_steps": (
        "Steps: {steps}, the fewest that this data needs; this machine ({device}) trains about {speed} tokens/s, so that"
        " takes about {seconds} s (--steps chooses another).",
        "步数：{steps}，这是该数据所需的最少步数；本机（{device}）每秒约训练 {speed} 个 token，"
        "因此约需 {seconds} 秒（可用 --steps 另选）。",
    ),
    "training.sizes_pairs": (
        "for {pairs} pairs: {encoder_layers} + {layers} blocks, {heads} heads, width {width}, source up to {source}, target up to {target}, dropout {dropout}",
        "针对 {pairs} 对数据：{encoder_layers} + {layers} 个块，{heads} 个头，宽度 {width}，源最长 {source}，目标最长 {target}，dropout {dropout}",
    ),
    "training.few_pairs": (
        "Batch: {batch} pairs instead of {usual}, as the longest source needs {source} positions and the longest target {target},"
        " and the memory of an update grows with their square (--batch chooses another).",
        "批大小：每步 {batch} 对而不是 {usual} 对，因为最长的源需要 {source} 个位置、最长的目标需要 {target} 个，"
        "而每步所需内存随其平方增长（可用 --batch 另选）。",
    ),
    "training.no_pairs": (
        "an encoder-decoder learns from pairs; give a file with a source, a tab and a target on each line",
        "编码器-解码器从成对数据中学习；请给出一个文件，每行为：源、制表符、目标",
    ),
    "training.one_vocabulary": (
        "model.source_vocab: training takes one tokenizer for sources and targets; leave it out",
        "model.source_vocab：训练时源与目标共用一个分词器；请不要给出它",
    ),
    "training.source_too_long": (
        "the longest source, in line {line} of {path}, needs {longest} positions with its mark, and the context of sources is {context};"
        " give a longer --model.source_context, or shorten the pair",
        "最长的源在 {path} 第 {line} 行，连同标记需要 {longest} 个位置，而源的上下文只有 {context}；"
        "请调大 --model.source_context，或缩短这对数据",
    ),
    "training.target_too_long": (
        "the longest target, in line {line} of {path}, needs {longest} positions with its mark, and the context is {context};"
        " give a longer --model.context, or shorten the pair",
        "最长的目标在 {path} 第 {line} 行，连同标记需要 {longest} 个位置，而上下文只有 {context}；"
        "请调大 --model.context，或缩短这对数据",
    ),
    "training.out_exists": (
        "{out} holds a run already; add --resume to go on with it, or give another --out",
        "{out} 中已有一次训练；加 --resume 继续它，或换一个 --out",
    ),
    "training.out_in_use": (
        "{out} is not empty; give an --out that is empty or does not exist",
        "{out} 不是空目录；请给出一个空的或尚不存在的 --out",
    ),
    "training.resume_differs": (
        "{name}: this run was started with {old}, not {new}; leave it out to resume, or start another run",
        "{name}：这次训练开始时用的是 {old}，不是 {new}；继续时请不要给出它，或另开一次训练",
    ),
    "training.not_recorded": (
        "{out}: its config.json does not say how it was trained ({reason}); it can be used, but not gone on with",
        "{out}：其 config.json 没有说明训练方式（{reason}）；可以使用，但不能继续训练",
    ),
    "training.text_changed": (
        "the data of {out} is not what it was trained on (its sha256 differs); restore it or start another run",
        "{out} 的数据与训练时不同（sha256 不一致）；请恢复原数据，或另开一次训练",
    ),
}
