"""Messages said by `training` of its data: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "training.batch_of_ranks": (
        "a batch of {batch} cannot be shared by {ranks} processes; give a --batch of at least {ranks}",
        "批大小 {batch} 不够分给 {ranks} 个进程；请把 --batch 设为至少 {ranks}",
    ),
    "training.no_window": (
        "no text has more than {context} tokens, the context; give a longer text, or a smaller --model.context",
        "没有一个文本多于 {context} 个 token（上下文长度）；请给出更长的文本，或调小 --model.context",
    ),
    "training.nothing_to_learn": (
        "there is nothing to learn: no token of the {documents} documents comes after another; give longer texts",
        "没有可学的内容：{documents} 个文档中没有任何 token 排在另一个之后；请给出更长的文本",
    ),
    "training.nothing_to_hide": (
        "there is nothing to learn: the {documents} documents have no token that could be hidden; give longer texts",
        "没有可学的内容：{documents} 个文档中没有可以遮住的 token；请给出更长的文本",
    ),
    "training.looking": ("looking at the files", "检查文件"),
    "training.surveying": ("reading", "读取"),
    "training.merging": ("reading for the tokenizer", "为分词器读取"),
    "training.encoding": ("encoding", "编码"),
    "training.vocab_of_bpe": (
        "--vocab {vocab}: only a tokenizer that is trained has a size to choose; add --tokenizer bpe, or leave --vocab out",
        "--vocab {vocab}：只有训练得到的分词器才能选大小；请加上 --tokenizer bpe，或不要给出 --vocab",
    ),
    "training.evaluation_limit": (
        "Evaluations score the first {limit} of the {tokens} validation tokens, so that they stay short (`clearhead eval` scores all).",
        "为使评估不致太久，每次只评估 {tokens} 个验证 token 中的前 {limit} 个（`clearhead eval` 可评估全部）。",
    ),
    "training.init_fixes": (
        "{fields}: a model that is continued keeps its sizes and parts; leave it out (only --model.dropout may change)",
        "{fields}：继续训练的模型保持原有的规模和部件；请不要给出它（只能改 --model.dropout）",
    ),
    "training.init_tokenizer": (
        "--tokenizer {tokenizer}: a model that is continued keeps its tokenizer, whose ids it has learnt; leave it out",
        "--tokenizer {tokenizer}：继续训练的模型沿用其分词器，它学的就是那些编号；请不要给出它",
    ),
    "training.lora_of_nothing": (
        "--lora adapts a model that is there already; name it with --init, or leave --lora out",
        "--lora 用来适配已有的模型；请用 --init 指明它，或不要给出 --lora",
    ),
    "training.encoder_head": (
        "an encoder learns from hidden tokens, which needs the head MaskedToken, not {head}; leave --model.head out",
        "编码器通过猜被遮住的 token 来学习，需要 MaskedToken 头，而不是 {head}；请不要给出 --model.head",
    ),
    "training.no_mask": (
        "the tokenizer of this encoder has no id that stands for a hidden token; continue one that clearhead has trained, or a folder whose tokenizer_config.json names a mask_token",
        "这个编码器的分词器没有代表被遮住的 token 的编号；请继续训练由 clearhead 训练的编码器，或 tokenizer_config.json 写明了 mask_token 的文件夹",
    ),
    "training.no_numbers": (
        "the model has no tokenizer, so that its texts are ids, numbers with spaces between (5 17 3), and here are too few; give such"
        " texts, or continue a model that has a tokenizer",
        "该模型没有分词器，其文本是以空格分隔的数字编号（5 17 3），而这里的编号太少；请给出这样的文本，或继续训练带分词器的模型",
    ),
    "training.pairs_need_marks": (
        "the tokenizer has no marks that begin and end a target; continue a model that has learnt from pairs",
        "分词器没有标明目标起止的标记；请继续训练从成对数据中学习过的模型",
    ),
    "training.minutes_of_decoders": (
        "--minutes sizes a new decoder for texts; give --steps, and sizes by --model, for pairs, conversations, encoders and --init",
        "--minutes 只为学习文本的新解码器选择规模；对于成对数据、对话、编码器和 --init，请给出 --steps，并用 --model 指定规模",
    ),
    "training.init_gone": (
        "{init}, the model that {out} began with, is not there, and {out} has no checkpoint yet; bring it back, or start another run",
        "{out} 开始时所用的模型 {init} 已不在，而 {out} 还没有检查点；请恢复它，或另开一次训练",
    ),
    "training.data_gone": (
        "{path}, which {out} was trained on, is not there; name where it is now: clearhead train PLACE --out {out} --resume",
        "{out} 训练所用的 {path} 已不在；请写出它现在的位置：clearhead train 位置 --out {out} --resume",
    ),
    "training.lora_rounds": (
        "--lora keeps the weights of the model as they are, and bfloat16-weights rounds them; use --dtype bfloat16",
        "--lora 让模型的权重保持原样，而 bfloat16-weights 会舍入它们；请用 --dtype bfloat16",
    ),
    "training.lora_without_rank": (
        "--lora.rank is missing: how many dimensions a change may have, such as --lora.rank 8",
        "缺少 --lora.rank：改变最多可有几维，例如 --lora.rank 8",
    ),
    "training.unknown": (
        "{count} of {total} tokens are characters that the model's tokenizer does not know; it learns one sign for all of them",
        "{total} 个 token 中有 {count} 个是模型的分词器不认识的字符；它们都被当作同一个记号来学",
    ),
    "training.mostly_unknown": (
        "{count} of {total} tokens are characters that the model's tokenizer does not know: there is little to learn; train a new model,"
        " or continue one that knows this writing",
        "{total} 个 token 中有 {count} 个是模型的分词器不认识的字符，几乎没有可学的内容；请训练新模型，或继续训练认识这种文字的模型",
    ),
    "training.no_effect": (
        "{flag} has no effect here: {reason}; leave it out",
        "{flag} 在这里不起作用：{reason}；请不要给出它",
    ),
    "training.no_lines": ("no file is a .jsonl with a text on each line", "没有每行一篇文本的 .jsonl 文件"),
    "training.no_documents_packed": (
        "only 20 documents or more are packed, for a decoder",
        "只有解码器学习 20 个以上的文档时才会拼接",
    ),
    "training.parts": ("{train} train and {validation} validate", "{train} 个用于训练，{validation} 个用于验证"),
    "training.minutes_choose": (
        "--minutes chooses sizes and batch itself; leave {flags} out, or --minutes",
        "--minutes 会自行选择规模和批大小；请不要给出 {flags}，或不要给出 --minutes",
    ),
}
