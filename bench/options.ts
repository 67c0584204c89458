// The command line of the benchmark. Whatever is misspelt is refused with what was probably meant.

import { parseArgs } from 'node:util'
import { scenarios } from './scenarios.ts'
import { storeKindOf, storeKinds } from './stores.ts'

export interface Options {
  readonly quick: boolean
  readonly help: boolean
  readonly json: string | undefined
  readonly store: string
  readonly only: string | undefined
  readonly profile: string | undefined
}

export class UsageError extends Error {}

const known = {
  quick: { type: 'boolean' },
  json: { type: 'string' },
  store: { type: 'string' },
  only: { type: 'string' },
  profile: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

export function parseOptions(args: readonly string[]): Options {
  const { values, tokens } = parseArgs({
    args: [...args],
    options: known,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  for (const token of tokens) {
    if (token.kind === 'positional') throw new UsageError(`"${token.value}" is not an option. ${seeHelp}`)
    if (token.kind === 'option') checkOption(token.name, token.rawName, token.value)
  }
  const text = (name: 'json' | 'store' | 'only' | 'profile'): string | undefined => values[name] as string | undefined
  const store = checkStore(text('store') ?? 'memory')
  const only = scenarioNamed(text('only'), store)
  const profile = scenarioNamed(text('profile'), store)
  const { quick = false, help = false } = values as { quick?: boolean; help?: boolean }
  return { quick, help, json: text('json'), store, only, profile }
}

export function helpText(): string {
  const list = scenarios
    .map(({ name, about, onlyOn }) => {
      return `  ${name.padEnd(22)}${about}${onlyOn === undefined ? '' : ` (--store ${onlyOn.join(' or ')} only)`}`
    })
    .join('\n')
  return `npm run bench -- [options]

  --quick               fewer runs and samples: under two minutes (on SQLite: four, on Postgres: ten)
  --only <scenario>     only this scenario
  --store <store>       memory (default), sqlite (a fresh temporary file for each sample), sqlite:<path>,
                        postgres (a fresh server for all of it) or postgres://<address> (a schema for each sample)
  --json <file>         also write the results to a file
  --profile <scenario>  measure nothing; show in which functions the scenario's last case spends its time
  --help                this text

Scenarios:
${list}`
}

const seeHelp = 'Run "npm run bench -- --help" for what there is.'

function checkOption(name: string, written: string, value: string | undefined): void {
  if (!Object.hasOwn(known, name)) {
    throw new UsageError(`There is no option ${written}.${didYouMean(name, Object.keys(known), '--')} ${seeHelp}`)
  }
  const { type } = known[name as keyof typeof known]
  if (type === 'string' && (value === undefined || value === '')) throw new UsageError(`${written} needs a value.`)
  if (type === 'boolean' && value !== undefined) throw new UsageError(`${written} takes no value.`)
}

function checkStore(address: string): string {
  const [kind = ''] = address.split(':', 1)
  if ([...storeKinds, 'postgresql'].includes(kind)) return address
  // No more than the kind is shown: the rest may hold a password.
  throw new UsageError(`There is no store "${kind}" to measure.${didYouMean(kind, storeKinds)} ${seeHelp}`)
}

function scenarioNamed(name: string | undefined, store: string): string | undefined {
  const names = scenarios.map((scenario) => scenario.name)
  const onlyOn = scenarios.find((scenario) => scenario.name === name)?.onlyOn
  if (onlyOn?.includes(storeKindOf(store)) === false) {
    throw new UsageError(`The scenario "${name}" says something only with --store ${onlyOn.join(' or ')}.`)
  }
  if (name === undefined || names.includes(name)) return name
  const hint = didYouMean(name, names)
  throw new UsageError(`There is no scenario "${name}".${hint} The scenarios are: ${names.join(', ')}.`)
}

function didYouMean(name: string, candidates: readonly string[], before = ''): string {
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
