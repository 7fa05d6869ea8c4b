"""Messages said by `tracing`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "tracing.no_name": (
        "no tensor of this model is called {names}; `clearhead trace MODEL` lists all names, * stands for anything",
        "该模型没有名为 {names} 的张量；`clearhead trace MODEL` 列出全部名称，* 代表任意内容",
    ),
    "tracing.no_tokenizer": (
        "a text needs a tokenizer, and a bare model has none; give ids, or what `load` gave",
        "文本需要分词器，而单独的模型没有；请给 id，或给 `load` 返回的对象",
    ),
    "tracing.no_target": (
        "the decoder has nothing to read; give target= with at least one id",
        "解码器没有可读的内容；请给 target=，至少一个 id",
    ),
    "tracing.target_alone": (
        "this model reads one text, and has no target; leave the target away",
        "该模型只读一段文本，没有目标；请去掉目标",
    ),
    "tracing.position_outside": (
        "position {value} is outside {count} tokens",
        "位置 {value} 不在 {count} 个 token 之内",
    ),
    "tracing.head_outside": ("head {value} is outside {count} heads", "头 {value} 不在 {count} 个头之内"),
    "tracing.no_matplotlib": (
        "a PNG is drawn by matplotlib, which is not installed: pip install 'clearhead[plot]', or write --svg",
        "PNG 由 matplotlib 绘制，但尚未安装：pip install 'clearhead[plot]'，或改用 --svg",
    ),
    "tracing.not_a_decoder": (
        "lenses and detectors look into a decoder-only model; this is {name}",
        "透镜与检测器只能查看仅解码器模型；这里是 {name}",
    ),
    "tracing.drops": (
        "the model is in training mode and drops features at random; call model.eval() first",
        "模型处于训练模式，会随机丢弃特征；请先调用 model.eval()",
    ),
    "tracing.not_one_token": (
        "{text!r} is {count} tokens of this model, and one is asked for; give a shorter text, or an id",
        "{text!r} 在该模型中是 {count} 个 token，而这里只需要一个；请给更短的文本，或给 id",
    ),
    "tracing.no_sum": (
        "a post-norm model's stream is normalised after every sum, so its logits are not a sum of what the parts add; "
        "ablate a part to see what it does",
        "后归一化模型的残差流在每次相加后都被归一化，logits 不是各部分贡献之和；请用消融来观察某部分的作用",
    ),
    "tracing.norm_unknown": (
        "{name} is no norm that can be taken apart: LayerNorm, RMSNorm, with an offset or without, or none",
        "{name} 不是可拆分的归一化；可用 LayerNorm、RMSNorm（有无偏移均可）或无归一化",
    ),
    "tracing.block_unknown": (
        "{name} is no block that can be taken apart: sequential, parallel or post-norm, without cross-attention",
        "{name} 不是可拆分的 Block；可用顺序、并行或后归一化的 Block，且不含交叉注意力",
    ),
    "tracing.not_a_cause": (
        "a weight says where a head reads, not what the answer depends on: ablate it to see",
        "权重表示注意力头读取哪里，不说明答案依赖什么：消融后才能看出",
    ),
    "tracing.no_weights": (
        "the trace holds no weights of self-attention; ask for names='blocks.*.attention.weights'",
        "该记录不含自注意力权重；请用 names='blocks.*.attention.weights'",
    ),
    "tracing.rollout_whole": (
        "rollout needs the weights of every block, all heads and all positions of one forward; give no heads=, no positions=, no cache",
        "rollout 需要一次前向中所有 Block、所有头、所有位置的权重；请不要给 heads=、positions=，也不用缓存",
    ),
    "tracing.text_short": (
        "a context of {context} is too short to repeat a sequence; {least} positions are needed, or give a text",
        "上下文长度 {context} 太短，无法重复一段序列；至少需要 {least} 个位置，或请给一段文本",
    ),
    "tracing.edit_shape": (
        "the edit of {name} gave {found} in place of {wanted}; give the same shape, or one that broadcasts to it",
        "对 {name} 的修改给出 {found}，应为 {wanted}；请给相同的形状，或能广播到它的形状",
    ),
    "tracing.loss_not_scalar": (
        "a gradient is that of one number, and the loss has the shape {shape}; sum it, or take its mean",
        "梯度是对一个数求的，而损失的形状是 {shape}；请求和或取平均",
    ),
    "tracing.loss_constant": (
        "the loss depends on no tensor of the forward; compute it from the logits, without detach, item or argmax",
        "损失不依赖于前向计算中的任何张量；请由 logits 计算，且不用 detach、item 或 argmax",
    ),
    "tracing.lengths": (
        "the clean text has {clean} tokens and the corrupted {corrupted}; give texts of the same number, token for token",
        "原文本有 {clean} 个 token，改动文本有 {corrupted} 个；两者的 token 数必须相同，逐个对应",
    ),
    "tracing.by": (
        "patching goes by position, head or name, not by {by}",
        "修补可按 position、head 或 name 进行，不能按 {by}",
    ),
    "tracing.no_part": (
        "no tensor called {names} can be patched by {by}; `clearhead trace MODEL` lists all names and their axes",
        "没有名为 {names} 且可按 {by} 修补的张量；`clearhead trace MODEL` 列出全部名称与轴",
    ),
    "tracing.nothing_to_restore": (
        "the metric is {clean} for the clean text and {corrupted} for the corrupted; give a metric that differs between them",
        "指标对原文本是 {clean}，对改动文本是 {corrupted}；请给出两者不同的指标",
    ),
    "tracing.patched": (
        "metric: clean {clean}, corrupted {corrupted}; share restored by each part: 1 = the clean metric, 0 = no change",
        "指标：原文本 {clean}，改动文本 {corrupted}；每个部分恢复的比例：1 = 原文本的指标，0 = 没有变化",
    ),
    "tracing.patched_estimate": (
        "metric: clean {clean}, corrupted {corrupted}; share restored by each part, estimated from gradients: "
        "1 = the clean metric, 0 = no change",
        "指标：原文本 {clean}，改动文本 {corrupted}；每个部分恢复的比例（由梯度估计）：1 = 原文本的指标，0 = 没有变化",
    ),
    "tracing.no_weight": (
        "there is no weight [head, query, key] = {asked}; there are {heads} heads, {queries} queries and {keys} keys",
        "没有权重 [头, 查询, 键] = {asked}；共有 {heads} 个头、{queries} 个查询、{keys} 个键",
    ),
    "tracing.effect": (
        "{name}, head {head}: query {query} ({asks}) reads key {place} ({asked}) with weight {weight}",
        "{name}，头 {head}：查询 {query}（{asks}）以权重 {weight} 读取键 {place}（{asked}）",
    ),
    "tracing.effect_token": ("token {token} at position {position}", "位置 {position} 上的 token {token}"),
    "tracing.effect_change": ("change", "变化"),
    "tracing.effect_best": ("best token", "最优 token"),
    "tracing.effect_ran": ("as it ran", "原样运行"),
    "tracing.effect_weight": ("this weight set to 0", "该权重置 0"),
    "tracing.effect_head": ("this head set to 0 at this query", "该头在此查询处置 0"),
    "tracing.effect_rest": (
        "The other weights stay as they are and no longer sum to 1: what was read here is missing, nothing takes its place.",
        "其余权重保持不变，其和不再为 1：这里读到的内容缺失，没有别的内容补上。",
    ),
}
