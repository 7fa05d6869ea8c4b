"""The Chinese tables of the built-in corpus: words, and the sentences they go into (read as in `grammar.py`).

The rows carry what agreement needs: the pronoun (他, 她, 它) and the measure word (一个男孩, 一只小猫, 一匹小马).
"""

from clearhead.text.corpus.grammar import Language, sentence, table, words

_CHARACTERS = """
    text | measure | kind | named      | they
    小明 | 个      | 男孩 | ，名叫小明 | 他
    小刚 | 个      | 男孩 | ，名叫小刚 | 他
    小红 | 个      | 女孩 | ，名叫小红 | 她
    小丽 | 个      | 女孩 | ，名叫小丽 | 她
    小猫 | 只      | 小猫 |            | 它
    小狗 | 只      | 小狗 |            | 它
    小兔 | 只      | 小兔 |            | 它
    小熊 | 只      | 小熊 |            | 它
    小马 | 匹      | 小马 |            | 它
    小牛 | 头      | 小牛 |            | 它
"""

_TOYS = """
    text | measure
    皮球 | 个
    风筝 | 只
    书   | 本
    雨伞 | 把
    小鼓 | 面
    小船 | 条
    帽子 | 顶
    画   | 张
"""

CHINESE = Language(
    name="zh",
    gap="",
    variables={"hero": "character", "friend": "character", "thing": "toy"},
    words={
        "character": table(_CHARACTERS),
        "adjective": words("可爱, 聪明, 勇敢, 快乐, 安静, 善良, 有趣"),
        "home": words("小河边, 大山里, 森林里, 村子里, 大海边"),
        "season": words("春天, 夏天, 秋天, 冬天"),
        "feeling": words("高兴, 开心, 快乐, 满意"),
        "relative": words("妈妈, 爸爸, 爷爷, 奶奶, 哥哥, 姐姐"),
        "weather": words("晴朗, 温暖, 下雨, 下雪"),
        "daytime": words("早上, 中午, 下午, 晚上"),
        "place": words("公园, 花园, 河边, 山上, 海边, 树林, 学校"),
        "play": words("唱歌, 跳舞, 画画, 看书, 跑步, 游泳, 做饭"),
        "food": words("苹果, 面包, 米饭, 面条, 蛋糕, 西瓜"),
        "spot": words("桌子上, 窗台上, 草地上, 石头上, 大树下, 门口"),
        "toy": table(_TOYS),
        "colour": words("红色, 黄色, 蓝色, 绿色, 白色, 漂亮, 有趣"),
        "insect": words("蝴蝶, 蜜蜂, 小虫, 影子"),
        "praise": words("好看, 漂亮, 奇怪, 好玩"),
        "manner": words("大声, 小声, 高兴, 慢慢, 轻轻"),
        "used": words("玩, 笑, 跑, 跳, 唱歌, 跳舞"),
        "dusk": words("天黑, 中午, 晚上"),
    },
    steps=(
        sentence(
            (4, "从前有一{new hero.measure}{adjective}的{hero.kind}{hero.named}。"),
            (3, "{home}住着一{new hero.measure}{adjective}的{hero.kind}{hero.named}。"),
            (3, "{season}来了，{new hero}和{hero.they}的{relative}都很{feeling}。"),
        ),
        sentence(
            (1, "{hero.they}喜欢{play}，也喜欢吃{food}。"),
            (1, "每天{daytime}，{hero.they}都和{relative}一起{play}。"),
            skip=1,
        ),
        sentence(
            (2, "有一天，{hero}去{place}{play}，遇见了{new friend}。"),
            (1, "一个{weather}的{daytime}，{new friend}来找{hero.they}{play}。"),
            (1, "{hero}追{new friend}，一直追到了{place}。"),
        ),
        sentence(
            (2, "{hero}趴在{spot}，看见了一{new thing.measure}{colour}的{thing}。"),
            (1, "{friend}送给{hero}一{new thing.measure}{colour}的{thing}。"),
            (1, "{spot}有一{new thing.measure}{colour}的{thing}，是{friend}的{relative}做的。"),
        ),
        sentence(
            (1, "“这{thing.measure}{thing}真{praise}！”{hero}{manner}地说。"),
            (1, "“我们一起{play}吧！”{friend}{manner}地说。"),
            (1, "“你要吃{food}吗？”{friend}{manner}地问{hero}。"),
            skip=1,
        ),
        sentence(
            (1, "{hero}追{insect}，{friend}追{hero}。"),
            (1, "{friend}拿着{thing}{used}，{hero}在旁边{used}。"),
            (1, "两个好朋友一起{play}，一直玩到{dusk}。"),
            skip=1,
        ),
        sentence(
            (1, "{hero}很{feeling}，{friend}也很{feeling}。"),
            (1, "晚上，{hero.they}梦见了那{thing.measure}{thing}。"),
            (1, "{hero}谢谢{friend}，和{relative}一起回家了。"),
            (1, "从那天起，{hero}和{friend}天天一起{play}。"),
        ),
    ),
)
