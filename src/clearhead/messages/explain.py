"""What each field of a model means for its behaviour: key -> (English, Chinese). Said by `models.explain`."""

MESSAGES: dict[str, tuple[str, str]] = {
    "models.explain.equal": ("the two configurations are equal", "两个配置相同"),
    "models.explain.field": ("{field}: {first} → {second}. {meaning}", "字段 {field}：{first} → {second}。{meaning}"),
    "models.explain.cost": ("{what}: {first} → {second} ({ratio}×)", "{what}：{first} → {second}（{ratio} 倍）"),
    "models.explain.none_before": (
        "{what}: none → {second}",
        "{what}：无 → {second}",
    ),
    "models.explain.kinds": (
        "the first is {first}, the second {second}; of these different kinds, the fields that both have are compared",
        "前者是{first}，后者是{second}；种类不同，只比较两者共有的字段",
    ),
    "models.explain.kind_DecoderConfig": ("a decoder", "解码器"),
    "models.explain.kind_EncoderConfig": ("an encoder", "编码器"),
    "models.explain.kind_EncoderDecoderConfig": ("an encoder-decoder", "编码器-解码器"),
    "models.explain.cost_parameters": ("parameters", "参数量"),
    "models.explain.cost_flops": ("FLOPs a token, forward, at a full context", "满上下文时每 token 前向 FLOPs"),
    "models.explain.cost_cache": ("numbers in the KV cache for each token", "每个 token 的 KV 缓存元素数"),
    "models.explain.cost_flops_pair": (
        "FLOPs a token, forward, at a full context; of an encoder-decoder, a token of the target and one of the source",
        "满上下文时每 token 前向 FLOPs；编码器-解码器为一个目标 token 加一个源 token",
    ),
    "models.explain.cost_cache_pair": (
        "numbers in the KV cache for each token; of an encoder-decoder, as many again for each token of the source",
        "每个 token 的 KV 缓存元素数；编码器-解码器的每个源 token 也占同样多",
    ),
    "models.explain.none": ("not given", "未指定"),
    "models.explain.yes": ("yes", "是"),
    "models.explain.no": ("no", "否"),
    "models.explain.of_vocab": (
        "How many token ids there are; it sets the size of embedding and head.",
        "token id 的个数；决定嵌入与输出头的大小。",
    ),
    "models.explain.of_layers": (
        "How many blocks work on the stream, one after the other.",
        "依次加工残差流的块数。",
    ),
    "models.explain.of_heads": (
        "How many patterns of attention a block has; at equal width the parameters stay the same.",
        "每个块有多少种注意力模式；宽度相同时参数量不变。",
    ),
    "models.explain.of_kv_heads": (
        "How many key/value heads the query heads share; fewer make the KV cache smaller.",
        "查询头共享多少个键/值头；越少，KV 缓存越小。",
    ),
    "models.explain.of_width": ("Features of a position in the stream.", "残差流中每个位置的特征数。"),
    "models.explain.of_head_width": (
        "Features of one head; free of width / heads if given.",
        "单个头的特征数；给出时不必等于宽度除以头数。",
    ),
    "models.explain.of_feedforward_width": (
        "Features inside the feed-forward part, where most parameters are.",
        "前馈网络中间的特征数，大部分参数在这里。",
    ),
    "models.explain.of_context": ("The most positions a forward takes.", "一次前向最多处理的位置数。"),
    "models.explain.of_dropout": (
        "How much is dropped in training, against learning by heart; evaluation drops nothing.",
        "训练时随机丢弃的比例，防止死记硬背；评估时不丢弃。",
    ),
    "models.explain.of_activation": (
        "The non-linearity of the feed-forward part; trained weights work with their own alone.",
        "前馈网络的非线性；训练好的权重只能配它自己的激活函数。",
    ),
    "models.explain.of_norm": (
        "How vectors are normalised; trained weights work with their own alone.",
        "向量如何归一化；训练好的权重只能配它自己的归一化。",
    ),
    "models.explain.of_block": (
        "Where the norms stand: pre-norm trains without warm-up, post-norm is the original; weights cannot move between them.",
        "归一化的位置：pre-norm 不用预热也能训练，post-norm 是最初的形式；二者的权重不能互换。",
    ),
    "models.explain.of_positions": (
        "How order is known: added vectors stop at the trained context, rotary and ALiBi depend on distances.",
        "如何得知顺序：相加的位置向量以训练的上下文为限，rotary 与 ALiBi 取决于距离。",
    ),
    "models.explain.of_window": (
        "How many keys a query sees at most; the KV cache need not hold more.",
        "每个查询最多能看多少个键；KV 缓存不必保存更多。",
    ),
    "models.explain.of_cycle": (
        "Blocks look at positions in different ways, in turn.",
        "各块轮流以不同方式看待位置。",
    ),
    "models.explain.of_kernel": (
        "What computes attention; results are equal to rounding.",
        "由什么计算注意力；结果在舍入误差内相等。",
    ),
    "models.explain.of_attention_scale": (
        "What scores are multiplied by, in place of 1/√d.",
        "得分乘以多少，取代 1/√d。",
    ),
    "models.explain.of_softcap": (
        "Scores are squeezed smoothly below this; the fused kernel cannot.",
        "得分被平滑地压到此值以下；融合内核做不到。",
    ),
    "models.explain.of_sinks": (
        "A head may give weight to nothing; rows then sum to less than 1, by design.",
        "头可以把权重给“空”；各行之和因而小于 1，这是有意为之。",
    ),
    "models.explain.of_qk_norm": (
        "Queries and keys are normalised before they meet, so scores cannot grow without bound.",
        "查询与键在相乘之前先归一化，得分不会无限增大。",
    ),
    "models.explain.of_scale_embedding": (
        "Token vectors are multiplied by √width before positions are added.",
        "token 向量先乘以 √宽度，再加位置。",
    ),
    "models.explain.of_embedding_norm": (
        "The sum of token and position vectors is normalised before the first block.",
        "token 向量与位置向量之和在第一个块之前归一化。",
    ),
    "models.explain.of_tied": (
        "Head and embedding share their weights: vocab × width fewer parameters.",
        "输出头与嵌入共享权重：少了 词表 × 宽度 个参数。",
    ),
    "models.explain.of_scale_head": (
        "The features are divided by √width before the head; T5 1.0 does it where the head shares the embedding's weights.",
        "进入输出头之前，特征除以 √宽度；T5 1.0 在输出头与嵌入共享权重时这样做。",
    ),
    "models.explain.of_qkv_bias": ("Whether the projections to q, k, v have a bias.", "q、k、v 投影是否带偏置。"),
    "models.explain.of_bias": (
        "Whether the output projection and the feed-forward layers have a bias.",
        "输出投影与前馈层是否带偏置。",
    ),
    "models.explain.of_output_bias": (
        "Whether attention's output projection has a bias, where it is not as in the feed-forward layers.",
        "注意力的输出投影是否带偏置（当它与前馈层不同时）。",
    ),
    "models.explain.of_head_bias": ("Whether the head has a bias.", "输出头是否带偏置。"),
    "models.explain.of_segments": (
        "How many kinds of segments, such as question and answer, have a trained vector that is added to their tokens.",
        "有多少种段（如问题与答案）各有一个训练出的向量，加到该段的 token 上。",
    ),
    "models.explain.of_head": (
        "What comes out: the features of every position, logits of its token, or one vector a row.",
        "输出什么：每个位置的特征、该位置 token 的 logits，或每行一个向量。",
    ),
    "models.explain.of_encoder_layers": (
        "How many blocks read the source, each seeing all of it; layers are those that write the target.",
        "读取源序列的块数，每块都能看到整个源序列；layers 是写出目标序列的块数。",
    ),
    "models.explain.of_source_context": (
        "The most positions of a source; context is that of a target.",
        "源序列最多的位置数；context 是目标序列的。",
    ),
    "models.explain.of_source_vocab": (
        "How many token ids the source has, with an embedding of its own; not given, both sides share vocabulary and embedding.",
        "源序列 token id 的个数，另有自己的嵌入；未指定时，两侧共用词表与嵌入。",
    ),
}
