// Effects that are performed one after the other, and deciders that are registered once, on every store.

import { describe, expect, it } from 'vitest'
import { decider, decision, topic } from 'holdfast'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'
import { orderOf } from './order.ts'

interface Letter {
  readonly to: string
  readonly text: string
}

/** Notes when each letter is begun and done, and keeps all of them back until it opens. */
function office() {
  const lines: string[] = []
  const kept = new Map<string, () => void>()
  let isOpen = false
  return {
    lines,
    post: async ({ to, text }: Letter): Promise<void> => {
      lines.push(`begin ${to} ${text}`)
      if (!isOpen) await new Promise<void>((resolve) => kept.set(text, resolve))
      lines.push(`end ${to} ${text}`)
    },
    open: (): void => {
      isOpen = true
      for (const resolve of kept.values()) resolve()
    },
  }
}

type Input =
  | { readonly type: 'Write'; readonly id: string; readonly to: string; readonly text: string }
  | { readonly type: 'Posted' }

/** It posts what is written, to each receiver in order. */
function deskOf(post: (letter: Letter) => Promise<void>) {
  return decider('desk', {
    initial: () => 0,
    evolve: (count: number, _event: { readonly type: 'Written' | 'Posted' }) => count + 1,
    decide: (_count, input: Input) => {
      if (input.type === 'Posted') return decision({ type: 'Posted' })
      const { to, text } = input
      return decision({ type: 'Written' }).effect({ type: 'post', to, text })
    },
    id: { Write: 'id', Posted: null },
    effects: {
      post: {
        perform: async ({ to, text }) => {
          await post({ to, text })
          return { type: 'Posted' }
        },
        orderBy: ({ to }) => to,
      },
    },
  })
}

describe.each(everyStore)('orderBy on $name', ({ make }) => {
  it('has effects of one text performed one after the other, by any worker, and others meanwhile', async () => {
    const { open } = await make()
    const { lines, post, open: openOffice } = office()
    const desk = deskOf(post)
    const workers = [await open({ workflows: [desk] }), await open({ workflows: [desk] })]
    for (const worker of workers) await worker.work()
    const client = await open({ workflows: [desk] })
    const write = (to: string, text: string) => client.execute(desk, { type: 'Write', id: '1', to, text })
    for (const text of ['1', '2', '3']) await write('Ada', text)
    await write('Bob', '4')
    await until('both have a letter on its way', () => lines.length === 2)
    expect([...lines].sort()).toEqual(['begin Ada 1', 'begin Bob 4'])
    openOffice()
    await until('all are posted', async () => (await client.state(desk, '1')) === 8)
    const ofAda = lines.filter((line) => line.includes('Ada'))
    expect(ofAda).toEqual(['1', '2', '3'].flatMap((text) => [`begin Ada ${text}`, `end Ada ${text}`]))
    expect(lines.filter((line) => line.includes('Bob'))).toEqual(['begin Bob 4', 'end Bob 4'])
  })
})

describe.each(everyStore)('deciders of a Holdfast on $name', ({ make }) => {
  it('IF-A11 of one type and version are registered once', async () => {
    const { open } = await make()
    await expect(open({ workflows: [orderOf(), orderOf()] })).rejects.toMatchObject({ code: 'WORKFLOW_EXISTS' })
    await expect(open({ workflows: [orderOf(), topic('order')] as never })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  })
})
