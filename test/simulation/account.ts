// The decider of a simulation: what its inputs ask for is in them, so every journal says by itself what must have followed.

import { decider, decision, reject, type Decider, type EffectTools } from '../../src/index.ts'
import { effectType } from '../../src/core/rules/effect-type.ts'

export const accountType = 'sim.account'
const actType = effectType(accountType, 'act')

export function isOfAccounts(type: string): boolean {
  return type === accountType || type === actType
}

/** What an input asks for. */
export type Ask =
  | { readonly kind: 'note' | 'refuse' | 'end' }
  /** Its effect fails so many times. */
  | { readonly kind: 'act'; readonly fails: number; readonly ms: number }
  | { readonly kind: 'set'; readonly key: string | null; readonly ms: number }
  | { readonly kind: 'unset'; readonly key: string }

export type AccountInput =
  | { readonly type: 'Do'; readonly id: string; readonly command: string; readonly ask: Ask }
  | { readonly type: 'Acted' | 'Failed' | 'Rang'; readonly of: string }

export type AccountEvent =
  | { readonly type: 'Done'; readonly command: string; readonly isLast: boolean }
  | { readonly type: 'Acted' | 'Failed' | 'Rang'; readonly of: string }

export interface Account {
  readonly seen: readonly string[]
  readonly isOver: boolean
}

export interface Act {
  readonly type: 'act'
  readonly of: string
  readonly fails: number
  readonly ms: number
}

export const initialAccount: Account = { seen: [], isOver: false }

export function evolveAccount({ seen, isOver }: Account, event: AccountEvent): Account {
  if (event.type !== 'Done') return { seen: [...seen, `${event.type} ${event.of}`], isOver }
  return { seen: [...seen, `${event.type} ${event.command}`], isOver: event.isLast }
}

export function decideAccount(_state: Account, input: AccountInput) {
  if (input.type !== 'Do') return decision<AccountEvent>({ type: input.type, of: input.of })
  const { ask, command } = input
  if (ask.kind === 'refuse') return reject({ command })
  const done = decision<AccountEvent>({ type: 'Done', command, isLast: ask.kind === 'end' })
  if (ask.kind === 'act') return done.effect<Act>({ type: 'act', of: command, fails: ask.fails, ms: ask.ms })
  if (ask.kind === 'unset') return done.cancelTimer(ask.key)
  if (ask.kind !== 'set') return done
  const rang: AccountInput = { type: 'Rang', of: command }
  return ask.key === null ? done.timer({ after: ask.ms }, rang) : done.timer(ask.key, { after: ask.ms }, rang)
}

const attempts = 2

/** `act` performs an effect in the process that has the definition. */
export function accountOf(act: (effect: Act, tools: EffectTools) => Promise<void>) {
  return decider(accountType, {
    initial: () => initialAccount,
    evolve: evolveAccount,
    decide: decideAccount,
    id: { Do: 'id', Acted: null, Failed: null, Rang: null },
    isTerminal: ({ isOver }) => isOver,
    snapshotEvery: 12,
    effects: {
      act: {
        perform: async (effect, tools) => {
          await act(effect, tools)
          if (tools.attempt <= effect.fails) throw new Error('It failed')
          return { type: 'Acted', of: effect.of }
        },
        retry: { maxAttempts: attempts, kind: 'constant', initial: 50, jitter: { mode: 'none' } },
      },
    },
    onDeadLetter: ({ of }) => ({ type: 'Failed', of }),
  })
}

export type Accounts = Decider & ReturnType<typeof accountOf>
