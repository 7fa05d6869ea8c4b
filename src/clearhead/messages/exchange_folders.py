"""Messages said by `formats` about folders of Hugging Face and their safetensors: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "exchange.safetensors_length": (
        "{path} has {found} bytes and by its header {wanted}: it is cut short, damaged or not safetensors; take another copy",
        "{path} 有 {found} 字节，而按其文件头应为 {wanted}：文件被截断、已损坏或不是 safetensors；请换一份",
    ),
    "exchange.safetensors_header": (
        "{path} cannot be read as safetensors ({reason}); it is damaged or something else, take another copy",
        "无法把 {path} 读作 safetensors（{reason}）；文件已损坏或是别的东西，请换一份",
    ),
    "exchange.safetensors_entry": (
        "{path}: the header does not say which type, shape and place {name} has; the file is damaged, take another copy",
        "{path}：文件头没有说清 {name} 的类型、形状和位置；文件已损坏，请换一份",
    ),
    "exchange.safetensors_twice": (
        "{path} holds {name} twice, and nothing says which is meant; take another copy",
        "{path} 中有两个 {name}，无从知道该用哪个；请换一份",
    ),
    "exchange.safetensors_type": (
        "{path}: {name} is of type {found}, and weights are read from {known}; take a copy that is not quantised",
        "{path}：{name} 的类型是 {found}，而权重只从 {known} 读取；请使用未量化的版本",
    ),
    "exchange.too_long": (
        "{path} describes itself in more than {most} bytes, which no model of this kind needs; it is damaged, take another copy",
        "{path} 的自我描述超过 {most} 字节，这类模型不需要这么多；文件已损坏，请换一份",
    ),
    "exchange.unreadable": (
        "{path} cannot be read: {reason}; see that it is there and may be read",
        "无法读取 {path}：{reason}；请确认它存在且允许读取",
    ),
    "exchange.changed": (
        "{path} is shorter than when it was opened; let whatever writes it finish, then load it again",
        "{path} 比打开时短了；请等写入它的程序结束后再加载",
    ),
    "exchange.file_missing": (
        "{path} is not there, or is no file (a link may lead nowhere); take the complete folder",
        "{path} 不存在或不是文件（可能是失效的链接）；请使用完整的文件夹",
    ),
    "exchange.folder_json": (
        "{path} cannot be read as a JSON object ({reason}); it is damaged, take another copy",
        "无法把 {path} 读作 JSON 对象（{reason}）；文件已损坏，请换一份",
    ),
    "exchange.index_map": (
        "{path} has no weight_map that gives a file for each tensor; it is damaged, take another copy",
        "{path} 中没有为每个张量指出文件的 weight_map；文件已损坏，请换一份",
    ),
    "exchange.index_leaves": (
        "{path} names the file {name}, which is not one of its own folder, and nothing is read from elsewhere; put the file beside the index and name it so",
        "{path} 指向文件 {name}，它不在同一文件夹内，而其他位置的文件一概不读；请把该文件放在索引旁边并改用其文件名",
    ),
    "exchange.shard_missing": (
        "{path} is missing, and {index} says that a part of the weights is in it; take the complete folder",
        "缺少 {path}，而 {index} 说它含有一部分权重；请使用完整的文件夹",
    ),
    "exchange.shard_lacks": (
        "{path} does not hold {name}, and {index} says it does; they are of different models or damaged, take the complete folder",
        "{path} 中没有 {name}，而 {index} 说有；二者不属于同一模型或已损坏，请使用完整的文件夹",
    ),
    "exchange.pickles_alone": (
        "{path} holds its weights as pickles alone ({name}), which may run code and are not read; in that folder, convert them with: python -c \"import glob, torch, safetensors.torch as s; s.save_file({{n: t.contiguous().clone() for f in glob.glob('pytorch_model*.bin') for n, t in torch.load(f, weights_only=True).items()}}, 'model.safetensors')\"",
        "{path} 的权重只有 pickle 格式（{name}），它可能执行代码，因此不读；请在该文件夹中用以下命令转换：python -c \"import glob, torch, safetensors.torch as s; s.save_file({{n: t.contiguous().clone() for f in glob.glob('pytorch_model*.bin') for n, t in torch.load(f, weights_only=True).items()}}, 'model.safetensors')\"",
    ),
    "exchange.no_weights": (
        "{path} holds no weights: neither {single} nor {index} is there; take the complete folder",
        "{path} 中没有权重：既没有 {single} 也没有 {index}；请使用完整的文件夹",
    ),
    "exchange.adapters": (
        "{path} holds adapters (LoRA; adapter_config.json), which are changes to another model and none by themselves; merge them with peft's merge_and_unload, save that and load it",
        "{path} 中是适配器（LoRA；adapter_config.json），它们是对另一个模型的改动，本身不是模型；请用 peft 的 merge_and_unload 合并后保存，再加载",
    ),
    "exchange.model_type": (
        "{path}: clearhead does not know the model_type {found}; the nearest that it knows: {nearest}; all: {known}",
        "{path}：clearhead 不认识 model_type {found}；最接近的已知类型：{nearest}；全部：{known}",
    ),
    "exchange.architecture": (
        "{path}: clearhead does not know the architecture {found} of a {family}, which computes something else; the nearest that it knows: {nearest}; its model types: {known}",
        "{path}：clearhead 不认识 {family} 的架构 {found}，它的计算不同；最接近的已知架构：{nearest}；已知的 model_type：{known}",
    ),
    "exchange.more_than_there": (
        "{path} describes a model of {wanted} numbers, and the files hold {found}: they do not belong together; take the complete folder",
        "{path} 描述的模型有 {wanted} 个数，而文件中有 {found} 个：二者不是一套；请使用完整的文件夹",
    ),
    "exchange.modules": (
        "{path}: a sentence-transformers model of {found} is not supported; clearhead knows Transformer, Pooling and, behind them, Normalize",
        "{path}：不支持由 {found} 组成的 sentence-transformers 模型；clearhead 认识 Transformer、Pooling，以及其后的 Normalize",
    ),
    "exchange.modules_leave": (
        "{path} names the folder {name}, which is not one of its own folder, and nothing is read from elsewhere; put it there and name it so",
        "{path} 指向文件夹 {name}，它不在同一文件夹内，而其他位置的内容一概不读；请把它放进来并改用其名称",
    ),
    "exchange.modules_damaged": (
        "{path} cannot be read as the list of a sentence-transformers model's modules ({reason}); it is damaged, take another copy",
        "无法把 {path} 读作 sentence-transformers 模型的模块列表（{reason}）；文件已损坏，请换一份",
    ),
    "exchange.poolings": (
        "{path} asks for {found} as its pooling, and exactly one kind is supported; set one of {known} to true",
        "{path} 要求的池化是 {found}，而只支持恰好一种；请把 {known} 之一设为 true",
    ),
}
