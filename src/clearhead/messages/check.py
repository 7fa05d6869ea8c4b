"""Messages said by `checking` about somebody's code, whatever its kind: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "check.no_name": (
        "{name} names no code; write FILE.py:NAME or package.module:NAME, NAME a class, an instance or a factory, or give a model",
        "{name} 没有指明代码；请写 FILE.py:NAME 或 package.module:NAME（NAME 为类、实例或工厂函数），或给出一个模型",
    ),
    "check.no_file": (
        "{path}: there is no such file; give the path of the Python file before the colon",
        "{path}：没有这个文件；请在冒号前给出 Python 文件的路径",
    ),
    "check.no_attribute": (
        "{place} has no {name}; it has {known}",
        "{place} 中没有 {name}；其中有 {known}",
    ),
    "check.not_callable": (
        "{name} is a {found}, which cannot be called; name a class, an instance or a factory",
        "{name} 是 {found}，不能被调用；请指明类、实例或工厂函数",
    ),
    "check.import_failed": (
        "{place} cannot be imported: {reason}; mend that first",
        "无法导入 {place}：{reason}；请先修复",
    ),
    "check.no_parameter": (
        "{name} has no parameter {parameter}; --set takes the names of its constructor",
        "{name} 没有参数 {parameter}；--set 只接受其构造函数的参数名",
    ),
    "check.not_built": (
        "{name}({given}) raises {reason}; say what it needs with --set name=value, or name a factory",
        "{name}({given}) 抛出 {reason}；请用 --set 名字=值 给出所需参数，或指明一个工厂函数",
    ),
    "check.fill": (
        "{name} wants {parameter}, whose meaning is not known; give it with --set {parameter}=value, or name a factory",
        "{name} 需要 {parameter}，其含义未知；请用 --set {parameter}=值 给出，或指明一个工厂函数",
    ),
}
"""Each kind has a file of its own beside this one."""
