import { describe, expect, it } from 'vitest'
import { fatal } from '../../../src/core/definition/retry-mark.ts'
import type { StepTools } from '../../../src/core/runtime/attempt.ts'
import { workflow, type Body } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, type Held } from '../../support/function-rig.ts'

const constant = { maxAttempts: 2, initial: 10, kind: 'constant', jitter: { mode: 'none' } } as const
const late = { ...constant, initial: '1h' } as const

/** Books three things, each of which can be undone, then fails. */
function booking(undone: string[], options: { readonly failing?: string } = {}): Body<unknown, unknown> {
  return async (ctx) => {
    for (const name of ['a', 'b', 'c']) {
      await ctx.step(name, () => ({ id: name.toUpperCase() }), {
        retry: constant,
        undo: (booked, step) => {
          undone.push(`${booked?.id} ${step.attempt}`)
          if (options.failing === name) throw new Error(`${name} cannot be undone`)
        },
      })
    }
    await ctx.step('last', () => Promise.reject(new Error('No room')), { retry: 'none' })
  }
}

async function failedWith(held: Held): Promise<unknown> {
  const last = (await held.journal()).at(-1)
  return last?.kind === 'failed' ? last.meta : `the last entry is ${last?.kind}`
}

describe('undo of a run that fails', () => {
  it('happens in the reverse order of the journal, with what each step returned, and then the run fails', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const held = await (await rig.start(workflow('undo.order', booking(undone)))).begin()
    expect(undone).toEqual(['C 1', 'B 1', 'A 1'])
    expect((await held.story()).slice(7)).toEqual([
      'step-failed last',
      'failing',
      'undone c',
      'undone b',
      'undone a',
      'failed',
    ])
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { message: 'No room' } })
    expect(await failedWith(held)).toEqual({ cause: 8, notUndone: [] })
    expect(held.departure).toMatchObject({ kind: 'ended', status: 'failed', seq: 13, reason: null })
  })

  it('the store learns what there is to undo: possible before the step begins, due with the failure', async () => {
    const rig = new FunctionRig()
    await (await rig.start(workflow('undo.reported', booking([])))).begin()
    expect(rig.commits.map(({ undo, append }) => [append.map(({ kind }) => kind).join(' '), undo])).toEqual([
      ['begun', 'possible'],
      ['step-succeeded begun', 'possible'],
      ['step-succeeded begun', 'possible'],
      ['step-succeeded', 'possible'],
      ['step-failed failing', 'due'],
      ['undone', null],
      ['undone', null],
      ['undone failed', null],
    ])
  })

  it('is begun only when everything before it is durable', async () => {
    const rig = new FunctionRig()
    const durable: number[] = []
    let runId = ''
    const flow = workflow('undo.barrier', async (ctx) => {
      const undo = (): void => void durable.push(rig.committedSeq(runId))
      await ctx.step('a', () => 1, { undo })
      await ctx.step('b', () => 2, { undo })
      throw fatal('Enough')
    })
    const held = await rig.start(flow)
    runId = held.runId
    await held.begin()
    const done = ['begun a', 'step-succeeded a', 'begun b', 'step-succeeded b']
    expect(await held.story()).toEqual(['started', ...done, 'failing', 'undone b', 'undone a', 'failed'])
    expect(durable).toEqual([6, 7])
  })

  it('IF-U1 gets tools of its own: a key that is the same on every attempt and is not that of the step', async () => {
    const rig = new FunctionRig()
    const keys: string[] = []
    const seen: StepTools[] = []
    const flow = workflow('undo.tools', async (ctx) => {
      await ctx.step('a/b', (step) => void keys.push(step.idempotencyKey), {
        retry: constant,
        undo: (_, step) => {
          seen.push(step)
          keys.push(step.idempotencyKey)
          step.heartbeat()
          if (step.attempt === 1) throw new Error('Once more')
        },
      })
      throw fatal('Enough')
    })
    const held = await (await rig.start(flow)).begin()
    await rig.pass(10)
    const [key = ''] = keys
    expect(keys).toEqual([key, `${key}:undo`, `${key}:undo`])
    expect(seen.map(({ attempt, isRetry }) => [attempt, isRetry])).toEqual([
      [1, false],
      [2, true],
    ])
    expect(seen.map((step) => [step.isCancelled(), step.abortSignal.aborted])).toEqual([
      [false, false],
      [false, false],
    ])
    expect((await held.story()).slice(3)).toEqual(['failing', 'undo-attempt-failed a%2Fb', 'undone a%2Fb', 'failed'])
  })

  it('of a step that failed does not happen; of one that is under way it does, once that has ended', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const undo = (name: string) => () => void undone.push(name)
    const flow = workflow('undo.only', async (ctx) => {
      await ctx.step('bad', () => Promise.reject(new Error('Bad')), { retry: 'none', undo: undo('bad') }).catch(() => 1)
      void ctx.step('running', rig.gated, { undo: undo('running') })
      await ctx.step('good', () => 1, { undo: undo('good') })
      throw fatal('Enough')
    })
    const held = await (await rig.start(flow)).begin()
    expect(undone).toEqual([])
    await rig.succeed('running')
    expect(undone).toEqual(['running', 'good'])
    expect((await held.story()).at(-1)).toBe('failed')
  })

  it('that fails for good is reported at the end and keeps no other from being undone', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const held = await (await rig.start(workflow('undo.bad', booking(undone, { failing: 'b' })))).begin()
    await rig.pass(10)
    expect(undone).toEqual(['C 1', 'B 1', 'B 2', 'A 1'])
    expect((await held.story()).slice(9)).toEqual([
      'undone c',
      'undo-attempt-failed b',
      'undo-failed b',
      'undone a',
      'failed',
    ])
    expect(await failedWith(held)).toEqual({ cause: 8, notUndone: ['b'] })
  })

  it('that takes longer than its step may is aborted and tried again', async () => {
    const rig = new FunctionRig()
    const flow = workflow('undo.timeout', async (ctx) => {
      await ctx.step('a', () => 1, { retry: constant, timeout: '5s', undo: (_, step) => rig.gated(step) })
      throw fatal('Enough')
    })
    const held = await (await rig.start(flow)).begin()
    const first = rig.gate('undo a')
    await rig.pass(5_000)
    expect(first.tools.abortSignal.reason).toMatchObject({ code: 'STEP_TIMEOUT' })
    await rig.pass(10)
    await rig.succeed('undo a')
    expect((await held.story()).slice(3)).toEqual(['failing', 'undo-attempt-failed a', 'undone a', 'failed'])
  })

  it('releases the run for a long delay and honours it after a recovery', async () => {
    const rig = new FunctionRig()
    let tries = 0
    const flow = workflow('undo.late', async (ctx) => {
      await ctx.step('a', () => 1, {
        retry: late,
        undo: () => (tries += 1) === 1 && Promise.reject(new Error('Later')),
      })
      throw fatal('Enough')
    })
    const start = rig.clock.now()
    const held = await (await rig.start(flow)).begin()
    expect(held.departure).toEqual({ kind: 'released' })
    expect(await rig.run(held.runId)).toMatchObject({ status: 'pending', due: start + 3_600_000, undo: 'due' })
    await held.goOn()
    expect(tries).toBe(2)
    expect((await held.story()).slice(3)).toEqual(['failing', 'undo-attempt-failed a', 'undone a', 'failed'])
  })

  it('a run that was cancelled while its undo is delayed still waits for the delay, then ends as cancelled', async () => {
    const rig = new FunctionRig()
    let tries = 0
    const flow = workflow('undo.cancelled', async (ctx) => {
      await ctx.step('a', () => 1, {
        retry: late,
        undo: () => (tries += 1) === 1 && Promise.reject(new Error('Later')),
      })
      throw fatal('Enough')
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.cancel('changed my mind')).toMatchObject({ outcome: 'done', run: { status: 'cancelling' } })
    await held.goOn()
    await rig.pass(3_599_999)
    expect(tries).toBe(1)
    await rig.pass(1)
    expect(tries).toBe(2)
    expect((await held.story()).slice(5)).toEqual(['cancelling', 'undone a', 'cancelled'])
    expect(held.departure).toMatchObject({ kind: 'ended', status: 'cancelled', data: null, reason: 'changed my mind' })
  })

  it('a crash between two undos repeats none that was recorded and forgets none that was not', async () => {
    for (const at of ['failing', 'undone c', 'undone b', 'undone a']) {
      const rig = new FunctionRig()
      const undone: string[] = []
      const flow = workflow('undo.crash', booking(undone))
      const whole = await (await rig.start(flow)).begin()
      const story = await whole.story()
      const prefix = (await whole.journal()).slice(0, story.indexOf(at) + 1)
      const before = undone.length
      const second = new FunctionRig()
      const held = await (await second.adopt(flow, prefix)).begin()
      expect(await held.story()).toEqual(story)
      expect(await failedWith(held)).toEqual(await failedWith(whole))
      const left = ['undone c', 'undone b', 'undone a'].filter((kind) => story.indexOf(kind) >= prefix.length)
      expect(undone.slice(before).map((name) => `undone ${name.charAt(0).toLowerCase()}`)).toEqual(left)
    }
  })

  it('a body that changed reports what it does not know any more, and undoes the rest', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const whole = await (await rig.start(workflow('undo.drift', booking([])))).begin()
    const prefix = (await whole.journal()).slice(0, 9)
    expect(prefix.at(-1)?.kind).toBe('failing')
    const second = new FunctionRig()
    const changed = workflow('undo.drift', async (ctx) => {
      await ctx.step('a', () => null, { undo: () => void undone.push('a') })
      await ctx.step('b', () => null)
      await ctx.step('renamed', () => void undone.push('never begun'), { undo: () => void undone.push('renamed') })
    })
    const held = await (await second.adopt(changed, prefix)).begin()
    await second.pass(5_000)
    expect(undone).toEqual(['a'])
    expect(await held.status()).toBe('failed')
    expect(await failedWith(held)).toEqual({ cause: 8, notUndone: ['b', 'c'] })
  })

  it('waits when a result cannot be read any more: nothing is given up', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const whole = await (await rig.start(workflow('undo.corrupt', booking([])))).begin()
    const prefix = (await whole.journal()).slice(0, 6)
    const spoiled = prefix.map((entry) => (entry.name === 'b' ? { ...entry, data: '{' } : entry)) as typeof prefix
    const held = await (await new FunctionRig().adopt(workflow('undo.corrupt', booking(undone)), spoiled)).begin()
    expect(undone).toEqual([])
    expect((await held.journal()).at(-1)).toMatchObject({ kind: 'paused', meta: { reason: 'unreadable' } })
  })

  it('gets a large result back from where it was kept, also after an outage and a crash', async () => {
    const texts: string[] = []
    let isUp = true
    const offload = {
      thresholdBytes: 100,
      put: async (text: string) => String(texts.push(text) - 1),
      get: async (reference: string) => {
        if (!isUp) throw new Error('Down')
        return texts[Number(reference)] ?? ''
      },
    }
    const rig = new FunctionRig({ offload })
    const undone: number[] = []
    const flow = workflow('undo.large', async (ctx) => {
      const large = await ctx.step('large', () => 'x'.repeat(1_000), {
        undo: (text) => void undone.push(text?.length ?? 0),
      })
      await ctx.step('after', rig.gated)
      return large
    })
    const held = await (await rig.start(flow)).begin()
    await held.cancel()
    await held.crash()
    isUp = false
    await held.goOn()
    await rig.pass(1_000)
    expect(undone).toEqual([])
    isUp = true
    await rig.pass(5_000)
    expect(undone).toEqual([1_000])
    expect(await held.status()).toBe('cancelled')
  })

  it('an error that the body makes of its own has no cause in the journal', async () => {
    const rig = new FunctionRig()
    const flow = workflow('undo.own', { retry: 'none' }, async (ctx) => {
      await ctx.step('a', () => 1)
      throw new Error('Mine')
    })
    const held = await (await rig.start(flow)).begin()
    expect(await failedWith(held)).toBeNull()
  })

  it('the cause is the failed step whose error ended the body, also when a replay showed it', async () => {
    const flow = workflow('undo.cause', async (ctx) => {
      const failed = ctx.step('a', () => Promise.reject(new Error('Bad')), { retry: 'none' })
      await ctx.step('b', () => Promise.reject(new Error('Other')), { retry: 'none' }).catch(() => undefined)
      await ctx.sleep('1 day')
      await failed
    })
    const held = await (await new FunctionRig().start(flow)).begin()
    await held.goOn('replayed')
    const cause = (await held.journal()).find(({ name }) => name === 'a')
    expect(await failedWith(held)).toEqual({ cause: cause?.seq, notUndone: [] })
  })

  it('the attempts of the body come before: nothing is undone while it will be tried again', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    let bodies = 0
    const flow = workflow('undo.retry', { retry: constant }, async (ctx) => {
      bodies += 1
      await ctx.step('a', () => 1, { undo: () => void undone.push('a') })
      throw new Error('Again')
    })
    const held = await (await rig.start(flow)).begin()
    expect(held.departure).toEqual({ kind: 'released' })
    expect([bodies, undone]).toEqual([1, []])
    await held.goOn()
    expect([bodies, undone]).toEqual([2, ['a']])
    expect((await held.story()).slice(1)).toEqual([
      'begun a',
      'step-succeeded a',
      'attempt-failed',
      'failing',
      'undone a',
      'failed',
    ])
  })
})

describe('the end of the time for a run', () => {
  it('asks what runs to stop, records and undoes what was done, and fails the run', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const flow = workflow('undo.time', async (ctx) => {
      await ctx.step('a', () => 1, { undo: () => void undone.push('a') })
      await ctx.step('slow', rig.gated, { undo: () => void undone.push('slow') })
    })
    const held = await (await rig.start(flow)).begin()
    const slow = rig.gate('slow')
    const error = new Error('Out of time')
    held.frame.fail(error)
    expect(slow.tools.abortSignal.reason).toBe(error)
    slow.succeed('late')
    await rig.quiet()
    expect(undone).toEqual(['slow', 'a'])
    expect((await held.story()).slice(1)).toEqual([
      'begun a',
      'step-succeeded a',
      'begun slow',
      'step-succeeded slow',
      'failing',
      'undone slow',
      'undone a',
      'failed',
    ])
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { message: 'Out of time' } })
    held.frame.fail(new Error('Twice'))
    await rig.quiet()
    expect(await held.story()).toHaveLength(9)
  })

  it('fails a run that has nothing to undo with one entry, and does not retry', async () => {
    const rig = new FunctionRig()
    const held = await (await rig.start(workflow('undo.time', (ctx) => ctx.step('slow', rig.gated)))).begin()
    held.frame.fail(new Error('Out of time'))
    await rig.fail('slow', new Error('I was asked to stop'))
    expect(await held.story()).toEqual(['started', 'failed'])
  })

  it('is no business of a run that undoes, and waits for the answer of one that is being parked', async () => {
    const rig = new FunctionRig()
    const flow = workflow('undo.busy', async (ctx) => {
      await ctx.step('a', () => 1, { undo: (_, step) => rig.gated(step) })
      throw fatal('Enough')
    })
    const held = await (await rig.start(flow)).begin()
    held.frame.fail(new Error('Out of time'))
    await rig.succeed('undo a')
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { message: 'Enough' } })

    let asleep: Held | null = null
    const second = new FunctionRig({
      onCommit: ({ status, runId }) => {
        if (status !== 'waiting') return
        asleep?.frame.fail(new Error('Out of time'))
        second.store.deliver(runId)
      },
    })
    asleep = await second.start(workflow('undo.parking', async (ctx) => void (await ctx.receive('go'))))
    await asleep.begin()
    expect(await asleep.story()).toEqual(['started', 'waiting go', 'failed'])
  })
})
