"""Counts what the classes of a C++ source have: member functions that it declares or defines, and data members.

Functions that are defaulted or deleted, constants, types, aliases and friends are not counted. A class within another
one counts for itself.
"""

import functions

OTHERS = {"using", "friend", "typedef", "enum", "template", "static_assert", "constexpr"}
ATTRIBUTE = "ABSL_"


def classes(text):
    """(line, name, methods, fields) of each class and struct with a body."""
    tokens = list(_tokens(text)) + [("}", 0)] * 2  # Should a bracket be missing.
    found = []
    _scan(tokens, 0, found)
    return sorted(found)


def _tokens(text):
    reader = functions.Reader(text)
    while (token := reader.next()) is not None:
        yield token, reader.line


def _scan(tokens, at, found):
    """Looks for classes from `at` to the bracket that closes the block; returns where that is."""
    while at < len(tokens):
        token = tokens[at][0]
        if token == "}":
            return at
        if token in ("class", "struct") and tokens[at - 1][0] not in ("enum", "<", ","):
            head = at + 1
            while tokens[head][0] not in ("{", ";", "(", ")", ">", "=", ","):
                head += 1
            if tokens[head][0] == "{":
                names = [word for word, _ in tokens[at + 1 : head]]
                names = names[: names.index(":")] if ":" in names else names
                name = next((word for word in reversed(names) if word != "final"), "")
                at = _members(tokens, head + 1, found, (tokens[at][1], name))
        elif token == "{":
            at = _scan(tokens, at + 1, found)
        at += 1
    return at


def _members(tokens, at, found, head):
    """Counts the members of the class whose body begins at `at`; returns where it ends."""
    methods = fields = 0
    statement = []
    while at + 1 < len(tokens) and tokens[at][0] != "}":
        token = tokens[at][0]
        if token in ("class", "struct") and not statement:
            inner = at
            while tokens[inner][0] not in ("{", ";"):
                inner += 1
            if tokens[inner][0] == "{":
                names = [word for word, _ in tokens[at + 1 : inner]]
                at = _members(tokens, inner + 1, found, (tokens[at][1], names[0] if names else "")) + 1
                continue
        if token == "{":
            at = _closing(tokens, at)
            within = statement.count("(") > statement.count(")")
            if not within and _is_function(statement) and tokens[at + 1][0] not in (";", ",", "{"):
                methods, statement = methods + 1, []
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


def _closing(tokens, at):
    depth = 0
    while at + 1 < len(tokens):
        depth += {"{": 1, "}": -1}.get(tokens[at][0], 0)
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
        if token == "<" and "operator" not in kept[-1:]:
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
    if not statement or statement[0] in OTHERS - {"template", "constexpr"}:
        return 0, 0
    if _is_function(statement):
        return (0, 0) if statement[-1] in ("default", "delete") else (1, 0)
    if "constexpr" in statement or statement[0] in ("class", "struct"):
        return 0, 0
    kept = _outside(statement)
    depth = commas = 0
    for token in kept:
        depth += {"(": 1, ")": -1}.get(token, 0)
        commas += token == "," and depth == 0
    return 0, 1 + commas
