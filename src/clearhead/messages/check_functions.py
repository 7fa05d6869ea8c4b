"""Messages said by the checks of functions that are no modules: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "functions.fix_accumulation": (
        "sum the losses of each micro-batch, divide every one by the number of real targets of the whole update, and step once",
        "对每个微批次的损失求和，都除以整个更新的真实目标总数，只 step 一次",
    ),
    "functions.fix_kept": (
        "clear the gradients once an update, zero_grad(set_to_none=True), before its first backward",
        "每次更新在第一次 backward 之前清除一次梯度：zero_grad(set_to_none=True)",
    ),
    "functions.fix_resume": (
        "save and restore weights, optimiser, schedule, the place in the data and the state of every random generator",
        "保存并恢复权重、优化器、学习率计划、数据位置以及所有随机数发生器的状态",
    ),
    "functions.short": (
        "{name} gave {found} new tokens, and {wanted} were asked for; go on until there are as many",
        "{name} 给出 {found} 个新词元，而要求 {wanted} 个；请继续直到足够",
    ),
    "functions.raises": ("{name} raises {reason}; mend that first", "{name} 抛出 {reason}；请先修复"),
    "functions.few": (
        "{runs} runs are too few to tell the target's distribution from the draft's",
        "{runs} 次运行太少，无法区分目标模型与草稿模型的分布",
    ),
    "functions.exact": (
        "{runs} texts of {length} tokens are of the target's distribution as far as so many tell, and a certain target writes its own text",
        "{runs} 段各 {length} 个词元的文本与目标模型的分布一致（就此数量而言），确定的目标模型写出自己的文本",
    ),
    "functions.no_cache": ("the sampler uses no cache", "该采样器不使用缓存"),
    "functions.stale": (
        "the target's cache held {held} at position {place}, where the text has {wanted}: a rejected token was kept",
        "目标模型的缓存在位置 {place} 存有 {held}，而文本中是 {wanted}：被拒绝的词元没有移除",
    ),
    "functions.not_greedy": (
        "a target that is certain of each token should write {wanted}, and {found} was written",
        "每个词元都确定的目标模型应写出 {wanted}，实际写出 {found}",
    ),
    "functions.biased": (
        "at place {place}, of {number} draws in one state of the target, the shares are {found}; the target's chances are {wanted}",
        "在位置 {place}，目标模型同一状态下的 {number} 次抽样占比为 {found}；目标模型的概率为 {wanted}",
    ),
    "functions.fix_rollback": (
        "after a rejection take the cache back to the accepted tokens, cache.truncate(length), before reading on",
        "拒绝后在继续读取之前，把缓存退回到已接受的词元：cache.truncate(length)",
    ),
    "functions.fix_biased": (
        "accept x with probability min(1, p(x) / q(x)); after the first rejection draw from max(p - q, 0), normalised, and stop the round",
        "以概率 min(1, p(x) / q(x)) 接受 x；第一次拒绝后从归一化的 max(p - q, 0) 抽取，并结束这一轮",
    ),
    "functions.returned": ("all {number} tensors come back as they were saved", "{number} 个张量全部按保存时的值恢复"),
    "functions.turned": (
        "{number} of {all} tensors come back transposed: {names}",
        "{all} 个张量中有 {number} 个恢复后被转置：{names}",
    ),
    "functions.fix_turned": (
        "transpose a matrix once, on the way in or on the way out; a square one fits either way",
        "矩阵只转置一次（保存时或读取时）；方阵两种方向形状都相符",
    ),
    "functions.lost": (
        "{number} of {all} tensors do not come back: {names}",
        "{all} 个张量中有 {number} 个没有恢复：{names}",
    ),
    "functions.fix_lost": (
        "load with strict=True, and look at what is missing and unexpected",
        "用 strict=True 加载，并检查缺失与多余的键",
    ),
    "functions.untied": (
        "{number} tied pairs of {all} tensors are apart after loading: {names}",
        "加载后 {number} 对共享张量已分开（共 {all} 个张量）：{names}",
    ),
    "functions.fix_untied": (
        "copy values into the parameters (copy_ or load_state_dict), or tie them again after loading",
        "把值复制到参数中（copy_ 或 load_state_dict），或在加载后重新共享",
    ),
    "functions.prefix_refused": ("names with {prefix} are refused: {reason}", "带有 {prefix} 的名称被拒绝：{reason}"),
    "functions.prefix_known": (
        "saved under names with {prefix}, all {number} tensors come back",
        "以带 {prefix} 的名称保存，{number} 个张量全部恢复",
    ),
    "functions.prefix_lost": (
        "saved under names with {prefix}, {number} of {all} tensors silently keep other values",
        "以带 {prefix} 的名称保存后，{all} 个张量中有 {number} 个静默地保留了其他值",
    ),
    "functions.fix_prefix": (
        "save the inner model's state_dict, or take {prefix} off the names, and load with strict=True",
        "保存内层模型的 state_dict，或从名称中去掉 {prefix}，并用 strict=True 加载",
    ),
}
