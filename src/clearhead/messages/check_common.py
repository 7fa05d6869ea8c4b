"""Messages said by the questions that every kind is asked: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "common.no_trial": (
        "no batch of 4 rows of any usual length could be run, so nothing could be seen",
        "4 行的批次在任何常用长度下都无法运行，因此无从观察",
    ),
    "common.eval_twice": (
        "B={rows} T={length}: {calls} calls of one copy in evaluation mode with one input differ by {gap} of the output's size",
        "B={rows} T={length}：同一副本在评估模式下对同一输入调用 {calls} 次，输出相差其大小的 {gap}",
    ),
    "common.recreated": (
        "{count} parameters are made at each call of forward, the first in {layer}: they are in no state dict, never train, and start anew at each call",
        "每次调用 forward 都会新建 {count} 个参数，第一个属于 {layer}：它们不在 state dict 中，不会训练，且每次调用都重新初始化",
    ),
    "common.stale": (
        "B={rows} T={length}: the output of a copy that has run another input before differs from that of a fresh copy by {gap}",
        "B={rows} T={length}：先运行过另一输入的副本，其输出与全新副本相差 {gap}",
    ),
    "common.stale_raises": (
        "a copy that has run another input of the same size raises {reason}, a fresh one does not",
        "先运行过同样大小另一输入的副本抛出 {reason}，全新副本则不会",
    ),
    "common.gradients_differ": (
        "the output with gradients recorded differs from that under no_grad by {gap}: two paths of the code do not compute the same",
        "记录梯度时的输出与 no_grad 下相差 {gap}：代码的两条路径计算结果不同",
    ),
    "common.no_modes": (
        "a function has no training mode",
        "函数没有训练模式",
    ),
    "common.no_dropout": (
        "the code states no dropout above 0",
        "代码没有声明大于 0 的 dropout",
    ),
    "common.train_raises": (
        "in training mode it raises {reason}",
        "在训练模式下抛出 {reason}",
    ),
    "common.train_differs": (
        "dropout stated in {stated} and set to {share}: {calls} calls in training mode differ by {gap} in outputs and gradients",
        "{stated} 声明了 dropout，设为 {share}：训练模式下 {calls} 次调用的输出与梯度相差 {gap}",
    ),
    "common.no_masks": (
        "no random mask of ones and zeros is multiplied by hand in training",
        "训练时没有手工相乘的随机 0/1 掩码",
    ),
    "common.rescaled": (
        "what a random mask keeps is made larger by one over the share that is kept",
        "随机掩码保留的值已乘以保留比例的倒数",
    ),
    "common.no_rescale": (
        "a random mask at {line} drops a share of {share}, and nothing multiplies by 1/{kept}: the expectation is {kept} of what evaluation gives",
        "{line} 的随机掩码丢弃比例为 {share}，而没有任何地方乘以 1/{kept}：期望只有评估时的 {kept}",
    ),
    "common.no_rows": (
        "the output has shape {shape} for {rows} rows: it has no axis of rows",
        "{rows} 行输入的输出形状为 {shape}：没有行轴",
    ),
    "common.no_influence": (
        "the output does not depend on the input, so a mixing could not have been seen",
        "输出不依赖输入，因此无法看出是否混合",
    ),
    "common.rows": (
        "B={rows} T={length}: another content of row {row} moves row {seen} by {gap}, and itself by {own}",
        "B={rows} T={length}：改变第 {row} 行的内容使第 {seen} 行变动 {gap}，其自身变动 {own}",
    ),
    "common.rows_gradient": (
        "the gradient of row 0's output at row {row}'s input is {gap} of that at its own",
        "第 0 行输出对第 {row} 行输入的梯度为对其自身输入梯度的 {gap}",
    ),
    "common.rows_count": (
        "the same two rows in a batch of 2 and in one of {rows} differ by {gap}",
        "同样两行在 2 行的批次与 {rows} 行的批次中相差 {gap}",
    ),
    "common.batch_statistics": (
        "rows depend on each other, and the code says so (statistics of the batch, or a capacity): legal, but no row is what it is alone",
        "各行相互依赖，而代码已说明（批统计量或容量限制）：合法，但任何一行都不同于单独运行时",
    ),
    "common.axes_kept": (
        "B=1 and T=1 keep their axes, and a row alone is the row in a batch of {rows} (T={length})",
        "B=1 与 T=1 保留各自的轴，单独一行与 {rows} 行批次中的该行相同（T={length}）",
    ),
    "common.squeezed": (
        "with {axis}=1 the output has shape {found}, not {wanted}",
        "{axis}=1 时输出形状为 {found}，而非 {wanted}",
    ),
    "common.squeezed_raises": (
        "with {axis}=1 it raises {reason}, with 2 and more it does not",
        "{axis}=1 时抛出 {reason}，2 及以上则不会",
    ),
    "common.alone_differs": (
        "rows do not see each other, but a batch of one gives another output, by {gap}, than the same row in a larger batch",
        "各行互不可见，但单行批次的输出与较大批次中的同一行相差 {gap}",
    ),
    "common.weights_seen": (
        "{count} parameters and the buffers were looked at",
        "查看了 {count} 个参数以及缓冲区",
    ),
    "common.zero_last": (
        "{name} is all zeros: the last projection of a branch, a known choice for a fresh model; in a trained one it would be a fault",
        "{name} 全为零：分支的最后一个投影，对新建模型是常见选择；对训练过的模型则是错误",
    ),
    "common.zero": (
        "{name} {shape} is all zeros: it passes nothing on",
        "{name} {shape} 全为零：什么也传不过去",
    ),
    "common.non_finite": (
        "{name} holds {count} of {total} values that are NaN or infinite",
        "{name} 的 {total} 个值中有 {count} 个是 NaN 或无穷",
    ),
    "common.frozen": (
        "{name} has requires_grad False, and nothing in the code says that it is frozen",
        "{name} 的 requires_grad 为 False，而代码中没有说明它被冻结",
    ),
    "common.rows_zero": (
        "{count} of {total} rows of {name} are all zeros ({rows}) and none is said to be padding",
        "{name} 的 {total} 行中有 {count} 行全为零（{rows}），且没有说明它们是填充",
    ),
    "common.dead": (
        "{count} {axis} of {name} are all zeros ({which}): these units take in, or give, nothing",
        "{name} 中有 {count} 个 {axis} 全为零（{which}）：这些单元不接收或不给出任何信息",
    ),
    "common.heads_differ": (
        "no two heads have equal query weights",
        "没有两个头的查询权重相同",
    ),
    "common.heads_tied": (
        "heads {one} and {other} of {where} have equal query weights to the last bit: they compute the same and get the same gradient",
        "{where} 的第 {one} 与第 {other} 个头查询权重逐位相同：它们计算相同，梯度也相同",
    ),
    "common.registered": (
        "everything trainable that can be reached from the module is among its {count} parameters",
        "从模块可达的一切可训练内容都在其 {count} 个参数之中",
    ),
    "common.unregistered": (
        "{where} ({what}, {count} numbers) is held by the module, but is not among its parameters: not saved, not moved, not trained",
        "模块持有 {where}（{what}，{count} 个数），但它不在参数之中：不会保存、移动或训练",
    ),
    "common.not_shared": (
        "no list of blocks has the same block twice",
        "没有哪个块列表重复包含同一个块",
    ),
    "common.shared_claimed": (
        "{where} has one block {count} times, and the code says that its layers share their weights: legal",
        "{where} 包含同一个块 {count} 次，代码已说明各层共享权重：合法",
    ),
    "common.shared": (
        "{where} has the same {kind} {count} times: {count} layers with the weights of one",
        "{where} 包含同一个 {kind} {count} 次：{count} 层只有一层的权重",
    ),
    "common.block_again": (
        "{block} runs {count} times in one call, and {count} layers are stated: they have the weights of one",
        "{block} 在一次调用中运行 {count} 次，而代码声明了 {count} 层：它们只有一层的权重",
    ),
    "common.tied": (
        "head and embedding are one parameter, as the code says",
        "输出头与嵌入是同一个参数，与代码所述一致",
    ),
    "common.tying_lost": (
        "the code says that head and embedding are tied, but {head}.weight and {table}.weight are two parameters in two places",
        "代码声明输出头与嵌入绑定，但 {head}.weight 与 {table}.weight 是两处的两个参数",
    ),
    "common.tied_data": (
        "{head}.weight and {table}.weight are two parameters that share memory only until the module is moved or converted, and get two gradients",
        "{head}.weight 与 {table}.weight 是两个参数，只在模块移动或转换类型之前共享内存，且各有各的梯度",
    ),
    "common.no_gradient": (
        "no gradient could be taken: {reason}",
        "无法求梯度：{reason}",
    ),
    "common.unused_asked": (
        "each of {count} parameters gets a gradient from {inputs} random inputs, or is called under a condition only",
        "{count} 个参数都从 {inputs} 个随机输入得到梯度，或只在某种条件下被调用",
    ),
    "common.unused": (
        "with random weights, no gradient from {inputs} random inputs comes to {names} (in all: {count})",
        "权重随机时，{count} 个参数从 {inputs} 个随机输入得不到梯度：{names}",
    ),
    "common.unused_part": (
        "{first}..{last} of the {count} outputs of {name} get no gradient from {inputs} random inputs, and the others do: queries, keys or values are detached",
        "{name} 的 {count} 个输出中，第 {first}..{last} 个从 {inputs} 个随机输入得不到梯度，其余得到：查询、键或值被 detach",
    ),
    "common.refuses_float64": (
        "the code refuses float64; it was checked in float32, with the rounding of that",
        "代码拒绝 float64；改以 float32 检查，误差按其舍入计",
    ),
    "common.island": (
        "a float32 island inside a float64 run: {what} at {line}; legal, differences stay near 2^-24",
        "float64 运行中的 float32 孤岛：{line} 的 {what}；合法，差异停留在 2^-24 附近",
    ),
    "common.half_stated": (
        "{line} runs in 16 bit, as the code states",
        "{line} 以 16 位运行，与代码所述一致",
    ),
    "common.half": (
        "{what} at {line} runs in {kind} inside a {run} run",
        "{run} 运行中，{line} 的 {what} 以 {kind} 计算",
    ),
    "common.types_watched": (
        "none of {count} operations of a {run} run is in 16 bit",
        "{run} 运行的 {count} 个操作中没有 16 位的",
    ),
    "common.output": ("output", "输出"),
    "common.rounding": (
        "rounding (one of float32 is {single}, of bfloat16 {half})",
        "舍入（float32 单次为 {single}，bfloat16 为 {half}）",
    ),
    "common.more_than_rounding": (
        "more than rounding: {gap} in {kind}, one rounding is {expected}",
        "超出舍入：{kind} 下为 {gap}，单次舍入为 {expected}",
    ),
    "common.no_meta": (
        "it cannot run on the device meta: {reason}",
        "无法在 meta 设备上运行：{reason}",
    ),
    "common.meta_runs": (
        "weights and inputs on the device meta: no operation meets a tensor of another device",
        "权重与输入都在 meta 设备上：没有操作遇到其他设备的张量",
    ),
    "common.default_device": (
        "{line} makes a tensor without device=, so the module runs on the processor alone; write device=x.device",
        "{line} 创建张量时未写 device=，因此模块只能在处理器上运行；请写 device=x.device",
    ),
    "common.hard_coded": (
        "{culprit} stays on the processor when weights and inputs are moved: {reason}",
        "移动权重与输入后，{culprit} 仍留在处理器上：{reason}",
    ),
}
