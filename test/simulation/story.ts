// Prints a failure for people: what was set up, what happened, and which promise was broken.

import type { Node } from './node.ts'
import { faultKinds, type Operation, type Scenario } from './scenario.ts'
import type { Outcome } from './simulate.ts'

/** The last lines of a story say the most. */
const mostLines = 80

export function replayCommand(seed: number, canary?: string): string {
  return `npm run simulate -- --from ${seed} --seeds 1 --verbose${canary === undefined ? '' : ` --canary ${canary}`}`
}

export function scenarioLines({
  swarm,
  isolation,
  programs,
  operations,
  blows,
  strangers,
  chaosMs,
}: Scenario): readonly string[] {
  const started = new Set(operations.map(({ program }) => program))
  const used = new Set([...started, ...programs.flatMap(({ isChild }, index) => (isChild ? [index] : []))])
  const faults = faultKinds.filter((kind) => swarm.faults[kind] > 0).map((kind) => `${kind} ${swarm.faults[kind]}`)
  const skews = swarm.skews.flatMap(({ shape }, index) => (shape === 'none' ? [] : [`p${index} ${shape}`]))
  return [
    `${swarm.workers} workers with ${swarm.slots} slots, ${swarm.parked} parked, lease ${swarm.leaseMs} ms, ` +
      `latency ${swarm.latencyMs} ms, batch ${swarm.batch ?? 'as it comes'}, chaos for ${Math.round(chaosMs)} ms`,
    `faults: ${faults.join(', ') || 'none'}; clocks: ${skews.join(', ') || 'right'}; store calls: ${isolation}`,
    ...programs.flatMap(({ nodes, again, type }, index) =>
      used.has(index)
        ? [`program ${index} (${type}${again > 0 ? `, ${again} times anew` : ''}): ${nodesText(nodes)}`]
        : [],
    ),
    ...operations.map((operation) => `at ${operation.at.toFixed(0)}: p${operation.by} ${operationText(operation)}`),
    ...strangers.map(({ at, row, ms }) => {
      const other = typeof row === 'number' ? 'a run that is held' : 'a run that waits for others'
      const which = row === 'first' ? 'the first run' : other
      return `at ${at.toFixed(0)}: a stranger locks the row of ${which} for ${ms.toFixed(0)} ms`
    }),
    ...blows.map((blow) => `at ${blow.at.toFixed(0)}: ${blow.kind} of p${blow.process}`),
  ]
}

export function outcomeLines(outcome: Outcome): readonly string[] {
  const { story, violations } = outcome
  const left = story.length - mostLines
  return [
    ...(left > 0 ? [`… ${left} lines before`] : []),
    ...story.slice(-mostLines),
    ...violations.map(({ name, runId, message }) => `✗ ${name}${runId === null ? '' : ` of ${runId}`}: ${message}`),
  ]
}

function operationText(operation: Operation): string {
  const of = `program ${operation.program}`
  switch (operation.kind) {
    case 'start':
      return `starts ${of} by ${operation.how}`
    case 'cancel':
      return `cancels ${of}, ${operation.mode}`
    case 'signal':
      return `sends ${operation.name} ${operation.id} to ${of}`
    case 'broadcast':
      return `broadcasts ${operation.id} to ${operation.topic}`
    default:
      return `asks to ${operation.kind} ${of}`
  }
}

function nodesText(nodes: readonly Node[]): string {
  return nodes.map(nodeText).join(', ')
}

function nodeText(node: Node): string {
  switch (node.do) {
    case 'step': {
      const { name, ms, fails, attempts, undo, kills, timeoutMs, asks } = node
      const more = [
        `${ms} ms`,
        ...(fails > 0 ? [`fails ${fails} of ${attempts}`] : []),
        ...(asks ? ['asks inside'] : []),
        ...(undo === 'none' ? [] : [`undo ${undo}`]),
        ...(kills > 0 ? [`kills ${kills} times`] : []),
        ...(timeoutMs === null ? [] : [`timeout ${timeoutMs}`]),
      ]
      return `${name}(${more.join(', ')})`
    }
    case 'sleep':
      return `sleep ${node.ms}`
    case 'value':
    case 'note':
      return node.of
    case 'patched':
      return `patched ${node.name}`
    case 'together':
      return `together [${node.parts.map(nodesText).join(' | ')}]`
    case 'try':
      return `try [${nodesText(node.part)}] catch [${nodesText(node.caught)}]`
    case 'throw':
      return 'throw'
    case 'wait':
      return `wait for ${node.on}${node.ms === null ? '' : ` or ${node.ms}`}`
    case 'child':
      return `child ${node.program} (${node.onParentEnd})${node.ms === null ? '' : ` or ${node.ms}`}`
    case 'early':
      return `made early and ${node.fate}: ${nodeText(node.wait)} [${nodesText(node.part)}]`
    case 'many':
      return `${node.count} at once`
    case 'crowd':
      return `a crowd of ${node.members.map(({ program, onParentEnd }) => `${program} (${onParentEnd})`).join(', ')}`
    case 'watch':
      return 'wait for the end of who started it'
    case 'send':
      return `send to ${node.to}`
  }
}
