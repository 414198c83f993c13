"""Errors of CEL selectors in Chinese; what no entry knows is quoted as Kubernetes words it."""

import re
from typing import Final

_BEGINNING: Final = re.compile(r"(?:compilation failed: )?(?:ERROR: )?(?:<input>:(?P<line>\d+):(?P<column>\d+): )?")
_WORDS: Final[tuple[tuple["re.Pattern[str]", str], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), words)
    for pattern, words in (
        # Of a value that the device has, or lacks.
        (r"no such key: (.*)", r"未设置 \1"),
        (r"no such overload(?:: (.*))?", r"没有适用于这些类型的运算 \1"),
        (r"(?:unsigned )?integer overflow", "整数溢出"),
        (r"duration overflow", "时长溢出"),
        (r"timestamp overflow", "时间溢出"),
        (r"division by zero", "除数为零"),
        (r"modulus by zero", "取模的除数为零"),
        (r"index out of (?:bounds|range): (.*)", r"下标越界：\1"),
        (r"unsupported index (?:value|type) (\S+) in list", r"列表不支持下标 \1"),
        (r"type conversion error from '([^']*)' to '([^']*)'", r"无法从类型 \1 转换为 \2"),
        (r"operation cancelled: actual cost limit exceeded", "求值代价超过 Kubernetes 的上限"),
        (r"optional\.none\(\) dereference", "读取了空的 optional 值"),
        (r"cannot convert value to integer", "该值无法转换为整数"),
        (r"quantities must match the regular expression .*", "数量的格式无效"),
        (r"Illegal regex: (.*)", r"正则表达式无效：\1"),
        (r"error parsing regexp: (.*)", r"正则表达式无效：\1"),
        (r"NaN values cannot be ordered", "NaN 无法比较大小"),
        (r"list elements must (?:be comparable|have the same type)", "列表元素必须类型相同且可以比较"),
        (r"(\S+) called on empty list", r"对空列表调用了 \1"),
        # Of the expression.
        (r"undefined field '([^']*)'.*", r"没有字段 \1"),
        (r"undeclared reference to '([^']*)'.*", r"未声明的名称 \1"),
        (r"found no matching overload for '([^']*)' applied to '([^']*)'.*", r"函数 \1 不接受类型 \2"),
        (r"type '([^']*)' does not support field selection.*", r"类型 \1 没有字段"),
        (r"Syntax error: (.*)", r"语法错误：\1"),
        (r"must evaluate to bool or the unknown type, not (.*)", r"结果必须是 bool，而不是 \1"),
        # Of the bounds here.
        (r"the expression has ([\d,]+) bytes, more than the ([\d,]+) that Kubernetes allows",
         r"表达式有 \1 字节，超过 Kubernetes 允许的 \2 字节"),
        (r"the expression is nested more deeply than .*", "表达式嵌套过深，此处不再读取（32 层）"),
        (r"a value of the expression has more than ([\d,]+) characters or elements",
         r"表达式的某个值超过 \1 个字符或元素"),
        (r"the function (\S+) is not judged in a device selector", r"设备选择器中的函数 \1 未作判断"),
        (r"the message (\S+) is not judged in a device selector", r"设备选择器中的消息 \1 未作判断"),
    )
)  # fmt: skip


def write_cel_error(text: str) -> str:
    """Write an error of a selector: its first line, with the position in the expression."""
    match = _BEGINNING.match(text)
    position = f"第 {match['line']} 行第 {match['column']} 列：" if match and match["line"] else ""
    line = text[match.end() if match else 0 :].partition("\n")[0].strip()
    for pattern, words in _WORDS:
        if error := pattern.fullmatch(line):
            return f"{position}{error.expand(words).strip()}"
    return f"{position}{line}"
