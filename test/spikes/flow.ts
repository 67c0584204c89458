// The graph of the tests: an order is checked, then charged and reserved side by side, and shipped when both are done and
// a human has confirmed it. A step may end at once or wait for a message of its name.

import type { StepTools } from '../../src/core/runtime/attempt.ts'
import type { Definition } from '../../src/core/definition/definition.ts'
import { done, graph, waiting, type Ended, type GraphOptions } from './graph.ts'

export interface FlowWorld {
  readonly performed: { readonly step: string; readonly key: string; readonly attempt: number }[]
  readonly flow: Definition
}

type Hook = (tools: StepTools) => Ended | void | Promise<Ended | void>

export interface FlowHooks {
  readonly check?: Hook
  readonly charge?: Hook
  readonly reserve?: Hook
  readonly ship?: Hook
  readonly retry?: NonNullable<GraphOptions['retry']>
}

export function flowWorld({ retry, ...hooks }: FlowHooks = {}): FlowWorld {
  const performed: FlowWorld['performed'] = []
  const begin = (step: keyof typeof hooks, tools: StepTools) => {
    performed.push({ step, key: tools.idempotencyKey, attempt: tools.attempt })
    return hooks[step]?.(tools)
  }
  const flow = graph('flow', {
    steps: {
      check: { events: ['valid', 'invalid'], perform: async (_, tools) => (await begin('check', tools)) ?? 'valid' },
      charge: {
        events: ['charged', 'free'],
        perform: async ({ input }, tools) => (await begin('charge', tools)) ?? { event: 'charged', data: input },
      },
      reserve: {
        events: ['reserved', 'sold-out'],
        perform: async (_, tools) => (await begin('reserve', tools)) ?? waiting,
      },
      ship: {
        events: ['shipped'],
        perform: async ({ steps }, tools) => (await begin('ship', tools)) ?? { event: 'shipped', data: { ...steps } },
      },
    },
    start: 'check',
    transitions: {
      check: { valid: ['charge', 'reserve'], invalid: done },
      charge: { charged: 'ship', free: 'ship' },
      reserve: { reserved: 'ship', 'sold-out': done },
      ship: { shipped: done },
    },
    ...(retry === undefined ? {} : { retry }),
  })
  return { performed, flow }
}
