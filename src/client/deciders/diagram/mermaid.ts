// A state machine as a Mermaid `stateDiagram-v2`. A status whose name Mermaid would not read as one gets a name of ours, and its
// own as a text; characters that end a text or a line there are written as entities.

import { labelOf, type Graph } from './edges.ts'

/** Words that Mermaid takes for its own. */
const reserved = new Set([
  'end',
  'state',
  'note',
  'direction',
  'class',
  'classdef',
  'style',
  'as',
  'default',
  'fork',
  'join',
  'choice',
])

export function mermaid({ statuses, initial, terminal, edges }: Graph): string {
  const names = new Map(statuses.map((status, at) => [status, isPlain(status) ? status : `s${at + 1}_`]))
  const nameOf = (status: string): string => names.get(status) ?? status
  return [
    'stateDiagram-v2',
    ...statuses.filter((status) => !isPlain(status)).map((status) => `  state "${text(status)}" as ${nameOf(status)}`),
    ...initial.map((status) => `  [*] --> ${nameOf(status)}`),
    ...edges.map((edge) => `  ${nameOf(edge.from)} --> ${nameOf(edge.to)} : ${text(labelOf(edge))}`),
    ...terminal.map((status) => `  ${nameOf(status)} --> [*]`),
    '',
  ].join('\n')
}

function isPlain(status: string): boolean {
  return /^[A-Za-z][A-Za-z0-9_]*$/.test(status) && !/^s\d+_$/.test(status) && !reserved.has(status.toLowerCase())
}

function text(given: string): string {
  return given.replaceAll(/["#;:<>&{}\\%\p{C}\p{Z}]/gu, (one) => (one === ' ' ? one : `#${one.codePointAt(0)};`))
}
