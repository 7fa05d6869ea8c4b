"""Messages said by `generation`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "generation.temperature": (
        "temperature = {value} must be a number from 0 up; 0 always takes the best token",
        "temperature = {value} 应为不小于 0 的数；0 表示总取最可能的 token",
    ),
    "generation.top_k": (
        "top_k = {value} must be at least 0; 0 allows the whole vocabulary",
        "top_k = {value} 不能小于 0；0 表示允许整个词表",
    ),
    "generation.no_vectors": (
        "{path} makes no vector of a text: it is of kind {kind}; embed with an encoder whose head is Pooled, such as minilm",
        "{path} 不能把文本变成向量：它的类型是 {kind}；请使用 head 为 Pooled 的编码器，例如 minilm",
    ),
    "generation.setting": ("{name} = {value} must be {wanted}", "{name} = {value} 应为 {wanted}"),
    "generation.order": (
        "the order {value} must name each of these steps once at most: {known}",
        "顺序 {value} 中，下列步骤每个最多出现一次：{known}",
    ),
    "generation.nothing_allowed": (
        "every token is forbidden; allow at least one",
        "所有 token 都被禁止；请至少允许一个",
    ),
    "generation.empty_prompt": (
        "the prompt is empty, and this model has no token that begins a text; give at least one character",
        "提示为空，而该模型没有表示文本开头的 token；请至少给一个字符",
    ),
    "generation.empty_source": (
        "the source is empty; give at least one character",
        "源文本为空；请至少给一个字符",
    ),
    "generation.prompt_too_long": (
        "the prompt has {length} tokens and the context {context}; shorten it, or choose what to forget: --overflow window | recompute",
        "提示有 {length} 个 token，而上下文只有 {context}；请缩短提示，或选择遗忘方式：--overflow window | recompute",
    ),
    "generation.overflow": (
        "overflow = {value} must be stop, window or recompute",
        "overflow = {value} 应为 stop、window 或 recompute",
    ),
    "generation.stop_list": (
        "stop = {value!r} must be a list of strings; write [{value!r}]",
        "stop = {value!r} 应为字符串列表；请写成 [{value!r}]",
    ),
    "generation.stop_empty": (
        "a stop string is empty, so no text could be written; leave it out",
        "停止串为空，无法写出任何文本；请去掉它",
    ),
    "generation.draft": (
        'draft = {value!r} must be a loaded model or "lookup"',
        'draft = {value!r} 应为已加载的模型或 "lookup"',
    ),
    "generation.draft_differs": (
        "{draft} cannot propose tokens for {model}: it must be of the same kind with the same tokenizer; train it on the same text",
        "{draft} 不能为 {model} 提议 token：二者须同类且分词器相同；请用同一文本训练它",
    ),
    "generation.draft_source": (
        "the source has {length} tokens and {draft} reads {context} at most; leave the draft out, or take one that reads more",
        "源文本有 {length} 个 token，而 {draft} 最多读 {context} 个；请不用草稿模型，或换一个能读更多的",
    ),
    "generation.chat_template": (
        "chat_template.jinja cannot write this conversation down: {reason}",
        "chat_template.jinja 无法写出这段对话：{reason}",
    ),
    "generation.turn_too_long": (
        "that is {length} tokens, and there is room for {room}; say it shorter, or lower --max-tokens",
        "这句话有 {length} 个 token，只放得下 {room} 个；请缩短，或调小 --max-tokens",
    ),
    "generation.not_a_number": (
        "the model's outputs are not numbers (NaN or infinity): its training went wrong; train again with a smaller --lr",
        "模型的输出不是数（NaN 或无穷）：训练已发散；请用更小的 --lr 重新训练",
    ),
    "generation.max_tokens": (
        "max_tokens = {value} must be at least 0",
        "max_tokens = {value} 不能小于 0",
    ),
    "generation.ring_padding": (
        "a ring cannot serve padding between real tokens; pad on the left, or use GrowingStore or FixedStore",
        "环形缓存不支持夹在真实 token 之间的填充；请在左侧填充，或使用 GrowingStore 或 FixedStore",
    ),
    "generation.no_window": (
        "block {block} looks at all keys, so a ring would lose some; use GrowingStore or FixedStore",
        "第 {block} 个块要看全部键，环形缓存会丢失一部分；请使用 GrowingStore 或 FixedStore",
    ),
}
