"""Messages said where somebody's code is compared: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "diff.code_raises": (
        "{name} could not be run on these inputs: {reason}; name its kind (--kind), or wrap it so that it takes what the other takes",
        "无法用这些输入运行 {name}：{reason}；请指明其类别（--kind），或把它包装成接受与另一方相同的输入",
    ),
    "diff.inputs_differ": (
        "{a} and {b} do not take the same inputs ({reason}); wrap one of them so that it takes what the other takes",
        "{a} 与 {b} 接受的输入不同（{reason}）；请包装其中一个，使它接受与另一个相同的输入",
    ),
    "diff.given_ids": ("{rows} x {length} random ids below {vocab}", "{rows} x {length} 个小于 {vocab} 的随机编号"),
    "diff.given_vectors": ("{count} x random vectors {shape}", "{count} 组随机向量 {shape}"),
    "diff.given_text": ("the {count} ids of the text", "文本的 {count} 个编号"),
    "diff.no_ids": ("the text has no tokens; give a longer one", "文本没有任何词元；请给更长的文本"),
    "diff.id_too_large": (
        "the text has the id {id}, and one of the two knows only ids below {vocab}; give another text, or none",
        "文本含编号 {id}，而其中一方只认识小于 {vocab} 的编号；请换一段文本，或不给文本",
    ),
    "diff.no_tokenizer": (
        "neither of the two has a tokenizer, so a text cannot be read; leave the text out and random ids are taken",
        "两者都没有分词器，无法读取文本；请去掉文本，改用随机编号",
    ),
}
