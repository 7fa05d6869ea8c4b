"""Messages said by `formats` about PyTorch's own files: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "exchange.pickle_code": (
        "{path} asks for {name} to be run when it is read, which clearhead never does; save what is needed alone: torch.save(model.state_dict(), ...)",
        "{path} 要求在读取时运行 {name}，clearhead 从不这样做；请只保存所需内容：torch.save(model.state_dict(), ...)",
    ),
    "exchange.meta_code": (
        "{path} asks for {name} to be run when it is read, which clearhead never does; write it anew with nanoGPT's prepare.py, or take it away to see ids",
        "{path} 要求在读取时运行 {name}，clearhead 从不这样做；请用 nanoGPT 的 prepare.py 重新生成，或将其移走以直接使用编号",
    ),
    "exchange.pickle_damaged": (
        "{path} cannot be read without doubt ({reason}); it is damaged or another kind of file, take another copy",
        "{path} 无法可靠读取（{reason}）；文件已损坏或是别的类型，请换一份",
    ),
    "exchange.pickle_no_weights": (
        "{path} holds no dictionary of tensors; save one with torch.save(model.state_dict(), ...)",
        "{path} 中没有张量字典；请用 torch.save(model.state_dict(), ...) 保存",
    ),
    "exchange.pickle_twice": (
        "{path} holds {name} twice, under names that differ by _orig_mod or module alone; save one model",
        "{path} 中有两个 {name}，名字只差 _orig_mod 或 module；请只保存一个模型",
    ),
    "exchange.pickle_unknown": (
        "{path}: {name} and the other tensors belong to no model that clearhead knows; it knows {known}",
        "{path}：{name} 等张量不属于 clearhead 认识的模型；已知的有 {known}",
    ),
    "exchange.pickle_no_tensor": (
        "{path}: {name} is {found} where a tensor of floating-point numbers must be; save the model's state_dict() as it is",
        "{path}：{name} 是 {found}，应为浮点张量；请原样保存模型的 state_dict()",
    ),
    "exchange.pickle_short": (
        "{path}: {name} says that its shape is {found} and holds {there:,} bytes, which are too few; take another copy",
        "{path}：{name} 声称形状为 {found}，却只有 {there:,} 字节，不够；请换一份",
    ),
    "exchange.pickle_disagrees": (
        "{path} says that {field} is {said}, its tensors say {seen}; they do not belong together, take another copy",
        "{path} 声称 {field} 是 {said}，其张量表明是 {seen}；二者不是一套，请换一份",
    ),
    "exchange.pickle_heads": (
        'The tensors of {path} do not tell how many heads there are; save {{"model": state_dict, "model_args": {{"n_head": 6}}}} with the right number',
        '{path} 的张量看不出有几个头；请保存 {{"model": state_dict, "model_args": {{"n_head": 6}}}}，并写上正确的数目',
    ),
    "exchange.meta_none": (
        "{path} is no vocabulary of nanoGPT (a dictionary with itos); write it anew with nanoGPT's prepare.py, or take it away",
        "{path} 不是 nanoGPT 的词表（含 itos 的字典）；请用 nanoGPT 的 prepare.py 重新生成，或将其移走",
    ),
    "exchange.meta_character": (
        "{path}: the id {id} is {found} where one character must be; clearhead reads vocabularies of characters, take it away to see ids",
        "{path}：编号 {id} 是 {found}，应为单个字符；clearhead 只读字符词表，移走它即可直接使用编号",
    ),
    "exchange.meta_differs": (
        "{path}: vocab_size, itos and stoi do not say the same; write it anew with nanoGPT's prepare.py",
        "{path}：vocab_size、itos 与 stoi 彼此不符；请用 nanoGPT 的 prepare.py 重新生成",
    ),
}
