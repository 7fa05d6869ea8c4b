"""Messages said by `scoring`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "scoring.nothing": (
        "there is nothing to score: a text needs at least two tokens, one to read and one to predict; give a longer one",
        "没有可评分的内容：文本至少需要两个 token，一个用来读，一个用来预测；请给出更长的文本",
    ),
    "scoring.wants_decoder": (
        "texts are scored by a decoder, and this model is an {name}; give it what it was trained on",
        "文本由解码器评分，而该模型是 {name}；请给它与训练时同类的材料",
    ),
    "scoring.wants_encoder": (
        "hidden tokens are guessed by an encoder with head MaskedToken, and this model is {name}; give one that was trained on hidden tokens",
        "遮住的 token 由带 MaskedToken 头的编码器猜测，而该模型是 {name}；请给出以遮住 token 方式训练的模型",
    ),
    "scoring.no_mask": (
        "the tokenizer of this model has no mark that hides a token; take one that clearhead has trained on masked tokens, or a folder whose tokenizer_config.json names a mask_token",
        "该模型的分词器没有用来遮住 token 的标记；请使用由 clearhead 以遮住 token 方式训练的模型，或 tokenizer_config.json 写明了 mask_token 的文件夹",
    ),
    "scoring.wants_pairs": (
        "pairs are scored by an encoder-decoder, and this model is another kind, {name}; give it texts",
        "成对数据由编码器-解码器评分，而该模型是 {name}；请给它文本",
    ),
    "scoring.no_template": (
        "conversations are scored by a decoder with a chat_template.jinja, and this model has none; give it plain texts",
        "对话由带 chat_template.jinja 的解码器评分，而该模型没有；请给它普通文本",
    ),
    "scoring.no_conversations": (
        "there is no conversation to score; give at least one",
        "没有可评分的对话；请至少给出一段",
    ),
    "scoring.conversation_too_long": (
        "the conversation in {place} needs {length} positions, and the model has {context}; leave it out or shorten it",
        "{place}的对话需要 {length} 个位置，而模型只有 {context} 个；请去掉或缩短它",
    ),
    "scoring.no_pairs": ("there is no pair to score; give at least one", "没有可评分的成对数据；请至少给出一对"),
    "scoring.line": ("line {line} of {path}", "{path} 第 {line} 行"),
    "scoring.pair": ("pair {number}", "第 {number} 对数据"),
    "scoring.source_too_long": (
        "the source of {place} needs {length} positions with its mark, and the model has {context}; leave the pair out",
        "{place}的源连同标记需要 {length} 个位置，而模型只有 {context} 个；请去掉这一对",
    ),
    "scoring.target_too_long": (
        "the target of {place} needs {length} positions with its mark, and the model has {context}; leave the pair out",
        "{place}的目标连同标记需要 {length} 个位置，而模型只有 {context} 个；请去掉这一对",
    ),
}
