"""Messages said by the checks of models of a published family: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "families.part.embedding": ("embedding", "嵌入"),
    "families.part.norm": ("norm", "归一化"),
    "families.part.attention": ("attention", "注意力"),
    "families.part.cross_attention": ("cross-attention", "交叉注意力"),
    "families.part.feedforward": ("feed-forward", "前馈"),
    "families.part.residual": ("residual stream", "残差流"),
    "families.part.head": ("head", "输出头"),
    "families.pass": (
        "as in our {family} with the same weights and ids ({sizes}): {gap} apart at most in all tensors compared ({count}), where rounding explains {allowed}",
        "与我们用相同权重、相同 id（{sizes}）的 {family} 一致：所比较的全部张量（{count} 个）最大相差 {gap}，舍入可解释 {allowed}",
    ),
    "families.fail": (
        "not as in our {family} with the same weights and ids ({sizes}), each made of the same inputs: {wrong} of {count}, {stages}",
        "与我们用相同权重、相同 id（{sizes}）的 {family} 相比，{count} 个张量中有 {wrong} 个不同（每个都由相同的输入得到）：{stages}",
    ),
    "families.not_read": (
        "our {family} could not be given its weights: {reason}",
        "无法把它的权重放进我们的 {family}：{reason}",
    ),
    "families.not_run": (
        "{name} could not be run on ids beside ours: {reason}",
        "{name} 无法与我们的模型一起在 id 上运行：{reason}",
    ),
    "families.float32": ("it refuses float64 and ran in float32", "它不接受 float64，已用 float32 运行"),
    "families.island": (
        "{part}: {gap} from our float64 at most: an island of {kind}, legal",
        "{part}：与我们的 float64 最多相差 {gap}：{kind} 孤岛，合法",
    ),
    "families.found": (
        "{place}, {part} ({stage}): {reason}; {gap} apart, where rounding explains {allowed}",
        "{place}，{part}（{stage}）：{reason}；相差 {gap}，舍入可解释 {allowed}",
    ),
    "families.blocks": ("block {blocks}", "第 {blocks} 块"),
    "families.outside": ("outside the blocks", "各块之外"),
    "families.runs": ("{text}; {code}", "{text}；相关代码：{code}"),
    "families.forward": ("the forward of this {name} was replaced", "该 {name} 的 forward 已被替换"),
    "families.hook": ("the hook {name} runs here", "此处运行着钩子 {name}"),
    "families.class": ("{name} is no class of the family", "{name} 不是该系列的类"),
    "families.method": ("{name} was replaced", "{name} 已被替换"),
    "families.kernel": ("its configuration asks for the attention '{name}'", "其配置指定的注意力为 '{name}'"),
    "families.unknown": (
        "it gives something else, which no single known change of ours gives",
        "它给出了不同的结果，我们已知的任何单一改动都得不到",
    ),
    "families.shape": ("it has the sizes {theirs} where the family has {ours}", "其大小为 {theirs}，而该系列为 {ours}"),
    "families.not_finite": ("it gives numbers that are not finite", "它给出了非有限的数"),
    "families.zero": ("it gives 0 throughout", "它处处给出 0"),
    "families.scaled": ("it gives {factor} times what the family gives", "它给出的是该系列结果的 {factor} 倍"),
    "families.dropped": (
        "the stream is dropped: it gives {factor} times the branch alone",
        "残差流被丢弃：它只给出分支的 {factor} 倍",
    ),
    "families.branch_dropped": (
        "the branch is dropped: it gives {factor} times the stream alone",
        "分支被丢弃：它只给出残差流的 {factor} 倍",
    ),
    "families.sum": (
        "it adds {stream} times the stream and {branch} times the branch",
        "它把残差流的 {stream} 倍与分支的 {branch} 倍相加",
    ),
    "families.heads_zero": ("heads that give 0: {heads}", "头 {heads} 给出 0"),
    "families.heads_scaled": ("heads are multiplied, {heads}", "各头被乘以系数，{heads}"),
    "families.heads_order": ("its heads are ours in the order {heads}", "它的头依次是我们的头 {heads}"),
    "families.scale": (
        "scores are multiplied by {theirs}, in the family by {ours}",
        "分数乘以 {theirs}，而该系列乘以 {ours}",
    ),
    "families.no_norm": (
        "the norm is left out: it gives what the norm should take",
        "缺少归一化：它直接给出了归一化的输入",
    ),
    "families.base": (
        "rotary turns by the base {theirs}, in the family by {ours}",
        "旋转位置编码的底数为 {theirs}，而该系列为 {ours}",
    ),
    "families.offset": ("rotary positions are {shift} from the tokens' own", "旋转位置与 token 自身的位置相差 {shift}"),
    "families.eps": ("the norm adds eps {theirs}, in the family {ours}", "归一化的 eps 为 {theirs}，而该系列为 {ours}"),
    "families.sees": (
        "query {query} sees keys {keys}, which the family hides ({pairs} such pairs)",
        "查询 {query} 看到了键 {keys}，而该系列将其遮蔽（此类对共 {pairs} 个）",
    ),
    "families.misses": (
        "query {query} does not see keys {keys}, which the family shows ({pairs} such pairs)",
        "查询 {query} 看不到键 {keys}，而该系列可见（此类对共 {pairs} 个）",
    ),
    "families.shifted": (
        "one vector, up to {size}, is added at every position: a bias of its own, or one left out",
        "每个位置都加上了同一个向量（最大 {size}）：多出的偏置，或少了的偏置",
    ),
    "families.instead": ("for the family {ours}; here {theirs}", "在该系列中{ours}；此处{theirs}"),
    "families.fix": (
        "give back what {family} has at {path}, or say in the configuration what is meant",
        "在 {path} 处恢复 {family} 原有的部分，或在配置中说明用意",
    ),
    "families.no_cache": ("no cache of its own could be asked: {reason}", "无法检查它自己的缓存：{reason}"),
    "families.cached": (
        "{steps} tokens read one by one from the cache give what all at once give, {gap} apart (rounding explains {allowed})",
        "从缓存逐个读取 {steps} 个 token 与一次全部读取一致，相差 {gap}（舍入可解释 {allowed}）",
    ),
    "families.cache_apart": (
        "{steps} tokens read one by one from the cache give what is {gap} from all at once (rounding explains {allowed})",
        "从缓存逐个读取 {steps} 个 token 与一次全部读取相差 {gap}（舍入可解释 {allowed}）",
    ),
    "families.cache_fix": (
        "what is done to a token must not depend on how many are read with it",
        "对一个 token 的处理不应取决于同时读取了多少个",
    ),
    "families.weights_right": (
        "{count} tensors of {family} are there, and no further parameter",
        "{family} 的 {count} 个张量都在，没有多余的参数",
    ),
    "families.weights_wrong": (
        "{count} tensors of {family} are not as they should be: {names}",
        "{family} 有 {count} 个张量不对：{names}",
    ),
    "families.missing": ("{name} is missing: {family} has this bias", "缺少 {name}：{family} 有这个偏置"),
    "families.further": (
        "further parameters, which {family} does not have: {names}",
        "{family} 所没有的额外参数：{names}",
    ),
    "families.untied": (
        "{head} and {embedding} are two tensors with other numbers; the configuration ties them",
        "{head} 与 {embedding} 是两个数值不同的张量；而配置要求二者共享",
    ),
    "families.tie_fix": (
        "let both be one Parameter again, or set tie_word_embeddings to false",
        "让二者重新成为同一个 Parameter，或把 tie_word_embeddings 设为 false",
    ),
    "families.weights_fix": (
        "load the weights of the original again, or say that they were trained further",
        "重新加载原来的权重，或说明它们又经过训练",
    ),
    "families.against_right": ("{count} tensors equal those of {against}", "{count} 个张量与 {against} 的一致"),
    "families.against_rounded": (
        "{count} tensors are those of {against}, rounded to {kind}",
        "{count} 个张量为 {against} 的张量舍入到 {kind}",
    ),
    "families.against_wrong": (
        "{wrong} of {count} tensors are not those of {against}: {names}",
        "{count} 个张量中有 {wrong} 个与 {against} 不同：{names}",
    ),
    "families.against_found": ("{place}, {part} ({name}): {reason}", "{place}，{part}（张量 {name}）：{reason}"),
    "families.against_changed": (
        "other numbers, {gap} apart beside the largest; {rows} of {all} rows concerned",
        "数值不同，相对于最大值相差 {gap}；涉及 {all} 行中的 {rows} 行",
    ),
    "families.against_related": (
        "with A the original and B what is checked: {text}",
        "A 为原来的权重，B 为被检查的：{text}",
    ),
    "families.against_missing": ("only {name} has it", "只有 {name} 有它"),
    "families.target": ("the code under check", "被检查的代码"),
    "families.against_shape": ("its sizes are {theirs}, in the original {ours}", "其大小为 {theirs}，原来为 {ours}"),
    "families.against_config": ("the configuration differs in {fields}", "配置在 {fields} 上不同"),
    "families.against_unknown": (
        "weights are held against an original for models and modules of a known family; {name} is neither. Leave --against out, or use `clearhead diff`",
        "只有模型或已知系列的模块才能与原来的权重比较；{name} 都不是。请去掉 --against，或使用 `clearhead diff`",
    ),
    "families.no_library": (
        "their own code was not run beside ours: transformers could not be imported ({reason})",
        "没有把它们自己的代码与我们的一起运行：无法导入 transformers（{reason}）",
    ),
    "families.no_class": (
        "their own code was not run beside ours: transformers has no {name}",
        "没有把它们自己的代码与我们的一起运行：transformers 没有 {name}",
    ),
    "families.not_loaded": (
        "their own code was not run beside ours: {reason}",
        "没有把它们自己的代码与我们的一起运行：{reason}",
    ),
    "families.kind_raises": (
        "its parts were held against ours; what else is asked of its kind ({name}) could not be asked: {reason}",
        "已将其各部分与我们的比较；但无法进行其类型（{name}）的其余检查：{reason}",
    ),
    "families.kind_not_called": (
        "its parts were held against ours; what else is asked of its kind ({name}) was not: it is called in a way of its own",
        "已将其各部分与我们的比较；未进行其类型（{name}）的其余检查：它的调用方式与众不同",
    ),
    "families.one_position": (
        "it gives the same vector at every position: the one of position {position}",
        "它在每个位置都给出同一个向量：位置 {position} 的向量",
    ),
}
