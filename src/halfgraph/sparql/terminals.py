"""The terminals of SPARQL: its keywords, functions and marks, and the regular expression of all tokens."""

import re

from halfgraph.sparql.prefixes import PN_CHARS, PN_CHARS_BASE

_FUNCTIONS = """
STR LANG LANGMATCHES DATATYPE BOUND IRI URI BNODE RAND ABS CEIL FLOOR ROUND CONCAT STRLEN UCASE LCASE TZ NOW
ENCODE_FOR_URI CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE UUID STRUUID
MD5 SHA1 SHA256 SHA384 SHA512 COALESCE IF STRLANG STRDT SAMETERM ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC REGEX SUBSTR
REPLACE LANGDIR STRLANGDIR HASLANG HASLANGDIR ISTRIPLE TRIPLE SUBJECT PREDICATE OBJECT ADJUST
"""
_KEYWORDS = """
BASE PREFIX SELECT DISTINCT REDUCED AS CONSTRUCT WHERE DESCRIBE ASK FROM NAMED GROUP BY HAVING ORDER ASC DESC LIMIT
OFFSET VALUES UNDEF OPTIONAL GRAPH SERVICE SILENT BIND MINUS UNION FILTER NOT EXISTS IN SEPARATOR LATERAL INTO TO
DEFAULT ALL DATA USING
"""
_MARKS = """
{ LBRACE   } RBRACE   ( LPAR   ) RPAR   [ LSQB   ] RSQB   . DOT   ; SEMICOLON   , COMMA   * STAR   / SLASH   | BAR
^ CARET   ^^ TYPED   ! BANG   = EQUAL   != COMPARE   < COMPARE   > COMPARE   <= COMPARE   >= COMPARE   || OR   && AND
+ PLUS   - DASH   ? QUESTION   ~ TILDE   <<( TRIPLE_OPEN   )>> TRIPLE_CLOSE   << REIFIED_OPEN   >> REIFIED_CLOSE
{| NOTE_OPEN   |} NOTE_CLOSE
"""
_KEPT = """
STAR SLASH PLUS DASH QUESTION EQUAL COMPARE OR AND NOT IN DISTINCT REDUCED ASC DESC NAMED UNDEF OPTIONAL MINUS LATERAL
GRAPH SERVICE SILENT
"""
MARKS = dict(re.findall(r"(\S+) (\S+)", _MARKS))
FUNCTIONS = frozenset(_FUNCTIONS.split())
AGGREGATES = frozenset(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])
UPDATES = frozenset(["INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "ADD", "MOVE", "COPY", "CREATE", "WITH"])
KEYWORDS = UPDATES | set(_KEYWORDS.split())
KEPT = frozenset(_KEPT.split())  # keywords and marks that the actions of the grammar need
OPENING, CLOSING = frozenset(["{", "(", "[", "<<(", "<<", "{|"]), frozenset(["}", ")", "]", ")>>", ">>", "|}"])
DECLARATIONS = frozenset(["PREFIX", "PNAME_NS", "BASE", "NAMESPACE"])

_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
# DBpedia's own endpoint and the paper's Listing 1 write dbr:University_of_California,_Los_Angeles without the backslash
# that SPARQL requires. A comma directly before an underscore is unambiguous, except before a blank node _:b1.
_BARE_COMMA = r",(?=_[^:])"
_PREFIX_LIMIT = 100  # bounds backtracking, which would be quadratic in a text of dots and letters
_SPACE = r"[ \t\r\n]*"
TOKEN = re.compile(
    rf"""
      (?P<VAR> [?$][{PN_CHARS_BASE}_0-9][{PN_CHARS.removesuffix("-")}]* )
    | (?P<BLANK> _:[{PN_CHARS_BASE}_0-9](?:[{PN_CHARS}.]*[{PN_CHARS}])? )
    | (?P<NAME> (?:[{PN_CHARS_BASE}](?:[{PN_CHARS}.]{{0,{_PREFIX_LIMIT}}}[{PN_CHARS}])?)?:
        (?: (?:[{PN_CHARS_BASE}_:0-9]|{_ESCAPED}) (?: (?:[{PN_CHARS}.:]|{_ESCAPED}|{_BARE_COMMA})*
            (?:[{PN_CHARS}:]|{_ESCAPED}) )? )? )
    | (?P<IRI> <[^<>"{{}}|^`\\\x00-\x20]*> )
    | (?P<WORD> [A-Za-z_][A-Za-z0-9_]* )
    | (?P<NUMBER> [+-]?(?:[0-9]+(?:\.[0-9]*)?[eE][+-]?[0-9]+|\.[0-9]+[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+) )
    | (?P<STRING> '''(?:[^\\]|\\.)*?''' | \"\"\"(?:[^\\]|\\.)*?\"\"\"
        | '(?:[^'\\\n\r]|\\[^\n\r])*' | "(?:[^"\\\n\r]|\\[^\n\r])*" )
    | (?P<LANGTAG> @[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--[a-z]+)? )
    | (?P<NIL> \({_SPACE}\) ) | (?P<ANON> \[{_SPACE}\] )
    | (?P<COMMENT> \#[^\n\r]* )
    | (?P<MARK> \^\^ | \|\| | && | != | <= | >= | <<\( | \)>> | << | >> | \{{\| | \|\}} | [^\ \t\r\n] )
    """,
    re.VERBOSE | re.DOTALL,
)
