"""Messages said by `cli`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cli.help": (
        "usage: clearhead VERB ...\n\nTransformers you can see through, and prove.\n\n{verbs}\n\n"
        "clearhead VERB --help shows what a verb takes. CLEARHEAD_LANG=zh speaks Chinese.",
        "用法：clearhead 动词 ...\n\n看得透、证得明的 Transformer。\n\n{verbs}\n\n"
        "clearhead 动词 --help 显示该动词的选项。CLEARHEAD_LANG=en 使用英文。",
    ),
    "cli.unknown_verb": (
        "there is no verb {verb}; did you mean {near}? `clearhead --help` lists them",
        "没有动词 {verb}；是不是 {near}？`clearhead --help` 列出全部",
    ),
    "cli.system": ("the system refused: {reason}", "系统拒绝：{reason}"),
    "cli.no_memory": (
        "there is not enough memory ({reason}); shorten the input, or take a smaller model",
        "内存不足（{reason}）；请缩短输入，或使用更小的模型",
    ),
    "cli.no_memory_to_train": (
        "there is not enough memory ({reason}); start again with a smaller --batch, or with shorter pairs or a smaller --model.context",
        "内存不足（{reason}）；请用更小的 --batch 重新开始，或缩短各对数据，或调小 --model.context",
    ),
    "cli.interrupted": ("stopped", "已停止"),
    "cli.unknown_flag": (
        "there is no option {flag} here; did you mean {near}?",
        "这里没有选项 {flag}；是不是 {near}？",
    ),
    "cli.word_too_many": (
        "there is no place for {word} here; type --help to see what the command takes",
        "这里不接受 {word}；请用 --help 查看该命令的参数",
    ),
    "cli.config_not_utf8": (
        "the --config file is not UTF-8 ({reason}); save it as UTF-8 (in PowerShell: | Out-File -Encoding utf8)",
        "--config 文件不是 UTF-8（{reason}）；请以 UTF-8 保存（PowerShell 中：| Out-File -Encoding utf8）",
    ),
    "cli.needs_class": (
        "{flag} does not belong to the class chosen here; in a file name the class: class_path: DecoderConfig, init_args: ...",
        "{flag} 不属于这里所选的类；在文件中请写明类名：class_path: DecoderConfig，init_args: ……",
    ),
    "cli.other_kind": (
        "{flag} belongs to {kinds}; add --model {kind} (in a file: class_path: {kind}Config)",
        "{flag} 属于 {kinds}；请加上 --model {kind}（在文件中：class_path: {kind}Config）",
    ),
    "cli.unknown_choice": (
        "{flag} {value}: there is no such choice; there are {known}",
        "{flag} {value}：没有这个选择；可选 {known}",
    ),
    "cli.wrong_value": (
        "{flag} {value}: the value must be {wanted}",
        "{flag} {value}：值应为 {wanted}",
    ),
    "cli.bad_config": (
        "--config: the file is no YAML or JSON of options: {reason}",
        "--config：该文件不是由选项组成的 YAML 或 JSON：{reason}",
    ),
    "cli.generate.about": ("continue texts with a trained model", "用训练好的模型续写文本"),
    "cli.chat.about": ("talk with a trained model, turn by turn", "与训练好的模型一轮一轮地对话"),
    "cli.generate.no_source": (
        "an encoder-decoder answers a source; give one with -p, or many with --prompts",
        "编码器-解码器回答源文本；请用 -p 给出一个，或用 --prompts 给出多个",
    ),
    "cli.generate.unknown": (
        "The model has never seen {characters}; it reads each as unknown.",
        "模型从未见过 {characters}；会把它们当作未知字符。",
    ),
    "cli.generate.exclude": (
        "{one} and {other} exclude each other; give one of them",
        "{one} 与 {other} 不能同时使用；请只给一个",
    ),
    "cli.generate.needs": ("{flag} means nothing without {other}; add it", "没有 {other} 时 {flag} 没有意义；请加上"),
    "cli.generate.few_beams": (
        "{n} texts cannot come from {beams} beams; ask for at least as many beams",
        "{beams} 个束给不出 {n} 个文本；束数不能少于文本数",
    ),
    "cli.generate.empty_line": (
        "{path}, line {line} is empty; give each prompt a line",
        "{path} 第 {line} 行为空；请每行写一个提示",
    ),
    "cli.generate.no_prompts": ("{path} has no line; give each prompt a line", "{path} 一行也没有；请每行写一个提示"),
    "cli.generate.reading": ("reading the prompt", "读取提示"),
    "cli.generate.speed": (
        "[{tokens} tokens, {speed} tokens/s; the first after {first} s]",
        "[{tokens} 个 token，{speed} token/秒；第一个用了 {first} 秒]",
    ),
    "cli.generate.searched": (
        "[{tokens} tokens of the best text, {speed} tokens/s by {beams} beams]",
        "[最佳文本 {tokens} 个 token，{beams} 个束，{speed} token/秒]",
    ),
    "cli.generate.accepted": (
        "[{accepted} of {proposed} proposed tokens accepted ({share}); {times} times as fast as without]",
        "[提议 {proposed} 个 token，接受 {accepted} 个（{share}）；速度为不提议时的 {times} 倍]",
    ),
    "cli.generate.not_paying": (
        "[no tokens were proposed: nothing was there to propose, or it would not have paid]",
        "[没有提议 token：没有可提议的，或得不偿失]",
    ),
    "cli.generate.context_full": (
        "[the text ends where the context of {context} tokens is full; --overflow window or recompute goes on]",
        "[上下文的 {context} 个 token 已满，文本到此为止；--overflow window 或 recompute 可继续]",
    ),
    "cli.generate.overflow_window": (
        "[past the context of {context} tokens the model saw the last {half} to {context}; --overflow recompute keeps all {context}]",
        "[超出 {context} 个 token 的上下文后，模型只看到最近的 {half} 到 {context} 个；--overflow recompute 始终保留 {context} 个]",
    ),
    "cli.generate.overflow_recompute": (
        "[past the context of {context} tokens the last {context} were read anew for each token; --overflow window is faster]",
        "[超出 {context} 个 token 的上下文后，每个 token 都重读最近的 {context} 个；--overflow window 更快]",
    ),
    "cli.chat.commands": (
        "/reset forgets the conversation, /system TEXT instructs the model, /settings [NAME VALUE] shows or changes settings,"
        " /quit leaves; Ctrl-C stops an answer.",
        "/reset 忘掉对话，/system 文本 给模型指示，/settings [名称 值] 查看或修改设置，/quit 退出；Ctrl-C 停止回答。",
    ),
    "cli.chat.no_template": (
        "This is a base model: it has no chat template. It continues the text of all turns, a line each.",
        "这是基座模型，没有对话模板；它会接着各轮文本（每轮一行）往下写。",
    ),
    "cli.chat.answers_alone": (
        "This is an encoder-decoder: it has no chat template and answers each line by itself.",
        "这是编码器-解码器，没有对话模板；它逐行单独回答。",
    ),
    "cli.chat.no_system": (
        "this model has no chat template, so nobody can instruct it; write what it should continue",
        "该模型没有对话模板，无法给它指示；请直接写要它续写的内容",
    ),
    "cli.chat.system": ("[instructions changed]", "[指示已更改]"),
    "cli.chat.reset": ("[conversation forgotten]", "[对话已忘掉]"),
    "cli.chat.stopped": ("[stopped]", "[已停止]"),
    "cli.chat.leave": ("[/quit or Ctrl-D leaves]", "[输入 /quit 或按 Ctrl-D 退出]"),
    "cli.chat.forgotten": (
        "[the oldest {turns} turns no longer fit the context and were forgotten]",
        "[最早的 {turns} 轮已放不进上下文，被忘掉]",
    ),
    "cli.chat.unknown_command": (
        "{command} is no command; there are {known} (a line that begins with a slash: write //)",
        "没有 {command} 这个命令；可用 {known}（要以斜杠开头的文本请写 //）",
    ),
    "cli.chat.unknown_setting": (
        "there is no setting {name}; the nearest is {near}",
        "没有 {name} 这个设置；最接近的是 {near}",
    ),
    "cli.loading": ("loading", "加载"),
    "cli.info.about": ("parameters, arithmetic and memory of a model", "模型的参数量、计算量与内存"),
    "cli.doctor.about": ("what this machine can do, and whether it computes right", "本机能做什么，以及算得对不对"),
    "cli.info.no_model": (
        "{name} is neither a run directory nor a preset; presets are {known}",
        "{name} 既不是运行目录，也不是预设；预设有 {known}",
    ),
    "cli.info.two_models": (
        "give {run}, --model or --explain A B, one of them",
        "{run}、--model 与 --explain A B 三者只能给一个",
    ),
    "cli.info.model": (
        "{layers} blocks, {heads} heads ({kv_heads} key/value), width {width}, context {context}, vocabulary {vocab}",
        "{layers} 个块，{heads} 个头（键/值头 {kv_heads} 个），宽度 {width}，上下文 {context}，词表 {vocab}",
    ),
    "cli.info.model_encoder": (
        "an encoder: {layers} blocks, {heads} heads ({kv_heads} key/value), width {width}, context {context}, vocabulary {vocab},"
        " {segments} segments, head {head}",
        "编码器：{layers} 个块，{heads} 个头（键/值头 {kv_heads} 个），宽度 {width}，上下文 {context}，词表 {vocab}，"
        "段 {segments} 种，输出头 {head}",
    ),
    "cli.info.model_pair": (
        "an encoder-decoder: {encoder_layers} + {layers} blocks, {heads} heads ({kv_heads} key/value), width {width},"
        " context {source_context} (source) and {context} (target), vocabulary {vocabulary}",
        "编码器-解码器：{encoder_layers} + {layers} 个块，{heads} 个头（键/值头 {kv_heads} 个），宽度 {width}，"
        "上下文 {source_context}（源）与 {context}（目标），词表 {vocabulary}",
    ),
    "cli.info.vocabularies": ("{source} (source) and {target} (target)", "{source}（源）与 {target}（目标）"),
    "cli.info.parameters": ("Parameters", "参数量"),
    "cli.info.flops_per_token": (
        "FLOPs a token, forward, looking at {context} keys (a training step: 3 times this)",
        "每 token 前向 FLOPs，可看 {context} 个键（训练一步为其 3 倍）",
    ),
    "cli.info.flops_per_token_encoder": (
        "FLOPs a token, forward, looking at all {context} positions (a training step: 3 times this)",
        "每 token 前向 FLOPs，可看全部 {context} 个位置（训练一步为其 3 倍）",
    ),
    "cli.info.flops_per_token_pair": (
        "FLOPs, forward, of one target token looking at {context} keys of its own and {source_context} of the source,"
        " and, as encoder, of one source token (a training step: 3 times this)",
        "前向 FLOPs：一个目标 token（可看自身 {context} 个键与源的 {source_context} 个键），"
        "以及 encoder 一行的一个源 token（训练一步为其 3 倍）",
    ),
    "cli.info.training_bytes": (
        "Memory to train in float32, {batch} windows of {context} tokens at a time",
        "以 float32 训练所需内存，每次 {batch} 个长 {context} token 的窗口",
    ),
    "cli.info.training_bytes_encoder": (
        "Memory to train in float32, {batch} rows of {context} tokens at a time",
        "以 float32 训练所需内存，每次 {batch} 行，每行 {context} 个 token",
    ),
    "cli.info.training_bytes_pair": (
        "Memory to train in float32, {batch} pairs of {source_context} source and {context} target tokens at a time",
        "以 float32 训练所需内存，每次 {batch} 对，每对 {source_context} 个源 token 与 {context} 个目标 token",
    ),
    "cli.info.generation_bytes": ("Memory to generate in {dtype}", "以 {dtype} 生成所需内存"),
    "cli.info.generation_bytes_encoder": (
        "Memory to read one row of {context} tokens in {dtype}; an encoder keeps no cache",
        "以 {dtype} 读取一行 {context} 个 token 所需内存；编码器没有缓存",
    ),
    "cli.info.generation_bytes_pair": (
        "Memory to generate {context} tokens from {source_context} in {dtype}; the cache holds the keys and values of both",
        "以 {dtype} 由 {source_context} 个源 token 生成 {context} 个 token 所需内存；缓存含两者的键与值",
    ),
    "cli.doctor.right": ("right:", "正确:"),
    "cli.doctor.wrong": ("WRONG:", "错误:"),
    "cli.doctor.parity": (
        "a small model here is {difference} from float64; rounding allows {allowed}",
        "小模型在此处与 float64 相差 {difference}；舍入允许 {allowed}",
    ),
}
