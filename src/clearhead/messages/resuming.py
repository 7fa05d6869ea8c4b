"""Messages said by `resuming`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "resuming.no_folder": (
        "{path} cannot be written: there is no folder {folder} (any more); make it again, or start with another one",
        "无法写入 {path}：文件夹 {folder} 不存在（或已被删除）；请重新建立它，或换一个文件夹",
    ),
    "resuming.in_training": (
        "{out} is being trained by another process ({process}); wait until it is done, or stop it first",
        "{out} 正由另一个进程（{process}）训练；请等它结束，或先停止它",
    ),
    "resuming.other_optimizer": (
        "{path} holds the state of {found}, and this training has {wanted}; go on with the optimiser that the run was started with",
        "{path} 中是 {found} 的状态，而本次训练用的是 {wanted}；请用该运行开始时的优化器继续",
    ),
    "resuming.elsewhere": (
        "Not as when this run was trained: {differences}. It goes on, equal within rounding but not bit for bit.",
        "与该运行训练时的环境不同：{differences}。训练会继续，结果在舍入误差内相同，但不会逐位相同。",
    ),
    "resuming.one_checkpoint": (
        "{path} holds {count} checkpoint(s), and a replay needs two; train it further past the next one with"
        " `clearhead train --out {path} --resume --keep 2` and a larger --steps",
        "{path} 中有 {count} 个检查点，而重放需要两个；请用 `clearhead train --out {path} --resume --keep 2` 加更大的 --steps"
        " 训练到下一个检查点之后",
    ),
    "resuming.not_reached": (
        "{path}: the run is planned to {steps} updates and its last checkpoint has {last}; it cannot be replayed",
        "{path}：该运行计划训练 {steps} 步，而最后一个检查点在第 {last} 步；无法重放",
    ),
    "resuming.part.weights": ("weights ({count} tensors)", "权重（{count} 个张量）"),
    "resuming.part.optimizer": ("optimiser state ({count} tensors)", "优化器状态（{count} 个张量）"),
    "resuming.part.random": ("random state ({count} generators)", "随机状态（{count} 个生成器）"),
    "resuming.part.metrics": ("losses and norms ({count} updates)", "损失与范数（{count} 步）"),
    "resuming.tensor_differs": (
        "First difference: {name}, by at most {largest}.",
        "首个差异：{name}，最多相差 {largest}。",
    ),
    "resuming.only_one_has": (
        "First difference: {name} is in one of the two alone.",
        "首个差异：{name} 只在其中之一。",
    ),
    "resuming.line_differs": (
        "First line that differs: step {step}, {name} {recorded} as recorded, {replayed} when replayed.",
        "首个不同的行：第 {step} 步，{name} 记录为 {recorded}，重放为 {replayed}。",
    ),
    "resuming.looks_like_rng": (
        "[resume.rng] The random numbers (dropout) were not where the run had left them.",
        "[resume.rng] 随机数（dropout）不在该运行离开时的位置。",
    ),
    "resuming.looks_like_data": (
        "[resume.data] The first update had another loss from the same weights: it saw other data.",
        "[resume.data] 同样的权重，第一步的损失却不同：它看到的是另外的数据。",
    ),
    "resuming.looks_like_optimizer": (
        "[resume.optimizer] The first update had the same loss and gradient and led to other weights:"
        " the optimiser (its means, or the learning rate) was not as the run had left it.",
        "[resume.optimizer] 第一步的损失与梯度都相同，权重却不同：优化器（动量或学习率）与该运行离开时不同。",
    ),
    "resuming.looks_like_rounding": (
        "The difference is no more than rounding makes between machines, thread counts or releases, or on a GPU.",
        "差异不超过不同机器、线程数、版本之间（或 GPU 上）的舍入误差。",
    ),
    "cli.verify_resume.differs_in": ("Not as recorded: {differences}.", "与记录不同：{differences}。"),
    "cli.verify_resume.nothing_differs": (
        "Versions, threads, device and machine are as recorded.",
        "版本、线程数、设备与机器都与记录相同。",
    ),
    "cli.verify_resume.about": (
        "prove on a run that stopping and going on changes no bit",
        "在一次训练上证明：停下再继续不改变任何一位",
    ),
    "cli.verify_resume.replaying": (
        "Replaying steps {first} to {last} on {device}, {threads} thread(s); the run stays as it is.",
        "在 {device} 上用 {threads} 个线程重放第 {first} 到第 {last} 步；该运行保持不变。",
    ),
    "cli.verify_resume.bar": ("replaying", "重放"),
    "cli.verify_resume.row": (
        "  recorded {recorded}  replayed {replayed}  {sign}  {part}",
        "  记录 {recorded}  重放 {replayed}  {sign}  {part}",
    ),
    "cli.verify_resume.yes": (
        "Equal bit for bit: from step {first} the replay arrived at the checkpoint of step {last}.",
        "逐位相同：从第 {first} 步重放，到达了第 {last} 步的检查点。",
    ),
    "cli.verify_resume.no": (
        "Not equal: from step {first} the replay did not arrive at the checkpoint of step {last}.",
        "不相同：从第 {first} 步重放，没有到达第 {last} 步的检查点。",
    ),
}
