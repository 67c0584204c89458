// What a program must come to, computed without an engine: how it may end, and what its result looks like. Numbers of
// attempts, times and chance are left open; checker.ts compares them with the journal.

import type { Program } from './program.ts'
import type { ChildNode, EarlyNode, Node, StepNode } from './node.ts'

export type Expected =
  | { readonly status: 'succeeded'; readonly shape: unknown }
  /** One of these texts stands in the error. */
  | { readonly status: 'failed'; readonly errors: readonly string[] }

/** What a failure of a part looks like. */
class Failure {
  readonly errors: readonly string[]

  constructor(errors: readonly string[]) {
    this.errors = errors
  }
}

/** `programs` are all of the scenario: some are started by others. */
export function interpret(program: Program, programs: readonly Program[]): Expected {
  const values = sequence(program.nodes, programs)
  if (values instanceof Failure) return { status: 'failed', errors: values.errors }
  return { status: 'succeeded', shape: { round: program.again, values } }
}

function sequence(nodes: readonly Node[], programs: readonly Program[]): unknown[] | Failure {
  const values: unknown[] = []
  for (const node of nodes) {
    const value = evaluate(node, programs)
    if (value instanceof Failure) return value
    values.push(value)
  }
  return values
}

function evaluate(node: Node, programs: readonly Program[]): unknown {
  switch (node.do) {
    case 'step':
      return stepFailure(node) ?? (node.asks ? ['value', { s: node.name }, 'value'] : { s: node.name })
    case 'sleep':
      return 'slept'
    case 'value':
      return 'value'
    case 'note':
      return 'noted'
    case 'patched':
      return 'patched'
    case 'together': {
      const parts = node.parts.map((part) => sequence(part, programs))
      const failures = parts.filter((part) => part instanceof Failure)
      return failures.length === 0 ? parts : new Failure(failures.flatMap(({ errors }) => errors))
    }
    case 'try': {
      const part = sequence(node.part, programs)
      if (!(part instanceof Failure)) return part
      const caught = sequence(node.caught, programs)
      return caught instanceof Failure ? caught : ['caught', ...caught]
    }
    case 'throw':
      return new Failure([node.message])
    case 'wait':
    case 'send':
      return 'waited'
    case 'child':
      return evaluateChild(node, programs)
    case 'early':
      return evaluateEarly(node, programs)
    case 'many':
      return { m: node.count }
    case 'crowd':
      return 'crowded'
    case 'watch':
      return 'raced'
  }
}

/** What was made early fails where it is awaited, after everything before that has happened. */
function evaluateEarly({ wait, part, fate }: EarlyNode, programs: readonly Program[]): unknown {
  const first = sequence(part, programs)
  if (first instanceof Failure) return first
  if (fate === 'left') return { first, fate }
  if (fate === 'raced') return { first, later: 'raced' }
  const end = wait.do === 'sleep' ? 'slept' : evaluateChild({ ...wait, ms: null }, programs)
  return end instanceof Failure ? end : { first, later: end }
}

function evaluateChild({ program, ms }: ChildNode, programs: readonly Program[]): unknown {
  const child = interpret(programs[program] as Program, programs)
  // Time may win against it, however it ends.
  if (ms !== null) return 'raced'
  return child.status === 'failed' ? new Failure(['CHILD_FAILED']) : { c: child.shape }
}

function stepFailure({ name, ms, timeoutMs, fails, attempts }: StepNode): Failure | null {
  if (timeoutMs !== null && ms > timeoutMs) return new Failure([`${name}\\" took longer`])
  return fails >= attempts ? new Failure([`${name} fails`]) : null
}

/** A result without what the interpreter leaves open. */
export function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (typeof value !== 'object' || value === null) return value
  if ('n' in value && 's' in value) return { s: value.s }
  if ('v' in value) return 'value'
  if ('p' in value) return 'patched'
  if ('w' in value) return 'waited'
  if ('r' in value) return 'raced'
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shapeOf(member)]))
}

/** The names of the steps of a program that say how they are undone. */
export function stepsOf(nodes: readonly Node[]): readonly StepNode[] {
  return nodes.flatMap((node) => {
    if (node.do === 'step') return [node]
    if (node.do === 'together') return node.parts.flatMap(stepsOf)
    if (node.do === 'early') return stepsOf(node.part)
    return node.do === 'try' ? [...stepsOf(node.part), ...stepsOf(node.caught)] : []
  })
}

/** An upper bound for how long a program takes when nothing goes wrong around it. */
export function longestMs({ nodes, again }: Program): number {
  return (again + 1) * 2 * sum(nodes)
}

function sum(nodes: readonly Node[]): number {
  let ms = 0
  for (const node of nodes) {
    if (node.do === 'sleep') ms += node.ms
    else if (node.do === 'wait' || node.do === 'child') ms += node.ms ?? 5_000
    else if (node.do === 'step') ms += 2 * node.attempts * (node.ms + node.retryMs)
    else if (node.do === 'together') for (const part of node.parts) ms += sum(part)
    else if (node.do === 'early') ms += sum(node.part) + 2 * (node.wait.ms ?? 5_000)
    else if (node.do === 'many') ms += 20 * node.count
    else if (node.do === 'try') ms += sum(node.part) + sum(node.caught)
  }
  return ms
}
