"""Messages said by the checks of blocks and encoders: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "block.attention": ("the attention", "注意力"),
    "block.feed_forward": ("the feed-forward", "前馈层"),
    "block.residual_missing": (
        "nothing carries the stream past {which}: the output is {equation} (A: attention, F: feed-forward, N: norm), with no x beside it",
        "没有任何跳跃连接绕过{which}：输出为 {equation}（A 注意力，F 前馈，N 归一化），旁边没有 x",
    ),
    "block.fix_missing": (
        "add the skip: x = x + sublayer(norm(x)), around each sublayer",
        "补上跳跃连接：每个子层都写成 x = x + sublayer(norm(x))",
    ),
    "block.residual_doubled": (
        "a term is added twice: {equation} (A: attention, F: feed-forward, N: norm)",
        "同一项被加了两次：{equation}（A 注意力，F 前馈，N 归一化）",
    ),
    "block.fix_doubled": (
        "add it once: either the sublayer adds its input or the block does, not both",
        "只加一次：要么由子层加上其输入，要么由块来加，不要两处都加",
    ),
    "block.from_norm": (
        "the skip carries the normalised stream: {equation}, where {branch} reads that same norm and nothing normalises the end",
        "跳跃连接携带的是归一化之后的流：{equation}，{branch} 读取同一个归一化结果，而末端没有归一化",
    ),
    "block.fix_from_norm": (
        "keep x for the skip and give the norm to the branch alone: x = x + f(norm(x))",
        "跳跃连接保留 x，归一化只给分支：x = x + f(norm(x))",
    ),
    "block.stale": (
        "{branch} reads {read}, but it is added to a stream without {lost}: {equation}",
        "{branch} 读取 {read}，却被加到不含 {lost} 的流上：{equation}",
    ),
    "block.fix_stale": (
        "start the second skip from the updated stream: u = x + A(...); out = u + F(...)",
        "第二个跳跃连接应从更新后的流出发：u = x + A(...)；out = u + F(...)",
    ),
    "block.scaled": (
        "{term} enters the sum with a factor {factor} that nothing states: {equation}",
        "{term} 以未声明的系数 {factor} 进入求和：{equation}",
    ),
    "block.fix_scaled": (
        "add without a factor, or state it: an attribute such as residual_scale, a parameter, or words in the docstring",
        "去掉该系数，或明确声明它：如 residual_scale 属性、参数或文档字符串中的说明",
    ),
    "block.straight": (
        "nothing bends between the {count} matrices of {branch} ({sizes}): together they are one matrix",
        "{branch} 的 {count} 个矩阵（{sizes}）之间没有非线性：合起来只是一个矩阵",
    ),
    "block.fix_straight": (
        "put a function between the two linear layers: w2(gelu(w1(x)))",
        "在两个线性层之间加入非线性函数：w2(gelu(w1(x)))",
    ),
    "block.mixes": (
        "{branch} is no attention, yet its output at position 2 depends on what positions {moved} give it",
        "{branch} 不是注意力，但它在位置 2 的输出却依赖位置 {moved} 的输入",
    ),
    "block.fix_mixes": (
        "work on the last axis alone: linear layers on (B,T,D) as it is, with no transpose, mean or reshape over T",
        "只在最后一维上计算：线性层直接作用于 (B,T,D)，不要对 T 转置、求均值或变形",
    ),
    "block.unbent": (
        "{claim} says {claimed}, yet {branch} multiplies the results of two matrices and bends neither",
        "{claim} 声明 {claimed}，但 {branch} 只是把两个矩阵的结果相乘，没有任何非线性",
    ),
    "block.fix_unbent": (
        "bend the gate: down({claimed}(gate(x)) * up(x))",
        "对门控加非线性：down({claimed}(gate(x)) * up(x))",
    ),
    "block.dead": (
        "{count} of {units} hidden units of {branch} give nothing whatever comes in: their inputs are {mean} on average and vary by {spread}",
        "{branch} 的 {units} 个隐藏单元中有 {count} 个对任何输入都没有输出：其输入平均为 {mean}，仅变化 {spread}",
    ),
    "block.fix_dead": (
        "start them anew: biases near 0, rows of weights as the others have",
        "重新初始化它们：偏置接近 0，权重行与其他单元一致",
    ),
    "block.variant": (
        "{claim} says {claimed}, the code computes {found}; on -3..3 they are up to {apart} apart",
        "{claim} 声明 {claimed}，代码计算的却是 {found}；在 -3..3 上最多相差 {apart}",
    ),
    "block.fix_variant": ("compute {claimed}, or correct what is said", "改为计算 {claimed}，或更正声明"),
    "block.positions": ("positions {moved}", "位置 {moved}"),
    "block.rows": ("other rows of the batch", "批中的其他行"),
    "block.norm_axis": (
        "what a norm gives at position 2 depends on {over}: it averages over more than the features",
        "归一化在位置 2 的输出依赖{over}：它的统计不只在特征维上",
    ),
    "block.fix_norm_axis": (
        "take mean and variance over the features only: dim=-1, keepdim=True",
        "均值和方差只在特征维上求：dim=-1, keepdim=True",
    ),
    "block.pre": ("pre-norm", "前置归一化（pre-norm）"),
    "block.post": ("post-norm", "后置归一化（post-norm）"),
    "block.placement": (
        "{name} claims {claimed}, but it is {found}: {equation} (A: attention, F: feed-forward, N: norm)",
        "{name} 声明为{claimed}，实际却是{found}：{equation}（A 注意力，F 前馈，N 归一化）",
    ),
    "block.mixed": (
        "one sublayer reads a norm of the stream, the other the stream itself, which is normalised after the sum: {equation} (A: attention, F: feed-forward, N: norm)",
        "一个子层读取流的归一化，另一个直接读取流并在求和后归一化：{equation}（A 注意力，F 前馈，N 归一化）",
    ),
    "block.fix_mixed": (
        "write both alike: x = x + f(norm(x)), or both x = norm(x + f(x))",
        "两处写法一致：都用 x = x + f(norm(x))，或都用 x = norm(x + f(x))",
    ),
    "block.fix_pre": ("write x = x + f(norm(x)), or correct the claim", "写成 x = x + f(norm(x))，或更正声明"),
    "block.fix_post": ("write x = norm(x + f(x)), or correct the claim", "写成 x = norm(x + f(x))，或更正声明"),
    "block.spare": ("; norms that nothing calls: {names}", "；从未被调用的归一化：{names}"),
    "block.final": (
        "the blocks are pre-norm and nothing normalises the last sum: {equation}{unused}",
        "各块均为 pre-norm，但最后的和没有归一化：{equation}{unused}",
    ),
    "block.fix_final": ("end the stack with a norm: return self.norm(x)", "在堆叠末尾加上归一化：return self.norm(x)"),
    "block.final_unsaid": (
        "the blocks are pre-norm and nothing normalises the last sum, but nothing says that it should be normalised here",
        "各块均为 pre-norm，最后的和没有归一化，但代码也没有说明应在此处归一化",
    ),
    "block.final_there": (
        "the last sum is normalised, or the blocks are not pre-norm",
        "最后的和有归一化，或各块并非 pre-norm",
    ),
    "block.tables": (
        "a table of positions is added to the stream {count} times",
        "位置表被加到流上 {count} 次",
    ),
    "block.fix_tables": (
        "add positions once, before the first block",
        "位置只在第一个块之前加一次",
    ),
    "block.blind": (
        "no gradient shows it: tensors are changed in place, or detached",
        "无法用梯度观察：张量被原地修改或已脱离计算图",
    ),
    "block.no_memory_mask": (
        "no way was found to give {name} so that the memory still moves the output",
        "没有找到给出 {name} 且使 memory 仍影响输出的方式",
    ),
    "block.memory_mask": (
        "position {position} of a memory of {length} moves the output by {change} of its size though {name} hides it, whatever its form",
        "长度为 {length} 的 memory 中位置 {position} 已被 {name} 遮住，无论以何种形式给出，仍使输出相对变化 {change}",
    ),
    "block.no_merge": ("no sum of the stream and a branch was found", "没有找到流与分支的求和"),
    "block.no_feed_forward": ("no feed-forward was found", "没有找到前馈层"),
    "block.no_norm": ("no norm of the stream was found", "没有找到对流的归一化"),
    "block.no_claim": ("the code claims nothing of it", "代码对此没有声明"),
    "block.read": (
        "{blocks} blocks with {merges} sums, {feed_forwards} feed-forwards and {norms} norms were read from the operations that ran",
        "从实际运行的操作中读出 {blocks} 个块：{merges} 处求和，{feed_forwards} 个前馈层，{norms} 处归一化",
    ),
    "block.no_places": ("positions are not declared", "没有声明位置"),
    "block.no_numbers": ("the output is no number, or nothing moves it", "输出不是有限数，或没有输入能改变它"),
    "block.order": (
        "{length} tokens in another order give the same vectors in that order, to {moved} of their size",
        "{length} 个词元换序后，输出只是同样换序，相对差为 {moved}",
    ),
    "block.declared": ("yet it has {names}", "但它有 {names}"),
    "block.undeclared": ("ids come in and no positions are added", "输入是词元编号，却没有加入位置"),
    "block.fix_places": (
        "add the positions to the embeddings before the first block",
        "在第一个块之前把位置加到嵌入上",
    ),
    "block.memory_unseen": (
        "none of the {length} positions of the source moves the output",
        "源序列的 {length} 个位置都不影响输出",
    ),
    "block.fix_memory": (
        "let the decoder attend to what the encoder gives: keys and values from the memory",
        "让解码器关注编码器的输出：键和值取自 memory",
    ),
    "block.target_future": (
        "T={length}: another target token at position {later} moves the output at {seen} before it by {ahead} of its size, the most of all pairs",
        "T={length}：改变目标位置 {later} 的词元，使其之前位置 {seen} 的输出相对变化 {ahead}，为所有位置对中最大",
    ),
    "block.fix_future": (
        "mask the decoder's own attention: position i sees targets 0..i",
        "为解码器的自注意力加因果掩码：位置 i 只看到目标 0..i",
    ),
    "block.target_past": (
        "T={length}: another first target token moves later outputs by {behind} of their size",
        "T={length}：改变目标的第一个词元，使之后的输出相对变化 {behind}",
    ),
    "block.fix_past": (
        "let position i see all targets up to itself: check the direction of the mask",
        "让位置 i 看到直到自身的所有目标：检查掩码的方向",
    ),
    "block.no_mask": ("no mask of the source was found that could be given", "没有找到可以给出的源序列掩码"),
    "block.source_mask": (
        "a source position that {mask} hides moves the output by {moved} of its size",
        "被 {mask} 遮住的源位置使输出相对变化 {moved}",
    ),
    "block.fix_mask": (
        "give the source's mask to the encoder and to the cross-attention",
        "把源序列的掩码同时交给编码器和交叉注意力",
    ),
}
