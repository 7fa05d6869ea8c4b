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
        "{name} is of type {found}, which cannot be called; name a class, an instance or a factory",
        "{name} 是 {found}，不能被调用；请指明类、实例或工厂函数",
    ),
    "check.import_failed": (
        "{place} cannot be imported: {reason}; mend that first",
        "无法导入 {place}：{reason}；请先修复",
    ),
    "check.import_relative": (
        "{place} cannot be imported by itself: it has relative imports, and no __init__.py stands beside it; name it as package.module:NAME, or add the __init__.py",
        "{place} 无法单独导入：其中有相对导入，而旁边没有 __init__.py；请写成 package.module:NAME，或补上 __init__.py",
    ),
    "check.factory_raises": (
        "the factory {name} raises {reason} ({line}); mend that first, or name a class",
        "工厂函数 {name} 抛出 {reason}（{line}）；请先修复，或指明一个类",
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
    "check.only_none": (
        "nothing of {only} is asked of {kind}; it is asked {asked}",
        "对 {kind} 不检查 {only}；可检查的有 {asked}",
    ),
    "check.values_of_function": (
        "{name} is a function and is not built: --set {parameter} has no effect; leave it out, or name a class",
        "{name} 是函数，无需构造：--set {parameter} 不起作用；请去掉它，或指明一个类",
    ),
    "check.no_kind": (
        "there is no kind {kind}; --kind takes {known}",
        "没有 {kind} 这一类；--kind 可取 {known}",
    ),
    "check.no_interface": (
        "{name} could not be called in any known way ({tried}); say what it is with --kind, give the sizes, or say how it is run, in a file wrap.py:\n"
        "{wrapper}\n"
        "and add --kind {kind} --call wrap.py:call; in Python: ch.check(module, kind='{kind}', call=call)",
        "{name} 无法以任何已知方式调用（{tried}）；请用 --kind 说明它是什么，给出尺寸，或在文件 wrap.py 中写明如何运行它：\n"
        "{wrapper}\n"
        "并加上 --kind {kind} --call wrap.py:call；在 Python 中：ch.check(module, kind='{kind}', call=call)",
    ),
    "check.no_call": (
        "--call {name} names a {found}; it takes a function, call(module, input), that gives the output",
        "--call {name} 指的是 {found}；需要一个函数 call(module, input)，返回输出",
    ),
    "check.other_kind": (
        "it was checked as {kind}, as --kind says; by its names and parts it is rather {likely}",
        "按 --kind 作为 {kind} 检查；从名称和组成看，它更像 {likely}",
    ),
    "check.size_not_asked": (
        "{flag} {value} was not used: nothing that is asked of {kind} depends on it",
        "{flag} {value} 未被使用：对 {kind} 的检查与它无关",
    ),
    "check.size_contradicted": (
        "{flag} {value} was believed, though the code itself says {own}",
        "采用了 {flag} {value}，但代码自己写的是 {own}",
    ),
    "check.size_not_built": (
        "{flag} {value} was not used to build it: none of its parameters ({parameters}) is known to mean that; say --set NAME={value}",
        "{flag} {value} 未用于构造：它的参数（{parameters}）中没有已知表示该含义的；请写 --set 名字={value}",
    ),
    "check.raises": (
        "{name}, called as {kind}, raises {reason} on a legal input; mend that first, or give the sizes that it needs",
        "{name} 作为 {kind} 调用时，对合法输入抛出 {reason}；请先修复，或给出它所需的尺寸",
    ),
    "check.endless": (
        "it did not end within {seconds} s: an endless loop, or sizes that are too large; give small ones, or more time with --time-limit",
        "{seconds} 秒内未结束：可能是死循环或尺寸过大；请给出较小的尺寸，或用 --time-limit 放宽时间",
    ),
    "check.crashed": (
        "the code ended its process ({status}) before the check was done; run it by itself to see why",
        "代码在检查完成前结束了进程（{status}）；请单独运行它以查明原因",
    ),
    "check.sight_expected": ("expected", "应当"),
    "check.sight_found": ("found", "实际"),
    "check.sight_marks": (
        "rows: queries, columns: keys; █ seen, · not, ! seen and must not be, ? not seen and should be",
        "行：查询，列：键；█ 可见，· 不可见，! 不该见却可见，? 该见却不可见",
    ),
}
"""Each kind has a file of its own beside this one."""
