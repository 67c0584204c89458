import { describe, expect, it } from 'vitest'
import type { Message } from '../../../../src/core/model/message.ts'
import { loadPage } from '../../../../src/core/rules/claims/load.ts'
import { loadBudgets } from '../../../../src/core/rules/claims/load-budget.ts'
import { loadMailbox } from '../../../../src/engine/store/mailbox-pages.ts'
import type { LoadRequest, Store } from '../../../../src/store.ts'

function messages(count: number, data = '1'): Message[] {
  const message = { runId: 'r', kind: 'signal', name: 'go', data, policy: null, at: 0 } as const
  return Array.from({ length: count }, (_, at) => ({ ...message, id: `m${at + 1}`, position: at + 1 }))
}

function storeOf(unread: readonly Message[]) {
  const asked: LoadRequest[] = []
  const load: Store['load'] = async (requests, mostBytes) => {
    asked.push(...requests)
    const bounds = loadBudgets(mostBytes)
    return requests.map((request) => loadPage([], unread, request, bounds))
  }
  return { store: { load }, asked }
}

async function sizes(pages: AsyncIterable<readonly Message[]>): Promise<number[]> {
  const all: number[] = []
  for await (const page of pages) all.push(page.length)
  return all
}

describe('the pages of a mailbox', () => {
  it('are full, and the last one is known to be the last without another load', async () => {
    const { store, asked } = storeOf(messages(2_500))
    expect(await sizes(loadMailbox(store, 'r'))).toEqual([1_000, 1_000, 500])
    expect(asked).toEqual([0, 1_000, 2_000].map((messagesAfter) => ({ runId: 'r', after: 0, limit: 0, messagesAfter })))
  })

  it('go on behind a page that its bytes have ended', async () => {
    const { store } = storeOf(messages(5, 'x'.repeat(100)))
    expect(await sizes(loadMailbox(store, 'r', 150))).toEqual([2, 2, 1])
    expect(await sizes(loadMailbox(store, 'r', 1))).toEqual([1, 1, 1, 1, 1])
  })

  it('are none of an empty mailbox, and none is empty', async () => {
    expect(await sizes(loadMailbox(storeOf([]).store, 'r'))).toEqual([])
    expect(await sizes(loadMailbox(storeOf(messages(1_000)).store, 'r'))).toEqual([1_000])
  })

  it('have what arrives while they are read', async () => {
    const unread = messages(1_000)
    const pages = loadMailbox(storeOf(unread).store, 'r')
    await pages.next()
    unread.push(...messages(1_001).slice(-1))
    expect(await sizes(pages)).toEqual([1])
  })
})
