"""Messages said by `clearhead models`, `import` and `export`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cli.export.about": ("write a model as others load it", "把模型写成别人能加载的形式"),
    "cli.export.format": (
        "--format {format}: there is no such format; known: {known}",
        "--format {format}：没有这种格式；已知的有：{known}",
    ),
    "cli.export.bar": ("writing", "写入"),
    "cli.export.written": ("{folder}: written as {family}, {size}", "{folder}：已写成 {family}，{size}"),
    "cli.export.load": (
        'transformers.{architecture}.from_pretrained("{folder}") loads it.',
        '用 transformers.{architecture}.from_pretrained("{folder}") 加载。',
    ),
    "cli.export.no_tokenizer": (
        "No tokenizer was written: this model reads ids.",
        "没有写出分词器：此模型直接读 id。",
    ),
    "cli.import.about": ("make a run directory of somebody else's model", "把别人的模型变成运行目录"),
    "cli.import.bar": ("writing", "写入"),
    "cli.import.written": ("{source} ({origin}) is now the run {out}", "{source}（{origin}）已成为运行目录 {out}"),
    "cli.import.loaded": ("  loaded       {count}", "  已加载       {count}"),
    "cli.import.retied": ("  retied       {found}", "  重新共享     {found}"),
    "cli.import.unused": ("  unused       {found}", "  未使用       {found}"),
    "cli.import.missing": ("  missing      0\n  unexpected   0", "  缺少         0\n  多余         0"),
}
