"""Finds the functions of a C++ source by its brackets: members, constructors and wrapped signatures too.

A body is a pair of braces outside of any function, behind a closing parenthesis that is followed only by what may stand
between a signature and its body: const, noexcept, override, final, &, a trailing return type, a constructor's
initializers, a requires clause or a thread-safety attribute. Braces within a body belong to it, those of lambdas and
local classes too.
"""

import re

TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    |(?P<skip>//[^\n]*|/\*.*?\*/|\#(?:[^\n\\]|\\.)*)
    |(?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\ ]*)\(.*?\)(?P=delimiter)")
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[A-Za-z_~]\w*|\d(?:[\w.]|'(?=\w))*)
    |(?P<mark>::|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)
# The same, where only brackets matter.
BRACKET = re.compile(
    r"""
    (?:[^\w"'/\#(){}\[\]]+|(?!(?:u8|[uUL])?R")[A-Za-z_]\w*|\d(?:[\w.]|'(?=\w))*)+
    |//[^\n]*|/\*.*?\*/|\#(?:[^\n\\]|\\.)*
    |(?:u8|[uUL])?R"(?P<delimiter>[^()\\ ]*)\(.*?\)(?P=delimiter)"
    |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'
    |(?P<bracket>[(){}\[\]])
    |.
    """,
    re.VERBOSE | re.DOTALL,
)
NO_FUNCTION = {"namespace", "class", "struct", "enum", "union", "extern"}


class Reader:
    """Yields the tokens of a text, without space, comments and preprocessor lines; all literals are '""'."""

    def __init__(self, text):
        self.text, self.at, self.line = text, 0, 1

    def next(self):
        """The next token, or None; `line` is where it ends."""
        while match := TOKEN.match(self.text, self.at):
            self._pass(match)
            if match.group("space") is None and match.group("skip") is None:
                return match.group(0) if match.group("raw") is None and match.group("text") is None else '""'
        return None

    def skip(self, opening):
        """Reads up to the bracket that closes `opening`, and returns it."""
        depth = 1
        while match := BRACKET.match(self.text, self.at):
            self._pass(match)
            bracket = match.group("bracket")
            if bracket:
                depth += 1 if bracket in "({[" else -1
            if depth == 0:
                return bracket
        raise ValueError(f"'{opening}' is never closed")

    def _pass(self, match):
        self.line += match.group(0).count("\n")
        self.at = match.end()


def functions(text):
    """(first line of the signature, line of the closing brace) of each function with a body, in order."""
    found = []
    head, begin = [], 0  # The tokens since the last declaration, and the line of the first.
    reader = Reader(text)
    while (token := reader.next()) is not None:
        if not head:
            begin = reader.line
        if token == "{" and _is_body(head):
            reader.skip(token)
            found.append((begin, reader.line))
            head = []
        elif token in ("(", "[") or (token == "{" and _is_initializer(head)):
            head += [token, reader.skip(token)]
        elif token in ("{", "}", ";") or (token == ":" and head[-1:] in (["public"], ["private"], ["protected"])):
            head = []
        else:
            head.append(token)
    return found


def _is_body(head):
    words = _without_template(head)
    if ")" not in words:
        return False
    if words[0] in NO_FUNCTION and words[-1] != ")":
        return False
    signature = "".join(" " + word for word in words)
    signature = re.sub(r" operator( [^\w\s()]+)+ \(", " operator (", signature)
    if " = " in signature:  # Braces of a variable.
        return False
    if re.search(r" \) (noexcept )?: ", signature):  # A constructor's initializers, of which `member_` takes braces.
        return words[-1] in (")", "}")
    behind = signature[signature.rindex(" )") + 2 :]
    return re.fullmatch(r"( (const|noexcept|override|final|mutable|try|&|&&|[A-Z_]{4,})| (->|requires) .*)*", behind) is not None


def _is_initializer(head):
    words = _without_template(head)
    return bool(words) and not NO_FUNCTION.intersection(words[:3])


def _without_template(words):
    """The words behind `template <...>`."""
    while words[:1] == ["template"]:
        depth = 0
        for at, word in enumerate(words):
            depth += {"<": 1, ">": -1}.get(word, 0)
            if word == ">" and depth == 0:
                break
        words = words[at + 1 :]
    return words
