"""Messages said by `formats` about what is written for others: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "export.exists": (
        "{path} is there already, and nothing in it is written over; give a folder that is new or empty",
        "{path} 已存在，其中的内容不会被覆盖；请给出新的或空的文件夹",
    ),
    "export.inside": (
        "{path} lies inside the run {run}, whose files a training may be writing; give a folder elsewhere",
        "{path} 位于运行目录 {run} 之内，训练可能正在写入其中的文件；请给出别处的文件夹",
    ),
    "export.no_family": (
        "no Hugging Face architecture that clearhead writes has all parts of this model: the nearest, {family}, differs in {parts}; only a model that is trained as it has them can be exported",
        "clearhead 能写的 Hugging Face 架构中，没有一个具备此模型的全部部件：最接近的 {family} 在以下方面不同：{parts}；只有按它的部件训练的模型才能导出",
    ),
    "import.no_training": (
        "{out} was imported and holds no training that could go on; begin one with its weights: `clearhead train TEXT --init {out} --out NEW`",
        "{out} 是导入的，其中没有可以继续的训练；请用它的权重开始新的训练：`clearhead train 文本 --init {out} --out 新目录`",
    ),
}
