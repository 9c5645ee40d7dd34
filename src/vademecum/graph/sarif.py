"""Findings as SARIF 2.1.0, which code hosts show beside the lines."""

import hashlib
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from vademecum import __version__
from vademecum.graph.radar import RULES, Finding

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_NAMES = {
    "removed": "RemovedApi",
    "deprecated": "DeprecatedApi",
    "parameter": "DeprecatedParameter",
}


def sarif(findings: Sequence[Finding], *, root_uri: str) -> dict[str, Any]:
    """A SARIF log with one run. `root_uri` is the folder that the paths are relative to."""
    rules = list(RULES)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "Vademecum radar",
                        "semanticVersion": __version__,
                        "rules": [
                            {
                                "id": rule,
                                "name": _NAMES[rule],
                                "shortDescription": {"text": RULES[rule]},
                                "defaultConfiguration": {
                                    "level": "error" if rule == "removed" else "warning"
                                },
                            }
                            for rule in rules
                        ],
                    }
                },
                "originalUriBaseIds": {"PROJECT": {"uri": root_uri}},
                "columnKind": "utf16CodeUnits",
                "results": [_result(one, rules.index(one.rule)) for one in findings],
            }
        ],
    }


def message(one: Finding) -> str:
    """A finding in one paragraph."""
    thing = f"{one.api}({one.parameter}=)" if one.parameter else one.api
    state = "gone" if one.rule == "removed" else "deprecated"
    text = f"{thing} of {one.package} {one.version} is {state}"
    if one.since:
        text += f" since {one.since}"
    if one.until:
        text += f", announced to be removed in {one.until}"
    text += f". Use {one.replacement}." if one.replacement else "."
    return f"{text} “{one.sentence}”" if one.sentence else text


def _result(one: Finding, index: int) -> dict[str, Any]:
    level = "note" if one.guarded else "error" if one.rule == "removed" else "warning"
    mark = f"{one.rule}\0{one.file}\0{one.api}\0{one.parameter}\0{one.context}"
    return {
        "ruleId": one.rule,
        "ruleIndex": index,
        "level": level,
        "message": {"text": message(one)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(one.file), "uriBaseId": "PROJECT"},
                    "region": {
                        "startLine": one.line,
                        "startColumn": max(one.column, 1),
                        "snippet": {"text": one.context},
                    },
                }
            }
        ],
        "partialFingerprints": {"usage/v1": hashlib.sha256(mark.encode()).hexdigest()},
        "properties": {
            key: value
            for key, value in (
                ("package", one.package),
                ("version", one.version),
                ("since", one.since),
                ("until", one.until),
                ("replacement", one.replacement),
                ("evidence", one.evidence),
            )
            if value
        },
    }
