"""Messages said by `clearhead tokenizer`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cli.tokenizer.about": (
        "train a tokenizer, show what it makes of a text, count how well it does",
        "训练分词器，查看它如何切分文本，统计其效率",
    ),
    "cli.tokenizer.help": (
        "usage: clearhead tokenizer ACTION ...\n\n{about}\n\n{actions}\n\nclearhead tokenizer ACTION --help shows what an action takes.",
        "用法：clearhead tokenizer 操作 ...\n\n{about}\n\n{actions}\n\nclearhead tokenizer 操作 --help 显示该操作的选项。",
    ),
    "cli.tokenizer.train.about": (
        "learn a byte-level BPE tokenizer from texts",
        "从文本学习字节级 BPE 分词器",
    ),
    "cli.tokenizer.show.about": (
        "the tokens of a text, each over the characters that it stands for",
        "一段文本的各个 token，以及每个 token 对应的字符",
    ),
    "cli.tokenizer.stats.about": (
        "characters per token, by script, and how much of the vocabulary is used",
        "每 token 的字符数（按文字分列），以及词表的使用率",
    ),
    "cli.tokenizer.unknown_action": (
        "tokenizer {action}: there is no such action; did you mean {near}? There are train, show and stats",
        "tokenizer {action}：没有这个操作；是不是 {near}？可用 train、show、stats",
    ),
    "cli.tokenizer.no_out": (
        "say where the tokenizer goes: --out tokenizer.json",
        "请说明分词器写到哪里：--out tokenizer.json",
    ),
    "cli.tokenizer.no_vocab": (
        "say how many tokens there shall be: --vocab 1000",
        "请说明词表大小：--vocab 1000",
    ),
    "cli.tokenizer.exists": (
        "{path} exists already; give another --out, or --force to replace it",
        "{path} 已存在；请换一个 --out，或用 --force 替换它",
    ),
    "cli.tokenizer.folder": (
        "{path} is a folder; name a file in it: --out {file}",
        "{path} 是文件夹；请写出其中的文件名：--out {file}",
    ),
    "cli.tokenizer.reading": ("reading", "读取"),
    "cli.tokenizer.merging": ("learning merges", "学习合并规则"),
    "cli.tokenizer.encoding": ("encoding", "编码"),
    "cli.tokenizer.trained": (
        "{path}: {size} tokens: 256 bytes, {merges} merges, {specials} special",
        "{path}：{size} 个 token：256 个字节，{merges} 个合并，{specials} 个特殊 token",
    ),
    "cli.tokenizer.few": (
        "The texts hold no more pairs that occur twice, so there are {size} tokens, not {vocab}.",
        "文本中已没有出现两次以上的相邻对，因此只有 {size} 个 token，而不是 {vocab} 个。",
    ),
    "cli.tokenizer.shown": (
        "{tokens} tokens, {characters} characters, {bytes} bytes",
        "{tokens} 个 token，{characters} 个字符，{bytes} 字节",
    ),
    "cli.tokenizer.apart": (
        "This tokenizer changes the text before it cuts it: its tokens are shown by themselves, not over the characters.",
        "该分词器在切分前会改动文本：各 token 单独显示，不与原字符对齐。",
    ),
    "cli.tokenizer.counted": (
        "tokens {tokens}, characters {characters}, bytes {bytes}, texts {documents}",
        "{documents} 篇文本，{tokens} 个 token，{characters} 个字符，{bytes} 字节",
    ),
    "cli.tokenizer.per_token": (
        "characters per token {characters}, bytes per token {bytes}",
        "每 token {characters} 个字符，{bytes} 字节",
    ),
    "cli.tokenizer.per_word": (
        "tokens per word {tokens} ({words} words of scripts that put spaces between them)",
        "每词 {tokens} 个 token（{words} 个词，仅计用空格分词的文字）",
    ),
    "cli.tokenizer.used": (
        "vocabulary {size} tokens, {used} of them used ({share})",
        "词表 {size} 个 token，用到 {used} 个（{share}）",
    ),
    "cli.tokenizer.unknown": ("unknown tokens {unknown} ({share})", "未知 token {unknown} 个（{share}）"),
    "cli.tokenizer.longest": ("longest tokens {tokens}", "最长的 token：{tokens}"),
    "cli.tokenizer.not_aligned": (
        "{characters} characters are of texts that this tokenizer changes; they are missing in the table.",
        "有 {characters} 个字符所在的文本会被该分词器改动；表中不含这些字符。",
    ),
    "cli.tokenizer.column.script": ("script", "文字"),
    "cli.tokenizer.column.characters": ("characters", "字符"),
    "cli.tokenizer.column.tokens": ("tokens", "token 数"),
    "cli.tokenizer.column.per_token": ("characters per token", "每 token 字符数"),
    "cli.tokenizer.script.latin": ("Latin", "拉丁文"),
    "cli.tokenizer.script.greek": ("Greek", "希腊文"),
    "cli.tokenizer.script.cyrillic": ("Cyrillic", "西里尔文"),
    "cli.tokenizer.script.han": ("Han", "汉字"),
    "cli.tokenizer.script.kana": ("Kana", "假名"),
    "cli.tokenizer.script.hangul": ("Hangul", "谚文"),
    "cli.tokenizer.script.bopomofo": ("Bopomofo", "注音符号"),
    "cli.tokenizer.script.arabic": ("Arabic", "阿拉伯文"),
    "cli.tokenizer.script.hebrew": ("Hebrew", "希伯来文"),
    "cli.tokenizer.script.devanagari": ("Devanagari", "天城文"),
    "cli.tokenizer.script.bengali": ("Bengali", "孟加拉文"),
    "cli.tokenizer.script.tamil": ("Tamil", "泰米尔文"),
    "cli.tokenizer.script.telugu": ("Telugu", "泰卢固文"),
    "cli.tokenizer.script.thai": ("Thai", "泰文"),
    "cli.tokenizer.script.lao": ("Lao", "老挝文"),
    "cli.tokenizer.script.khmer": ("Khmer", "高棉文"),
    "cli.tokenizer.script.myanmar": ("Myanmar", "缅甸文"),
    "cli.tokenizer.script.tibetan": ("Tibetan", "藏文"),
    "cli.tokenizer.script.mongolian": ("Mongolian", "蒙古文"),
    "cli.tokenizer.script.georgian": ("Georgian", "格鲁吉亚文"),
    "cli.tokenizer.script.armenian": ("Armenian", "亚美尼亚文"),
    "cli.tokenizer.script.ethiopic": ("Ethiopic", "埃塞俄比亚文"),
    "cli.tokenizer.script.other_letters": ("other letters", "其他字母"),
    "cli.tokenizer.script.digits": ("digits", "数字"),
    "cli.tokenizer.script.punctuation": ("punctuation", "标点"),
    "cli.tokenizer.script.symbols": ("symbols", "符号"),
    "cli.tokenizer.script.white_space": ("white space", "空白"),
    "cli.tokenizer.script.other": ("other", "其他"),
}
