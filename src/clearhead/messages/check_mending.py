"""Messages that say how to mend what every kind is asked: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "common.fix_eval_dropout": (
        "pass training=self.training (for scaled_dot_product_attention dropout_p=self.p if self.training else 0.0), or use an nn.Dropout held by the module",
        "传入 training=self.training（scaled_dot_product_attention 用 dropout_p=self.p if self.training else 0.0），或使用模块持有的 nn.Dropout",
    ),
    "common.fix_noise": (
        "draw random numbers in training alone: if self.training: ...",
        "只在训练时抽取随机数：if self.training: ...",
    ),
    "common.fix_recreated": (
        "make the layer in __init__, self.layer = nn.Linear(...), and call it in forward",
        "在 __init__ 中创建该层（self.layer = nn.Linear(...)），在 forward 中调用它",
    ),
    "common.fix_stale": (
        "keep no state of a call in the module: take the cache as an argument, or empty it at the start of each sequence",
        "不要在模块中保留某次调用的状态：把缓存作为参数传入，或在每个序列开始时清空它",
    ),
    "common.fix_never_active": (
        "apply it: x = self.dropout(x), with the result used, and training=self.training for the functions",
        "真正使用它：x = self.dropout(x) 并使用其结果；函数形式请传 training=self.training",
    ),
    "common.fix_rescale": (
        "divide what is kept by 1 - p, x * mask / (1 - p), or use F.dropout",
        "将保留的值除以 1 - p，即 x * mask / (1 - p)，或使用 F.dropout",
    ),
    "common.fix_mixing": (
        "keep rows apart: no sum, softmax, norm or matrix product over the first axis; check batch_first and each view, transpose and reshape",
        "各行应互不相干：不要沿第一个轴求和、softmax、归一化或做矩阵乘；检查 batch_first 以及每个 view、transpose、reshape",
    ),
    "common.fix_squeezed": (
        "name the axis that is removed, squeeze(dim), and only one that is 1 by construction; index with x[:, -1:] or keepdim=True where an axis must stay",
        "写明要去掉的轴 squeeze(dim)，且只去掉构造上必为 1 的轴；需要保留轴时用 x[:, -1:] 或 keepdim=True",
    ),
    "common.fix_zero": (
        "initialise it, for instance with nn.init.normal_(weight, std=0.02), or load it: see what left it at zero",
        "对其初始化，例如 nn.init.normal_(weight, std=0.02)，或加载权重；查明是什么使其保持为零",
    ),
    "common.fix_non_finite": (
        "initialise or load it again, and look for torch.empty, a division by zero, or a step that diverged",
        "重新初始化或加载，并检查 torch.empty、除零或发散的训练步",
    ),
    "common.fix_frozen": (
        "set requires_grad_(True), or make it a buffer if it must not train",
        "设为 requires_grad_(True)；若本不应训练，请改为 buffer",
    ),
    "common.fix_rows_zero": (
        "initialise every row, or state padding_idx for the one that stands for padding",
        "初始化每一行；若某行表示填充，请声明 padding_idx",
    ),
    "common.fix_dead": (
        "initialise them like the others; if they were pruned, remove them",
        "像其他单元一样初始化；若已剪枝，请直接移除",
    ),
    "common.fix_heads_tied": (
        "initialise each head by itself: no repeat, expand or copy of one head's weights",
        "分别初始化每个头：不要重复、扩展或复制同一个头的权重",
    ),
    "common.fix_unregistered": (
        "hold layers in nn.ModuleList or nn.ModuleDict and tensors in nn.Parameter, as attributes of the module",
        "用 nn.ModuleList 或 nn.ModuleDict 保存层，用 nn.Parameter 保存张量，并作为模块的属性",
    ),
    "common.fix_shared": (
        "make each anew: nn.ModuleList(Block(...) for _ in range(layers)), not [block] * layers",
        "逐个新建：nn.ModuleList(Block(...) for _ in range(layers))，而不是 [block] * layers",
    ),
    "common.fix_tying": (
        "make them one parameter: self.{head}.weight = self.{table}.weight, after both are made and initialised, and load into one",
        "使其成为同一个参数：在两者创建并初始化之后写 self.{head}.weight = self.{table}.weight，并只加载一次",
    ),
    "common.fix_unused": (
        "use it in forward, without detach, .data, .item() or no_grad on its way to the output; or remove it",
        "在 forward 中使用它，且通往输出的路上不要有 detach、.data、.item() 或 no_grad；否则删除它",
    ),
    "common.fix_half": (
        "compute it in float32 or wider, x.float(), and convert the result back with .to(x.dtype)",
        "以 float32 或更宽的类型计算（x.float()），再用 .to(x.dtype) 转回",
    ),
    "common.fix_hard_coded": (
        "make it with device=x.device, or hold it with self.register_buffer(name, tensor, persistent=False)",
        "用 device=x.device 创建它，或用 self.register_buffer(name, tensor, persistent=False) 保存",
    ),
}
