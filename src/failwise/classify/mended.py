"""Lines of logs that name a failure and say in the same breath that it is none.

Programs log at the level of information what they lacked and what they did instead ("not found, using
defaults"), what was there already ("exists, skipping"), what they cleared away ("removed 42 expired tokens"), what they are ready for ("exception handler registered"), and
counts of nothing ("failed 0 times"). The words are those of failures.
"""

import re
from typing import Final

from failwise.classify.texts import speaks_of_trouble

_LACKED: Final = (
    r"(?:not (?:be )?found|not (?:yet )?(?:exist|present|available|cached|in cache|set|configured|specified|defined|loaded)|n['’]t (?:find|exist)|could not find"
    r"|missing|unavailable|no such \w{2,20}|expired|stale|absent|already exists?|(?:errors?|faults?|failures?)(?: was| were| has been| have been)?)"
)
_INSTEAD: Final = (
    r"(?:using|us(?:e|ed) (?:the )?default|falling back|fell back|fall back|creating|created|computing|recomputing|fetching|loading|downloading|building|rebuilding|generating"
    r"|skip(?:ping|ped)?\b|ignor(?:ing|ed)|continuing|proceeding|defaulting|starting (?:from|with|fresh|a new|over)|switch(?:ing|ed) to|refreshing|refreshed|reloading|renewing"
    r"|initiali[sz]ing|assuming|leaving|keeping|installing|registering|nothing to (?:do|remove|delete)|no action)(?! (?:failed|error))"
)
_THINGS: Final = r"(?:sessions?|tokens?|locks?|leases?|entries|entry|keys?|connections?|cookies?|certificates?|records?|rows?|files?|jobs?|tasks?|requests?|nodes?|members?|peers?|items?|snapshots?|backups?|segments?|logs?|messages?|cache)"
_MENDED: Final = re.compile(
    rf"{_LACKED}[^\n]{{0,60}}?(?:[,;.(\-–—]|=>|->| so| and) ?(?:(?:so|now|will|then|instead|therefore|we|it|is|be) ){{0,3}}{_INSTEAD}"
    r"|\b(?:error|fault|failure)\w{0,4}(?: was| were| has been| have been)? (?:corrected|recovered|resolved|repaired|fixed|cleared|suppressed)\b"
    r"|already exists?(?:$|[,;.(–—-]{1,2} ?(?:so )?(?:skip|ignor|nothing|no action|leav|keep|us|reus|continu))"
    rf"|\b(?:remov|purg|delet|evict|clean|clear|expir|prun|dropp?|sweep|swept|collect|reap|reclaim|invalidat|discard|releas)(?:es|ed|ing|e)?(?: up)? (?:of )?(?:all |the |any )?(?:\d{{1,9}} )?(?:expired|stale|invalid|dead|orphaned|failed|timed[ -]?out|idle|old)?(?: [\w-]{{1,20}})?? ?{_THINGS}\b[^\n:,;]{{0,60}}(?:: ?\d{{1,9}})?$"
    r"|\b(?:error|exception|failure|timeout|rejection|retry|fault)[ _-]?(?:handlers?|handling|pages?|middleware|reporters?|reporting|boundar(?:y|ies)|trackers?|tracking|codes?|mapp(?:ing|er)s?|polic(?:y|ies)|budget|detector|monitor(?:ing)?|listeners?|filters?|interceptors?|reconciler|queue)\b"
    r"[^\n:]{0,60}$(?<!failed)"
    r"|\b(?:fail(?:ed|ures?|s)?|errors?|exceptions?|timeouts?|timed out|rejected|dropped|denied|retries)(?: count)?[ =:]{1,2}(?:0|none|no|null|false)(?![\d.]*[1-9])(?: times?\b)?"
    r"|\brate[ _-]?limit\w{0,3}(?:(?!exceeded|reached)[^\n]){0,24}?(?<![\d/])[1-9]\d{0,9}(?: ?/ ?\d{1,9}| remaining| left)\b"
    r"|\bclosed by (?:the )?client\b|\bclient (?:has )?(?:disconnected|closed|went away)\b|\bexpiring sessions? \w{1,40}, timeout of \d{1,9} ?ms exceeded"
    r"|\b(?:is|was|are) not (?:defined|set|configured|enabled|specified)\b"
    r"|\b(?:rate[ _-]?limit\w{0,3}|throttl\w{2,4}|quota|circuit[ _-]?breaker)\b[^\n,;:]{0,30}\b(?:configured|enabled|disabled|initiali[sz]ed|registered|updated|loaded|set to|started|ready)\b"
    r"|\b(?:skip(?:ping|ped)|ignor(?:ing|ed)) (?:an? |the )?(?:unknown|unsupported|invalid|missing|duplicated?|expired|stale|unrecogni[sz]ed|optional|empty|existing)\b",
    re.IGNORECASE,
)
_MENDED_ZH: Final = re.compile(
    r"(?:未找到|找不到|没有找到|未命中|不存在|缺失|未设置|未配置|为空|不可用|已存在|已过期|过期|失效)[^\n，,;；。]{0,12}[，,;；。] ?(?:将|会|已|正在|自动|则|开始){0,3}(?:从|注册|登录|补齐|恢复|续期|使用|采用|改用|创建|新建|下载|生成|跳过|忽略|重新|重建|加载|初始化|刷新|清理|回退|降级|切换|默认)"
    r"|(?:清理|清除|删除|移除|回收|淘汰|剔除)(?:了|掉)?[^\n，,：:]{0,8}(?:过期|失效|超时|异常|无效|失败)"
    r"|(?:错误|异常|超时|失败|拒绝|重试)(?:码|页|处理|检测|重试|监控|策略|告警|队列|映射|拦截)[^\n，,：:]{0,16}(?:启动|注册|加载|初始化|开启|就绪|完成|正常|启用|[:：=])"
    r"|(?:扫描|统计|查询|处理|重试|补偿|清理|汇总|导出|拉取|重新投递)[^\n，,：:]{0,6}(?:失败|超时|异常|错误)的?(?:订单|任务|次数|记录|消息|数据|请求|用户|日志|文件|队列|邮件)"
    r"|(?:失败|超时|异常|错误)的?(?:订单|任务|次数|记录|消息|数据|请求|日志|队列)[^\n，,：:]{0,8}(?:重置|清零|清理|统计|汇总|关闭任务)"
    r"|任务[^\n，,]{0,24}(?:调度|执行)(?:成功|完成)|连接已(?:正常)?(?:关闭|断开|释放)(?:$|[，,])|熔断器?[^\n，。]{0,20}(?:关闭|恢复|半开)"
)
_MENDED_ELSE: Final = re.compile(
    r"nicht gefunden[^\n,;]{0,12}[,;] [^\n]{0,40}(?:verwendet|benutzt|erstellt|angelegt|übersprungen|geladen)|introuvable[^\n,;]{0,12}[,;] [^\n]{0,40}(?:utilis|cré|ignor)"
    r"|(?:no encontrad[oa]|no existe)[^\n,;]{0,12}[,;] (?:se )?(?:usa|crea|utiliza|omit)|n[ãa]o encontrad[oa][^\n,;]{0,12}[,;] (?:usando|criando|utilizando|ignorando)"
    r"|не найден\w?[^\n,;]{0,12}[,;] (?:использу|созда|примен|пропуск)|(?:ないため|なかったため|ませんでしたので|ないので)[^\n]{0,30}(?:使用|作成|スキップ)|(?:없어|없으므로|없기 때문에)[^\n]{0,30}(?:사용|생성|건너)",
    re.IGNORECASE,
)
"""What was lacking and what was done instead, in seven further languages."""
_WORSE: Final = re.compile(
    r"(?:error|exception|failure|fault|cause[d ]?(?: by)?|fatal)[\"']?\s?[:=]\s?(?!0\b|none|null|nil|false|\"\"|'')\S|traceback|panic|abort|giving up|gave up|cannot|could not connect|"
    r"\bunable to (?:connect|reach|start)|错误[:：]|异常[:：]|失败[:：]\D",
    re.IGNORECASE,
)
_STEP: Final = re.compile(
    r"\s{0,12}(?:[✓✔√✅] |--- (?:PASS|SKIP): |ok \d{1,6} |(?:ok|PASS)\s{1,8}[\w./-]{1,200}(?:\s{1,8}(?:\([\d.]{1,9} ?m?s\)|[\d.]{1,9}m?s|\(cached\)))?$)"
    r"|\S{1,200} PASSED(?: {1,40}\[ {0,3}\d{1,3}%\])?$|(?:test )?[\w.:()<> -]{1,200} \.\.\. ok$"
    r"|Successfully (?:installed|built|uninstalled|tagged) [\w .+~:/-]{1,340}$|Collecting [\w.\[\]<>=!~,* -]{1,120}(?: \(from [^)\n]{1,160}\))?$|Requirement already satisfied: |(?:  )?(?:Downloading|Using cached) [\w.-]{1,200}\.(?:whl|tar\.gz|metadata)\b"
    r"|Downloading crates \.\.\.|\s{0,8}(?:Compiling|Downloaded|Downloading|Checking|Fresh|Building|Updating|Adding|Locking|Installing) [\w@/.-]{1,100} v\d[\w.+-]{0,40}(?: \([^)\n]{1,200}\))?$"
    r"|(?:Setting up|Unpacking|Removing|Preparing to unpack|Processing triggers for) [^\n]{1,200} \([^)\n]{1,120}\)[^\n]{0,60}\.\.\.$"
    r"|Step \d{1,3}/\d{1,3} : [A-Z]{3,12} |#\d{1,4} \[[^\]\n]{1,80}\] (?:RUN|COPY|ADD|FROM|WORKDIR|CMD|ENV|LABEL)\b|#\d{1,4} (?:CACHED|DONE)\b"
    r"|Completed [23]\d\d [\w ]{2,24} in \d|Processing by [\w:]{1,80}#\w{1,60} as \w|\s{0,4}Render(?:ed|ing) [\w./-]{1,120}(?: within| \(|$)|Started [A-Z]{3,7} \"[^\"\n]{1,200}\" for "
)
"""What tests, installers, builds and servers print of each step that went well; names of tests, packages and
pages are no news."""
_SETTING: Final = re.compile(r"\b[\w.-]{0,40}timeout[\w.-]{0,20}[=:] ?\d\w{0,8}", re.IGNORECASE)
LIMIT: Final = 400
"""Characters of a line; a longer one holds more than such a sentence."""


def is_mended(line: str) -> bool:
    """Does a line of a log, at a level that is calm, say that what it names is no failure?"""
    if len(line) > LIMIT or "\n" in line.strip() or _WORSE.search(line):
        return False
    found = (
        _MENDED.search(line)
        or _MENDED_ELSE.search(line)
        or (None if line.isascii() else _MENDED_ZH.search(line))
    )
    return found is not None and not speaks_of_trouble(_SETTING.sub("", line[found.end() :]))


def is_step(line: str) -> bool:
    """Is a line what a program prints of a step that went well, whatever the step is named?"""
    return len(line) <= LIMIT and "\n" not in line and _STEP.match(line) is not None
