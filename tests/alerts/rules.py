"""The alerting rules of conf/, as these tests run them: the same expressions over shorter times. What the
true times are, promtool's tests hold (alerts_test.yaml, agent_rules_test.yaml)."""

import re

WAIT = "5s"  # In place of every `for`.
WINDOW = "20s"  # In place of every range that a query looks back over.
DATABASE = 10 << 20  # Bytes, in place of etcd's quota.
HOUR = 90  # Seconds, in place of 3600 in comparisons with times: a static cloud is audited each minute.
WARNED = 10  # Seconds, in place of 1800: for how long a node is warned on.

NAME = re.compile(r"^\s*- alert: (\w+)$", re.M)
FOR = re.compile(r"^(\s+for: )\d+[smhd]$", re.M)
RANGE = re.compile(r"\[\d+[smhd]\]")
QUOTA = re.compile(r"\b2147483648\b")
LASTING = re.compile(r"> 1800\b")
AGE = re.compile(r"> 3600\b")


def names(text):
    """The alerts of the rules, in their order."""
    return NAME.findall(text)


def shortened(text):
    """The rules with short times and a small quota. Nothing else of them is changed."""
    text = FOR.sub(rf"\g<1>{WAIT}", text)
    text = RANGE.sub(f"[{WINDOW}]", text)
    text = QUOTA.sub(str(DATABASE), text)
    text = LASTING.sub(f"> {WARNED}", text)
    return AGE.sub(f"> {HOUR}", text)
