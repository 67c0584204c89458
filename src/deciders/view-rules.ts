// The view of a decider: the option checked, and its functions completed with what they leave out.

import type {
  DeciderView,
  MachineTransition,
  StateInfo,
  StateMachine,
  TransitionInfo,
} from '../core/definition/state-machine.ts'
import { HoldfastError, messageOf } from '../core/errors/error.ts'
import { callPure } from '../core/runtime/pure-call.ts'
import { checkFunction } from '../core/text/check-option.ts'
import { isPrintable } from '../core/text/printable.ts'
import { checkOptions, isPlainObject, shown } from '../core/text/suggest.ts'
import type { TransitionOption, ViewOption } from './api/view-options.ts'

/** What the view leaves to the decider. */
interface Viewed {
  readonly type: string
  readonly isTerminal: (state: unknown) => boolean
}

/** Null if the decider has no view. Throws INVALID_OPTION. */
export function viewRules(given: unknown, { type, isTerminal }: Viewed): DeciderView | null {
  if (given === undefined) return null
  const where = `view of decider "${type}"`
  checkOptions(given, ['stateInfo', 'transitions', 'definition'], where)
  const { stateInfo, transitions, definition } = given as Partial<ViewOption<unknown>>
  if (stateInfo === undefined) throw invalid(`${where} needs stateInfo: (state) => ({ status: state.status }).`)
  checkFunction(stateInfo, `stateInfo of ${where}`, '(state) => ({ status: state.status })')
  checkFunction(transitions, `transitions of ${where}`, "(state) => [{ input: 'Pay', to: 'paid' }]")
  const machine = definition === undefined ? null : machineOf(definition, `definition of ${where}`)
  const infoOf = (state: unknown): StateInfo => {
    const info = called(`stateInfo of ${where}`, () => stateInfo(state))
    if (!isPlainObject(info)) throw invalid(`stateInfo of ${where} must return { status }. It returned ${shown(info)}.`)
    const { status, fields = {}, isTerminal: isOver } = info
    checkStatus(status, `The status that stateInfo of ${where} returned`)
    return { status, fields, isTerminal: isOver ?? isTerminal(state) }
  }
  return {
    definition: machine,
    stateInfo: infoOf,
    transitions: (state) => {
      if (transitions === undefined) return declaredFrom(machine, infoOf(state).status)
      const listed: unknown = called(`transitions of ${where}`, () => transitions(state))
      if (!Array.isArray(listed))
        throw invalid(`transitions of ${where} must return a list. It returned ${shown(listed)}.`)
      return listed.map((one) => transitionOf(one, `A transition of ${where}`))
    },
  }
}

function declaredFrom(machine: StateMachine | null, status: string): readonly TransitionInfo[] {
  return (machine?.transitions ?? [])
    .filter(({ from }) => from === status)
    .map(({ input, to, effects, timers, description }) => ({ input, to, effects, timers, description }))
}

function called<Result>(what: string, work: () => Result): Result {
  try {
    return callPure(what, work)
  } catch (cause) {
    throw new HoldfastError('INVALID_OPTION', `${what} failed: ${messageOf(cause)}`, { cause })
  }
}

function machineOf(given: unknown, where: string): StateMachine {
  checkOptions(given, ['initial', 'terminal', 'transitions'], where)
  const { initial, terminal = [], transitions } = given as Readonly<Record<string, unknown>>
  checkStatus(initial, `initial of ${where}`)
  if (!Array.isArray(terminal))
    throw invalid(`terminal of ${where} must be a list of statuses. Got ${shown(terminal)}.`)
  const over = terminal.map((status: unknown) => {
    checkStatus(status, `A status in terminal of ${where}`)
    return status
  })
  if (!Array.isArray(transitions)) {
    throw invalid(`transitions of ${where} must be a list, such as [{ from: 'open', input: 'Pay', to: 'paid' }].`)
  }
  const edges = transitions.map((one: unknown): MachineTransition => {
    const what = `A transition in ${where}`
    const edge = transitionOf(one, what, ['from'])
    const { from } = one as { readonly from: unknown }
    checkStatus(from, `from of a transition in ${where}`)
    if (over.includes(from))
      throw invalid(`${what} begins in ${shown(from)}, which is terminal: nothing follows there.`)
    return { from, ...edge }
  })
  checkOnce(edges, where)
  checkReached({ initial, terminal: over, transitions: edges }, where)
  return { initial, terminal: over, transitions: edges }
}

/** An input may lead to several statuses, but each edge stands there once. */
function checkOnce(edges: readonly MachineTransition[], where: string): void {
  const seen = new Set<string>()
  for (const { from, input, to } of edges) {
    const edge = JSON.stringify([from, input, to])
    if (seen.has(edge))
      throw invalid(`${where} has the transition from ${shown(from)} to ${shown(to)} by ${shown(input)} twice.`)
    seen.add(edge)
  }
}

/** A status to which nothing leads is a misspelt one. */
function checkReached({ initial, terminal, transitions }: StateMachine, where: string): void {
  const reached = new Set([initial])
  for (let size = 0; size < reached.size;) {
    size = reached.size
    for (const { from, to } of transitions) if (reached.has(from)) reached.add(to)
  }
  const lost = [...terminal, ...transitions.map(({ from }) => from)].find((status) => !reached.has(status))
  if (lost !== undefined)
    throw invalid(`${where} has the status ${shown(lost)}, and no transition leads to it from ${shown(initial)}.`)
}

function transitionOf(given: unknown, what: string, more: readonly string[] = []): TransitionInfo {
  checkOptions(given, [...more, 'input', 'to', 'effects', 'timers', 'description'], what)
  const { input, to, effects = [], timers = [], description = null } = given as TransitionOption
  checkStatus(input, `input of ${what.toLowerCase()}`)
  checkStatus(to, `to of ${what.toLowerCase()}`)
  for (const name of [...effects, ...timers]) checkStatus(name, `An effect or timer of ${what.toLowerCase()}`)
  return { input, to, effects, timers, description }
}

function checkStatus(given: unknown, what: string): asserts given is string {
  if (typeof given === 'string' && given !== '' && given.length <= 200 && isPrintable(given)) return
  throw invalid(`${what} must be a name, of at most 200 printable characters. Got ${shown(given)}.`)
}

function invalid(message: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', message)
}
