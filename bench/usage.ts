// What a command line that was mistyped is answered: what is wrong with it, and what was probably meant.

import type { parseArgs } from 'node:util'

export class UsageError extends Error {}

type Tokens = NonNullable<ReturnType<typeof parseArgs>['tokens']>
type Known = Readonly<Record<string, { readonly type: 'string' | 'boolean' }>>

/** Refuses what is no option of these, and options whose value is missing or too much. */
export function checkTokens(tokens: Tokens, known: Known, seeHelp: string): void {
  for (const token of tokens) {
    if (token.kind === 'positional') throw new UsageError(`"${token.value}" is not an option. ${seeHelp}`)
    if (token.kind === 'option') checkOption(token, known, seeHelp)
  }
}

function checkOption(token: Extract<Tokens[number], { kind: 'option' }>, known: Known, seeHelp: string): void {
  const { name, rawName, value } = token
  const option = Object.hasOwn(known, name) ? known[name] : undefined
  if (option === undefined) {
    throw new UsageError(`There is no option ${rawName}.${didYouMean(name, Object.keys(known), '--')} ${seeHelp}`)
  }
  if (option.type === 'string' && (value === undefined || value === ''))
    throw new UsageError(`${rawName} needs a value.`)
  if (option.type === 'boolean' && value !== undefined) throw new UsageError(`${rawName} takes no value.`)
}

export function didYouMean(name: string, candidates: readonly string[], before = ''): string {
  const close = candidates
    .map((candidate) => ({ candidate, distance: distance(name.toLowerCase(), candidate) }))
    .filter((one) => one.distance <= Math.max(1, Math.floor(one.candidate.length / 2)))
    .sort((a, b) => a.distance - b.distance)[0]
  return close === undefined ? '' : ` Did you mean ${before}${close.candidate}?`
}

/** How many letters must be added, left out or replaced. */
function distance(a: string, b: string): number {
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = last[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, last[column]! + 1, current[column - 1]! + 1))
    }
    last = current
  }
  return last[b.length]!
}
