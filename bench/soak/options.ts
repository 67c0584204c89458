// The command line of the soak.

import { parseArgs } from 'node:util'
import { checkTokens, didYouMean, UsageError } from '../usage.ts'

export interface Options {
  readonly help: boolean
  readonly minutes: number
  readonly store: string
  readonly share: number
  readonly seed: number
  readonly out: string
}

const known = {
  minutes: { type: 'string' },
  store: { type: 'string' },
  share: { type: 'string' },
  seed: { type: 'string' },
  out: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

const seeHelp = 'Run "npm run soak -- --help" for what there is.'

/** Runs must be seen by several processes, so memory is none of them. */
const stores = ['sqlite', 'postgres', 'postgresql']

export const helpText = `npm run soak -- [options]

  --minutes <n>    how long, with finding out the capacity: 30 by default; under five, trends are not judged
  --store <store>  sqlite (default: a fresh temporary file), sqlite:<path>, postgres (a fresh server)
                   or postgres://<address> (a schema of its own, dropped at the end)
  --share <s>      how much of the capacity arrives: 0.7 by default
  --seed <n>       which runs arrive when: 1 by default
  --out <name>     where the results go: <name>.svg and <name>.ndjson, by default soak.svg and soak.ndjson
  --help           this text

Ctrl-C ends it early, in good order, with the results so far. It ends with exit code 1 if something was found.`

export function parseOptions(args: readonly string[]): Options {
  const { values, tokens } = parseArgs({
    args: [...args],
    options: known,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  checkTokens(tokens, known, seeHelp)
  const given = values as Partial<Record<Exclude<keyof typeof known, 'help'>, string>>
  return {
    help: values['help'] === true,
    minutes: numberOf('--minutes', given.minutes ?? '30', { above: 0, upTo: 10_000 }),
    store: checkStore(given.store ?? 'sqlite'),
    share: numberOf('--share', given.share ?? '0.7', { above: 0, upTo: 2 }),
    seed: numberOf('--seed', given.seed ?? '1', { above: -1, upTo: Number.MAX_SAFE_INTEGER }),
    out: given.out ?? 'soak',
  }
}

function numberOf(
  name: string,
  text: string,
  { above, upTo }: { readonly above: number; readonly upTo: number },
): number {
  const value = Number(text)
  if (value > above && value <= upTo) return value
  throw new UsageError(`${name} is a number above ${above}, up to ${upTo}. Got "${text}".`)
}

function checkStore(address: string): string {
  const [kind = ''] = address.split(':', 1)
  if (stores.includes(kind)) return address
  // No more than the kind is shown: the rest may hold a password.
  const why = kind === 'memory' ? ' It lives in one process, and a soak needs several.' : didYouMean(kind, stores)
  throw new UsageError(`There is no store "${kind}" to soak.${why} ${seeHelp}`)
}
