"""Messages said by `web` where a prompt is opened: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "opening.nothing_to_read": (
        "the prompt is empty, and this model has no mark that could stand for the beginning of a text; type at least one character",
        "提示为空，而该模型没有可代表文本开头的标记；请至少输入一个字符",
    ),
    "opening.no_marks": (
        "the tokenizer of this encoder-decoder has no marks that begin and end an answer, so that nothing can be read; save the model with one that has them",
        "该编码器-解码器的分词器没有表示回答开头和结尾的标记，因此无法读入任何内容；请用带有这些标记的分词器保存模型",
    ),
    "opening.target_alone": (
        "this model reads one text and writes no second one; leave the target away",
        "该模型只读一段文本，不写第二段；请去掉目标",
    ),
    "opening.no_stage": (
        "no tensor of this forward is called {name}; the flow lists all of them",
        "这次前向计算中没有名为 {name} 的张量；数据流视图列出全部名称",
    ),
    "opening.no_numbers": (
        "the tensor {name} has no finite number to draw",
        "张量 {name} 中没有可以绘制的有限数值",
    ),
}
