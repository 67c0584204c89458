// The command line of the benchmark. Whatever is misspelt is refused with what was probably meant.

import { parseArgs } from 'node:util'
import { scenarios } from './scenarios.ts'
import { storeKindOf, storeKinds } from './stores.ts'
import { checkTokens, didYouMean, UsageError } from './usage.ts'

export interface Options {
  readonly quick: boolean
  readonly help: boolean
  readonly json: string | undefined
  readonly store: string
  readonly only: string | undefined
  readonly profile: string | undefined
  /** A baseline to compare with, and one to write. */
  readonly compare: string | undefined
  readonly writeBaseline: string | undefined
}

const known = {
  quick: { type: 'boolean' },
  json: { type: 'string' },
  store: { type: 'string' },
  only: { type: 'string' },
  profile: { type: 'string' },
  compare: { type: 'string' },
  'write-baseline': { type: 'string' },
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
  checkTokens(tokens, known, seeHelp)
  type TextName = Exclude<keyof typeof known, 'quick' | 'help'>
  const text = (name: TextName): string | undefined => values[name] as string | undefined
  const store = checkStore(text('store') ?? 'memory')
  const only = scenarioNamed(text('only'), store)
  const profile = scenarioNamed(text('profile'), store)
  const { quick = false, help = false } = values as { quick?: boolean; help?: boolean }
  const [compare, writeBaseline] = [text('compare'), text('write-baseline')]
  const exclusive = Object.entries({ '--compare': compare, '--write-baseline': writeBaseline, '--profile': profile })
  const given = exclusive.filter(([, value]) => value !== undefined).map(([name]) => name)
  if (given.length > 1) throw new UsageError(`${given.join(' and ')} do not go together: give one of them.`)
  return { quick, help, json: text('json'), store, only, profile, compare, writeBaseline }
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
  --compare <file>      measure the scenarios of a baseline, show which numbers moved and by how much, and exit with 1 if
                        one moved by more than its spread; what moved is measured twice
  --write-baseline <file>
                        write the ratios and counts of the results as a baseline; with --only, those of one scenario
  --profile <scenario>  measure nothing; show in which functions the scenario's last case spends its time
  --help                this text

Scenarios:
${list}`
}

const seeHelp = 'Run "npm run bench -- --help" for what there is.'

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
