// The titles of the tests and contract cases in a file, read off its source. Skipped and planned tests have none.

import ts from 'typescript'

const runners = new Set(['it', 'test', 'describe'])
const idle = new Set(['skip', 'todo'])

/** The names along a callee: `it.each(rows)` gives it, each. */
function namesOf(callee) {
  if (ts.isIdentifier(callee)) return [callee.text]
  if (ts.isPropertyAccessExpression(callee)) return [...namesOf(callee.expression), callee.name.text]
  if (ts.isCallExpression(callee) || ts.isTaggedTemplateExpression(callee)) {
    return namesOf(ts.isCallExpression(callee) ? callee.expression : callee.tag)
  }
  return []
}

function textOf(node) {
  if (node === undefined) return undefined
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isTemplateExpression(node))
    return [node.head, ...node.templateSpans.map((s) => s.literal)].map((t) => t.text).join('…')
  return undefined
}

export function titlesIn(file, text) {
  const titles = []
  const visit = (node) => {
    if (ts.isCallExpression(node)) {
      const [runner, ...modifiers] = namesOf(node.expression)
      if (runners.has(runner)) {
        if (modifiers.some((name) => idle.has(name))) return
        titles.push(textOf(node.arguments[0]))
      }
    } else if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name) && node.name.text === 'name') {
      titles.push(textOf(node.initializer))
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest))
  return titles.filter((title) => title !== undefined)
}
