// A migration is written as one text of several statements. Sent as one, Postgres parses and plans the later ones in the same
// message, which Citus refuses for tables that it has spread: so each is sent by itself.

/** What a semicolon may stand in without ending a statement: a comment, a text or a quoted name. */
const tokens = /--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|;|[^-'";]+|-/g

/** The statements of a text, in order. A comment goes with the statement behind it. */
export function splitSql(text: string): readonly string[] {
  const statements: string[] = []
  let statement = ''
  let isEmpty = true
  for (const [token] of text.matchAll(tokens)) {
    if (token !== ';') {
      statement += token
      if (!token.startsWith('--') && token.trim() !== '') isEmpty = false
      continue
    }
    if (!isEmpty) statements.push(statement.trim())
    statement = ''
    isEmpty = true
  }
  if (!isEmpty) statements.push(statement.trim())
  return statements
}
