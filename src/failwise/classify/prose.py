"""Sentences that explain: what something is, what happens if, how to keep it from happening.

Documentation, answers to questions and notes speak of failures in the words of failures. What a tool
gave back is such a text, and no failure, where its first words only explain.
"""

import re
from typing import Final

LIMIT: Final = 600
"""Characters up to which a text may be one such sentence; a longer one is content by its length."""

_TELLS: Final = re.compile(
    r"\W{0,4}(?:[\w'’-]{1,30} ){1,6}(?:is|was|are|were) (?:an?|the|one of) (?!(?:required|mandatory|invalid|duplicate|directory|reserved|read-only"
    r"|bad|wrong|missing|known|protected|restricted|problem|error|issue|server|network|connection|timeout|conflict|syntax|mismatch|valid|different"
    r"|string|number|list|type|file|folder)\b)|\W{0,4}(?:[\w'’-]{1,30} ){1,6}[\w'’-]{1,30}\? [A-Z]"
    r"|(?i:\W{0,4}(?:i['’]m |i am |we['’]re |we are )?(?:so |very )?sorry (?:to hear|about|for (?:the|any|your|that)))\b"
)
"""What something is, a question and its answer, words of comfort."""
_SUPPOSES: Final = re.compile(
    r"[\s*>\-–•]{0,6}(?:(?:and|but|so|note that|however,?|also,?|then,?) )?"
    r"(?:(?:if|unless|whenever|in case|even if|even though|although|provided that) [^\n,]{2,200}(?:, |\n)|when (?:an?|the|this|your|you|it|any|that|both|either) [^\n,]{3,200}, )"
    r"(?!(?:an?|the) (?:\w{2,20} )?(?:error|exception) (?:has )?(?:occurred|happened)|something went wrong)"
    r"|[\w '\"/.-]{1,80} (?:will not|won['’]t|do(?:es)? not|do(?:es)?n['’]t|never|without) (?:\w{2,16} )?(?:an?|any) (?:error|exception)s?\b"
    r"|(?:please )?note that\b|[\w '-]{1,60} (?:ensures?|means|implies|guarantees?) (?:that )?[a-z]"
    r"|[\w.:]{1,80}\([^\n]{0,300}\);\s{0,4}$|this (?:example|guide|page|section|chapter|tutorial|document|article|recipe|lesson)\b"
    r"|the following (?:code|examples?|snippets?|commands?|queries|query|tables?|lists?|sections?|sentences?|diagrams?|steps?|configurations?|programs?|scripts?|output)\b",
    re.IGNORECASE,
)
"""What would follow if something were the case, what does not happen, and what an example shows."""
_NAMES: Final = re.compile(
    r"\s{0,4}[*-] \*\*[^*\n]{1,60}\*\*[^\n]{1,300}\n\s{0,4}[*-] \*\*[^*\n]{1,60}\*\*"
)
"""Items of a list that each explain a name in bold."""
_COMPARES: Final = re.compile(
    r"\s{0,8}[-*>]?\s{0,2}(?:错误|錯誤|wrong|incorrect|bad|don['’]t|❌|✗)\s?(?:example|示例|写法|寫法)?[：:][^\n]{0,400}\n(?:[^\n]{0,400}\n){0,6}?\s{0,8}[-*>]?\s{0,2}(?:正确|正確|right|correct|good|do|✅|✓)\s?(?:example|示例|写法|寫法)?[：:]",
    re.IGNORECASE,
)
"""A wrong way beside the right one."""
_FIRST_ZH: Final = r"(?:(?!失败|错误|异常|超时|出错|报错|无法|未能|不存在|不足|过期|失效|过多|限制|拒绝|已满|不可用|不支持)[^\n，,。！!：:；;]){0,30}?"
"""Within the first clause, before any word of failing."""
_TELLS_ZH: Final = re.compile(
    r"[\s*>#\-–•`（(]{0,6}(?:"
    rf"{_FIRST_ZH}(?:如果|如遇|假如|倘若|若(?:是|要|您|你|有|在|发|出|某|其|该|仍|因|不|未|无|没|需)|一旦|万一|每当|当(?!前|日|天|月|年|期|地|场|选|下)[^\n，。]{{1,40}}(?:时|时候|后|情况下)[，,])"
    r"|(?:但是?|而且?|因此|所以|于是|然后|接着|此外|另外|不过|例如|比如|譬如|正如|正因|虽然|尽管|即使|可以?(?:根据|通过|使用|在)|以下[是为]|对于|针对|关于|至于|(?:通常|一般)(?:情况下|来说|是|会|由)|(?:为了?|要)?(?:避免|防止|解决|修复|忽略|排查|消除|减少|降低))[^\n：:]{0,60}?(?:错误|异常|失败|超时|报错|出错|故障|无法)"
    r"|(?:上述|以上|下面的?|下列|这个|这些|此类?|该类?|这类?|这种|那种)(?:错误|异常|报错|失败|超时|故障)(?!(?:码|信息)?[，,]?(?:请|：|:))"
    r"|[^\n，。！!：:]{0,24}?(?:错误|异常|失败|超时|故障|报错)(?:是指|是一[个种类]|指的是|表示|表明|意味着|(?:信息|消息|提示|日志)(?:的(?!长度)|中|里)|的时候|的情况下?|的含义|的场景|的话"
    r"|时(?:忽略|，?(?:会|可以?|将|需要?|系统|程序|默认|应|则))|(?:之)?后[，,]?(?:会|可以?|将|再|先|存|自动|系统)|就立?[即会]|比例|占比|率(?![：:过超达])|处理(?!失败|异常|出错)|(?:检查|检测|捕获|重试)(?:、|和|及|与|功能|机制|等|逻辑))"
    r"|[^\n，。！!：:]{0,24}?(?:失败|出错|故障)的(?:请求|操作|任务|消息|数据|记录|节点|连接|副本|事务|语句|升级)(?!数|[：:])"
    r"|[^\n，。]{1,40}(?:都|均)将|[^\n，。]{1,20}的[^\n，。]{0,8}(?:问题|区别|特点|好处|缺点|优点|目的|作用|意义|方法)就?是"
    r"|[^\n，。！!：:]{0,12}(?:不需要|不是(?:一个)?(?:错误|异常|失败)|无需|无须|不用|不必|常用于|常见于|指的是|是指))"
)
"""In Chinese: suppositions, connections with what was said before, what an error means and is handled by."""
_TELLS_ELSE: Final = re.compile(
    r"(?:まず|次に|最初に|その後|なお|ただし|例えば|たとえば|もし)[^\n]|[^\n。]{1,60}(?:場合|とき)(?:は|に|、)"
    r"|(?:만약|먼저|예를 들어)[^\n]|다음과 같은 [^\n]{1,60}(?:발생합니다|표시됩니다|나타납니다)|[^\n.]{1,60}경우(?:에는?|는|,)"
    r"|(?i:если|когда|например|чтобы|si|cuando|quand|lorsque|por ejemplo|par exemple|se você|quando|wenn|falls|zum beispiel|um) [^\n]{3,160}, "
)
"""The same in Japanese, Korean, Russian, Spanish, French, Portuguese, Italian and German."""


def explains(text: str) -> bool:
    """Is a text a sentence that explains? ("Connection Refused is a novel"; "If it fails, try again.")"""
    if len(text) > LIMIT:
        return False
    if _TELLS.match(text) or _SUPPOSES.match(text) or _NAMES.match(text) or _COMPARES.match(text):
        return True
    return not text.isascii() and bool(_TELLS_ZH.match(text) or _TELLS_ELSE.match(text))
