"""Messages said by `updates`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "updates.not_cut": (
        "micro_batch needs batches that are a NamedTuple of tensors with one first axis, and {kind} is none; leave it out",
        "micro_batch 要求批次是首轴长度相同的张量组成的 NamedTuple，而 {kind} 不是；请不要使用它",
    ),
    "updates.other_state": (
        "the optimiser's state was saved with another dtype or model: {name} does not fit; resume with the same settings",
        "优化器状态是用另一种 dtype 或模型保存的：{name} 不符；请用相同的设置继续",
    ),
    "updates.no_terms": (
        "step {step}: its batch holds nothing to learn (no target that counts); give other data or a larger batch",
        "第 {step} 步：该批次没有可学的内容（没有计入损失的目标）；请换数据或增大批次",
    ),
    "updates.not_finite": (
        "step {step} (learning rate {lr}): {name} is not finite, the first that is not, {place}; the weights are as before this step."
        " Start anew with a lower --lr (--init takes the weights of this run), or go on with --resume --skip-nonfinite",
        "第 {step} 步（学习率 {lr}）：最先不是有限数的是 {name}，{place}；权重保持此步之前的值。"
        "请用更小的 --lr 另开一次训练（可用 --init 取这次的权重），或用 --resume --skip-nonfinite 跳过这样的更新继续",
    ),
    "updates.not_finite_weight": ("the weight {name}", "权重 {name}"),
    "updates.not_finite_gradient": ("the gradient of {name}", "{name} 的梯度"),
    "updates.not_finite_norm": ("the norm of all gradients", "全部梯度的范数"),
    "updates.not_finite_loss": ("the loss", "损失"),
    "updates.in_rows": (
        "in rows {rows} of its batch (row {row} begins {begins})",
        "位于批次的第 {rows} 行（第 {row} 行开头为 {begins}）",
    ),
    "updates.in_batch": ("in its batch, a {kind}", "位于其批次（{kind}）中"),
    "updates.no_compile": (
        "this Python and PyTorch cannot compile; leave compile out",
        "此 Python 与 PyTorch 无法编译；请不要使用 compile",
    ),
    "updates.no_compiler": (
        "compile needs a C++ compiler and found none; install g++, clang++ or Visual Studio, or leave compile out",
        "compile 需要 C++ 编译器，但没有找到；请安装 g++、clang++ 或 Visual Studio，或不使用 compile",
    ),
    "updates.no_triton": (
        "compile needs Triton for this GPU and found none; install it (pip install triton), or leave compile out",
        "compile 在此 GPU 上需要 Triton，但没有找到；请安装（pip install triton），或不使用 compile",
    ),
    "updates.no_blocks": (
        "recompute works on the blocks of clearhead's own models, and {kind} has none; leave it out",
        "recompute 只适用于 clearhead 自己模型中的块，而 {kind} 没有；请不要使用它",
    ),
}
