"""Counts what the classes of a C++ source have: member functions that it declares or defines, and data members.

Functions that are defaulted or deleted, constants, types, aliases and friends are not counted. A class within another
one counts for itself.
"""

import functions

OTHERS = {"using", "friend", "typedef", "enum", "static_assert"}
ATTRIBUTE = "ABSL_"
END = ("", 0)


def classes(text):
    """(line, name, methods, fields) of each class and struct with a body."""
    tokens = list(_tokens(text)) + [END] * 3  # Also should a bracket be missing.
    found = []
    at = 0
    while tokens[at] != END:
        begin = _body(tokens, at)
        at = begin[0] if begin else at
        if begin:
            at = _members(tokens, at, found, (tokens[at][1], begin[1])) + 1
        else:
            at += 1
    return sorted(found)


def _tokens(text):
    reader = functions.Reader(text)
    while (token := reader.next()) is not None:
        yield token, reader.line


def _body(tokens, at):
    """(where it begins, name) of the body of the class whose head begins at `at`, or None."""
    if tokens[at][0] not in ("class", "struct") or (at > 0 and tokens[at - 1][0] in ("enum", "<", ",", "friend")):
        return None
    name, angles, bases = "", 0, False
    at += 1
    while tokens[at] != END:
        token = tokens[at][0]
        if token == "(":
            attribute = tokens[at - 1][0] == "alignas" or tokens[at - 1][0].startswith(ATTRIBUTE)
            if not attribute:
                return None  # A function or a variable of that type.
            at = _closing(tokens, at, "(", ")")
        elif token == "<":
            angles += 1
        elif token == ">":
            if angles == 0:
                return None  # A template's parameter.
            angles -= 1
        elif angles == 0:
            if token == "{":
                return at + 1, name
            if token in (";", "=", ")", "&", "*") or (token == "," and not bases):
                return None
            bases = bases or token == ":"
            if not bases and token not in ("final", "alignas", "[", "]") and not token.startswith(ATTRIBUTE):
                name = token
        at += 1
    return None


def _members(tokens, at, found, head):
    """Counts the members of the class whose body begins at `at`; returns where it ends."""
    methods = fields = 0
    statement = []
    while tokens[at] != END and tokens[at][0] != "}":
        token = tokens[at][0]
        inner = _body(tokens, at) if not statement or statement[-1] == ">" else None
        if inner:
            at = _members(tokens, inner[0], found, (tokens[at][1], inner[1])) + 1
            statement = []
            continue
        if token == "{":
            at = _closing(tokens, at, "{", "}")
            within = statement.count("(") > statement.count(")")
            if not within and _is_function(statement) and tokens[at + 1][0] not in (";", ",", "{"):
                methods, statement = methods + ("friend" not in statement), []
        elif token == ":" and statement and statement[-1] in ("public", "private", "protected"):
            statement = []
        elif token == ";":
            declared = _declares(statement)
            methods, fields, statement = methods + declared[0], fields + declared[1], []
        else:
            statement.append(token)
        at += 1
    found.append((*head, methods, fields))
    return at


def _closing(tokens, at, opening, closing):
    depth = 0
    while tokens[at] != END:
        depth += {opening: 1, closing: -1}.get(tokens[at][0], 0)
        if depth == 0:
            return at
        at += 1
    return at - 1


def _outside(statement):
    """The tokens of a declaration outside of angle brackets, without attributes."""
    kept, angles, round_ = [], 0, 0
    skips = False
    for at, token in enumerate(statement):
        if token.startswith(ATTRIBUTE):
            skips = at + 1 < len(statement) and statement[at + 1] == "("
            continue
        if skips:
            round_ += {"(": 1, ")": -1}.get(token, 0)
            skips = round_ > 0
            continue
        if token == "<" and "operator" not in kept[-2:]:
            angles += 1
        elif token == ">" and angles:
            angles -= 1
        elif not angles:
            kept.append(token)
    return kept


def _is_function(statement):
    kept = _outside(statement)
    before_value = kept[: kept.index("=")] if "=" in kept and "operator" not in kept else kept
    return "(" in before_value


def _declares(statement):
    """(methods, fields) of a declaration that ends in a semicolon."""
    if not statement or statement[0] in OTHERS:
        return 0, 0
    if _is_function(statement):
        return (0, 0) if statement[-1] in ("default", "delete") or "friend" in statement else (1, 0)
    kept = _outside(statement)
    if "constexpr" in statement or (kept and kept[0] in ("class", "struct") and len(kept) < 3):
        return 0, 0
    depth = commas = 0
    for token in kept:
        depth += {"(": 1, ")": -1}.get(token, 0)
        commas += token == "," and depth == 0
    return 0, 1 + commas
