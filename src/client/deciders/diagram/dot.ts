// A state machine in the language of Graphviz. A terminal status is a double circle. An edge that was declared and never seen is
// dashed; one that was seen and not declared is red.

import { labelOf, type Edge, type Graph } from './edges.ts'

const styles: Readonly<Record<NonNullable<Edge['mark']>, string>> = {
  both: '',
  'declared-only': ', style=dashed, color=gray50, fontcolor=gray50',
  'seen-only': ', color=red, fontcolor=red',
}

export function dot(type: string, { statuses, initial, terminal, edges }: Graph): string {
  return [
    `digraph ${quoted(type)} {`,
    '  rankdir=LR;',
    '  node [shape=circle, fontname="sans-serif"];',
    '  edge [fontname="sans-serif"];',
    ...initial.map((_, at) => `  ${quoted(`:${at}`)} [shape=point, label=""];`),
    ...statuses.map((status) => `  ${quoted(status)}${terminal.includes(status) ? ' [shape=doublecircle]' : ''};`),
    ...initial.map((status, at) => `  ${quoted(`:${at}`)} -> ${quoted(status)};`),
    ...edges.map((edge) => {
      const tooltip = tooltipOf(edge)
      const style = edge.mark === null ? '' : styles[edge.mark]
      const hint = tooltip === '' ? '' : `, tooltip=${quoted(tooltip)}`
      return `  ${quoted(edge.from)} -> ${quoted(edge.to)} [label=${quoted(labelOf(edge))}${style}${hint}];`
    }),
    '}',
    '',
  ].join('\n')
}

/** What does not fit on the edge. */
function tooltipOf({ description, lastAt }: Edge): string {
  const last = lastAt === null ? '' : `last ${lastAt.toISOString()}`
  return [description ?? '', last].filter((one) => one !== '').join('; ')
}

function quoted(text: string): string {
  return `"${text
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll(/\p{Cc}/gu, ' ')}"`
}
