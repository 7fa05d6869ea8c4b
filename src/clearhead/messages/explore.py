"""Messages said by `clearhead explore`, by its server: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cli.explore.about": (
        "a page on which a model can be seen at work, in the browser or in one file",
        "在网页上看模型如何工作，可在浏览器中打开，也可写成一个文件",
    ),
    "explore.address": (
        "{address}   (Ctrl-C ends it)",
        "{address}   （按 Ctrl-C 结束）",
    ),
    "explore.open_to_others": (
        "[--host {host}: whoever reaches this address can read your prompts and use the model; without --host only this machine can]",
        "[--host {host}：能访问该地址的人都能读到你的提示并使用模型；不加 --host 则仅限本机]",
    ),
    "explore.written": (
        "{path}: {size}; it opens offline, and holds the prompt",
        "{path}：{size}；可离线打开，文件中含有提示文本",
    ),
    "explore.in_notebook": (
        "a page of {size}; in a notebook it shows itself where it is the last line of a cell, and .save('page.html') writes it for a browser",
        "一个 {size} 的网页；在 notebook 中作为单元格最后一行会自动显示，.save('page.html') 可写成供浏览器打开的文件",
    ),
    "explore.no_builtin": (
        "the model that comes with clearhead is not at {path}; install clearhead again, or name a model",
        "clearhead 自带的模型不在 {path}；请重新安装 clearhead，或指定一个模型",
    ),
    "explore.no_view": (
        "there is no view {view}; it may be {known}",
        "没有名为 {view} 的视图；可选 {known}",
    ),
    "explore.no_language": (
        "--lang {lang} is not known; it may be en or zh",
        "不认识 --lang {lang}；可选 en 或 zh",
    ),
    "explore.no_folder": (
        "{path} cannot be written: there is no folder {folder}; make it first",
        "无法写入 {path}：没有文件夹 {folder}；请先创建",
    ),
    "explore.no_page": (
        "--export {path} is no name of a page; let it end in .html, such as page.html",
        "--export {path} 不是网页的文件名；请以 .html 结尾，例如 page.html",
    ),
    "explore.is_folder": (
        "--export {path} is a folder; name a file, such as {path}/page.html",
        "--export {path} 是文件夹；请给出文件名，例如 {path}/page.html",
    ),
    "explore.no_text": (
        "a prompt is a text, and {value!r} is a {kind}; write ch.explore(model, 'The little cat')",
        "提示必须是文本，而 {value!r} 是 {kind}；请写成 ch.explore(model, '小猫')",
    ),
    "explore.no_memory": (
        "--memory {memory} is not possible; give gigabytes, more than 0",
        "--memory {memory} 不可行；请给出大于 0 的 GB 数",
    ),
    "explore.no_port": (
        "there is no port {port}; ports are 0 to 65535, and 0 takes one that is free",
        "没有端口 {port}；端口为 0 到 65535，0 表示任选空闲端口",
    ),
    "explore.port_taken": (
        "port {port} is taken or not allowed; name another with --port, or leave it away",
        "端口 {port} 已被占用或不允许使用；请用 --port 换一个，或不指定",
    ),
    "explore.no_host": (
        "{host} is no address of this machine; leave --host away, or give 0.0.0.0 for all of its addresses",
        "{host} 不是本机的地址；请不加 --host，或用 0.0.0.0 表示本机全部地址",
    ),
    "explore.foreign_host": (
        "this server is not called {host!r}; open it by the address that it printed",
        "本服务器不叫 {host!r}；请用它打印的地址打开",
    ),
    "explore.foreign_origin": (
        "a page of {origin!r} may not ask here; open this server's own page",
        "来自 {origin!r} 的网页不能在此提问；请打开本服务器自己的网页",
    ),
    "explore.foreign_page": (
        "the page of another site may not ask here; open this server's own page",
        "其他网站的网页不能在此提问；请打开本服务器自己的网页",
    ),
    "explore.no_address": (
        "there is nothing at {path}; the page is at /",
        "{path} 处没有内容；网页在 /",
    ),
    "explore.no_method": (
        "{path} does not take {method}; the page shows how it is asked",
        "{path} 不接受 {method}；请按网页的方式提问",
    ),
    "explore.no_json": (
        'what was sent is not JSON in UTF-8; send {{"text": "..."}}',
        '发来的内容不是 UTF-8 编码的 JSON；请发送 {{"text": "..."}}',
    ),
    "explore.fields": (
        "a prompt is opened with text, a string, and for an encoder-decoder target, a string or null, and with nothing else",
        "打开提示需要 text（字符串）；编码器-解码器还可有 target（字符串或 null）；不能有其他字段",
    ),
    "explore.too_large": (
        "what was sent has more than {most:,} bytes; send a shorter prompt",
        "发来的内容超过 {most:,} 字节；请发送较短的提示",
    ),
    "explore.no_session": (
        "no prompt is open under the name {session}; open it again",
        "没有以 {session} 为名打开的提示；请重新打开",
    ),
    "explore.no_question": (
        "nothing answers {path!r}; what can be asked is {known}",
        "没有可回答 {path!r} 的内容；可提问的有 {known}",
    ),
    "explore.no_field": (
        "{path} is asked with {field!r}, which it does not read; leave it out, or write one of {known}",
        "{path} 的提问中有 {field!r}，它并不读取这个字段；请去掉它，或改用 {known} 之一",
    ),
    "explore.no_fields": (
        "{path} is asked with {field!r}, and reads no field; leave it out",
        "{path} 的提问中有 {field!r}，而它不读取任何字段；请去掉它",
    ),
    "explore.broken": (
        "the server met a mistake of its own ({kind}); its terminal says where, and another prompt may still work",
        "服务器自身出错（{kind}）；其终端显示了出错位置，换一个提示也许可行",
    ),
}
