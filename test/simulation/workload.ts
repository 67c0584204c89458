// Draws what is to be done: programs, who starts them how often and in which way, and what an operator does to them.

import type { Draw } from './draw.ts'
import { type Program } from './program.ts'
import { signalNames, type Node, type StepNode } from './node.ts'
import type { Operation, StartPlan } from './scenario.ts'

/** Programs that a client starts, and behind them those that they start themselves. */
export function drawPrograms(draw: Draw): readonly Program[] {
  const count = draw.pick([1, 1, 2, 2, 3, 4, 6, 8])
  const family: Family = { first: count, children: [], talks: draw.chance(0.6) }
  const programs = Array.from({ length: count }, () => drawProgram(draw, family))
  return [...programs, ...family.children]
}

/** The programs that others start, as they are drawn. */
interface Family {
  /** The index of the first of them. */
  readonly first: number
  readonly children: Program[]
  /** Its programs wait for signals and start others. */
  readonly talks: boolean
}

function drawProgram(draw: Draw, family: Family): Program {
  const names: Names = { next: 0, isDeadly: draw.chance(0.06), family }
  const size = draw.pick([1, 2, 2, 3, 3, 4, 5])
  const nodes = drawNodes(draw, names, size, 2)
  return {
    nodes,
    again: draw.chance(0.15) ? draw.int(1, 2) : 0,
    type: draw.chance(0.2) ? 'leased' : 'plain',
    isChild: false,
  }
}

/** A child is small, and has no child of its own most of the time. */
function drawChild(draw: Draw, family: Family): number {
  const index = family.first + family.children.length
  const names: Names = { next: 0, isDeadly: false, family: { ...family, talks: false } }
  const child: Program = { nodes: [], again: 0, type: draw.chance(0.2) ? 'leased' : 'plain', isChild: true }
  family.children.push(child)
  const nodes = [...drawNodes(draw, names, draw.int(1, 2), 1)]
  if (family.children.length < 6 && draw.chance(0.2)) nodes.push(drawTalk(draw, family))
  family.children[index - family.first] = { ...child, nodes }
  return index
}

function drawTalk(draw: Draw, family: Family): Node {
  const ms = draw.chance(0.4) ? null : draw.pick([1, 300, 1_500, 6_000])
  if (draw.chance(0.6) || family.children.length >= 6) {
    return { do: 'wait', on: draw.pick([...signalNames, 'news', 'jobs'] as const), ms }
  }
  const onParentEnd = draw.pick(['cancel', 'cancel', 'abandon', 'wait'] as const)
  return { do: 'child', program: drawChild(draw, family), ms, onParentEnd }
}

interface Names {
  next: number
  /** Some of its steps end the process that performs them. */
  readonly isDeadly: boolean
  readonly family: Family
}

function drawNodes(draw: Draw, names: Names, size: number, depth: number): readonly Node[] {
  return Array.from({ length: size }, () => drawNode(draw, names, depth))
}

function drawNode(draw: Draw, names: Names, depth: number): Node {
  if (names.family.talks && draw.chance(0.25)) return drawTalk(draw, names.family)
  const roll = draw.fraction()
  if (roll < 0.5 || depth === 0) return drawStep(draw, names)
  if (roll < 0.65) return { do: 'sleep', ms: draw.pick([1, 30, 400, 1_500, 4_000]) }
  if (roll < 0.7) return { do: 'value', of: draw.pick(['now', 'random', 'uuid']) }
  if (roll < 0.74) return { do: 'note', of: draw.pick(['log', 'progress']) }
  if (roll < 0.78) return { do: 'patched', name: `p${names.next++}` }
  if (roll < 0.89) {
    const parts = Array.from({ length: draw.int(2, 3) }, () => drawNodes(draw, names, draw.int(1, 2), depth - 1))
    return { do: 'together', parts }
  }
  if (roll < 0.97) {
    const part = drawNodes(draw, names, draw.int(1, 2), depth - 1)
    return { do: 'try', part, caught: drawNodes(draw, names, 1, depth - 1) }
  }
  return { do: 'throw', message: `thrown ${names.next++} here` }
}

function drawStep(draw: Draw, names: Names): StepNode {
  const { isDeadly } = names
  const name = `s${names.next++}`
  const attempts = draw.int(1, 3)
  // Most steps end well: a program that fails at its first step shows little.
  const fails = draw.chance(0.06) ? attempts : draw.chance(0.25) ? draw.int(0, attempts - 1) : 0
  const timesOut = draw.chance(0.03)
  return {
    do: 'step',
    name,
    ms: timesOut ? 700 : draw.pick([0, 0, 0, 5, 40, 40, 300, 300, 1_200, 3_000]),
    fails,
    attempts,
    retryMs: draw.pick([5, 50, 50, 1_500]),
    timeoutMs: timesOut ? 100 : draw.chance(0.1) ? 20_000 : null,
    undo: draw.chance(0.35) ? draw.pick(['well', 'well', 'badly', 'second try']) : 'none',
    // What goes on after its timeout may well overlap with its next attempt; that is its own fault.
    heeds: draw.chance(0.75) || timesOut,
    kills: isDeadly && draw.chance(0.2) ? draw.pick([1, 2, 6, 9]) : 0,
    asks: false,
  }
}

export function drawOperations(draw: Draw, programs: readonly Program[], processes: number, chaosMs: number) {
  const operations: Operation[] = []
  const isSteered = draw.chance(0.6)
  const isWritten = draw.chance(0.4)
  programs.forEach(({ isChild }, program) => {
    if (isChild) return
    const at = draw.between(0, chaosMs / 2)
    const plan = drawStart(draw, program)
    const repeats = draw.pick([1, 1, 2, 3])
    for (let time = 0; time < repeats; time += 1) {
      const later = draw.chance(0.5) ? draw.between(0, 20) : draw.between(0, chaosMs / 2)
      operations.push({ ...plan, at: time === 0 ? at : at + later, by: draw.int(0, processes - 1) })
    }
    if (isSteered && draw.chance(0.6)) {
      for (let left = draw.int(1, 3); left > 0; left -= 1) {
        operations.push(drawSteering(draw, program, at + draw.between(0, chaosMs / 2), draw.int(0, processes - 1)))
      }
    }
    if (isWritten) {
      for (let left = draw.int(0, 6); left > 0; left -= 1) {
        const when = { at: at + draw.between(0, chaosMs / 2), by: draw.int(0, processes - 1) }
        const id = `m${draw.int(1, 4)}`
        if (draw.chance(0.6)) operations.push({ kind: 'signal', program, name: draw.pick(signalNames), id, ...when })
        else
          operations.push({
            kind: 'broadcast',
            program,
            topic: draw.pick(['news', 'jobs']),
            id: `${program}.${id}`,
            ...when,
          })
      }
    }
  })
  return operations.sort((a, b) => a.at - b.at)
}

function drawStart(draw: Draw, program: number): StartPlan {
  return {
    kind: 'start',
    program,
    how: draw.pick(['id', 'idempotency-key', 'key', 'key-return', 'anyhow']),
    timeoutMs: draw.chance(0.08) ? draw.int(500, 6_000) : null,
    expiresInMs: draw.chance(0.05) ? draw.int(200, 3_000) : null,
    runAtMs: draw.chance(0.1) ? draw.int(1, 2_000) : null,
    priority: draw.int(0, 2),
    waits: draw.chance(0.4),
  }
}

function drawSteering(draw: Draw, program: number, at: number, by: number): Operation {
  const kind = draw.pick(['cancel', 'cancel', 'pause', 'pause', 'resume', 'retry', 'remove'] as const)
  if (kind !== 'cancel') return { kind, program, at, by }
  return { kind, program, at, by, mode: draw.chance(0.75) ? 'cooperative' : 'now' }
}
