"""Messages said by `plotting`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cli.plot.about": (
        "the curves of one training or of several: in the terminal, or as SVG, PNG or HTML",
        "一次或多次训练的曲线：显示在终端，或存为 SVG、PNG、HTML",
    ),
    "plot.no_run": (
        "there is nothing to plot; give run directories, the --out of `clearhead train`",
        "没有可画的内容；请给出运行目录，即 `clearhead train` 的 --out",
    ),
    "plot.no_lines": (
        "{path} holds no update that can be read ({broken} broken lines); look again when the training has made some",
        "{path} 中没有可读的更新记录（损坏 {broken} 行）；请等训练有记录后再看",
    ),
    "plot.cannot_read": (
        "{path} cannot be read: {reason}; see to it that it is a file you may read",
        "无法读取 {path}：{reason}；请确认它是您有权读取的文件",
    ),
    "plot.broken": (
        "[{path}: {count} lines cannot be read and are left out]",
        "[{path}：有 {count} 行无法读取，已略去]",
    ),
    "plot.no_tokens": (
        "{path} does not record how many tokens an update has, so --x {axis} is not known; take --x step",
        "{path} 没有记录每次更新的 token 数，无法使用 --x {axis}；请用 --x step",
    ),
    "plot.unknown_column": (
        "--what {name}: no run has recorded it; did you mean {near}? There are {known}",
        "--what {name}：没有运行记录过它；是不是 {near}？可选 {known}",
    ),
    "plot.not_recorded": ("[{name} has not recorded {column}]", "[{name} 没有记录 {column}]"),
    "plot.nothing_above_zero": (
        "--log: {column} has no number above 0; leave --log out",
        "--log：{column} 没有大于 0 的数；请去掉 --log",
    ),
    "plot.nothing_finite": (
        "--what {column}: no number of it is finite, there is nothing to draw; take another column",
        "--what {column}：没有一个有限的数，无从画起；请选别的列",
    ),
    "plot.unknown_axis": ("--x {name}: there is no such axis; take {known}", "--x {name}：没有这个轴；可选 {known}"),
    "plot.suffix": (
        "--out {path}: the ending decides what is written; let it be .svg, .png or .html",
        "--out {path}：后缀决定写出的格式；请用 .svg、.png 或 .html",
    ),
    "plot.exists": (
        "{path} exists; choose another --out, or write over it with --force",
        "{path} 已存在；请换一个 --out，或用 --force 覆盖",
    ),
    "plot.no_folder": (
        "{path} cannot be written: there is no folder {folder}; make it first",
        "无法写入 {path}：没有文件夹 {folder}；请先创建",
    ),
    "plot.no_matplotlib": (
        "pictures are drawn by matplotlib, which is not installed: pip install 'clearhead[plot]'; without --out the"
        " curves are shown here",
        "图片由 matplotlib 绘制，但尚未安装：pip install 'clearhead[plot]'；不带 --out 则直接显示在终端",
    ),
    "plot.no_font": (
        "[no font of this machine has all the signs of the labels: they are in English, and runs called by number;"
        " an SVG or HTML has them]",
        "[本机没有含全部字符的字体：标签改用英文，运行以编号代替；SVG 和 HTML 不受影响]",
    ),
    "plot.written": ("{path} written", "已写入 {path}"),
    "plot.updates": ("{name}: {updates} updates", "{name}：{updates} 次更新"),
    "plot.last": ("last {column} {value}", "最后的 {column} 为 {value}"),
    "plot.best": ("best validation loss {value} at step {step}", "最佳验证损失 {value}（第 {step} 步）"),
    "plot.page_title": ("Training curves", "训练曲线"),
    "plot.page_run": ("run", "运行"),
    "plot.page_updates": ("updates", "更新次数"),
    "plot.page_last_loss": ("last loss", "最后损失"),
    "plot.page_best": ("best validation loss", "最佳验证损失"),
    "plot.page_at": ("at step", "所在步"),
    "plot.page_numbers": (
        "the numbers of {name}: {shown} of {count} updates, all evaluations among them",
        "{name} 的数值：{count} 次更新中的 {shown} 次，含全部验证",
    ),
    "plot.word_step": ("updates", "更新次数"),
    "plot.word_tokens": ("tokens learnt from", "学过的 token 数"),
    "plot.word_seconds": ("seconds of updates", "更新所用秒数"),
    "plot.word_loss": ("loss (nats per token)", "损失（奈特/token）"),
    "plot.word_val_loss": ("validation loss (nats per token)", "验证损失（奈特/token）"),
    "plot.word_lr": ("learning rate", "学习率"),
    "plot.word_grad_norm": ("gradient norm before clipping", "裁剪前的梯度范数"),
    "plot.word_tokens_per_second": ("tokens per second", "每秒 token 数"),
    "plot.word_ceiling_share": ("share of the machine's best speed", "占本机最高速度的比例"),
    "plot.word_memory": ("memory, at most (bytes)", "内存峰值（字节）"),
    "plot.word_every_update": ("every update", "每次更新"),
    "plot.word_mean": ("mean of {window} updates", "{window} 次更新的均值"),
    "plot.word_validation": ("validation", "验证"),
    "plot.word_best": ("best {value} at {step}", "最佳 {value}（第 {step} 步）"),
    "plot.word_best_mark": ("best validation", "最佳验证"),
    "plot.word_measured": ("at evaluations", "验证时测得"),
    "plot.word_uniform": ("guessing, ln V", "随机猜测 ln V"),
    "plot.word_unigram": ("token frequencies", "按词频猜"),
    "plot.word_bigram": ("table of pairs", "二元表"),
    "plot.word_entropy": ("entropy, the floor", "熵，理论下限"),
    "plot.word_far": ("{level} (outside)", "{level}（图外）"),
    "plot.dashboard_left_out": (
        "[{name} is left out from here on, the training goes on: {reason}]",
        "[{name} 从此停用，训练继续：{reason}]",
    ),
    "plot.no_tensorboard": (
        "TensorBoard's files are written by the package tensorboard, which is not installed: pip install tensorboard",
        "TensorBoard 的文件由 tensorboard 包写出，但尚未安装：pip install tensorboard",
    ),
}
