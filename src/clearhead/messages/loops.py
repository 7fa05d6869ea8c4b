"""Messages said by `checking` about training loops: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "loops.same_rows": (
        "two rows of the data have the same ids, so that they cannot be told apart: give the subject a larger vocab or another seed",
        "数据中有两行 id 相同，无法区分：请给 subject 更大的 vocab 或另一个 seed",
    ),
    "loops.nothing_moved": (
        "the loop never stepped a torch optimiser over the model it was given: it must train task.model itself, in place",
        "循环从未用 torch 优化器更新交给它的模型：必须就地训练 task.model 本身",
    ),
    "loops.cannot": ("the loop says that it cannot: {reason}", "循环声明做不到：{reason}"),
    "loops.unknown_rows": (
        "the loop's forwards read other rows than it was given, or it stepped without a forward: nothing to compare with",
        "循环的前向读取的不是交给它的行，或没有前向就更新：无从比较",
    ),
    "loops.island": (
        "; something is computed in float32, which is legal",
        "；其中有一处以 float32 计算，这是允许的",
    ),
    "loops.rows": (
        "an update read {rows} rows where its {micro} micro-batches have {wanted}",
        "一次更新读了 {rows} 行，而它的 {micro} 个微批共有 {wanted} 行",
    ),
    "loops.accumulated": (
        "micro-batches with {counts} real targets gave the gradient of one batch with all of them, to {apart}",
        "含 {counts} 个真实目标的微批给出与整批相同的梯度，相差 {apart}",
    ),
    "loops.accumulation_wrong": (
        "micro-batches with {counts} real targets gave the gradient of {form} (to {same}); from that of one batch it is {apart} away",
        "含 {counts} 个真实目标的微批给出的是{form}的梯度（相差 {same}）；与整批的梯度相差 {apart}",
    ),
    "loops.accumulation_unknown": (
        "micro-batches with {counts} real targets gave a gradient {apart} away from that of one batch; no known mistake gives these numbers",
        "含 {counts} 个真实目标的微批给出的梯度与整批相差 {apart}；没有已知的错误给出这些数",
    ),
    "loops.form_mean_of_means": (
        "the mean of the micro-batches' means, right only where all have equally many real targets",
        "各微批均值的均值（仅当各微批的真实目标一样多时才对）",
    ),
    "loops.form_sum_of_means": (
        "the sum of the micro-batches' means, never divided by how many there are",
        "各微批均值之和（从未除以微批数）",
    ),
    "loops.form_last": ("the last micro-batch alone", "仅最后一个微批"),
    "loops.form_positions": (
        "a sum divided by all positions, padding among them",
        "总和除以全部位置数（填充也算在内）",
    ),
    "loops.form_sums": ("the sum of all losses, never divided", "全部损失之和（从未除以个数）"),
    "loops.form_divided_twice": (
        "a mean divided once more by the number of micro-batches",
        "均值又多除了一次微批数",
    ),
    "loops.one_update": (
        "the loop made one update where two were asked for",
        "要求两次更新，循环只做了一次",
    ),
    "loops.clearing_unknown": (
        "the second update's gradient is none that is known, with or without the first one's",
        "第二次更新的梯度无论是否加上第一次的，都不是已知的形式",
    ),
    "loops.cleared": (
        "the second update's gradient holds nothing of the first one's (to {apart})",
        "第二次更新的梯度不含第一次的任何部分（相差 {apart}）",
    ),
    "loops.kept": (
        "the second update stepped with its own gradient plus the first one's (to {same}), which is {off} of its size: gradients are not cleared between updates",
        "第二次更新用的是自身梯度加上第一次的梯度（相差 {same}），后者占 {off}：更新之间没有清零梯度",
    ),
    "loops.clipped": (
        "the gradient of the whole update was clipped once, to {largest} (to {apart})",
        "整次更新的梯度裁剪一次，至 {largest}（相差 {apart}）",
    ),
    "loops.no_clip": (
        "asked to clip at {largest}, the loop stepped with a gradient of norm {norm}: it does not clip",
        "要求裁剪至 {largest}，循环却以范数 {norm} 的梯度更新：它不裁剪",
    ),
    "loops.clip_parts": (
        "clipped at {largest} after each micro-batch and not once an update: the gradient (norm {norm}) is {off} away from the whole one clipped",
        "在每个微批之后裁剪至 {largest}，而不是每次更新一次：梯度（范数 {norm}）与整体裁剪后的相差 {off}",
    ),
    "loops.clip_unknown": (
        "clipping at {largest} gave a gradient of norm {norm} that is neither right nor that of a known mistake",
        "裁剪至 {largest} 得到范数 {norm} 的梯度，既不正确，也不是已知的错误",
    ),
    "loops.no_scale": (
        "asked for a loss scale of {scale}, the loop's backward gave gradients without one",
        "要求损失缩放 {scale}，循环反向得到的梯度却没有缩放",
    ),
    "loops.scaled": (
        "gradients that arrived {scale} times too large were unscaled before they were clipped (to {apart})",
        "放大 {scale} 倍的梯度先还原、再裁剪（相差 {apart}）",
    ),
    "loops.clip_early": (
        "clipped while the gradients were still {scale} times too large: their norm became {norm} where {wanted} needed no clipping",
        "梯度仍放大 {scale} 倍时就裁剪：范数变成 {norm}，而 {wanted} 本无需裁剪",
    ),
    "loops.never_unscaled": (
        "the loss scale of {scale} was never taken out of the gradients: their norm is {norm}, right is {wanted}",
        "梯度从未除去损失缩放 {scale}：范数为 {norm}，应为 {wanted}",
    ),
    "loops.updates": (
        "{alone} updates with one micro-batch each, {several} with {micro} each, where the same number was asked for",
        "每次一个微批时做了 {alone} 次更新，每次 {micro} 个时做了 {several} 次，而要求的次数相同",
    ),
    "loops.constant_rate": (
        "the learning rate stays at {lr}: there is no schedule",
        "学习率始终为 {lr}：没有调度",
    ),
    "loops.rates": (
        "{updates} updates have the same learning rates, {first} to {last}, whether made of one or of {micro} micro-batches",
        "{updates} 次更新无论由一个还是 {micro} 个微批组成，学习率都相同，从 {first} 到 {last}",
    ),
    "loops.rates_of_parts": (
        "the schedule moves on with each micro-batch: after {updates} updates of {micro} the learning rate is {found} where it should be {last}",
        "调度随每个微批前进：{updates} 次由 {micro} 个微批组成的更新后学习率为 {found}，应为 {last}",
    ),
    "loops.rates_differ": (
        "the learning rates of updates made of {micro} micro-batches differ from those made of one, by {off} of the largest",
        "由 {micro} 个微批组成的更新与一个微批的更新学习率不同，相差最大值的 {off}",
    ),
    "loops.twice": (
        "parameters in more than one group: {count} ({names})",
        "处于不止一个参数组的参数：{count} 个（{names}）",
    ),
    "loops.decayed": (
        "norm weights or biases that decay, by {decay}: {count} ({names})",
        "归一化权重或偏置在衰减，系数 {decay}：{count} 个（{names}）",
    ),
    "loops.groups": (
        "each of {count} parameters is in one of {groups} groups and moves; {decayed} decay, no norm or bias among them",
        "{count} 个参数各在 {groups} 个参数组之一中并被更新；{decayed} 个衰减，其中没有归一化权重或偏置",
    ),
    "loops.unused": (
        "parameters in no optimiser: {missing}; with no gradient or no change in two updates: {still}",
        "不在任何优化器中的参数：{missing}；两次更新中没有梯度或没有变化的：{still}",
    ),
    "loops.eval_left_on": (
        "{count} of {forwards} training forwards ran in evaluation mode, from update {update} on, after an evaluation (part: {part})",
        "{forwards} 次训练前向中有 {count} 次处于评估模式，自第 {update} 次更新起，在一次评估之后（部件：{part}）",
    ),
    "loops.never_trains": (
        "{count} of {forwards} training forwards ran in evaluation mode before any evaluation, from update {update} on (part: {part})",
        "{forwards} 次训练前向中有 {count} 次在任何评估之前就处于评估模式，自第 {update} 次更新起（部件：{part}）",
    ),
    "loops.dropout_in_evaluation": (
        "{count} of {forwards} forwards of evaluations ran in training mode, with dropout",
        "{forwards} 次评估前向中有 {count} 次处于训练模式，dropout 生效",
    ),
    "loops.no_evaluation": (
        "all {forwards} training forwards ran in training mode; the loop evaluated nothing, so nothing could be left on",
        "{forwards} 次训练前向全部处于训练模式；循环没有评估，无从残留",
    ),
    "loops.modes": (
        "{forwards} training forwards in training mode, {scored} forwards of evaluations in evaluation mode between them",
        "{forwards} 次训练前向处于训练模式，其间 {scored} 次评估前向处于评估模式",
    ),
    "loops.nothing_saved": (
        "asked to save, the loop wrote nothing into the folder",
        "要求保存，循环却没有在文件夹中写入任何内容",
    ),
    "loops.resumed": (
        "{updates} updates, saved every {every}, killed and restarted {kills} times: the weights are bit for bit those of a run that was not",
        "{updates} 次更新，每 {every} 次保存，杀掉并重启 {kills} 次：权重与未中断的训练逐位相同",
    ),
    "loops.resume_weights": (
        "restarted after update {done} with weights {apart} away from those it had; at the end they are {off} away",
        "第 {done} 次更新后重启，权重与当时相差 {apart}；结束时相差 {off}",
    ),
    "loops.resume_data": (
        "restarted after update {done}, it read rows {rows} where {wanted} came next; at the end the weights are {off} away",
        "第 {done} 次更新后重启，读了第 {rows} 行，而接下来应是 {wanted}；结束时权重相差 {off}",
    ),
    "loops.resume_optimizer": (
        "restarted after update {done}, the optimiser's state of {count} parameters ({name} ...) is not what it was; at the end the weights are {off} away",
        "第 {done} 次更新后重启，{count} 个参数（{name} 等）的优化器状态与当时不同；结束时权重相差 {off}",
    ),
    "loops.resume_schedule": (
        "restarted after update {done}, the learning rate is {lr} where it was {wanted}; at the end the weights are {off} away",
        "第 {done} 次更新后重启，学习率为 {lr}，应为 {wanted}；结束时权重相差 {off}",
    ),
    "loops.resume_random": (
        "restarted after update {done}, the random numbers (dropout) are others; at the end the weights are {off} away",
        "第 {done} 次更新后重启，随机数（dropout）不同；结束时权重相差 {off}",
    ),
    "loops.resume_stopped": (
        "restarted after update {done} of {updates}, it made no further update",
        "在 {updates} 次更新中的第 {done} 次后重启，却没有再做任何更新",
    ),
    "loops.resume_unknown": (
        "killed and restarted, {updates} updates end {off} away; rows, weights, optimiser and random numbers were right at the restart",
        "杀掉并重启后，{updates} 次更新的结果相差 {off}；重启时行、权重、优化器与随机数都正确",
    ),
    "loops.unrepeatable": (
        "two equal runs are {apart} apart before anything is killed: the loop is not repeatable, so nothing can be resumed exactly",
        "尚未中断，两次相同的运行就相差 {apart}：循环不可重复，也就无法精确恢复",
    ),
    "loops.mend_first": (
        "cannot be told apart from what {fault} does: mend that first",
        "无法与 {fault} 的后果区分：请先改正它",
    ),
}
