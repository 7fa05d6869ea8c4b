"""The Chinese tables of the built-in corpus: words, and the sentences they go into (read as in `grammar.py`).

The rows carry what agreement needs: the pronoun (他, 她, 它) and the measure word (一个男孩, 一只小猫, 一匹小马). As in English, no character stands twice in a row.
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
    小马 | 匹      | 小马 |            | 它
"""

_TOYS = """
    text | measure
    球   | 个
    风筝 | 只
    书   | 本
    伞   | 把
    小船 | 条
    帽子 | 顶
    花   | 朵
    画   | 张
"""

CHINESE = Language(
    name="zh",
    gap="",
    variables={"hero": "character", "friend": "character", "thing": "toy"},
    words={
        "character": table(_CHARACTERS),
        "adjective": words("可爱, 聪明, 勇敢, 快乐, 安静, 善良"),
        "home": words("小河边, 大山里, 森林里"),
        "feeling": words("高兴, 开心, 快乐, 满意"),
        "relative": words("母亲, 父亲, 外婆, 外公"),
        "weather": words("晴朗, 下雨, 下雪"),
        "daytime": words("早上, 中午, 下午, 晚上"),
        "place": words("公园, 花园, 学校, 小河边, 大山里, 森林里"),
        "play": words("唱歌, 跳舞, 写字, 看书, 跑步, 游泳"),
        "food": words("苹果, 面包, 米饭, 面条, 蛋糕, 西瓜"),
        "spot": words("桌子上, 窗台上, 草地上, 石头上, 大树下, 门口"),
        "toy": table(_TOYS),
        "colour": words("红色, 黄色, 蓝色, 绿色, 白色, 漂亮"),
        "praise": words("好看, 漂亮, 奇怪, 好玩"),
        "manner": words("大声, 小声, 高兴, 认真, 温柔"),
    },
    steps=(
        sentence(
            (3, "从前有一{new hero.measure}{adjective}的{hero.kind}{hero.named}。"),
            (2, "{home}住着一{new hero.measure}{adjective}的{hero.kind}{hero.named}。"),
        ),
        sentence(
            (1, "{hero.they}喜欢{play}，也喜欢吃{food}。"),
            (1, "每天{daytime}，{hero.they}都和{relative}一起{play}。"),
            skip=1,
        ),
        sentence(
            (1, "有一天，{hero.they}去{place}{play}，遇见了{new friend}。"),
            (1, "一个{weather}的{daytime}，{new friend}来找{hero.they}{play}。"),
        ),
        sentence(
            (2, "{hero}趴在{spot}，看见了一{new thing.measure}{colour}的{thing}。"),
            (1, "{friend}送给{hero.they}一{new thing.measure}{colour}的{thing}。"),
        ),
        sentence(
            (1, "“这{thing.measure}{thing}真{praise}！”{hero}{manner}地说。"),
            (1, "“我们一起{play}吧！”{friend}{manner}地说。"),
            (1, "“你要吃{food}吗？”{friend}{manner}地问{hero.they}。"),
            skip=1,
        ),
        sentence(
            (1, "{hero}追{friend}，一直追到{place}。"),
            (1, "两个好朋友一起{play}，一直玩到{daytime}。"),
            skip=1,
        ),
        sentence(
            (1, "{friend}很{feeling}，{hero.they}也很{feeling}。"),
            (1, "夜里，{hero.they}梦见了那{thing.measure}{thing}。"),
            (1, "{hero}告别{friend}，和{relative}一起回家了。"),
        ),
    ),
)
